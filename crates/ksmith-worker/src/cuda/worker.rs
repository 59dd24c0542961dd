//! The judge's half of a worker: starts it, gives it buffers and a plan, times its answers.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use ksmith_box::{BoxSpec, Child, Level, Limits, Profile};

use super::compile::Cubin;
use super::driver::KernelFacts;
use super::error::{CudaError, CudaFault};
use super::message::{Answer, Cache, Order};
use super::owner::{Buffer, Owner};
use super::plan::ResolvedPlan;
use super::role::ROLE;
use super::socket::Socket;

/// How to start a worker.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// Index of the device.
    pub ordinal: i32,
    /// Least level of isolation.
    pub least: Level,
    /// Whether the user allowed less by name.
    pub unsandboxed: bool,
}

/// One answer, on two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// The judge's clock, from the order to the answer; launch and message included.
    pub judge_ns: u64,
    /// What the worker's events claim.
    pub event_ns: u64,
}

/// A boxed process with a context of its own and the candidate's module.
pub struct Worker {
    socket: Socket,
    child: Child,
    dead: bool,
}

impl Worker {
    /// Starts a worker and opens the device in it.
    pub fn start(options: &WorkerOptions) -> Result<Self, CudaError> {
        let (socket, theirs) = Socket::pair().map_err(CudaError::io("making a socket pair"))?;
        let limits = Limits {
            wall: Some(Duration::from_secs(600)),
            cpu: None,
            // The driver reserves hundreds of gigabytes of address space.
            memory_bytes: None,
            address_space_bytes: None,
            files: Some(4096),
            processes: Some(256),
            ..Limits::default()
        };
        let mut spec = BoxSpec::role(ROLE.name, Profile::Device)
            .system()
            .fd(theirs)
            .proc_view()
            .limits(limits)
            .least(options.least);
        for device in device_nodes() {
            spec = spec.device(device);
        }
        for file in SYSTEM_FILES.iter().map(std::path::Path::new) {
            if file.exists() {
                spec = spec.read_only(file);
            }
        }
        if options.unsandboxed {
            spec = spec.unsandboxed();
        }
        let child = ksmith_box::spawn(&spec)?;
        // Our copy of the other end must close, or a dead worker would look like a slow one.
        drop(spec);
        let mut worker = Self {
            socket,
            child,
            dead: false,
        };
        worker.ask(
            &Order::Open {
                ordinal: options.ordinal,
            },
            &[],
            Duration::from_secs(60),
        )?;
        Ok(worker)
    }

    /// Loads a module and says what its kernels are like.
    pub fn load(&mut self, cubin: &Cubin, kernels: &[String]) -> Result<Vec<KernelFacts>, CudaError> {
        let lowered = kernels
            .iter()
            .map(|name| cubin.lowered.get(name).cloned().unwrap_or_else(|| name.clone()))
            .collect();
        let order = Order::Load {
            image: cubin.image.clone(),
            kernels: lowered,
        };
        match self.ask(&order, &[], Duration::from_secs(60))? {
            Answer::Loaded { kernels } => Ok(kernels),
            other => self.unexpected(&other),
        }
    }

    /// Lets the worker map the memory that cold calls write to first.
    pub fn flush_with(&mut self, owner: &Owner) -> Result<(), CudaError> {
        let buffer = owner.flush_buffer();
        let fd = buffer.export()?;
        self.done(
            &Order::Flush {
                buffer: buffer.spec(),
            },
            &[fd],
        )
    }

    /// Gives a slot its buffers, in the order in which `plan` counts them, and the plan of its calls.
    pub fn slot(&mut self, slot: usize, buffers: &[&Buffer], plan: &ResolvedPlan) -> Result<(), CudaError> {
        let fds = buffers
            .iter()
            .map(|buffer| buffer.export())
            .collect::<Result<Vec<_>, _>>()?;
        let order = Order::Slot {
            slot,
            buffers: buffers.iter().map(|buffer| buffer.spec()).collect(),
            plan: plan.clone(),
        };
        self.done(&order, &fds)
    }

    /// Gives a slot another plan for the buffers that it has.
    pub fn plan(&mut self, slot: usize, plan: &ResolvedPlan) -> Result<(), CudaError> {
        let plan = plan.clone();
        self.done(&Order::Plan { slot, plan }, &[])
    }

    /// Drops a slot's mappings.
    pub fn clear(&mut self, slot: usize) -> Result<(), CudaError> {
        self.done(&Order::Clear { slot }, &[])
    }

    /// Runs one slot. The judge's own device work is waited for before its clock starts.
    pub fn call(
        &mut self,
        owner: &Owner,
        slot: usize,
        cache: Cache,
        deadline: Duration,
    ) -> Result<Timing, CudaError> {
        self.run(owner, &Order::Call { slot, cache }, deadline)
    }

    /// Runs several slots without waiting between them, as launches or as one graph.
    pub fn batch(
        &mut self,
        owner: &Owner,
        slots: &[usize],
        graph: bool,
        deadline: Duration,
    ) -> Result<Timing, CudaError> {
        let slots = slots.to_vec();
        self.run(owner, &Order::Batch { slots, graph }, deadline)
    }

    fn run(&mut self, owner: &Owner, order: &Order, deadline: Duration) -> Result<Timing, CudaError> {
        let start = owner.settled()?;
        match self.ask(order, &[], deadline)? {
            Answer::Ran { event_ns } => Ok(Timing {
                judge_ns: nanoseconds(start),
                event_ns,
            }),
            other => self.unexpected(&other),
        }
    }

    /// The level of isolation that it really has.
    pub fn level(&self) -> Level {
        self.child.level()
    }

    /// CPU time used by the worker's process so far.
    pub fn cpu_time(&self) -> Option<Duration> {
        self.child.cpu_time()
    }

    fn done(&mut self, order: &Order, fds: &[OwnedFd]) -> Result<(), CudaError> {
        match self.ask(order, fds, Duration::from_secs(60))? {
            Answer::Done => Ok(()),
            other => self.unexpected(&other),
        }
    }

    fn unexpected<T>(&mut self, answer: &Answer) -> Result<T, CudaError> {
        self.dead = true;
        let what = match answer {
            Answer::Done => "`done` where another answer was due",
            Answer::Loaded { .. } => "`loaded` where another answer was due",
            Answer::Ran { .. } => "`ran` where another answer was due",
            Answer::Fault(_) => "a fault",
        };
        Err(CudaError::Fault(CudaFault::Protocol {
            what: what.to_owned(),
        }))
    }

    fn ask(&mut self, order: &Order, fds: &[OwnedFd], deadline: Duration) -> Result<Answer, CudaError> {
        if self.dead {
            return Err(CudaError::Dead);
        }
        self.socket
            .set_timeout(deadline)
            .map_err(CudaError::io("setting a deadline"))?;
        let answer = self
            .socket
            .send(order, fds)
            .and_then(|()| self.socket.receive::<Answer>());
        match answer {
            Ok((Answer::Fault(fault), _)) => {
                self.dead = true;
                Err(CudaError::Fault(fault))
            }
            Ok((answer, _)) => Ok(answer),
            Err(error) => {
                self.dead = true;
                let timeout = matches!(
                    error.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                );
                let patience = Duration::from_millis(if timeout { 0 } else { 500 });
                let ended = self.child.wait(Instant::now() + patience);
                self.child.kill();
                Err(CudaError::Fault(if timeout {
                    CudaFault::Timeout
                } else {
                    CudaFault::Ended {
                        how: ended.to_string(),
                    }
                }))
            }
        }
    }
}

fn nanoseconds(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// What the driver reads of the system at its start: whether its modules are loaded, CPUs and memory nodes.
const SYSTEM_FILES: [&str; 5] = [
    "/sys/module/nvidia/initstate",
    "/sys/module/nvidia_uvm/initstate",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/memory/block_size_bytes",
    "/sys/devices/system/node",
];

/// The device nodes that the driver opens.
fn device_nodes() -> Vec<std::path::PathBuf> {
    let Ok(entries) = std::fs::read_dir("/dev") else {
        return Vec::new();
    };
    entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("nvidia"))
        .map(|entry| entry.path())
        .filter(|path| !path.is_dir())
        .collect()
}
