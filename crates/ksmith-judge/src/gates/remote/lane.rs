//! Lanes: several filled slots at once, and one from cold caches.

use std::sync::Arc;
use std::time::Duration;

use ksmith_task::chain;
use ksmith_worker::cuda::{Cache, Timing};

use super::laid::GUARDED;
use super::{Remote, ours};
use crate::cases::Case;
use crate::gates::runner::{RunnerError, Setup};
use crate::reference::Checkers;

impl Remote {
    /// Lays a case out in a slot of its own, for lanes that run several at once.
    pub(crate) fn fill_slot(&mut self, slot: usize, case: &Case, setup: Setup) -> Result<(), RunnerError> {
        self.lay_out_in(slot, case, setup.edge, &|_| GUARDED)?;
        self.refill_slot(slot, case, setup)
    }

    /// Inputs and poison of a slot once more.
    pub(crate) fn refill_slot(&mut self, slot: usize, case: &Case, setup: Setup) -> Result<(), RunnerError> {
        self.current = slot;
        self.reveal(case)?;
        self.fill(setup.poison)
    }

    /// Runs filled slots one after the other without waiting between them.
    pub(crate) fn lane(
        &mut self,
        slots: &[usize],
        graph: bool,
        limit: Duration,
    ) -> Result<Timing, RunnerError> {
        let device = Arc::clone(&self.device);
        Ok(self.worker()?.batch(&device.owner, slots, graph, limit)?)
    }

    /// Runs the slot filled last from cold caches.
    pub(crate) fn cold(&mut self, limit: Duration) -> Result<Timing, RunnerError> {
        self.run(Cache::Cold, limit)
    }

    /// Verifies what a lane left in a slot.
    pub(crate) fn verify_slot(
        &mut self,
        slot: usize,
        case: &Case,
        checkers: &Checkers,
    ) -> Result<Option<&'static str>, RunnerError> {
        self.current = slot;
        let bound = &case.spec.bound;
        let Some(resident) = &case.resident else {
            let outputs = self.read(bound)?;
            let judgement = crate::gates::judgement::judge(case, &outputs, checkers)
                .map_err(|error| RunnerError::Ours(chain(&error)))?;
            return Ok(judgement
                .failed
                .map(|(_, outcome)| outcome.cause.map_or("wrong-value", |cause| cause.code())));
        };
        let laid = self.laid()?;
        for (index, tensor) in bound.outputs().enumerate() {
            let Some(buffer) = laid.output(index) else {
                return Ok(Some("unwritten"));
            };
            if let Some(cause) = ours(resident.check(&self.device, index, tensor, buffer))? {
                return Ok(Some(cause));
            }
        }
        Ok(None)
    }
}
