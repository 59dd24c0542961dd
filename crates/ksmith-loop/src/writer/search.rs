//! The built-in offline agent as a writer.

use std::path::Path;

use ksmith_machine::Machine;
use ksmith_search::{Cache, Facts, SearchAgent, SearchError};
use ksmith_task::{Brief, Instance, Proposal, chain};

use super::{Direction, Writer, WriterError};

/// The built-in offline agent.
#[derive(Debug)]
pub struct SearchWriter {
    agent: SearchAgent,
}

impl SearchWriter {
    /// An agent for one instance; measurements of earlier runs on this machine come from `cache`, if there is one.
    ///
    /// # Errors
    /// When its library of structures or the cache cannot be read.
    pub fn new(instance: &Instance, cache: Option<&Path>) -> Result<Self, WriterError> {
        let machine = Machine::read();
        let facts = Facts::of(&machine, super::threads(instance));
        let mut agent = SearchAgent::new(facts).map_err(failed)?;
        if let Some(path) = cache {
            let earlier = Cache::read(path).map_err(failed)?;
            agent = agent.with_cache(earlier.on_machine(&machine.digest().to_string()));
        }
        Ok(Self { agent })
    }
}

impl Writer for SearchWriter {
    fn name(&self) -> String {
        "search".into()
    }

    fn directions(&mut self, brief: &Brief) -> Result<Vec<Direction>, WriterError> {
        let directions = self.agent.directions(brief).map_err(failed)?;
        Ok(directions
            .into_iter()
            .map(|direction| Direction {
                name: direction.name,
                idea: direction.idea,
                value: direction.value,
                risk: direction.risk,
            })
            .collect())
    }

    fn propose(&mut self, brief: &Brief, wanted: usize) -> Result<Vec<Proposal>, WriterError> {
        self.agent.propose(brief, wanted).map_err(failed)
    }
}

fn failed(error: SearchError) -> WriterError {
    WriterError::Failed(chain(&error))
}
