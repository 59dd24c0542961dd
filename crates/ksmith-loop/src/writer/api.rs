//! A plain model as a writer, by our own small tool loop. Nothing of it runs as a process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ksmith_agents::gateway::{Client, WRITER};
use ksmith_agents::process::Statement;
use ksmith_agents::tools::Tickets;
use ksmith_agents::writers::{Conversation, Facts};
use ksmith_box::Ended;
use ksmith_ledger::ObjectStore;
use ksmith_task::{Brief, Proposal};
use serde_json::json;

use super::agency::{Agency, Book, Heard, Left, PROMPT};
use super::desk::{Tools, laid};
use super::verbs::Remembering;
use super::{Direction, Writer, WriterError};
use crate::models::Models;
use crate::workshop::Setting;

/// A plain model as a writer.
pub struct ApiWriter {
    agency: Agency,
    models: Models,
    /// The probes; those of a step that was cut short answer from the record.
    verbs: Arc<Remembering>,
    /// What was said beside the last proposals.
    statement: Statement,
}

impl ApiWriter {
    /// A writer that talks to `model`.
    ///
    /// # Errors
    /// When its server or key is not known, or it has no price.
    pub fn new(model: &str, setting: &Setting<'_>) -> Result<Self, WriterError> {
        let agency = Agency::new(setting)?;
        let objects = ObjectStore::new(setting.run);
        let tools = &setting.account.unfinished_tools;
        Ok(Self {
            verbs: Arc::new(Remembering::new(Arc::clone(&agency.verbs), tools, &objects)),
            models: Models::start(model, None, None, setting)?,
            statement: Statement::default(),
            agency,
        })
    }

    fn session(
        &self,
        brief: &Brief,
        wanted: usize,
        number: u32,
        wall: Duration,
    ) -> Result<Left, WriterError> {
        let began = Instant::now();
        let root = Agency::root(brief, number);
        let lay = laid(brief, &self.agency.instance, &self.agency.run, Tools::Called)?;
        let desk = self.agency.lay(&root, &lay)?;
        self.agency.verbs.begin(Arc::clone(&desk), brief);
        let tickets = Tickets::new(Arc::clone(&self.verbs) as _);
        let client = Client::new(self.models.gateway(), WRITER);
        let book = Book(self.agency.recorder.clone());
        let conversation = Conversation {
            client: &client,
            desk: &desk,
            tickets: &tickets,
            log: &book,
            approver: self.agency.approver(),
            turns: self.agency.options.turns,
            wall,
        };
        let prompt = format!("{PROMPT}\n\n{}", lay.brief);
        let talk = conversation.talk(&prompt, &|| !self.agency.interrupt.is_requested());
        tickets.close();
        let handed = self.agency.verbs.end();
        let interrupted = self.agency.interrupt.is_requested();
        let facts = Facts {
            ended: talk.timed_out.then_some(match interrupted {
                true => Ended::Killed,
                false => Ended::TimedOut,
            }),
            interrupted,
            model: Some(talk.model),
            said: talk.said.clone(),
            ..Facts::default()
        };
        let left = self.agency.read(&desk, facts, handed, wanted)?;
        let heard = Heard {
            agent: self.name(),
            output: &talk.transcript,
            errors: talk.error.as_deref().unwrap_or_default().as_bytes(),
            wall: began.elapsed(),
            detail: json!({
                "isolation": "no process",
                "turns": talk.turns,
                "attempts_on_given_files": talk.attempts,
            }),
        };
        self.agency.record(&left, heard, &desk)?;
        Ok(left)
    }
}

impl Writer for ApiWriter {
    fn name(&self) -> String {
        format!("api:{}", self.models.gateway().model())
    }

    fn directions(&mut self, _: &Brief) -> Result<Vec<Direction>, WriterError> {
        Ok(vec![super::agency::direction(&self.name())])
    }

    fn propose(&mut self, brief: &Brief, wanted: usize) -> Result<Vec<Proposal>, WriterError> {
        self.statement = Statement::default();
        let (proposals, statement) = self
            .agency
            .sessions(brief, |number, wall| self.session(brief, wanted, number, wall))?;
        self.statement = statement;
        Ok(proposals)
    }

    fn statement(&mut self) -> Statement {
        std::mem::take(&mut self.statement)
    }
}
