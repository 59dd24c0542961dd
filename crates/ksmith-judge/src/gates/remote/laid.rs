//! Slots: the buffers of one shape, and the plan that works on them.

use ksmith_task::{Bound, chain};
use ksmith_worker::cpu::Edge;
use ksmith_worker::cuda::{Beside, Buffer, BufferAccess, BufferEdge, CudaError, CudaFault, resolve};
use serde_json::json;

use super::{Remote, ours};
use crate::cases::{Case, POISONS, ScalarDraw};
use crate::gates::runner::RunnerError;

/// Slots of a worker: one for each timed workload, so that a change of workload costs no mapping.
pub(super) const SLOTS: usize = 6;
/// Memory that the slots of one worker may take together, in bytes.
const SLOT_BYTES: usize = 12 << 30;
/// The driver's number of a lack of memory.
const OUT_OF_MEMORY: i32 = 2;
/// Base pointers have at least this alignment on a device, in bytes.
const ALIGN: usize = 256;

/// What lies beside a buffer, and whether the worker may write to it though it is an input.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub(super) beside: [Beside; 2],
    pub(super) writable: bool,
}

/// The usual surroundings.
pub(super) const GUARDED: Room = Room {
    beside: [Beside::Unmapped; 2],
    writable: false,
};

/// One shape's buffers in a slot.
pub(super) struct Laid {
    axes: Vec<(String, i64)>,
    edge: Edge,
    scalars: Vec<f64>,
    /// Tensors that have memory of their own, then workspaces.
    pub(super) buffers: Vec<(String, Buffer)>,
    /// Index in `buffers` of each tensor of the task.
    pub(super) place: Vec<usize>,
    /// How many of `buffers` are tensors.
    tensors: usize,
    pub(super) inputs: usize,
    used: u64,
}

impl Laid {
    fn bytes(&self) -> usize {
        self.buffers.iter().map(|(_, buffer)| buffer.bytes()).sum()
    }

    pub(super) fn input(&self, index: usize) -> Option<&Buffer> {
        let place = *self.place.get(index).filter(|_| index < self.inputs)?;
        self.buffers.get(place).map(|(_, buffer)| buffer)
    }

    pub(super) fn output(&self, index: usize) -> Option<&Buffer> {
        let place = *self.place.get(self.inputs + index)?;
        self.buffers.get(place).map(|(_, buffer)| buffer)
    }

    /// Places of the buffers that are poisoned before a call: outputs with memory of their own, and workspaces.
    pub(super) fn poisoned(&self) -> impl Iterator<Item = usize> + '_ {
        let inputs = &self.place[..self.inputs];
        (0..self.buffers.len()).filter(move |place| !inputs.contains(place))
    }
}

impl Remote {
    /// Makes the case's shape the current one.
    pub(super) fn lay_out(&mut self, case: &Case, edge: Edge) -> Result<(), RunnerError> {
        self.clock += 1;
        let axes = &case.spec.bound.axes;
        let known = self.slots.iter().position(|slot| {
            slot.as_ref()
                .is_some_and(|laid| laid.axes == *axes && laid.edge == edge)
        });
        let slot = match known {
            Some(slot) => slot,
            None => self.room_for(case.spec.bound.storage_bytes() as usize)?,
        };
        self.lay_out_in(slot, case, edge, &|_| GUARDED)
    }

    /// A free slot; the least recently used ones go while their memory is needed.
    fn room_for(&mut self, bytes: usize) -> Result<usize, RunnerError> {
        loop {
            let taken: usize = self.slots.iter().flatten().map(Laid::bytes).sum();
            let free = self.slots.iter().position(Option::is_none);
            if let Some(free) = free.filter(|_| taken == 0 || taken + bytes <= SLOT_BYTES) {
                return Ok(free);
            }
            let oldest = (0..SLOTS)
                .filter(|slot| self.slots[*slot].is_some())
                .min_by_key(|slot| self.slots[*slot].as_ref().map_or(0, |laid| laid.used))
                .unwrap_or(0);
            ours(self.worker()?.clear(oldest))?;
            self.slots[oldest] = None;
        }
    }

    pub(super) fn lay_out_in(
        &mut self,
        slot: usize,
        case: &Case,
        edge: Edge,
        room: &dyn Fn(usize) -> Room,
    ) -> Result<(), RunnerError> {
        let bound = &case.spec.bound;
        let scalars: Vec<f64> = case.inputs.scalars.iter().map(real).collect();
        self.current = slot;
        if self.slots.len() <= slot {
            self.slots.resize_with(slot + 1, || None);
        }
        let clock = self.clock;
        if let Some(laid) = &mut self.slots[slot]
            && laid.axes == bound.axes
            && laid.edge == edge
        {
            laid.used = clock;
            if laid.scalars == scalars {
                return Ok(());
            }
        }
        let lookup = |name: &str| {
            let place = self.kernels.iter().position(|known| known == name)?;
            self.facts.get(place).cloned()
        };
        let plan = resolve(&self.plan, bound, &scalars, self.device.owner.facts(), &lookup)?;
        let laid = self.allocate(bound, &plan.workspaces, scalars, edge, room)?;
        let (place, tensors) = (laid.place.clone(), laid.place.len());
        let memories = laid.tensors;
        let plan = plan.relocated(&self.kernels, &|buffer| match place.get(buffer) {
            Some(place) => *place,
            None => memories + buffer.saturating_sub(tensors),
        });
        let buffers: Vec<&Buffer> = laid.buffers.iter().map(|(_, buffer)| buffer).collect();
        // A tensor map or a launch attribute that the driver refuses is the plan's fault.
        self.worker()?
            .slot(slot, &buffers, &plan)
            .map_err(|error| match error {
                CudaError::Fault(CudaFault::Device { call, name, code }) if code != OUT_OF_MEMORY => {
                    RunnerError::Found {
                        cause: "plan",
                        evidence: json!({ "refused": name, "by": call }),
                    }
                }
                other => RunnerError::Ours(chain(&other)),
            })?;
        self.slots[slot] = Some(laid);
        Ok(())
    }

    fn allocate(
        &self,
        bound: &Bound,
        workspaces: &[(String, u64)],
        scalars: Vec<f64>,
        edge: Edge,
        room: &dyn Fn(usize) -> Room,
    ) -> Result<Laid, RunnerError> {
        let owner = &self.device.owner;
        let inputs = bound.inputs().count();
        let side = match edge {
            Edge::Start => BufferEdge::Start,
            Edge::End => BufferEdge::End,
            Edge::Neither => BufferEdge::Neither,
        };
        let mut buffers = Vec::new();
        let mut place = vec![usize::MAX; bound.tensors.len()];
        for (index, tensor) in bound.tensors.iter().enumerate() {
            if tensor.inplace.is_some() {
                continue;
            }
            let shared = bound.tensors.iter().any(|other| other.inplace == Some(index));
            let room = room(buffers.len());
            let access = if index >= inputs || shared || room.writable {
                BufferAccess::Output
            } else {
                BufferAccess::Input
            };
            let align = tensor.align.max(ALIGN);
            let buffer = ours(owner.buffer_between(tensor.extent_bytes, align, access, side, room.beside))?;
            ours(owner.poison(&buffer, POISONS[0]))?;
            place[index] = buffers.len();
            buffers.push((tensor.name.clone(), buffer));
        }
        for (index, tensor) in bound.tensors.iter().enumerate() {
            if let Some(shared) = tensor.inplace {
                place[index] = place.get(shared).copied().unwrap_or(usize::MAX);
            }
        }
        let tensors = buffers.len();
        for (name, bytes) in workspaces {
            let beside = room(buffers.len()).beside;
            let access = BufferAccess::Output;
            let buffer = ours(owner.buffer_between(*bytes as usize, ALIGN, access, side, beside))?;
            buffers.push((name.clone(), buffer));
        }
        Ok(Laid {
            axes: bound.axes.clone(),
            edge,
            scalars,
            buffers,
            place,
            tensors,
            inputs,
            used: self.clock,
        })
    }
}

fn real(draw: &ScalarDraw) -> f64 {
    match draw {
        ScalarDraw::Real(_, value) => *value,
        ScalarDraw::Whole(_, value) => *value as f64,
    }
}
