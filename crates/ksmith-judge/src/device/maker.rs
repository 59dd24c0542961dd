//! Makes large cases where candidates run: inputs are drawn there, expectations are computed there.
//!
//! Nothing of it is believed unseen. Of every tensor drawn there the host draws three blocks again and compares every bit;
//! the reference is held to the host's at small shapes before its first use in a run (`Maker::differs`).

use std::sync::Arc;

use ksmith_task::{Bound, Instance, chain};
use ksmith_worker::cuda::{Buffer, BufferAccess, Draw, DrawRows};

use super::Device;
use super::reference::DeviceReference;
use super::resident::Resident;
use crate::cases::{BLOCK, Case, CaseSpec, DeviceDraw, Inputs};

/// Largest difference between device and host references, as a share of the contract's tolerance. Float64 arithmetic in
/// another order stays four decades below it at the shapes in use.
pub(crate) const AGREEMENT: f64 = 1e-3;

/// Draws and expects on a device.
pub(crate) struct Maker {
    device: Arc<Device>,
    reference: DeviceReference,
}

impl std::fmt::Debug for Maker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Maker").finish_non_exhaustive()
    }
}

impl Maker {
    /// Compiles the task's reference for the device; `None` where the task has none, or compares in a way that only the
    /// host knows. The error is one line for the record.
    pub(crate) fn open(
        device: &Arc<Device>,
        instance: &Instance,
        some: &Bound,
    ) -> Result<Option<Self>, String> {
        let task = instance.task();
        let Some(folder) = &task.contract().reference.cuda else {
            return Ok(None);
        };
        // What a task's own generator writes lies on the host.
        if task.contract().generator.is_some() || !Resident::holds(some) {
            return Ok(None);
        }
        let reference = DeviceReference::open(device, instance, &task.dir().join(folder))?;
        Ok(Some(Self {
            device: Arc::clone(device),
            reference,
        }))
    }

    /// Draws a case and its expectations on the device; the error is one line for the record.
    pub(crate) fn case(&mut self, spec: &CaseSpec) -> Result<Case, String> {
        let bound = &spec.bound;
        let inputs = (0..bound.inputs().count())
            .map(|index| self.input(spec, index))
            .collect::<Result<Vec<_>, _>>()?;
        let scalars = spec.scalars();
        let wides = self.reference.expect(&self.device, bound, &scalars, &inputs)?;
        let resident = Resident::with(
            bound,
            inputs,
            wides.into_iter().map(|wide| (wide.want, wide.scale)),
        )
        .ok_or("an output compares in a way that only the host knows")?;
        Ok(Case {
            spec: spec.clone(),
            inputs: Inputs {
                values: Vec::new(),
                scalars,
            },
            storage: Vec::new(),
            expected: Vec::new(),
            resident: Some(Arc::new(resident)),
        })
    }

    fn input(&self, spec: &CaseSpec, index: usize) -> Result<Buffer, String> {
        let owner = &self.device.owner;
        let Some(tensor) = spec.bound.inputs().nth(index) else {
            return Err("an input without a tensor".to_owned());
        };
        let buffer = owner
            .buffer(tensor.extent_bytes, 256, BufferAccess::Input)
            .map_err(|error| chain(&error))?;
        if let Some(draw) = spec.device_draw(index).filter(|_| tensor.is_contiguous())
            && self.drawn(&buffer, tensor.len(), &draw)?
        {
            self.look_at(spec, index, &buffer, tensor.len() * tensor.dtype.bytes())?;
            return Ok(buffer);
        }
        let bytes = spec.storage(index).ok_or("an input without a fill")?;
        owner.write(&buffer, &bytes).map_err(|error| chain(&error))?;
        Ok(buffer)
    }

    /// `false` where only the host can draw it.
    fn drawn(&self, buffer: &Buffer, count: usize, draw: &DeviceDraw) -> Result<bool, String> {
        let owner = &self.device.owner;
        let choice = match &draw.rows {
            None => None,
            Some((choice, _)) => {
                let rows = owner
                    .buffer(choice.len(), 256, BufferAccess::Input)
                    .map_err(|error| chain(&error))?;
                owner.write(&rows, choice).map_err(|error| chain(&error))?;
                Some(rows)
            }
        };
        for (number, (law, target, seed)) in draw.laws.iter().enumerate() {
            let rows = choice.as_ref().zip(draw.rows.as_ref());
            let one = Draw {
                target: *target,
                law: *law,
                seed: *seed,
                rows: rows.map(|(choice, (_, length))| DrawRows {
                    choice,
                    length: *length,
                    which: number as u8,
                }),
            };
            let drawn = self.device.checks.draw(owner, buffer, count, &one);
            if !drawn.map_err(|error| chain(&error))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Draws the first, the last and one other block on the host and compares every bit.
    fn look_at(&self, spec: &CaseSpec, index: usize, buffer: &Buffer, bytes: usize) -> Result<(), String> {
        let Some(tensor) = spec.bound.inputs().nth(index) else {
            return Ok(());
        };
        let block_bytes = BLOCK * tensor.dtype.bytes();
        let blocks = bytes.div_ceil(block_bytes);
        // Another place in each case; whether the host looks there is no secret that anybody could use.
        let other = (spec.number as usize).wrapping_mul(0x9e37_79b9) % blocks.max(1);
        for block in [0, other, blocks.saturating_sub(1)] {
            let Some(want) = spec.block(index, block) else {
                return Err(format!("input `{}` has no blocks", tensor.name));
            };
            let mut got = vec![0; want.len()];
            self.device
                .owner
                .read_part(buffer, block * block_bytes, &mut got)
                .map_err(|error| chain(&error))?;
            if got != want {
                return Err(format!(
                    "input `{}` differs from the host's draw in block {block}",
                    tensor.name
                ));
            }
        }
        Ok(())
    }

    /// Makes a case of the host once more and compares: inputs bit for bit, expectations within [`AGREEMENT`] of the
    /// tolerance, scales within it relatively. The largest difference, or what differs, as one line for the record.
    pub(crate) fn differs(&mut self, host: &Case) -> Result<f64, String> {
        let made = self.case(&host.spec)?;
        let Some(resident) = &made.resident else {
            return Err("a case without a place on the device".to_owned());
        };
        for ((index, storage), tensor) in host.storage.iter().enumerate().zip(host.spec.bound.inputs()) {
            let mut drawn = vec![0; storage.len()];
            if let Some(buffer) = resident.input(index) {
                self.device
                    .owner
                    .read(buffer, &mut drawn)
                    .map_err(|error| chain(&error))?;
            }
            if drawn != *storage {
                return Err(format!("input `{}` differs from the host's draw", tensor.name));
            }
        }
        let worst = resident
            .distance(&self.device, host)
            .map_err(|error| chain(&error))?;
        if worst <= AGREEMENT {
            Ok(worst)
        } else {
            Err(format!(
                "the device's reference differs from the host's by {worst:.3e} of the tolerance"
            ))
        }
    }
}
