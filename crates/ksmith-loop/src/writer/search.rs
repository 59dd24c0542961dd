//! The built-in offline agent as a writer.

use ksmith_task::{Brief, Instance, Proposal};

use super::{Direction, Writer, WriterError};

/// The built-in offline agent.
#[derive(Debug)]
pub struct SearchWriter {
    instance: String,
    seed: u64,
}

impl SearchWriter {
    /// An agent for one instance.
    ///
    /// # Errors
    /// When its library of structures cannot be read.
    pub fn new(instance: &Instance, seed: u64) -> Result<Self, WriterError> {
        Ok(Self {
            instance: instance.id(),
            seed,
        })
    }
}

impl Writer for SearchWriter {
    fn name(&self) -> String {
        "search".into()
    }

    fn directions(&mut self, _: &Brief) -> Vec<Direction> {
        let _ = (&self.instance, self.seed);
        Vec::new()
    }

    fn propose(&mut self, _: &Brief, _: usize) -> Result<Vec<Proposal>, WriterError> {
        Ok(Vec::new())
    }
}
