//! The machine this program runs on, asked through files and bounded commands.
//!
//! This is not the sandbox: it runs only well-known tools by name with fixed arguments, and never candidate code.
#![expect(unsafe_code, reason = "kill of a process group has no safe form in std")]

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::Gpu;
use crate::host::{Command, Ended, Host, Output};

/// Most bytes kept of a file or an output stream.
const BYTE_CAP: u64 = 1 << 20;

/// The machine this program runs on.
#[derive(Debug, Clone)]
pub struct LocalHost {
    path: OsString,
    home: Option<PathBuf>,
}

impl LocalHost {
    /// Takes search path and home folder from the environment.
    pub fn new() -> Self {
        Self {
            path: std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into()),
            home: std::env::var_os("HOME")
                .filter(|home| !home.is_empty())
                .map(PathBuf::from),
        }
    }

    /// The same host with `folder` searched first.
    #[must_use]
    pub fn prefer(mut self, folder: &Path) -> Self {
        let mut parts = vec![folder.to_path_buf()];
        parts.extend(std::env::split_paths(&self.path));
        if let Ok(path) = std::env::join_paths(parts) {
            self.path = path;
        }
        self
    }

    fn spawn(&self, command: &Command) -> std::io::Result<Child> {
        let program = match self.find(&command.program) {
            Some(path) => path,
            None => return Err(std::io::ErrorKind::NotFound.into()),
        };
        let mut process = std::process::Command::new(program);
        process
            .args(&command.args)
            .env_clear()
            .env("PATH", &self.path)
            .env("LC_ALL", "C")
            .env("TERM", "dumb")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        if let Some(home) = &self.home {
            process.env("HOME", home);
        }
        for name in &command.inherit {
            if let Some(value) = std::env::var_os(name) {
                process.env(name, value);
            }
        }
        process.spawn()
    }
}

impl Default for LocalHost {
    fn default() -> Self {
        Self::new()
    }
}

impl Host for LocalHost {
    fn run(&self, command: &Command) -> Output {
        let mut child = match self.spawn(command) {
            Ok(child) => child,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Output::absent(Ended::NotFound);
            }
            Err(_) => return Output::absent(Ended::NotStarted),
        };
        let stdout = drain(child.stdout.take());
        let stderr = drain(child.stderr.take());
        let started = Instant::now();
        let deadline = started + command.limit;
        let ended = loop {
            match child.try_wait() {
                Ok(Some(status)) => {
                    let code = status
                        .code()
                        .or_else(|| status.signal().map(|signal| 128 + signal));
                    break Ended::Exited(code.unwrap_or(-1));
                }
                Ok(None) if Instant::now() < deadline => {
                    let pause = if started.elapsed() < Duration::from_millis(50) {
                        1
                    } else {
                        10
                    };
                    thread::sleep(Duration::from_millis(pause));
                }
                Ok(None) => break Ended::TimedOut,
                Err(_) => break Ended::NotStarted,
            }
        };
        if ended != Ended::Exited(0) && child.try_wait().is_ok_and(|status| status.is_none()) {
            kill_group(&child);
            // The group leader is dying; reaping it cannot block for long.
            let _ = child.kill();
            let _ = child.wait();
        }
        // A grandchild that left the group may hold the pipes open: what is there after a moment is the output.
        Output {
            ended,
            stdout: collect(&stdout),
            stderr: collect(&stderr),
        }
    }

    fn read(&self, path: &Path) -> Option<String> {
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).ok()?;
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        file.take(BYTE_CAP).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn list(&self, path: &Path) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(path)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn find(&self, program: &str) -> Option<PathBuf> {
        if program.contains('/') {
            let path = PathBuf::from(program);
            return is_executable(&path).then_some(path);
        }
        std::env::split_paths(&self.path)
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join(program))
            .find(|path| is_executable(path))
    }

    fn home(&self) -> Option<PathBuf> {
        self.home.clone()
    }

    fn has_env(&self, name: &str) -> bool {
        std::env::var_os(name).is_some_and(|value| !value.is_empty())
    }

    fn nvml_gpus(&self) -> Option<Vec<Gpu>> {
        let driver = ["/dev/nvidiactl", "/proc/driver/nvidia/version", "/dev/dxg"];
        if !driver.iter().any(|path| self.exists(Path::new(path))) {
            return None;
        }
        // A wedged driver can block for ever: the thread is then left behind, and the answer is "no answer".
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let gpus = crate::Nvml::open().and_then(|nvml| nvml.gpus());
            let _ = sender.send(gpus);
        });
        receiver.recv_timeout(Duration::from_secs(5)).ok()?.ok()
    }
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// Reads a stream to its end in a thread, keeps the first [`BYTE_CAP`] bytes, and reports them as they come.
fn drain(stream: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let Some(mut stream) = stream else { return };
        let mut buffer = vec![0u8; 64 << 10];
        let mut room = usize::try_from(BYTE_CAP).unwrap_or(usize::MAX);
        while let Ok(count) = stream.read(&mut buffer) {
            let kept = count.min(room);
            room -= kept;
            if count == 0 || (kept > 0 && sender.send(buffer[..kept].to_vec()).is_err()) {
                return;
            }
        }
    });
    receiver
}

fn collect(chunks: &mpsc::Receiver<Vec<u8>>) -> String {
    let deadline = Instant::now() + Duration::from_millis(200);
    let mut bytes = Vec::new();
    while let Ok(chunk) = chunks.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        bytes.extend_from_slice(&chunk);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn kill_group(child: &Child) {
    let Ok(group) = libc::pid_t::try_from(child.id()) else {
        return;
    };
    // SAFETY: kill has no memory effects. The group was made by us (`process_group(0)`) and its leader is not reaped
    // yet, so the id cannot belong to anyone else.
    let _ = unsafe { libc::kill(-group, libc::SIGKILL) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hanging_command_is_killed_at_its_limit_with_its_children() {
        let host = LocalHost::new();
        let started = Instant::now();
        let command =
            Command::new("sh", ["-c", "echo early; sleep 30 & sleep 30"]).limit(Duration::from_millis(200));
        let output = host.run(&command);
        assert_eq!(output.ended, Ended::TimedOut);
        assert_eq!(output.stdout, "early\n");
        assert!(started.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn a_missing_program_is_not_found_and_a_status_is_kept() {
        let host = LocalHost::new();
        let missing = Command::new("no-such-program-here", Vec::<String>::new());
        assert_eq!(host.run(&missing).ended, Ended::NotFound);
        let failing = host.run(&Command::new("sh", ["-c", "echo out; echo err >&2; exit 7"]));
        let expected = Output {
            ended: Ended::Exited(7),
            stdout: "out\n".to_owned(),
            stderr: "err\n".to_owned(),
        };
        assert_eq!(failing, expected);
    }

    #[test]
    fn output_is_capped_and_the_command_still_ends() {
        let host = LocalHost::new();
        let output = host.run(&Command::new("sh", ["-c", "head -c 3000000 /dev/zero"]));
        assert_eq!(output.ended, Ended::Exited(0));
        assert_eq!(output.stdout.len() as u64, BYTE_CAP);
    }

    #[test]
    fn the_environment_of_a_command_is_cleared() {
        let output = LocalHost::new().run(&Command::new("env", Vec::<String>::new()));
        let mut names: Vec<&str> = output
            .stdout
            .lines()
            .filter_map(|line| line.split('=').next())
            .collect();
        names.sort_unstable();
        names.retain(|name| !["HOME", "LC_ALL", "PATH", "TERM", "_", "PWD", "SHLVL"].contains(name));
        assert_eq!(names, Vec::<&str>::new());
    }
}
