//! Adversaries in boxes: each ends as what it is, in time, and leaves no process behind.
#![expect(unsafe_code, reason = "adversaries make raw calls, inside their box")]
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;
use std::time::{Duration, Instant};

use ksmith_box::{
    BoxError, BoxSpec, Ended, Layer, Level, Limits, Profile, Role, RoleContext, probe, run, spawn,
};

ksmith_box::intercept_tests!(self::intercept);

fn intercept() {
    ksmith_box::intercept_with(ROLES);
}

const ROLES: &[Role] = &[
    Role {
        name: "calm",
        before: None,
        run: |_| 7,
    },
    Role {
        name: "loop",
        before: None,
        run: |_| loop {
            std::hint::spin_loop()
        },
    },
    Role {
        name: "socket",
        before: None,
        run: |_| call(libc::SYS_socket, [2, 1, 0, 0]),
    },
    Role {
        name: "connect",
        before: None,
        run: |_| call(libc::SYS_connect, [0, 0, 0, 0]),
    },
    Role {
        name: "ptrace",
        before: None,
        run: |context| call(libc::SYS_ptrace, [16, number(context), 0, 0]),
    },
    Role {
        name: "peek",
        before: None,
        run: |context| call(libc::SYS_process_vm_readv, [number(context), 0, 0, 0]),
    },
    Role {
        name: "fork",
        before: None,
        run: |_| call(libc::SYS_clone, [libc::SIGCHLD as i64, 0, 0, 0]),
    },
    Role {
        name: "memory",
        before: None,
        run: memory,
    },
    Role {
        name: "kill",
        before: None,
        run: kill,
    },
    Role {
        name: "bomb",
        before: None,
        run: bomb,
    },
    Role {
        name: "background",
        before: None,
        run: background,
    },
    Role {
        name: "flood",
        before: None,
        run: flood,
    },
    Role {
        name: "look",
        before: None,
        run: look,
    },
    Role {
        name: "write",
        before: None,
        run: write,
    },
    Role {
        name: "raise",
        before: None,
        run: |_| {
            unsafe { libc::raise(libc::SIGKILL) };
            0
        },
    },
    Role {
        name: "abort",
        before: None,
        run: |_| std::process::abort(),
    },
    Role {
        name: "fault",
        before: None,
        run: |_| {
            unsafe { std::ptr::without_provenance_mut::<u8>(8).write_volatile(1) };
            0
        },
    },
    Role {
        name: "list",
        before: None,
        run: list,
    },
    Role {
        name: "environment",
        before: None,
        run: |_| i32::from(std::env::vars_os().next().is_some()),
    },
    Role {
        name: "descriptors",
        before: None,
        run: descriptors,
    },
    Role {
        name: "read-fd",
        before: None,
        run: read_fd,
    },
    Role {
        name: "own-files",
        before: None,
        run: own_files,
    },
];

fn call(number: i64, arguments: [i64; 4]) -> i32 {
    let [a, b, c, d] = arguments;
    let result = unsafe { libc::syscall(number, a, b, c, d) };
    if result < 0 {
        std::io::Error::last_os_error().raw_os_error().unwrap_or(99)
    } else {
        0
    }
}

fn number(context: &RoleContext) -> i64 {
    context.args[0].parse().unwrap()
}

fn memory(_: &RoleContext) -> i32 {
    for _ in 0..40_000 {
        let block = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                1 << 20,
                3,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if block == libc::MAP_FAILED {
            return 12;
        }
        unsafe { block.cast::<u8>().write_bytes(1, 1 << 20) };
    }
    0
}

fn kill(context: &RoleContext) -> i32 {
    call(libc::SYS_kill, [number(context), libc::SIGKILL as i64, 0, 0])
}

fn bomb(_: &RoleContext) -> i32 {
    loop {
        unsafe { libc::fork() };
    }
}

fn background(_: &RoleContext) -> i32 {
    if unsafe { libc::fork() } == 0 {
        unsafe { libc::setsid() };
        if unsafe { libc::fork() } == 0 {
            std::thread::sleep(Duration::from_secs(600));
        }
    }
    0
}

fn flood(_: &RoleContext) -> i32 {
    let block = [b'x'; 1 << 16];
    while std::io::Write::write_all(&mut std::io::stdout(), &block).is_ok() {}
    0
}

fn look(context: &RoleContext) -> i32 {
    match std::fs::read(&context.args[0]) {
        Ok(_) => 0,
        Err(error) => error.raw_os_error().unwrap_or(99),
    }
}

fn write(context: &RoleContext) -> i32 {
    match std::fs::write(&context.args[0], b"changed") {
        Ok(()) => 0,
        Err(error) => error.raw_os_error().unwrap_or(99),
    }
}

fn list(context: &RoleContext) -> i32 {
    let mut names: Vec<_> = std::fs::read_dir(&context.args[0])
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    std::io::Write::write_all(&mut std::io::stdout(), names.join(" ").as_bytes()).unwrap();
    0
}

fn descriptors(_: &RoleContext) -> i32 {
    (0..1024)
        .filter(|&fd| unsafe { libc::fcntl(fd, libc::F_GETFD) } >= 0)
        .count() as i32
}

fn read_fd(context: &RoleContext) -> i32 {
    let mut byte = [0u8];
    let count = unsafe { libc::pread(context.fds[0], byte.as_mut_ptr().cast(), 1, 0) };
    if count == 1 { i32::from(byte[0]) } else { 99 }
}

/// What the driver of a GPU does at its start, and what nobody needs. One bit for each file that could be opened for
/// writing.
fn own_files(_: &RoleContext) -> i32 {
    let thread = unsafe { libc::syscall(libc::SYS_gettid) };
    let files = [
        format!("/proc/self/task/{thread}/comm"),
        "/proc/self/oom_score_adj".to_owned(),
        "/proc/sys/vm/overcommit_memory".to_owned(),
    ];
    files.iter().enumerate().fold(0, |bits, (bit, file)| {
        // As the driver does it: create and truncate.
        let opened = std::fs::File::create(file);
        bits | i32::from(opened.is_ok()) << bit
    })
}

fn tool(name: &str) -> BoxSpec {
    BoxSpec::role(name, Profile::Compiler).wall(Duration::from_secs(10))
}

fn worker(name: &str) -> BoxSpec {
    BoxSpec::role(name, Profile::Worker).wall(Duration::from_secs(10))
}

/// Whether a process runs (a zombie does not).
fn alive(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z"))
}

#[test]
fn the_probe_knows_this_kernel() {
    let isolation = probe();
    println!("isolation: {} {:?}", isolation.level, isolation.missing());
    assert!(
        isolation.level >= Level::Kernel,
        "this machine cannot run the other tests"
    );
}

#[test]
fn a_calm_role_exits_with_its_code() {
    let finished = run(&worker("calm")).unwrap();
    assert_eq!(finished.ended, Ended::Exited(7));
    println!("box, start to end: {:?}", finished.wall);
}

#[test]
fn an_infinite_loop_is_out_of_time() {
    let finished = run(&worker("loop").wall(Duration::from_millis(300))).unwrap();
    assert_eq!(finished.ended, Ended::TimedOut);
    assert!(finished.wall < Duration::from_secs(3), "{:?}", finished.wall);
}

#[test]
fn cpu_time_is_limited_too() {
    let limits = Limits {
        cpu: Some(Duration::from_secs(1)),
        ..Limits::default()
    };
    assert_eq!(
        run(&worker("loop").limits(limits)).unwrap().ended,
        Ended::TimedOut
    );
}

#[test]
fn forbidden_calls_are_named_whatever_the_profile() {
    let forbidden = |name: &str| Ended::ForbiddenCall(name.to_owned());
    let own = std::process::id().to_string();
    assert_eq!(run(&worker("socket")).unwrap().ended, forbidden("socket"));
    assert_eq!(run(&tool("socket")).unwrap().ended, Ended::Exited(libc::EPERM));
    assert_eq!(run(&tool("connect")).unwrap().ended, forbidden("connect"));
    for spec in [worker("ptrace"), tool("ptrace")] {
        assert_eq!(run(&spec.arg(&own)).unwrap().ended, forbidden("ptrace"));
    }
    for spec in [worker("peek"), tool("peek")] {
        assert_eq!(run(&spec.arg(&own)).unwrap().ended, forbidden("process_vm_readv"));
    }
    assert_eq!(run(&worker("fork")).unwrap().ended, forbidden("clone"));
    assert_eq!(run(&worker("kill").arg(&own)).unwrap().ended, forbidden("kill"));
}

#[test]
fn memory_is_limited() {
    let grouped = probe()
        .layers
        .iter()
        .any(|s| s.layer == Layer::CgroupMemory && s.available);
    if grouped {
        let limits = Limits {
            memory_bytes: Some(128 << 20),
            address_space_bytes: Some(60 << 30),
            ..Limits::default()
        };
        assert_eq!(
            run(&worker("memory").limits(limits)).unwrap().ended,
            Ended::OutOfMemory
        );
    } else {
        println!("skipped: no control groups, 1 check of out-of-memory");
    }
    let limits = Limits {
        memory_bytes: Some(128 << 20),
        ..Limits::default()
    };
    let ended = run(&worker("memory").limits(limits)).unwrap().ended;
    assert!(
        matches!(ended, Ended::Exited(12) | Ended::OutOfMemory),
        "{ended:?}"
    );
}

#[test]
fn nobody_outside_can_be_killed() {
    let own = std::process::id().to_string();
    let ended = run(&tool("kill").arg(&own)).unwrap().ended;
    assert!(
        matches!(ended, Ended::Exited(libc::ESRCH | libc::EPERM)),
        "{ended:?}"
    );
}

#[test]
fn a_fork_bomb_is_defused_and_leaves_nobody() {
    let limits = Limits {
        processes: Some(20),
        wall: Some(Duration::from_millis(700)),
        ..Limits::default()
    };
    let started = Instant::now();
    let finished = run(&tool("bomb").limits(limits)).unwrap();
    assert_eq!(finished.ended, Ended::TimedOut);
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!(strays(), 0);
}

#[test]
fn a_background_process_dies_with_its_box() {
    assert_eq!(run(&tool("background")).unwrap().ended, Ended::Exited(0));
    assert_eq!(strays(), 0);
}

/// Sleeping or forking orphans of this binary: processes with its executable whose parent is not this process and that
/// have a parent outside any box. Boxes of other tests may run meanwhile, so it waits for them to end.
fn strays() -> usize {
    let own = std::fs::read_link("/proc/self/exe").unwrap();
    let count = || {
        std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter(|entry| {
                entry
                    .file_name()
                    .to_str()
                    .is_some_and(|name| name.parse::<i32>().is_ok())
            })
            .filter(|entry| std::fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == own))
            .count()
            - 1
    };
    let deadline = Instant::now() + Duration::from_secs(30);
    // The lowest count seen: a box that another test opens later is none of ours.
    let mut least = count();
    while least > 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
        least = least.min(count());
    }
    least
}

#[test]
fn a_flood_of_output_is_cut() {
    let limits = Limits {
        output_bytes: 1000,
        wall: Some(Duration::from_millis(300)),
        ..Limits::default()
    };
    let finished = run(&tool("flood").limits(limits)).unwrap();
    assert_eq!(finished.ended, Ended::TimedOut);
    assert_eq!((finished.stdout.len(), finished.truncated), (1000, true));
}

#[test]
fn files_outside_the_view_do_not_exist() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, b"key").unwrap();
    let shown = folder.path().join("shown");
    std::fs::write(&shown, b"x").unwrap();
    let path = |path: &Path| path.display().to_string();
    for spec in [worker("look"), tool("look")] {
        let blind = spec.clone().read_only(&shown);
        let own = format!("/proc/{}/mem", std::process::id());
        for hidden in [
            path(&secret),
            "/etc/passwd".to_owned(),
            own,
            "/proc/1/environ".to_owned(),
        ] {
            let ended = run(&blind.clone().arg(&hidden)).unwrap().ended;
            assert!(
                matches!(ended, Ended::Exited(libc::ENOENT | libc::EACCES)),
                "{hidden}: {ended:?}"
            );
        }
        assert_eq!(run(&blind.arg(path(&shown))).unwrap().ended, Ended::Exited(0));
    }
}

#[test]
fn what_is_shown_read_only_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("input");
    std::fs::write(&file, b"as it was").unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
    let spec = tool("write").arg(file.display().to_string());
    let ended = run(&spec.clone().read_only(&file)).unwrap().ended;
    assert!(
        matches!(ended, Ended::Exited(libc::EROFS | libc::EACCES)),
        "{ended:?}"
    );
    assert_eq!(std::fs::read(&file).unwrap(), b"as it was");
    assert_eq!(run(&spec.read_write(&file)).unwrap().ended, Ended::Exited(0));
    assert_eq!(std::fs::read(&file).unwrap(), b"changed");
}

#[test]
fn signals_and_faults_are_reported_as_such() {
    assert_eq!(run(&worker("raise")).unwrap().ended, Ended::Signal(libc::SIGKILL));
    assert_eq!(run(&worker("abort")).unwrap().ended, Ended::Signal(libc::SIGABRT));
    assert_eq!(run(&worker("fault")).unwrap().ended, Ended::Signal(libc::SIGSEGV));
}

#[test]
fn environment_and_descriptors_start_empty() {
    assert_eq!(run(&worker("environment")).unwrap().ended, Ended::Exited(0));
    assert_eq!(
        run(&worker("environment").env("A", "b")).unwrap().ended,
        Ended::Exited(0),
        "a role's own is the helper's"
    );
    // Three standard descriptors and no other.
    assert_eq!(run(&worker("descriptors")).unwrap().ended, Ended::Exited(3));
}

#[test]
fn a_device_worker_may_name_its_threads_and_write_to_nothing_else_of_the_system() {
    let ended = |profile| {
        run(&BoxSpec::role("own-files", profile).proc_view())
            .unwrap()
            .ended
    };
    assert_eq!(ended(Profile::Device), Ended::Exited(1));
    assert_eq!(ended(Profile::Reference), Ended::Exited(0));
}

#[test]
fn a_link_in_a_folder_that_is_shown_already_may_be_named_too() {
    let links = ["/usr/bin/cc", "/usr/lib64/ld-linux-x86-64.so.2"].map(Path::new);
    let Some(link) = links.iter().find(|path| path.is_symlink()) else {
        println!("skipped: 1 test (no link below /usr)");
        return;
    };
    let finished = run(&tool("calm").system().read_only(link)).unwrap();
    assert_eq!(finished.ended, Ended::Exited(7));
}

#[test]
fn a_passed_descriptor_arrives_as_three() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, b"A").unwrap();
    let spec = worker("read-fd").fd(std::fs::File::open(&path).unwrap().into());
    assert_eq!(run(&spec).unwrap().ended, Ended::Exited(65));
}

#[test]
fn programs_run_with_arguments_input_and_environment() {
    let spec = BoxSpec::program("/bin/sh", Profile::Compiler)
        .system()
        .args([
            "-c",
            "cat; echo $A; test -e /root || echo unseen; echo problem >&2; exit 3",
        ])
        .env("PATH", "/usr/bin:/bin")
        .env("A", "b")
        .stdin(b"hello ".to_vec());
    let finished = run(&spec).unwrap();
    let text = String::from_utf8_lossy(&finished.stdout).into_owned();
    assert_eq!(
        finished.ended,
        Ended::Exited(3),
        "{text} {}",
        String::from_utf8_lossy(&finished.stderr)
    );
    let unseen = if probe().level == Level::Box {
        "unseen\n"
    } else {
        ""
    };
    assert_eq!(text, format!("hello b\n{unseen}"));
    assert_eq!(finished.stderr, b"problem\n");
}

#[test]
fn a_missing_program_or_role_or_path_is_our_error() {
    let missing = run(&BoxSpec::program("/usr/bin/no-such-program", Profile::Compiler).system());
    assert!(matches!(missing, Err(BoxError::Setup { .. })), "{missing:?}");
    assert!(matches!(
        run(&worker("no such role")),
        Err(BoxError::Setup { .. })
    ));
    assert!(matches!(
        run(&worker("calm").read_only("/no/such/path")),
        Err(BoxError::Path { .. })
    ));
    assert!(matches!(
        run(&worker("calm").read_only("relative")),
        Err(BoxError::Path { .. })
    ));
}

#[test]
fn a_child_gives_way_as_far_as_it_is_told() {
    let nice_of = |spec: BoxSpec| {
        let mut child = spawn(&spec).unwrap();
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.pid())).unwrap();
        child.kill();
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        // The 19th field of `stat`; the state is the third.
        fields.split(' ').nth(16).unwrap().parse::<i32>().unwrap()
    };
    let usual = nice_of(worker("loop"));
    assert_eq!(nice_of(worker("loop").nice(7)), 7.max(usual));
}

#[test]
fn a_child_freezes_thaws_and_is_killed_on_drop() {
    let mut child = spawn(&worker("loop")).unwrap();
    let pid = child.pid();
    assert!(alive(pid));
    child.freeze().unwrap();
    let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    assert!(state().contains(") T "), "{}", state());
    let before = child.cpu_time().unwrap();
    std::thread::sleep(Duration::from_millis(30));
    assert_eq!(child.cpu_time().unwrap(), before);
    assert!(child.run_delay_ns().is_some());
    child.thaw().unwrap();
    std::thread::sleep(Duration::from_millis(30));
    assert!(child.cpu_time().unwrap() > before);
    assert_eq!(child.try_wait(), None);
    child.freeze().unwrap();
    drop(child);
    assert!(!alive(pid));
}

#[test]
fn kill_and_wait_say_how_it_ended() {
    let mut child = spawn(&worker("loop")).unwrap();
    assert_eq!(child.kill(), Ended::Killed);
    assert_eq!(child.wait(Instant::now()), Ended::Killed);
    let mut child = spawn(&worker("loop")).unwrap();
    assert_eq!(
        child.wait(Instant::now() + Duration::from_millis(50)),
        Ended::TimedOut
    );
    let mut child = spawn(&worker("calm")).unwrap();
    assert_eq!(
        child.wait(Instant::now() + Duration::from_secs(5)),
        Ended::Exited(7)
    );
}

#[test]
fn a_folder_shows_only_itself() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    std::fs::write(folder.path().join("hidden"), b"").unwrap();
    std::fs::write(inner.join("shown"), b"").unwrap();
    let spec = tool("list").read_only(&inner);
    let finished = run(&spec.clone().arg(inner.display().to_string())).unwrap();
    assert_eq!(finished.stdout, b"shown");
    if probe().level == Level::Box {
        let finished = run(&spec.arg(folder.path().display().to_string())).unwrap();
        // The folder above is a bare mount point; Landlock forbids to list it, unless it lies in the box's own `/tmp`.
        assert!(
            matches!(finished.stdout.as_slice(), b"" | b"inner"),
            "{finished:?}"
        );
    }
}
