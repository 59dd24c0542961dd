//! The flag control: the baseline's source under the best of several flag sets.
//!
//! The honest yardstick: a gain that better flags give as well is no gain of an idea (JUDGE, "Flag control").

use ksmith_ledger::Role;
use ksmith_task::Backend;

use crate::RunError;
use crate::session::Session;
use crate::writer::WriterError;

impl Session<'_> {
    pub(crate) fn propose_flag_control(&mut self) -> Result<(), RunError> {
        let round = self.memory.last_round() + 1;
        let workspace = self.workspace(round)?;
        let proposals = match self.backend {
            Backend::Cpu => ksmith_search::flag_control(&self.baseline, &workspace)
                .map_err(|error| WriterError::Failed(crate::arena::chain(&error)))?,
            Backend::Cuda => Vec::new(),
        };
        for proposal in &proposals {
            self.record_proposal(proposal, round, Role::FlagControl)?;
        }
        self.build_ahead(round)
    }
}
