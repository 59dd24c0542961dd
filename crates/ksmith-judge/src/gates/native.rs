//! A worker on the CPU and the cases that it is shown.
//!
//! Secret output elements are read the moment the clock stops, then the worker is frozen, and only then is anything
//! compared.

use std::path::Path;
use std::time::Duration;

use ksmith_box::Level;
use ksmith_task::{Bound, DType};
use ksmith_worker::cpu::{
    Access, Call, CallOptions, Edge, Layout, Placement, Probe, Scalar, Worker, WorkerError, WorkerSpec,
};

use super::runner::{Answer, Setup, WorkerOptions, element_offset};
use crate::cases::{Case, Key, POISONS, ScalarDraw, Secret, Stream, gaps_untouched, gather};
use crate::number;

/// A running worker.
#[derive(Debug)]
pub(super) struct Native {
    worker: Worker,
    shape: Option<(Vec<(String, i64)>, Edge)>,
    places: Stream,
    poison: u8,
}

/// Elements read at the moment the clock stops, per output.
const EARLY: usize = 6;

impl Native {
    pub(super) fn start(library: &Path, entry: &str, options: &WorkerOptions) -> Result<Self, WorkerError> {
        let mut spec = WorkerSpec::new(library, entry);
        spec.threads = options.threads;
        spec.cpus.clone_from(&options.cpus);
        spec.nice = options.nice;
        spec.rivals = options.rivals;
        spec.wait = options.wait;
        spec.least = options.least;
        spec.unsandboxed = options.unsandboxed;
        let worker = Worker::start(&spec)?;
        let secret = Secret::from_system().map_err(|source| WorkerError::Io {
            what: "could not draw places to look at",
            source,
        })?;
        Ok(Self {
            worker,
            shape: None,
            places: Key::new(&secret, "early", 0, "places").block(0),
            poison: POISONS[0],
        })
    }

    pub(super) fn level(&self) -> Level {
        self.worker.level()
    }

    pub(super) fn cpu_time(&self) -> Option<Duration> {
        self.worker.cpu_time()
    }

    pub(super) fn own_memory(&self) -> Option<u64> {
        self.worker.own_memory()
    }

    /// Reveals a case and reads the answer.
    pub(super) fn call(&mut self, case: &Case, setup: Setup) -> Result<Answer, WorkerError> {
        self.lay_out(&case.spec.bound, setup.edge)?;
        self.reveal(case, setup.poison)?;
        self.answer(&case.spec.bound, setup)
    }

    /// Changes one input of the case shown last, at the same addresses, and calls again. With `poison` the outputs are
    /// poisoned anew; without, they hold the earlier answer.
    pub(super) fn again(
        &mut self,
        bound: &Bound,
        input: usize,
        storage: &[u8],
        poison: Option<u8>,
        setup: Setup,
    ) -> Result<Answer, WorkerError> {
        let map = Map::of(bound);
        if let Some(place) = map.input(input) {
            copy(self.worker.input_mut(0, place), storage);
        }
        if let Some(poison) = poison {
            self.poison = poison;
            for place in map.poisoned() {
                self.worker.input_mut(0, place).fill(poison);
            }
        }
        self.answer(bound, setup)
    }

    /// Writes one input's storage without a call.
    pub(super) fn rewrite(&mut self, bound: &Bound, input: usize, storage: &[u8]) {
        if let Some(place) = Map::of(bound).input(input) {
            copy(self.worker.input_mut(0, place), storage);
        }
    }

    /// The poison that outputs were last filled with.
    pub(super) fn last_poison(&self) -> u8 {
        self.poison
    }

    fn lay_out(&mut self, bound: &Bound, edge: Edge) -> Result<(), WorkerError> {
        if self
            .shape
            .as_ref()
            .is_some_and(|(axes, laid)| *axes == bound.axes && *laid == edge)
        {
            return Ok(());
        }
        self.shape = None;
        self.worker.layout(&layout(bound, edge, 1))?;
        self.shape = Some((bound.axes.clone(), edge));
        Ok(())
    }

    fn reveal(&mut self, case: &Case, poison: u8) -> Result<(), WorkerError> {
        let bound = &case.spec.bound;
        let map = Map::of(bound);
        self.fill(0, case, &map, poison)
    }

    fn fill(&mut self, slot: usize, case: &Case, map: &Map, poison: u8) -> Result<(), WorkerError> {
        for (index, storage) in case.storage.iter().enumerate() {
            if let Some(place) = map.input(index) {
                copy(self.worker.input_mut(slot, place), storage);
            }
        }
        self.poison = poison;
        for place in map.poisoned() {
            self.worker.input_mut(slot, place).fill(poison);
        }
        if !case.inputs.scalars.is_empty() {
            self.worker.set_scalars(slot, &scalars(&case.inputs.scalars))?;
        }
        Ok(())
    }

    fn answer(&mut self, bound: &Bound, setup: Setup) -> Result<Answer, WorkerError> {
        let map = Map::of(bound);
        let mut early = Vec::new();
        let mut owners = Vec::new();
        for (index, tensor) in bound.outputs().enumerate() {
            let Some(place) = map.output(index) else { continue };
            let width = tensor.dtype.bytes();
            if tensor.is_empty() {
                continue;
            }
            for _ in 0..EARLY {
                let element = self.places.below(tensor.len() as u64) as usize;
                let offset = element_offset(tensor, element) * width;
                early.push(Probe {
                    placement: place,
                    offset: offset as u64,
                    bytes: width as u8,
                });
                owners.push((index, place, offset, width));
            }
        }
        let call = self.worker.call(
            0,
            &CallOptions {
                deadline: setup.deadline,
                early,
            },
        )?;
        let mut outputs = Vec::new();
        let mut gap = None;
        for (index, tensor) in bound.outputs().enumerate() {
            let Some(place) = map.output(index) else { continue };
            let storage = self.worker.output(0, place);
            // An in-place output's gaps hold the input's poison, whatever the outputs are poisoned with.
            let poison = if tensor.inplace.is_some() {
                POISONS[0]
            } else {
                setup.poison
            };
            if gap.is_none() && !gaps_untouched(tensor, storage, poison) {
                gap = Some(tensor.name.clone());
            }
            outputs.push(gather(tensor, storage));
        }
        let mut late = None;
        for ((index, place, offset, width), seen) in owners.iter().zip(&call.early) {
            let storage = self.worker.output(0, *place);
            let mut now = [0u8; 8];
            now[..*width].copy_from_slice(&storage[*offset..offset + width]);
            if u64::from_le_bytes(now) != *seen {
                late = bound.outputs().nth(*index).map(|tensor| tensor.name.clone());
            }
        }
        Ok(Answer {
            judged: None,
            outputs,
            gap,
            late,
            call,
        })
    }

    /// Reveals several cases of one shape together and times the whole answer.
    pub(super) fn batch(&mut self, cases: &[&Case], setup: Setup) -> Result<Call, WorkerError> {
        let Some(first) = cases.first() else {
            return Err(WorkerError::Layout("an empty batch".to_owned()));
        };
        let bound = &first.spec.bound;
        self.shape = None;
        self.worker.layout(&layout(bound, setup.edge, cases.len()))?;
        let map = Map::of(bound);
        for (slot, case) in cases.iter().enumerate() {
            self.fill(slot, case, &map, setup.poison)?;
        }
        self.worker.call_batch(
            cases.len(),
            &CallOptions {
                deadline: setup.deadline,
                early: Vec::new(),
            },
        )
    }

    /// The elements of an output of one slot after a batch.
    pub(super) fn slot_outputs(&self, bound: &Bound, slot: usize) -> Vec<Vec<u8>> {
        let map = Map::of(bound);
        bound
            .outputs()
            .enumerate()
            .filter_map(|(index, tensor)| Some(gather(tensor, self.worker.output(slot, map.output(index)?))))
            .collect()
    }
}

fn copy(to: &mut [u8], from: &[u8]) {
    let bytes = to.len().min(from.len());
    to[..bytes].copy_from_slice(&from[..bytes]);
}

/// Which placement holds which tensor.
struct Map {
    inputs: Vec<Option<usize>>,
    outputs: Vec<Option<usize>>,
    poisoned: Vec<usize>,
}

impl Map {
    fn of(bound: &Bound) -> Self {
        let mut next = 0;
        let mut placement = vec![None; bound.tensors.len()];
        for (index, tensor) in bound.tensors.iter().enumerate() {
            if tensor.inplace.is_none() {
                placement[index] = Some(next);
                next += 1;
            }
        }
        for (index, tensor) in bound.tensors.iter().enumerate() {
            if let Some(shared) = tensor.inplace {
                placement[index] = placement.get(shared).copied().flatten();
            }
        }
        let inputs = bound.inputs().count();
        let poisoned = bound
            .tensors
            .iter()
            .zip(&placement)
            .skip(inputs)
            .filter(|(tensor, _)| tensor.inplace.is_none())
            .filter_map(|(_, place)| *place)
            .collect();
        let outputs = placement.split_off(inputs);
        Self {
            inputs: placement,
            outputs,
            poisoned,
        }
    }

    fn input(&self, index: usize) -> Option<usize> {
        self.inputs.get(index).copied().flatten()
    }

    fn output(&self, index: usize) -> Option<usize> {
        self.outputs.get(index).copied().flatten()
    }

    fn poisoned(&self) -> Vec<usize> {
        self.poisoned.clone()
    }
}

fn layout(bound: &Bound, edge: Edge, slots: usize) -> Layout {
    let inputs = bound.inputs().count();
    let placements = bound
        .tensors
        .iter()
        .enumerate()
        .filter(|(_, tensor)| tensor.inplace.is_none())
        .map(|(index, tensor)| {
            let shared = bound.tensors.iter().any(|other| other.inplace == Some(index));
            Placement {
                name: tensor.name.clone(),
                bytes: tensor.extent_bytes as u64,
                align: tensor.align as u64,
                access: if index >= inputs {
                    Access::Output
                } else if shared {
                    Access::InOut
                } else {
                    Access::Input
                },
                edge,
            }
        })
        .collect();
    let zero = |dtype: DType| match dtype {
        DType::F32 => Scalar::F32(0.0),
        DType::F64 => Scalar::F64(0.0),
        _ => Scalar::Int(0),
    };
    Layout {
        slots,
        placements,
        scalars: bound.scalars.iter().map(|scalar| zero(scalar.dtype)).collect(),
        axes: bound.axes.iter().map(|(_, size)| *size).collect(),
    }
}

fn scalars(draws: &[ScalarDraw]) -> Vec<Scalar> {
    draws
        .iter()
        .map(|draw| match draw {
            ScalarDraw::Real(DType::F64, value) => Scalar::F64(*value),
            ScalarDraw::Real(DType::F32, value) => Scalar::F32(*value as f32),
            ScalarDraw::Real(dtype, value) => {
                let mut bytes = [0u8; 8];
                number::encode_reals(*dtype, &[*value], &mut bytes[..dtype.bytes()]);
                Scalar::Int(u64::from_le_bytes(bytes))
            }
            ScalarDraw::Whole(_, value) => Scalar::Int(*value as u64),
        })
        .collect()
}
