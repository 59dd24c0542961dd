//! Starting, watching, stopping: the starter's side.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::cgroup::Groups;
use crate::intercept::{own_executable, was_called};
use crate::sys::channel;
use crate::sys::process;
use crate::wire::{HELPER, Message, Wire};
use crate::{BoxError, BoxSpec, Ended, Finished, Level, probe};

/// How long a box may take to be set up.
const SETUP_LIMIT: Duration = Duration::from_secs(20);
/// How long after SIGSTOP all threads must have stopped.
const FREEZE_LIMIT: Duration = Duration::from_millis(500);
/// How often a process that runs to completion is looked at between its start and its end.
const WATCH: Duration = Duration::from_millis(100);

/// A running boxed process; everything in its box is killed when this is dropped.
#[derive(Debug)]
pub struct Child {
    warden: std::process::Child,
    status: Option<OwnedFd>,
    pid: i32,
    level: Level,
    threads: Threads,
    schedstat: Option<File>,
    state: Option<File>,
    ended: Option<Ended>,
    groups: Groups,
}

/// Whether the profile allows more than one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Threads {
    One,
    Many,
}

/// Runs to completion, with the standard output and error kept up to the cap.
pub fn run(spec: &BoxSpec) -> Result<Finished, BoxError> {
    run_while(spec, &|| true)
}

/// [`run`], killed when `keep_on` says no. It is asked several times a second.
pub fn run_while(spec: &BoxSpec, keep_on: &dyn Fn() -> bool) -> Result<Finished, BoxError> {
    let started = Instant::now();
    let mut child = start(spec, Output::Kept)?;
    let cap = spec.limits.output_bytes;
    let seen = Arc::new(AtomicU64::new(0));
    let reader = |pipe: Option<Box<dyn Read + Send>>| {
        let seen = Arc::clone(&seen);
        pipe.map(|pipe| thread::spawn(move || drain(pipe, cap, &seen)))
    };
    let (stdout, stderr) = (child.warden.stdout.take(), child.warden.stderr.take());
    let readers = [
        reader(stdout.map(|pipe| Box::new(pipe) as Box<dyn Read + Send>)),
        reader(stderr.map(|pipe| Box::new(pipe) as Box<dyn Read + Send>)),
    ];
    // The box itself keeps the wall limit; this one is only against a box that is stuck.
    let wall = spec
        .limits
        .wall
        .map_or(Duration::from_secs(86_400), |wall| wall + Duration::from_secs(5));
    let deadline = started + wall;
    let flooded = || {
        spec.flood_bytes
            .is_some_and(|most| seen.load(Ordering::Relaxed) > most)
    };
    let ended = loop {
        if let Some(ended) = child.wait_until(deadline.min(Instant::now() + WATCH)) {
            break ended;
        }
        if flooded() || !keep_on() {
            break child.kill();
        }
        if Instant::now() >= deadline {
            break child.wait(deadline);
        }
    };
    let [stdout, stderr] =
        readers.map(|reader| reader.and_then(|thread| thread.join().ok()).unwrap_or_default());
    Ok(Finished {
        ended,
        flooded: flooded(),
        truncated: stdout.1 || stderr.1,
        stdout: stdout.0,
        stderr: stderr.0,
        wall: started.elapsed(),
        level: child.level,
    })
}

/// Starts and returns once the box stands; standard output and error go nowhere.
pub fn spawn(spec: &BoxSpec) -> Result<Child, BoxError> {
    start(spec, Output::Discarded)
}

/// What happens to standard output and error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    Kept,
    Discarded,
}

/// Keeps the first `cap` bytes and reads on, so that a flood blocks nobody; counts all of them.
fn drain(mut pipe: impl Read, cap: usize, seen: &AtomicU64) -> (Vec<u8>, bool) {
    let mut kept = Vec::new();
    let mut truncated = false;
    let mut buffer = [0u8; 16 << 10];
    while let Ok(count @ 1..) = pipe.read(&mut buffer) {
        seen.fetch_add(count as u64, Ordering::Relaxed);
        let room = cap.saturating_sub(kept.len()).min(count);
        kept.extend_from_slice(&buffer[..room]);
        truncated |= room < count;
    }
    (kept, truncated)
}

fn memory_file(bytes: &[u8]) -> Result<File, BoxError> {
    let fd = channel::memory_file(c"ksmith").map_err(BoxError::io("make a memory file"))?;
    let mut file = File::from(fd);
    file.write_all(bytes)
        .map_err(BoxError::io("fill a memory file"))?;
    Ok(file)
}

fn check_paths(spec: &BoxSpec) -> Result<(), BoxError> {
    let problem = |path: &std::path::Path, reason: &str| BoxError::Path {
        path: path.display().to_string(),
        reason: reason.to_owned(),
    };
    for path in spec.read_only.iter().chain(&spec.read_write) {
        if !path.is_absolute()
            || path
                .components()
                .any(|part| part == std::path::Component::ParentDir)
        {
            return Err(problem(path, "it must be absolute and plain"));
        }
        let system = ["/usr", "/bin", "/lib", "/lib64", "/etc"]
            .iter()
            .any(|folder| path.starts_with(folder));
        if !system && !path.exists() {
            return Err(problem(path, "it does not exist"));
        }
    }
    Ok(())
}

fn start(spec: &BoxSpec, output: Output) -> Result<Child, BoxError> {
    if !was_called() {
        return Err(BoxError::NotIntercepted);
    }
    let isolation = probe();
    if isolation.level < spec.least && !spec.unsandboxed {
        return Err(BoxError::TooWeak {
            offered: isolation.level,
            required: spec.least,
            reasons: isolation.missing(),
        });
    }
    check_paths(spec)?;
    let groups = Groups::create(&spec.limits);
    let wire = Wire::new(spec, isolation, groups.entrances());
    let text = serde_json::to_vec(&wire).unwrap_or_default();
    let (ours, theirs) = channel::message_pair().map_err(BoxError::io("make a channel"))?;
    let mut fds = vec![memory_file(&text)?.into(), theirs];
    for fd in &spec.fds {
        fds.push(fd.try_clone().map_err(BoxError::io("duplicate a descriptor"))?);
    }
    let stdin = if spec.stdin.is_empty() {
        Stdio::null()
    } else {
        let mut file = memory_file(&spec.stdin)?;
        std::io::Seek::rewind(&mut file).map_err(BoxError::io("rewind a memory file"))?;
        file.into()
    };
    let pipe = || match output {
        Output::Kept => Stdio::piped(),
        Output::Discarded => Stdio::null(),
    };
    let mut command = Command::new(own_executable());
    command
        .arg(HELPER)
        .env_clear()
        .current_dir("/")
        .stdin(stdin)
        .stdout(pipe())
        .stderr(pipe());
    channel::pass_descriptors(&mut command, fds);
    let warden = command.spawn().map_err(BoxError::io("start the helper"))?;
    drop(command);
    let threads = match spec.profile {
        crate::Profile::Worker => Threads::One,
        _ => Threads::Many,
    };
    let mut child = Child {
        warden,
        status: Some(ours),
        pid: 0,
        level: isolation.level,
        threads,
        schedstat: None,
        state: None,
        ended: None,
        groups,
    };
    child.await_start()?;
    Ok(child)
}

impl Child {
    /// Waits until the box stands; learns the target's process id.
    fn await_start(&mut self) -> Result<(), BoxError> {
        let deadline = Instant::now() + SETUP_LIMIT;
        loop {
            match self.message(Some(deadline)) {
                Some((Message::Started, pid)) => {
                    self.pid = pid.unwrap_or(0);
                    self.schedstat = File::open(format!("/proc/{}/schedstat", self.pid)).ok();
                    self.state = File::open(format!("/proc/{}/stat", self.pid)).ok();
                }
                Some((Message::Ready, _)) => return Ok(()),
                Some((Message::Failed { step, reason }, _)) => return Err(BoxError::Setup { step, reason }),
                Some((Message::Ended(ended), _)) => {
                    self.finish(ended);
                    return Ok(());
                }
                None => {
                    let reason = "the helper ended or hung".to_owned();
                    return Err(BoxError::Setup {
                        step: "start".to_owned(),
                        reason,
                    });
                }
            }
        }
    }

    /// The next message; `None` at the deadline or if the helper is gone.
    fn message(&mut self, deadline: Option<Instant>) -> Option<(Message, Option<i32>)> {
        let socket = self.status.as_ref()?.as_raw_fd();
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let [ready] = channel::poll([socket], left).ok()?;
            if ready {
                let received = channel::receive(socket)
                    .ok()
                    .filter(|received| !received.bytes.is_empty())?;
                return Message::decode(&received.bytes).map(|message| (message, received.pid));
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return None;
            }
        }
    }

    /// Ends the helper, and with it the box; keeps and returns how it ended.
    fn finish(&mut self, ended: Ended) -> Ended {
        self.status = None;
        // The warden's own end: it kills all that is left, then exits. It never waits for the box's good will.
        let _ = self.warden.wait();
        let ended = if !ended.success() && self.groups.ran_out_of_memory() {
            Ended::OutOfMemory
        } else {
            ended
        };
        self.ended.get_or_insert(ended).clone()
    }

    /// The process id of the program or role itself, in our own view.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// The level of isolation that it really has.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Stops every thread; returns once all have stopped (or the process is gone).
    pub fn freeze(&mut self) -> Result<(), BoxError> {
        self.signal(libc::SIGSTOP, "freeze")?;
        let deadline = Instant::now() + FREEZE_LIMIT;
        while !self.stopped() {
            if Instant::now() > deadline {
                let source = std::io::Error::from(std::io::ErrorKind::TimedOut);
                return Err(BoxError::Io {
                    what: "freeze a boxed process",
                    source,
                });
            }
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// Lets a stopped process go on.
    pub fn thaw(&mut self) -> Result<(), BoxError> {
        self.signal(libc::SIGCONT, "thaw")
    }

    fn signal(&mut self, signal: i32, _what: &str) -> Result<(), BoxError> {
        if self.ended.is_some() || self.pid <= 0 {
            return Ok(());
        }
        match process::kill(self.pid, signal) {
            Err(error) if error.raw_os_error() != Some(libc::ESRCH) => Err(BoxError::Io {
                what: "signal a boxed process",
                source: error,
            }),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn stopped(&self) -> bool {
        // T: stopped, Z and X: dead. The state follows the command name, which may contain anything.
        let over = |stat: &[u8]| {
            let state = stat
                .iter()
                .rposition(|&byte| byte == b')')
                .and_then(|end| stat.get(end + 2));
            state.is_none_or(|state| b"TtZX".contains(state))
        };
        match self.threads {
            Threads::One => {
                let mut buffer = [0u8; 512];
                let count = self.state.as_ref().map(|file| file.read_at(&mut buffer, 0));
                count.is_none_or(|count| count.map_or(true, |count| over(&buffer[..count])))
            }
            Threads::Many => fs::read_dir(format!("/proc/{}/task", self.pid)).map_or(true, |tasks| {
                tasks
                    .flatten()
                    .all(|task| fs::read(task.path().join("stat")).map_or(true, |stat| over(&stat)))
            }),
        }
    }

    /// Kills everything in the box and waits for its end.
    pub fn kill(&mut self) -> Ended {
        match self.try_wait() {
            Some(ended) => ended,
            None => self.finish(Ended::Killed),
        }
    }

    /// How it ended, if it has; never blocks.
    pub fn try_wait(&mut self) -> Option<Ended> {
        if self.ended.is_some() {
            return self.ended.clone();
        }
        let socket = self.status.as_ref()?.as_raw_fd();
        match channel::poll([socket], Some(Duration::ZERO)) {
            Ok([false]) => None,
            Ok([true]) | Err(_) => Some(self.take_end(Instant::now())),
        }
    }

    /// How it ended, if it does so before `moment`; otherwise it goes on.
    fn wait_until(&mut self, moment: Instant) -> Option<Ended> {
        let socket = match &self.status {
            Some(status) if self.ended.is_none() => status.as_raw_fd(),
            Some(_) | None => return self.try_wait(),
        };
        let left = moment.saturating_duration_since(Instant::now());
        // An interrupted poll is answered by looking.
        let _ = channel::poll([socket], Some(left));
        self.try_wait()
    }

    /// Waits until it ends or the deadline passes; in that case it is killed and `TimedOut`.
    pub fn wait(&mut self, deadline: Instant) -> Ended {
        match &self.ended {
            Some(ended) => ended.clone(),
            None => self.take_end(deadline),
        }
    }

    fn take_end(&mut self, deadline: Instant) -> Ended {
        loop {
            match self.message(Some(deadline)) {
                Some((Message::Ended(ended), _)) => return self.finish(ended),
                Some(_) => {}
                None if Instant::now() >= deadline => return self.finish(Ended::TimedOut),
                // The helper itself is gone: only the kernel's memory killer does that.
                None => return self.finish(Ended::Signal(libc::SIGKILL)),
            }
        }
    }

    /// Nanoseconds that its threads were runnable without running, so far (`schedstat`).
    pub fn run_delay_ns(&self) -> Option<u64> {
        let delay = |text: &str| text.split_whitespace().nth(1)?.parse::<u64>().ok();
        match self.threads {
            Threads::One => {
                let mut buffer = [0u8; 96];
                let count = self.schedstat.as_ref()?.read_at(&mut buffer, 0).ok()?;
                delay(std::str::from_utf8(&buffer[..count]).ok()?)
            }
            Threads::Many => {
                let tasks = fs::read_dir(format!("/proc/{}/task", self.pid)).ok()?;
                tasks
                    .flatten()
                    .filter_map(|task| delay(&fs::read_to_string(task.path().join("schedstat")).ok()?))
                    .reduce(|a, b| a.saturating_add(b))
            }
        }
    }

    /// CPU time used by the process so far, all threads.
    pub fn cpu_time(&self) -> Option<Duration> {
        process::cpu_time(self.pid)
    }

    /// Bytes of resident memory of the process' own: without files and what it shares with us.
    pub fn own_memory(&self) -> Option<u64> {
        process::own_memory(self.pid)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.ended.is_none() {
            self.finish(Ended::Killed);
        }
    }
}
