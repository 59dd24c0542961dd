//! The worker's half: one context, one module, mapped buffers, launches; no secrets and no host code of the candidate.

use std::os::fd::{FromRawFd, OwnedFd};

use ksmith_box::{Role, RoleContext};

use super::driver::{Context, Event, Function, Mapping, Module, Physical, Stream, encode_tensor_map};
use super::error::{CudaError, CudaFault};
use super::message::{Answer, BufferSpec, Order};
use super::plan::{Param, ResolvedPlan, ResolvedStep};
use super::socket::Socket;

/// The role that a device worker's helper runs.
pub const ROLE: Role = Role {
    name: "cuda-worker",
    run,
};

fn run(context: &RoleContext) -> i32 {
    let Some(&fd) = context.fds.first() else { return 2 };
    let mut socket = Socket::from_fd(adopt(fd));
    let mut state = State::default();
    loop {
        let Ok((order, fds)) = socket.receive::<Order>() else {
            return 0;
        };
        let (answer, ends) = match state.obey(order, fds) {
            Ok(answer) => (answer, false),
            Err(error) => (Answer::Fault(fault(error)), true),
        };
        if socket.send(&answer, &[]).is_err() || ends {
            // A context that faulted cannot be used again: the process ends and the judge goes on.
            return i32::from(ends);
        }
    }
}

#[expect(unsafe_code, reason = "the descriptor was passed to this process by number")]
pub(crate) fn adopt(fd: i32) -> OwnedFd {
    // SAFETY: the box passed this descriptor for the role's use, and nothing else in the process knows it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

fn fault(error: CudaError) -> CudaFault {
    match error {
        CudaError::Driver { call, code, name } => CudaFault::Device {
            call: call.to_owned(),
            code,
            name,
        },
        CudaError::Fault(fault) => fault,
        other => CudaFault::Protocol {
            what: other.to_string(),
        },
    }
}

fn protocol<T>(what: &str) -> Result<T, CudaError> {
    Err(CudaError::Fault(CudaFault::Protocol {
        what: what.to_owned(),
    }))
}

/// Fields drop in this order: mappings before the context that made them.
#[derive(Default)]
struct State {
    slots: Vec<Vec<Mapped>>,
    functions: Vec<Function>,
    module: Option<Module>,
    plan: Option<ResolvedPlan>,
    encoded: Vec<Vec<Vec<Vec<u8>>>>,
    device: Option<Device>,
}

struct Mapped {
    mapping: Mapping,
    offset: usize,
    _physical: Physical,
}

struct Device {
    start: Event,
    end: Event,
    stream: Stream,
    context: Context,
}

impl State {
    fn device(&self) -> Result<&Device, CudaError> {
        self.device
            .as_ref()
            .map_or_else(|| protocol("an order before `open`"), Ok)
    }

    fn obey(&mut self, order: Order, fds: Vec<OwnedFd>) -> Result<Answer, CudaError> {
        match order {
            Order::Open { ordinal } => {
                let context = Context::new(ordinal)?;
                self.device = Some(Device {
                    start: context.event()?,
                    end: context.event()?,
                    stream: context.stream()?,
                    context,
                });
            }
            Order::Load { image, kernels } => {
                let context = &self.device()?.context;
                let module = context.load(&image).map_err(|error| {
                    CudaError::Fault(CudaFault::Load {
                        message: error.to_string(),
                    })
                })?;
                let functions = kernels
                    .iter()
                    .map(|name| module.function(name))
                    .collect::<Result<Vec<_>, _>>()?;
                let facts = functions
                    .iter()
                    .map(Function::facts)
                    .collect::<Result<Vec<_>, _>>()?;
                self.functions = functions;
                self.module = Some(module);
                return Ok(Answer::Loaded { kernels: facts });
            }
            Order::Map { slots } => self.map(slots, fds)?,
            Order::Plan { plan } => self.set_plan(plan)?,
            Order::Call { slot } => return self.run(&[slot], false),
            Order::Batch { slots, graph } => return self.run(&slots, graph),
            Order::Unmap => {
                self.slots.clear();
                self.encoded.clear();
            }
        }
        Ok(Answer::Done)
    }

    fn map(&mut self, slots: Vec<Vec<BufferSpec>>, fds: Vec<OwnedFd>) -> Result<(), CudaError> {
        self.slots.clear();
        let mut fds = fds.into_iter();
        let mut mapped = Vec::with_capacity(slots.len());
        let context = &self.device()?.context;
        for slot in slots {
            let mut buffers = Vec::with_capacity(slot.len());
            for spec in slot {
                let Some(fd) = fds.next() else {
                    return protocol("a buffer without memory");
                };
                let physical = context.import(&fd, spec.physical)?;
                let mapping = context.map(&physical, spec.writable)?;
                buffers.push(Mapped {
                    mapping,
                    offset: spec.offset,
                    _physical: physical,
                });
            }
            mapped.push(buffers);
        }
        self.slots = mapped;
        Ok(())
    }

    fn set_plan(&mut self, plan: ResolvedPlan) -> Result<(), CudaError> {
        for step in plan.steps.iter().chain(&plan.setup) {
            if let ResolvedStep::Launch { launch, .. } = step {
                let Some(function) = self.functions.get(launch.kernel) else {
                    return protocol("a kernel out of range");
                };
                function.allow(launch.shared, launch.cluster.is_some())?;
            }
        }
        // Parameters are encoded once per slot: no host work stands between the events of a call.
        let mut encoded = Vec::with_capacity(self.slots.len());
        for slot in &self.slots {
            let mut steps = Vec::with_capacity(plan.steps.len());
            for step in &plan.steps {
                let ResolvedStep::Launch { params, .. } = step else {
                    steps.push(Vec::new());
                    continue;
                };
                steps.push(
                    params
                        .iter()
                        .map(|param| bytes_of(param, slot))
                        .collect::<Result<Vec<_>, _>>()?,
                );
            }
            encoded.push(steps);
        }
        self.encoded = encoded;
        self.plan = Some(plan);
        Ok(())
    }

    fn run(&self, slots: &[usize], graph: bool) -> Result<Answer, CudaError> {
        let device = self.device()?;
        let Some(plan) = &self.plan else {
            return protocol("a call before `plan`");
        };
        if slots.iter().any(|&slot| slot >= self.encoded.len()) {
            return protocol("a slot out of range");
        }
        let queue = |stream: &Stream| -> Result<(), CudaError> {
            for &slot in slots {
                self.queue(stream, plan, slot)?;
            }
            Ok(())
        };
        if graph {
            let graph = device.stream.capture(queue)?;
            device.stream.record(&device.start)?;
            device.stream.replay(&graph)?;
            device.stream.record(&device.end)?;
            device.stream.synchronize()?;
        } else {
            device.stream.record(&device.start)?;
            queue(&device.stream)?;
            device.stream.record(&device.end)?;
            device.stream.synchronize()?;
        }
        let milliseconds = device.end.since(&device.start)?;
        Ok(Answer::Ran {
            event_ns: (f64::from(milliseconds) * 1e6) as u64,
        })
    }

    fn queue(&self, stream: &Stream, plan: &ResolvedPlan, slot: usize) -> Result<(), CudaError> {
        for (step, params) in plan.steps.iter().zip(&self.encoded[slot]) {
            match step {
                ResolvedStep::Fill { buffer, value, bytes } => {
                    stream.fill(address(&self.slots[slot], *buffer)?, *value, *bytes as usize)?;
                }
                ResolvedStep::Launch { launch, .. } => {
                    stream.launch(&self.functions[launch.kernel], launch, params)?
                }
            }
        }
        Ok(())
    }
}

fn address(slot: &[Mapped], buffer: usize) -> Result<u64, CudaError> {
    match slot.get(buffer) {
        Some(mapped) => Ok(mapped.mapping.address + mapped.offset as u64),
        None => protocol("a buffer out of range"),
    }
}

fn bytes_of(param: &Param, slot: &[Mapped]) -> Result<Vec<u8>, CudaError> {
    match param {
        Param::Buffer(buffer) => Ok(address(slot, *buffer)?.to_le_bytes().to_vec()),
        Param::Bytes(bytes) => Ok(bytes.clone()),
        Param::Map(map) => encode_tensor_map(map, address(slot, map.buffer)?),
    }
}
