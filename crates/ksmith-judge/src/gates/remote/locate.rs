//! Which buffer a device fault belongs to: the driver names no place.

use std::sync::Arc;

use ksmith_worker::cuda::{Beside, Cache, CudaError, CudaFault};
use serde_json::{Value, json};

use super::laid::Room;
use super::{Remote, SIDES, ours};
use crate::cases::{Case, POISONS};
use crate::gates::runner::{RunnerError, Setup};

impl Remote {
    /// A device fault with the buffer and side that it belongs to, as far as they can be found.
    pub(super) fn located(&mut self, case: &Case, setup: Setup, fault: CudaFault) -> RunnerError {
        match self.locate(case, setup) {
            Ok(Some((cause, mut evidence))) => {
                if let Some(object) = evidence.as_object_mut() {
                    object.insert("error".to_owned(), json!(fault.to_string()));
                }
                RunnerError::Found { cause, evidence }
            }
            Ok(None) | Err(_) => RunnerError::Device(CudaError::Fault(fault)),
        }
    }

    /// Repeats the call in fresh workers. With memory mapped on both sides of every buffer and inputs writable, a stray
    /// write goes on and shows in the judge's own copies; a stray read is found by taking one side away at a time.
    fn locate(&self, case: &Case, setup: Setup) -> Result<Option<(&'static str, Value)>, RunnerError> {
        let wide = Room {
            beside: [Beside::Mapped; 2],
            writable: true,
        };
        let Some(open) = self.repeated(case, setup, &|_| wide)? else {
            // It reaches further than a granule beside every buffer.
            return Ok(None);
        };
        let laid = open.laid()?;
        for index in 0..laid.inputs {
            let Some(buffer) = laid.input(index) else { continue };
            let shared = laid.place[laid.inputs..].contains(&laid.place[index]);
            let mut now = vec![0; buffer.bytes()];
            let mut before = now.clone();
            ours(self.device.owner.read(buffer, &mut now))?;
            match case.resident.as_ref().and_then(|resident| resident.input(index)) {
                Some(resident) => ours(self.device.owner.read(resident, &mut before))?,
                None => before.clone_from(&case.storage[index]),
            }
            if !shared && now != before {
                let name = &laid.buffers[laid.place[index]].0;
                return Ok(Some(("input-write", json!({ "buffer": name, "side": "inside" }))));
            }
        }
        let mut places = Vec::new();
        for (place, (name, buffer)) in laid.buffers.iter().enumerate() {
            let is_input = laid.place[..laid.inputs].contains(&place);
            let filler = if is_input { POISONS[0] } else { setup.poison };
            let intact = ours(
                self.device
                    .checks
                    .slack_intact(&self.device.owner, buffer, filler),
            )?;
            if let Some(side) = intact.iter().position(|intact| !intact) {
                let evidence = json!({ "buffer": name, "side": SIDES[side], "access": "write" });
                return Ok(Some(("crash", evidence)));
            }
            places.push((place, name.clone()));
        }
        drop(open);
        for (place, name) in places {
            for (side, words) in SIDES.iter().enumerate() {
                let narrow = |which: usize| {
                    let mut room = wide;
                    if which == place {
                        room.beside[side] = Beside::Unmapped;
                    }
                    room
                };
                if self.repeated(case, setup, &narrow)?.is_none() {
                    let evidence = json!({ "buffer": name, "side": words, "access": "read" });
                    return Ok(Some(("crash", evidence)));
                }
            }
        }
        Ok(None)
    }

    /// One call in a fresh worker with other surroundings; `None` if it faults there too.
    fn repeated(
        &self,
        case: &Case,
        setup: Setup,
        room: &dyn Fn(usize) -> Room,
    ) -> Result<Option<Self>, RunnerError> {
        let mut twin = Self::load(Arc::clone(&self.device), &self.plan, &self.code)?;
        twin.lay_out_in(0, case, setup.edge, room)?;
        twin.reveal(case)?;
        twin.fill(setup.poison)?;
        match twin.run(Cache::AsIs, setup.deadline) {
            Ok(_) => Ok(Some(twin)),
            Err(RunnerError::Device(CudaError::Fault(_))) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
