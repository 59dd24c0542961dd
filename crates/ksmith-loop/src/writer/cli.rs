//! An agent's command line as a writer: lay its desk, run it in its box, read what it left, say how it ended.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ksmith_agents::process::Statement;
use ksmith_agents::writers::{
    AgentBox, Desk, Facts, Found, ModelFacts, Profile, Said, Session, Sockets, Values, find, placed, run,
    version,
};
use ksmith_box::Level;
use ksmith_task::{Brief, Proposal};
use serde_json::json;

use super::agency::{Agency, Heard, Left, PROMPT, direction, failed};
use super::desk::{Tools, laid};
use super::{Direction, Writer, WriterError};
use crate::Sandbox;
use crate::models::Models;
use crate::workshop::Setting;

/// An agent's command line as a writer.
pub struct CliWriter {
    agency: Agency,
    profile: Profile,
    found: Found,
    /// None for an agent that uses no model of ours.
    models: Option<Models>,
    /// Asked once, in the first session.
    version: OnceLock<Option<String>>,
    /// What was said beside the last proposals.
    statement: Statement,
}

impl CliWriter {
    /// A writer for a built-in profile, a profile's file, or any program.
    ///
    /// # Errors
    /// When there is no such profile, its program is not installed, or no box of the required level can be made.
    pub fn new(profile: &str, setting: &Setting<'_>) -> Result<Self, WriterError> {
        let profile = Profile::load(profile).map_err(|error| failed(&error))?;
        let found = find(&profile, setting.host.search_path.as_deref()).map_err(|error| failed(&error))?;
        let isolation = ksmith_box::probe();
        if isolation.level < Level::Box && setting.sandbox == Sandbox::Required {
            return Err(WriterError::Failed(format!(
                "agents run at isolation level `box`, and this machine offers `{}`: {}; `--unsandboxed` takes what \
                 there is, and every record shows it",
                isolation.name(),
                isolation.missing()
            )));
        }
        let agency = Agency::new(setting)?;
        let model = match (&setting.agents.model, profile.wire) {
            (Some(model), _) => Some(model),
            (None, None) => None,
            (None, Some(_)) => {
                return Err(WriterError::Usage {
                    what: format!("agent `{}` needs a model, and none is named", profile.name),
                    fix: "Name one with `--model`.".into(),
                });
            }
        };
        let folder = agency.sockets();
        let models = model
            .map(|model| Models::start(model, profile.wire, Some(&folder), setting))
            .transpose()?;
        Ok(Self {
            agency,
            models,
            version: OnceLock::new(),
            statement: Statement::default(),
            profile,
            found,
        })
    }

    fn cage(&self, desk: &Desk) -> AgentBox {
        let cage = AgentBox::new(desk);
        match self.agency.sandbox {
            Sandbox::Required => cage,
            Sandbox::Unsandboxed => cage.unsandboxed(),
        }
    }

    /// How its calls of the model ended so far.
    fn facts(&self) -> ModelFacts {
        self.models.as_ref().map(Models::facts).unwrap_or_default()
    }

    fn values(&self) -> Values {
        let options = &self.agency.options;
        Values {
            model: options.model.clone().unwrap_or_default(),
            key: self
                .models
                .as_ref()
                .map(|models| models.gateway().dummy_key().to_owned())
                .unwrap_or_default(),
            prompt: PROMPT.into(),
            turns: options.turns.to_string(),
            ..Values::default()
        }
    }

    fn session(
        &self,
        brief: &Brief,
        wanted: usize,
        number: u32,
        wall: Duration,
    ) -> Result<Left, WriterError> {
        let root = Agency::root(brief, number);
        let ksmith = self.agency.host.ksmith.clone();
        let tools = match ksmith {
            Some(_) => Tools::Here,
            None => Tools::Absent,
        };
        let mut lay = laid(brief, &self.agency.instance, &self.agency.run, tools)?;
        // Paths inside the box are those of the desk that is laid next; an empty one tells them.
        let bare = Desk::bare(&root).map_err(|error| failed(&error))?;
        let (values, _) = placed(&self.values(), &bare, ksmith.as_deref());
        (lay.more, lay.home) = Session::files(&self.profile, &values);
        let desk = self.agency.lay(&root, &lay)?;
        self.version
            .get_or_init(|| version(&self.profile, &self.found, &self.cage(&desk), &desk));
        let served = match tools {
            Tools::Here => Some(self.agency.serve(&desk, brief)?),
            Tools::Called | Tools::Absent => None,
        };
        let session = Session {
            profile: &self.profile,
            found: &self.found,
            desk: &desk,
            values: self.values(),
            sockets: Sockets {
                folder: (served.is_some() || self.models.is_some()).then(|| self.agency.sockets()),
                gateway: self
                    .models
                    .as_ref()
                    .and_then(|models| models.socket().map(Path::to_owned)),
                tools: served.as_ref().map(|served| served.socket.clone()),
            },
            ksmith,
            mcp: cfg!(feature = "mcp"),
            cage: self.cage(&desk).wall(wall),
        };
        let stopped = AtomicBool::new(false);
        let before = self.facts();
        let ran = run(&session, &|| {
            stopped.store(self.agency.interrupt.is_requested(), Ordering::Relaxed);
            // With the budget spent it can only ask in vain.
            let spent = self.facts().refused > before.refused;
            !stopped.load(Ordering::Relaxed) && !spent
        });
        let after = self.facts();
        // Nothing of the agent lives on; only now are its files read.
        drop(served);
        let handed = self.agency.verbs.end();
        let ran = ran.map_err(|error| failed(&error))?;
        let facts = Facts {
            ended: Some(ran.ended.clone()),
            flooded: ran.flooded,
            interrupted: stopped.load(Ordering::Relaxed),
            model: self.models.as_ref().map(|_| ModelFacts {
                answered: after.answered - before.answered,
                failed: after.failed - before.failed,
                refused: after.refused - before.refused,
            }),
            said: Said::read(&ran.stdout),
            ..Facts::default()
        };
        let denials = facts.said.denials;
        let left = self.agency.read(&desk, facts, handed, wanted)?;
        let heard = Heard {
            agent: self.name(),
            output: &ran.stdout,
            errors: &ran.stderr,
            wall: ran.wall,
            detail: json!({
                "isolation": ran.level.name(),
                "command": ran.command,
                "exit": ran.ended.to_string(),
                "output_cut": ran.truncated,
                "skips": self.profile.skips,
                "denials_of_its_own": denials,
            }),
        };
        self.agency.record(&left, heard, &desk)?;
        Ok(left)
    }
}

impl Writer for CliWriter {
    fn name(&self) -> String {
        match self.version.get() {
            Some(Some(version)) => format!("cli:{} ({version})", self.profile.name),
            Some(None) | None => format!("cli:{}", self.profile.name),
        }
    }

    fn remarks(&self) -> Vec<String> {
        self.profile.remarks(ksmith_box::probe().name())
    }

    fn directions(&mut self, _: &Brief) -> Result<Vec<Direction>, WriterError> {
        Ok(vec![direction(&self.profile.name)])
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
