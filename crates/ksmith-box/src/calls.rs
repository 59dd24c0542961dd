//! System calls that a profile allows, with the reason for each; everything else ends the box as a forbidden call.
//!
//! Kept as data: the filter, the documentation (`docs/worker.md`) and the names in verdicts all come from these tables.

use crate::Profile;

/// What happens to a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// It runs.
    Allow,
    /// It runs if this argument equals one of the values; otherwise it is forbidden.
    AllowIf { argument: u8, values: &'static [u64] },
    /// It runs if these bits of this argument have this value; otherwise it is forbidden.
    AllowBits { argument: u8, mask: u64, value: u64 },
    /// It fails with this error: honest code asks and lives with a no.
    Refuse(u32),
    /// It fails with this error if any of these bits of this argument is set.
    RefuseBits { argument: u8, mask: u64, errno: u32 },
    /// It fails with this error unless this argument equals one of the values.
    RefuseUnless {
        argument: u8,
        values: &'static [u64],
        errno: u32,
    },
}

/// What happens to calls that stand in no table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Otherwise {
    /// They end the box.
    Forbidden,
    /// They run.
    Allowed,
}

/// One line of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) number: i64,
    pub(crate) rule: Rule,
    pub(crate) reason: &'static str,
}

macro_rules! table {
    ($($call:ident $rule:expr, $reason:literal;)*) => {
        &[$(Entry { name: stringify!($call), number: numbers::$call, rule: $rule, reason: $reason },)*]
    };
}

/// Numbers under their plain names.
#[allow(non_upper_case_globals, reason = "the names are those of the calls")]
mod numbers {
    macro_rules! numbers {
        ($($name:ident $number:ident),* $(,)?) => {
            $(pub(super) const $name: i64 = libc::$number;)*
        };
    }
    numbers!(
        read SYS_read, pread64 SYS_pread64, readv SYS_readv, statfs SYS_statfs, fstatfs SYS_fstatfs, write SYS_write, pwrite64 SYS_pwrite64,
        writev SYS_writev, openat SYS_openat, close SYS_close, fstat SYS_fstat, newfstatat SYS_newfstatat,
        statx SYS_statx, lseek SYS_lseek, mmap SYS_mmap, mprotect SYS_mprotect, munmap SYS_munmap,
        mremap SYS_mremap, brk SYS_brk, madvise SYS_madvise, futex SYS_futex, sched_yield SYS_sched_yield,
        sched_get_priority_max SYS_sched_get_priority_max, sched_get_priority_min SYS_sched_get_priority_min,
        sched_getaffinity SYS_sched_getaffinity, sched_setaffinity SYS_sched_setaffinity, getpid SYS_getpid,
        gettid SYS_gettid, tgkill SYS_tgkill, kill SYS_kill, rt_sigaction SYS_rt_sigaction,
        rt_sigprocmask SYS_rt_sigprocmask, rt_sigreturn SYS_rt_sigreturn, sigaltstack SYS_sigaltstack,
        clock_gettime SYS_clock_gettime, clock_getres SYS_clock_getres, gettimeofday SYS_gettimeofday,
        clock_nanosleep SYS_clock_nanosleep, nanosleep SYS_nanosleep, exit SYS_exit, exit_group SYS_exit_group,
        recvmsg SYS_recvmsg, sendmsg SYS_sendmsg, getrandom SYS_getrandom, prlimit64 SYS_prlimit64,
        set_robust_list SYS_set_robust_list, rseq SYS_rseq, set_tid_address SYS_set_tid_address,
        restart_syscall SYS_restart_syscall, getcpu SYS_getcpu, sysinfo SYS_sysinfo, uname SYS_uname,
        clone SYS_clone, clone3 SYS_clone3, execve SYS_execve, wait4 SYS_wait4, waitid SYS_waitid,
        faccessat SYS_faccessat, faccessat2 SYS_faccessat2, readlinkat SYS_readlinkat,
        getdents64 SYS_getdents64, fcntl SYS_fcntl, dup SYS_dup, dup3 SYS_dup3, getcwd SYS_getcwd,
        chdir SYS_chdir, fadvise64 SYS_fadvise64, ioctl SYS_ioctl, ftruncate SYS_ftruncate,
        renameat SYS_renameat, renameat2 SYS_renameat2, unlinkat SYS_unlinkat, mkdirat SYS_mkdirat,
        fchmod SYS_fchmod, fchmodat SYS_fchmodat, umask SYS_umask, fallocate SYS_fallocate,
        fsync SYS_fsync, copy_file_range SYS_copy_file_range, sendfile SYS_sendfile, pipe2 SYS_pipe2,
        getppid SYS_getppid, getuid SYS_getuid, geteuid SYS_geteuid, getgid SYS_getgid,
        getegid SYS_getegid, getpgid SYS_getpgid, getrusage SYS_getrusage, times SYS_times,
        ppoll SYS_ppoll, pselect6 SYS_pselect6, utimensat SYS_utimensat, prctl SYS_prctl,
        socket SYS_socket, socketpair SYS_socketpair, connect SYS_connect, bind SYS_bind,
        ptrace SYS_ptrace, process_vm_readv SYS_process_vm_readv, process_vm_writev SYS_process_vm_writev,
        mount SYS_mount, umount2 SYS_umount2, unshare SYS_unshare, setns SYS_setns, bpf SYS_bpf,
        perf_event_open SYS_perf_event_open, io_uring_setup SYS_io_uring_setup, keyctl SYS_keyctl,
        memfd_create SYS_memfd_create, userfaultfd SYS_userfaultfd, execveat SYS_execveat,
        pidfd_open SYS_pidfd_open, pidfd_getfd SYS_pidfd_getfd, setsid SYS_setsid, setpgid SYS_setpgid,
        shmget SYS_shmget, shmat SYS_shmat, seccomp SYS_seccomp, personality SYS_personality,
        process_madvise SYS_process_madvise, rt_sigqueueinfo SYS_rt_sigqueueinfo,
        rt_tgsigqueueinfo SYS_rt_tgsigqueueinfo, tkill SYS_tkill, get_mempolicy SYS_get_mempolicy,
        set_mempolicy SYS_set_mempolicy, mbind SYS_mbind, msync SYS_msync, mlock SYS_mlock, mincore SYS_mincore,
        timer_create SYS_timer_create, setitimer SYS_setitimer, rt_sigtimedwait SYS_rt_sigtimedwait,
        rt_sigsuspend SYS_rt_sigsuspend, rt_sigpending SYS_rt_sigpending, fdatasync SYS_fdatasync,
        landlock_create_ruleset SYS_landlock_create_ruleset, open_by_handle_at SYS_open_by_handle_at,
        pkey_mprotect SYS_pkey_mprotect, remap_file_pages SYS_remap_file_pages,
        sched_setscheduler SYS_sched_setscheduler, setpriority SYS_setpriority, splice SYS_splice,
        vmsplice SYS_vmsplice, tee SYS_tee, capset SYS_capset, chroot SYS_chroot, pivot_root SYS_pivot_root,
        kcmp SYS_kcmp, setuid SYS_setuid, setresuid SYS_setresuid, truncate SYS_truncate, close_range SYS_close_range,
        membarrier SYS_membarrier, epoll_create1 SYS_epoll_create1, epoll_ctl SYS_epoll_ctl,
        epoll_pwait SYS_epoll_pwait, eventfd2 SYS_eventfd2, getresuid SYS_getresuid, getresgid SYS_getresgid,
        linkat SYS_linkat, symlinkat SYS_symlinkat, getsockopt SYS_getsockopt, setsockopt SYS_setsockopt,
        listen SYS_listen, getgroups SYS_getgroups,
        add_key SYS_add_key, request_key SYS_request_key, mount_setattr SYS_mount_setattr, move_mount SYS_move_mount,
        open_tree SYS_open_tree, fsopen SYS_fsopen, fsmount SYS_fsmount, fspick SYS_fspick, fsconfig SYS_fsconfig,
        init_module SYS_init_module, finit_module SYS_finit_module, delete_module SYS_delete_module,
        kexec_load SYS_kexec_load, reboot SYS_reboot, swapon SYS_swapon, swapoff SYS_swapoff, acct SYS_acct,
        settimeofday SYS_settimeofday, clock_settime SYS_clock_settime, syslog SYS_syslog, quotactl SYS_quotactl,
        name_to_handle_at SYS_name_to_handle_at,
    );
    #[cfg(target_arch = "x86_64")]
    numbers!(
        fork SYS_fork, vfork SYS_vfork, open SYS_open, stat SYS_stat, lstat SYS_lstat, access SYS_access,
        readlink SYS_readlink, dup2 SYS_dup2, rename SYS_rename, unlink SYS_unlink, mkdir SYS_mkdir,
        rmdir SYS_rmdir, chmod SYS_chmod, pipe SYS_pipe, poll SYS_poll, select SYS_select, time SYS_time,
        getpgrp SYS_getpgrp, arch_prctl SYS_arch_prctl, getrlimit SYS_getrlimit, alarm SYS_alarm, pause SYS_pause,
        modify_ldt SYS_modify_ldt, iopl SYS_iopl, epoll_wait SYS_epoll_wait, link SYS_link, symlink SYS_symlink,
    );
}

const EPERM: u32 = libc::EPERM as u32;
const ENOSYS: u32 = libc::ENOSYS as u32;
#[cfg(target_arch = "x86_64")]
const ENOENT: u32 = libc::ENOENT as u32;
const ENOTTY: u32 = libc::ENOTTY as u32;
const ALLOW: Rule = Rule::Allow;
/// Flags of `clone` that make namespaces (user, mount, pid, network, ipc, uts, cgroup, time).
const NEW_NAMESPACES: u64 = 0x7e02_0080;
const THREAD: u64 = libc::CLONE_THREAD as u64;

/// What every worker may do.
const WORKER: &[Entry] = table![
    read ALLOW, "the loader and the C library read files they have opened";
    pread64 ALLOW, "the loader reads program headers";
    write ALLOW, "`printf` in a kernel; standard output goes nowhere";
    writev ALLOW, "messages of the C library before it aborts";
    openat ALLOW, "the loader opens libraries; the view shows libraries only, read-only";
    close ALLOW, "the loader closes what it opened";
    fcntl Rule::AllowIf { argument: 1, values: &[1, 3] }, "the runtime looks at a descriptor before it closes it";
    close_range ALLOW, "the helper closes its own descriptors before foreign code runs";
    fstat ALLOW, "the loader asks for sizes";
    newfstatat ALLOW, "the loader asks for sizes";
    statx ALLOW, "the loader asks for sizes";
    lseek ALLOW, "buffered streams";
    ioctl Rule::Refuse(ENOTTY), "streams ask whether they are terminals";
    readlinkat Rule::Refuse(EPERM), "the loader and thread libraries look for `/proc/self/exe`";
    mmap ALLOW, "memory for the allocator, the loader and our buffers";
    mprotect ALLOW, "the loader seals relocations; inputs cannot be made writable by it";
    munmap ALLOW, "memory is given back";
    mremap ALLOW, "the allocator grows blocks";
    brk ALLOW, "the allocator";
    madvise ALLOW, "the allocator gives pages back";
    futex ALLOW, "locks of the C library";
    sched_yield ALLOW, "spinning locks";
    sched_getaffinity ALLOW, "thread libraries count CPUs";
    sched_setaffinity Rule::Refuse(EPERM), "a worker stays on the CPUs it was given";
    getpid ALLOW, "`raise` and `abort`";
    gettid ALLOW, "`raise` and `abort`";
    tgkill ALLOW, "`raise` and `abort`; the process namespace or Landlock hides all other processes";
    rt_sigaction ALLOW, "our fault handler, and `abort`";
    rt_sigprocmask ALLOW, "`abort`, thread start";
    rt_sigreturn ALLOW, "the end of a signal handler";
    sigaltstack ALLOW, "our fault handler has a stack of its own";
    clock_gettime ALLOW, "clocks are free to read without a call anyway";
    clock_nanosleep ALLOW, "sleeping costs the candidate time only";
    nanosleep ALLOW, "sleeping costs the candidate time only";
    getcpu ALLOW, "thread libraries place threads";
    exit ALLOW, "the end of a thread";
    exit_group ALLOW, "the end of the process, which is a fault";
    recvmsg Rule::AllowIf { argument: 0, values: &[3] }, "layouts come over descriptor 3";
    sendmsg Rule::AllowIf { argument: 0, values: &[3] }, "answers to layouts go over descriptor 3";
    getrandom ALLOW, "hash tables and allocators seed themselves";
    prlimit64 Rule::AllowIf { argument: 2, values: &[0] }, "thread libraries read the stack limit; nothing can be set";
    sysinfo ALLOW, "`qsort` asks for memory size";
    uname ALLOW, "the C library asks for the kernel's version";
    restart_syscall ALLOW, "a stopped sleep goes on after a thaw";
    set_robust_list ALLOW, "thread start";
    rseq ALLOW, "thread start";
    membarrier Rule::Refuse(ENOSYS), "thread libraries probe for it";
];

/// What a candidate may not do although tools may: its fault handler is ours and stays.
const CANDIDATE: &[Entry] = table![
    rt_sigaction Rule::RefuseUnless { argument: 0, values: &[6, 32, 33], errno: EPERM }, "`abort`, and the two signals of thread libraries; our fault handler stands before the filter does";
];

/// What a worker with threads may do as well.
const THREADS: &[Entry] = table![
    clone Rule::AllowBits { argument: 0, mask: THREAD | NEW_NAMESPACES, value: THREAD }, "threads, never processes";
    clone3 Rule::Refuse(ENOSYS), "its flags cannot be read by a filter; the C library falls back to `clone`";
];

/// What tools that read, write and start programs may do as well.
const TOOLS: &[Entry] = table![
    readv ALLOW, "reading files";
    statfs ALLOW, "asking about file systems";
    fstatfs ALLOW, "asking about file systems";
    pwrite64 ALLOW, "writing files";
    faccessat ALLOW, "looking for programs and headers";
    faccessat2 ALLOW, "looking for programs and headers";
    readlinkat ALLOW, "looking for programs and headers";
    getdents64 ALLOW, "reading folders";
    fcntl ALLOW, "flags of descriptors";
    dup ALLOW, "redirection";
    dup3 ALLOW, "redirection";
    getcwd ALLOW, "relative paths";
    chdir ALLOW, "relative paths, within the view";
    fadvise64 ALLOW, "reading files";
    ioctl Rule::AllowIf { argument: 1, values: &[0x5401, 0x5451, 0x541b] }, "is it a terminal, close on exec, bytes waiting";
    ftruncate ALLOW, "writing files";
    renameat ALLOW, "writing files";
    renameat2 ALLOW, "writing files";
    unlinkat ALLOW, "temporary files";
    mkdirat ALLOW, "temporary folders";
    fchmod ALLOW, "the linker marks its output executable";
    fchmodat ALLOW, "the linker marks its output executable";
    umask ALLOW, "the linker marks its output executable";
    utimensat ALLOW, "writing files";
    fallocate ALLOW, "writing files";
    fsync ALLOW, "writing files";
    fdatasync ALLOW, "writing files";
    copy_file_range ALLOW, "copying files";
    sendfile ALLOW, "copying files";
    linkat Rule::Refuse(EPERM), "tools fall back to copying";
    symlinkat Rule::Refuse(EPERM), "tools fall back to copying";
    pipe2 ALLOW, "compiler to assembler";
    clone Rule::AllowBits { argument: 0, mask: NEW_NAMESPACES, value: 0 }, "processes and threads, no namespaces";
    clone3 Rule::Refuse(ENOSYS), "its flags cannot be read by a filter; the C library falls back to `clone`";
    execve ALLOW, "compiler driver to compiler; no privileges are gained";
    wait4 ALLOW, "waiting for children";
    waitid ALLOW, "waiting for children";
    kill ALLOW, "ending children; the process namespace or Landlock hides all other processes";
    getppid ALLOW, "process identity";
    getuid ALLOW, "process identity";
    geteuid ALLOW, "process identity";
    getgid ALLOW, "process identity";
    getegid ALLOW, "process identity";
    getresuid ALLOW, "process identity";
    getresgid ALLOW, "process identity";
    getgroups ALLOW, "process identity";
    getpgid ALLOW, "process identity";
    setpgid ALLOW, "process groups of shells; the box kills by namespace";
    setsid ALLOW, "process groups of shells; the box kills by namespace";
    getrusage ALLOW, "statistics of the compiler";
    times ALLOW, "statistics of the compiler";
    clock_getres ALLOW, "statistics of the compiler";
    gettimeofday ALLOW, "statistics of the compiler";
    prlimit64 ALLOW, "the compiler raises its soft stack limit; hard limits stay";
    ppoll ALLOW, "waiting for children's output";
    pselect6 ALLOW, "waiting for children's output";
    prctl ALLOW, "thread names; privileges cannot be regained";
    set_tid_address ALLOW, "program start";
    rt_sigtimedwait ALLOW, "waiting for signals";
    rt_sigsuspend ALLOW, "waiting for signals";
    rt_sigpending ALLOW, "waiting for signals";
    msync ALLOW, "the linker writes through maps";
    mincore ALLOW, "unwinders and sanitizers test addresses";
    get_mempolicy Rule::Refuse(EPERM), "numerical libraries ask for memory nodes";
    set_mempolicy Rule::Refuse(EPERM), "numerical libraries ask for memory nodes";
    mbind Rule::Refuse(EPERM), "numerical libraries ask for memory nodes";
    mlock Rule::Refuse(EPERM), "no memory is pinned";
    setpriority Rule::Refuse(EPERM), "no priorities";
    socket Rule::Refuse(EPERM), "name services of the C library ask, and live with a no";
    memfd_create Rule::Refuse(EPERM), "sanitizers and loaders ask";
    personality Rule::Refuse(EPERM), "sanitizers ask for fixed addresses";
    epoll_create1 ALLOW, "interpreters wait for events";
    epoll_ctl ALLOW, "interpreters wait for events";
    epoll_pwait ALLOW, "interpreters wait for events";
    eventfd2 ALLOW, "interpreters wait for events";
    membarrier ALLOW, "interpreters with threads";
    sched_get_priority_max ALLOW, "NVRTC makes its threads with it; it changes nothing";
    sched_get_priority_min ALLOW, "NVRTC makes its threads with it; it changes nothing";
    sched_setaffinity Rule::Refuse(EPERM), "a box stays on the CPUs it was given";
];

/// What the CUDA driver needs beyond the tools' list. The candidate's own code runs on the device only.
const DEVICE: &[Entry] = table![
    ioctl ALLOW, "the driver speaks to its device nodes; no other device is visible";
    readlinkat ALLOW, "the driver looks for its own executable and devices";
    recvmsg ALLOW, "the memory files of the judge arrive over the control socket";
    mlock ALLOW, "the driver pins its own queues";
    memfd_create ALLOW, "the driver compiles its own helper code";
    get_mempolicy ALLOW, "the driver asks for memory nodes";
    set_mempolicy ALLOW, "the driver places its own queues";
    mbind ALLOW, "the driver places its own queues";
    sched_setaffinity Rule::Refuse(EPERM), "a box stays on the CPUs it was given";
    socket Rule::AllowIf { argument: 0, values: &[1] }, "the driver asks for a sharing daemon and names its memory file, over Unix sockets of the box's own network";
    setsockopt ALLOW, "the driver's Unix sockets";
    connect ALLOW, "the driver's Unix sockets; no socket of the system is in view";
    bind ALLOW, "the driver's Unix sockets, by abstract name";
    listen ALLOW, "the driver's Unix sockets";
];

#[cfg(target_arch = "x86_64")]
const DEVICE_X86: &[Entry] = table![
    symlink Rule::Refuse(ENOENT), "the driver would name its device nodes a second time";
    readlink ALLOW, "the driver looks for its own executable and devices";
    access ALLOW, "the driver looks for its device nodes";
];
#[cfg(not(target_arch = "x86_64"))]
const DEVICE_X86: &[Entry] = &[];

/// What an agent's command line may not do; everything else it may, behind namespaces and file rules. Its programs
/// (Node.js, shells, compilers) need calls that nobody can list, so this is the one list of refusals, and a refused call
/// fails instead of ending the box.
const AGENT: &[Entry] = table![
    clone Rule::RefuseBits { argument: 0, mask: NEW_NAMESPACES, errno: EPERM }, "no namespaces in the box";
    clone3 Rule::Refuse(ENOSYS), "its flags cannot be read by a filter; the C library falls back to `clone`";
    unshare Rule::Refuse(EPERM), "no namespaces in the box";
    setns Rule::Refuse(EPERM), "no namespaces of others";
    socket Rule::RefuseUnless { argument: 0, values: &[1, 2, 10, 16], errno: EPERM }, "local, TCP on the loopback, and routes; no packets, no hypervisor";
    mount Rule::Refuse(EPERM), "the view stays as it is";
    umount2 Rule::Refuse(EPERM), "the view stays as it is";
    mount_setattr Rule::Refuse(EPERM), "the view stays as it is";
    move_mount Rule::Refuse(EPERM), "the view stays as it is";
    open_tree Rule::Refuse(EPERM), "the view stays as it is";
    fsopen Rule::Refuse(EPERM), "the view stays as it is";
    fsmount Rule::Refuse(EPERM), "the view stays as it is";
    fspick Rule::Refuse(EPERM), "the view stays as it is";
    fsconfig Rule::Refuse(EPERM), "the view stays as it is";
    pivot_root Rule::Refuse(EPERM), "the view stays as it is";
    chroot Rule::Refuse(EPERM), "the view stays as it is";
    open_by_handle_at Rule::Refuse(EPERM), "files are opened by their paths in the view";
    name_to_handle_at Rule::Refuse(EPERM), "files are opened by their paths in the view";
    ptrace Rule::Refuse(EPERM), "no process reads another";
    process_vm_readv Rule::Refuse(EPERM), "no process reads another";
    process_vm_writev Rule::Refuse(EPERM), "no process writes another";
    process_madvise Rule::Refuse(EPERM), "no process changes another";
    pidfd_getfd Rule::Refuse(EPERM), "no process takes another's descriptors";
    kcmp Rule::Refuse(EPERM), "no process looks into another";
    bpf Rule::Refuse(EPERM), "a large surface of the kernel";
    perf_event_open Rule::Refuse(EPERM), "a large surface of the kernel";
    io_uring_setup Rule::Refuse(EPERM), "a large surface of the kernel";
    userfaultfd Rule::Refuse(EPERM), "a large surface of the kernel";
    keyctl Rule::Refuse(EPERM), "keys of the user";
    add_key Rule::Refuse(EPERM), "keys of the user";
    request_key Rule::Refuse(EPERM), "keys of the user";
    init_module Rule::Refuse(EPERM), "the machine stays as it is";
    finit_module Rule::Refuse(EPERM), "the machine stays as it is";
    delete_module Rule::Refuse(EPERM), "the machine stays as it is";
    kexec_load Rule::Refuse(EPERM), "the machine stays as it is";
    reboot Rule::Refuse(EPERM), "the machine stays as it is";
    swapon Rule::Refuse(EPERM), "the machine stays as it is";
    swapoff Rule::Refuse(EPERM), "the machine stays as it is";
    acct Rule::Refuse(EPERM), "the machine stays as it is";
    settimeofday Rule::Refuse(EPERM), "the machine stays as it is";
    clock_settime Rule::Refuse(EPERM), "the machine stays as it is";
    syslog Rule::Refuse(EPERM), "the kernel's log";
    quotactl Rule::Refuse(EPERM), "the machine stays as it is";
    personality Rule::Refuse(EPERM), "no old calling conventions";
];

#[cfg(target_arch = "x86_64")]
const AGENT_X86: &[Entry] = table![
    modify_ldt Rule::Refuse(EPERM), "a large surface of the kernel";
    iopl Rule::Refuse(EPERM), "the machine stays as it is";
];
#[cfg(not(target_arch = "x86_64"))]
const AGENT_X86: &[Entry] = &[];

/// Older forms of the calls above that x86-64 still has.
#[cfg(target_arch = "x86_64")]
const TOOLS_X86: &[Entry] = table![
    fork ALLOW, "processes, counted by the limit";
    vfork ALLOW, "compiler driver to compiler";
    open ALLOW, "opening files within the view";
    stat ALLOW, "asking about files";
    lstat ALLOW, "asking about files";
    access ALLOW, "looking for programs and headers";
    readlink ALLOW, "looking for programs and headers";
    dup2 ALLOW, "redirection";
    rename ALLOW, "writing files";
    unlink ALLOW, "temporary files";
    mkdir ALLOW, "temporary folders";
    rmdir ALLOW, "temporary folders";
    chmod ALLOW, "the linker marks its output executable";
    pipe ALLOW, "compiler to assembler";
    poll ALLOW, "waiting for children's output";
    select ALLOW, "waiting for children's output";
    time ALLOW, "statistics of the compiler";
    getpgrp ALLOW, "process identity";
    arch_prctl ALLOW, "program start";
    getrlimit ALLOW, "the compiler reads its stack limit";
    epoll_wait ALLOW, "interpreters wait for events";
    alarm ALLOW, "timeouts of scripts";
];
#[cfg(not(target_arch = "x86_64"))]
const TOOLS_X86: &[Entry] = &[];

/// The same for the loader of a worker.
#[cfg(target_arch = "x86_64")]
const WORKER_X86: &[Entry] = table![
    access Rule::Refuse(EPERM), "the loader asks for preload lists";
    readlink Rule::Refuse(EPERM), "thread libraries look for `/proc/self/exe`";
];
#[cfg(not(target_arch = "x86_64"))]
const WORKER_X86: &[Entry] = &[];

/// Calls that no profile allows and that a verdict should name.
const NAMED: &[Entry] = table![
    socketpair ALLOW, ""; connect ALLOW, ""; bind ALLOW, ""; getsockopt ALLOW, ""; ptrace ALLOW, "";
    process_vm_readv ALLOW, ""; process_vm_writev ALLOW, ""; mount ALLOW, ""; umount2 ALLOW, "";
    unshare ALLOW, ""; setns ALLOW, ""; bpf ALLOW, ""; perf_event_open ALLOW, "";
    io_uring_setup ALLOW, ""; keyctl ALLOW, ""; userfaultfd ALLOW, ""; execveat ALLOW, "";
    pidfd_open ALLOW, ""; pidfd_getfd ALLOW, ""; shmget ALLOW, ""; shmat ALLOW, ""; seccomp ALLOW, "";
    process_madvise ALLOW, ""; rt_sigqueueinfo ALLOW, ""; rt_tgsigqueueinfo ALLOW, ""; tkill ALLOW, "";
    timer_create ALLOW, ""; setitimer ALLOW, ""; landlock_create_ruleset ALLOW, "";
    open_by_handle_at ALLOW, ""; pkey_mprotect ALLOW, ""; remap_file_pages ALLOW, "";
    sched_setscheduler ALLOW, ""; splice ALLOW, ""; vmsplice ALLOW, ""; tee ALLOW, ""; capset ALLOW, "";
    chroot ALLOW, ""; pivot_root ALLOW, ""; kcmp ALLOW, ""; setuid ALLOW, ""; setresuid ALLOW, "";
    truncate ALLOW, "";
];
#[cfg(target_arch = "x86_64")]
const NAMED_X86: &[Entry] =
    table![modify_ldt ALLOW, ""; pause ALLOW, ""; iopl ALLOW, ""; link ALLOW, ""; symlink ALLOW, "";];
#[cfg(not(target_arch = "x86_64"))]
const NAMED_X86: &[Entry] = &[];

/// The rules of a profile; where a call stands twice, the later table counts.
pub(crate) fn rules(profile: Profile) -> Vec<Entry> {
    let tables: &[&[Entry]] = match profile {
        Profile::Worker => &[WORKER, WORKER_X86, CANDIDATE],
        Profile::WorkerThreads => &[WORKER, WORKER_X86, CANDIDATE, THREADS],
        Profile::Compiler | Profile::Reference => &[WORKER, TOOLS, TOOLS_X86],
        Profile::Agent => &[AGENT, AGENT_X86],
        Profile::Device => &[WORKER, TOOLS, TOOLS_X86, DEVICE, DEVICE_X86],
    };
    let mut rules = std::collections::BTreeMap::new();
    for entry in tables.iter().copied().flatten() {
        rules.insert(entry.number, *entry);
    }
    rules.into_values().collect()
}

/// What happens to calls that stand in no table of a profile.
pub(crate) fn otherwise(profile: Profile) -> Otherwise {
    match profile {
        Profile::Agent => Otherwise::Allowed,
        Profile::Compiler
        | Profile::Reference
        | Profile::Worker
        | Profile::WorkerThreads
        | Profile::Device => Otherwise::Forbidden,
    }
}

/// The name of a system call, or its number.
pub(crate) fn name(number: i32) -> String {
    [WORKER, THREADS, TOOLS, TOOLS_X86, DEVICE, NAMED, NAMED_X86]
        .into_iter()
        .flatten()
        .find(|entry| entry.number == i64::from(number))
        .map_or_else(|| format!("call {number}"), |entry| entry.name.to_owned())
}

/// The allow-lists as a Markdown table, for `docs/worker.md`.
pub fn allow_list_markdown(profile: Profile) -> String {
    let mut lines = vec!["| call | rule | reason |".to_owned(), "|---|---|---|".to_owned()];
    let mut rules = rules(profile);
    rules.sort_by_key(|entry| entry.name);
    for entry in rules {
        let rule = match entry.rule {
            Rule::Allow => "allowed".to_owned(),
            Rule::AllowIf { argument, values } => format!("allowed if argument {argument} is in {values:?}"),
            Rule::AllowBits {
                argument,
                mask,
                value,
            } => {
                format!("allowed if argument {argument} & {mask:#x} = {value:#x}")
            }
            Rule::Refuse(errno) => format!("refused with error {errno}"),
            Rule::RefuseBits {
                argument,
                mask,
                errno,
            } => {
                format!("refused with error {errno} if argument {argument} & {mask:#x} is not 0")
            }
            Rule::RefuseUnless {
                argument,
                values,
                errno,
            } => {
                format!("refused with error {errno} unless argument {argument} is in {values:?}")
            }
        };
        lines.push(format!("| `{}` | {rule} | {} |", entry.name, entry.reason));
    }
    lines.join("\n") + "\n"
}
