//! The worker's half: one context, one module, mapped buffers, launches; no secrets and no host code of the candidate.

use std::os::fd::{FromRawFd, OwnedFd};

use ksmith_box::{Role, RoleContext};

use super::driver::{Context, Event, Function, Mapping, Module, Physical, Stream, encode_tensor_map};
use super::error::{CudaError, CudaFault};
use super::message::{Answer, BufferSpec, Cache, Order};
use super::plan::{Param, ResolvedPlan, ResolvedStep};
use super::socket::Socket;

/// The role that a device worker's helper runs.
pub const ROLE: Role = Role {
    name: "cuda-worker",
    before: None,
    run,
};

/// More slots than any lane of the judge uses.
const MOST_SLOTS: usize = 64;

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
    slots: Vec<Option<Slot>>,
    flush: Option<Mapped>,
    functions: Vec<Function>,
    module: Option<Module>,
    device: Option<Device>,
}

/// Buffers, and what is done with them in one call.
struct Slot {
    buffers: Vec<Mapped>,
    plan: ResolvedPlan,
    /// Parameters of each step, encoded once: no host work stands between the events of a call.
    encoded: Vec<Vec<Vec<u8>>>,
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
            Order::Flush { buffer } => {
                let Some(fd) = fds.first() else {
                    return protocol("a buffer without memory");
                };
                self.flush = Some(self.import(buffer, fd)?);
            }
            Order::Slot { slot, buffers, plan } => self.fill_slot(slot, &buffers, plan, &fds)?,
            Order::Plan { slot, plan } => {
                let Some(mut filled) = self.slots.get_mut(slot).and_then(Option::take) else {
                    return protocol("a plan for an empty slot");
                };
                filled.encoded = self.encode(&plan, &filled.buffers)?;
                filled.plan = plan;
                self.slots[slot] = Some(filled);
            }
            Order::Clear { slot } => {
                if let Some(slot) = self.slots.get_mut(slot) {
                    *slot = None;
                }
            }
            Order::Call { slot, cache } => return self.run(&[slot], cache, false),
            Order::Batch { slots, graph } => return self.run(&slots, Cache::AsIs, graph),
        }
        Ok(Answer::Done)
    }

    fn import(&self, spec: BufferSpec, fd: &OwnedFd) -> Result<Mapped, CudaError> {
        let context = &self.device()?.context;
        let physical = context.import(fd, spec.physical)?;
        let mapping = context.map(&physical, spec.writable)?;
        Ok(Mapped {
            mapping,
            offset: spec.offset,
            _physical: physical,
        })
    }

    fn fill_slot(
        &mut self,
        number: usize,
        specs: &[BufferSpec],
        plan: ResolvedPlan,
        fds: &[OwnedFd],
    ) -> Result<(), CudaError> {
        if number >= MOST_SLOTS || fds.len() != specs.len() {
            return protocol("a slot out of range, or buffers without memory");
        }
        if self.slots.len() <= number {
            self.slots.resize_with(number + 1, || None);
        }
        // The old mappings go first: a large shape may need their room.
        self.slots[number] = None;
        let buffers = specs
            .iter()
            .zip(fds)
            .map(|(spec, fd)| self.import(*spec, fd))
            .collect::<Result<Vec<_>, _>>()?;
        let encoded = self.encode(&plan, &buffers)?;
        self.slots[number] = Some(Slot {
            buffers,
            plan,
            encoded,
        });
        Ok(())
    }

    fn encode(&self, plan: &ResolvedPlan, buffers: &[Mapped]) -> Result<Vec<Vec<Vec<u8>>>, CudaError> {
        let mut steps = Vec::with_capacity(plan.steps.len());
        for step in &plan.steps {
            let ResolvedStep::Launch { launch, params } = step else {
                steps.push(Vec::new());
                continue;
            };
            let Some(function) = self.functions.get(launch.kernel) else {
                return protocol("a kernel out of range");
            };
            function.allow(launch.shared, launch.cluster.is_some())?;
            steps.push(
                params
                    .iter()
                    .map(|param| bytes_of(param, buffers))
                    .collect::<Result<Vec<_>, _>>()?,
            );
        }
        Ok(steps)
    }

    fn run(&self, slots: &[usize], cache: Cache, graph: bool) -> Result<Answer, CudaError> {
        let device = self.device()?;
        let filled = slots
            .iter()
            .map(|&slot| match self.slots.get(slot) {
                Some(Some(slot)) => Ok(slot),
                Some(None) | None => protocol("a call of an empty slot"),
            })
            .collect::<Result<Vec<_>, _>>()?;
        let queue = |stream: &Stream| filled.iter().try_for_each(|slot| self.queue(stream, slot));
        let stream = &device.stream;
        let graph = if graph { Some(stream.capture(queue)?) } else { None };
        if cache == Cache::Cold {
            let Some(flush) = &self.flush else {
                return protocol("a cold call before `flush`");
            };
            device.context.reset_persisting()?;
            stream.fill(flush.mapping.address, 0, flush.mapping.bytes)?;
        }
        stream.record(&device.start)?;
        match &graph {
            Some(graph) => stream.replay(graph)?,
            None => queue(stream)?,
        }
        stream.record(&device.end)?;
        stream.synchronize()?;
        let milliseconds = device.end.since(&device.start)?;
        Ok(Answer::Ran {
            event_ns: (f64::from(milliseconds) * 1e6) as u64,
        })
    }

    fn queue(&self, stream: &Stream, slot: &Slot) -> Result<(), CudaError> {
        for (step, params) in slot.plan.steps.iter().zip(&slot.encoded) {
            match step {
                ResolvedStep::Fill { buffer, value, bytes } => {
                    stream.fill(address(&slot.buffers, *buffer)?, *value, *bytes as usize)?;
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
