//! What a run is asked to do, resolved once and passed by reference.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use ksmith_agents::gateway::Endpoint;
use ksmith_agents::review::SameVendor;
use ksmith_task::Backend;

use crate::{AgentHost, AgentOptions, Interrupt, Mechanisms};

/// One dtype variable fixed by the user: `T=bf16`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypePick {
    /// The dtype variable.
    pub variable: String,
    /// The dtype's name.
    pub dtype: ksmith_task::DType,
}

/// A text that fixes no dtype variable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` fixes no dtype; expected `VARIABLE=DTYPE`, for example `T=f32`")]
pub struct TypePickError(String);

impl FromStr for TypePick {
    type Err = TypePickError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || TypePickError(text.to_owned());
        let (variable, dtype) = text.split_once('=').ok_or_else(error)?;
        if variable.is_empty() {
            return Err(error());
        }
        Ok(Self {
            variable: variable.to_owned(),
            dtype: dtype.parse().map_err(|()| error())?,
        })
    }
}

/// Which writer proposes candidates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriterChoice {
    /// The built-in offline agent.
    Search,
    /// Candidate folders that already exist, in the order of their names.
    Folder(PathBuf),
    /// The command line of an agent: a built-in profile, a profile's file, or any program.
    Cli(String),
    /// A model, by our own small tool loop.
    Api(String),
    /// What the writer of an earlier run proposed: that run's folder or its `ledger.jsonl`.
    Replay(PathBuf),
}

impl fmt::Display for WriterChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Search => f.write_str("search"),
            Self::Folder(folder) => write!(f, "folder:{}", folder.display()),
            Self::Cli(profile) => write!(f, "cli:{profile}"),
            Self::Api(model) => write!(f, "api:{model}"),
            Self::Replay(file) => write!(f, "replay:{}", file.display()),
        }
    }
}

impl FromStr for WriterChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            None if text == "search" => Ok(Self::Search),
            Some(("folder", path)) if !path.is_empty() => Ok(Self::Folder(path.into())),
            Some(("cli", profile)) if !profile.is_empty() => Ok(Self::Cli(profile.to_owned())),
            Some(("api", model)) if !model.is_empty() => Ok(Self::Api(model.to_owned())),
            Some(("replay", file)) if !file.is_empty() => Ok(Self::Replay(file.into())),
            _ => Err(format!(
                "`{text}` is no writer; expected `search`, `cli:PROFILE`, `api:MODEL`, `replay:RUN` or `folder:PATH`"
            )),
        }
    }
}

/// Who reviews.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReviewerChoice {
    /// Nobody.
    None,
    /// The built-in rules; no model.
    Lint,
    /// A command in a box, see `docs/review.md`.
    Command(String),
    /// A model, over the gateway.
    Api(String),
}

impl fmt::Display for ReviewerChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Lint => f.write_str("lint"),
            Self::Command(command) => f.write_str(command),
            Self::Api(model) => write!(f, "api:{model}"),
        }
    }
}

impl FromStr for ReviewerChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.trim() {
            "" => Err("the reviewer is empty; expected `lint`, `none`, `api:MODEL` or a command".to_owned()),
            "none" => Ok(Self::None),
            "lint" => Ok(Self::Lint),
            "api:" => Err("`api:` names no model; expected `api:MODEL`".to_owned()),
            other => Ok(match other.strip_prefix("api:") {
                Some(model) => Self::Api(model.to_owned()),
                None => Self::Command(other.to_owned()),
            }),
        }
    }
}

/// Who reviews a run, and under which conditions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReviewOptions {
    /// Who reviews.
    pub reviewer: ReviewerChoice,
    /// The maker of the reviewer's model, where it cannot be told from the name of command or model.
    pub vendor: Option<String>,
    /// The server of the reviewer's model, if it is not the usual one.
    #[serde(default)]
    pub endpoint: Endpoint,
    /// Whether one vendor may write and review.
    pub same_vendor: SameVendor,
    /// Seconds of one attempt to get a verdict.
    pub limit_s: f64,
    /// Seconds for which an answer of a person is waited for; then the run stops.
    pub answer_limit_s: f64,
}

impl Default for ReviewOptions {
    fn default() -> Self {
        Self {
            reviewer: ReviewerChoice::Lint,
            vendor: None,
            endpoint: Endpoint::default(),
            same_vendor: SameVendor::Refused,
            limit_s: 300.0,
            answer_limit_s: 600.0,
        }
    }
}

/// What a run is asked to do.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// The task's folder or its `task.toml`.
    pub task: PathBuf,
    /// Where `.ksmith/` lies: the current folder of the command.
    pub home: PathBuf,
    /// Which tier runs the candidates.
    pub backend: Backend,
    /// Fixed dtype variables; empty means every instance in turn.
    pub types: Vec<TypePick>,
    /// Wall time in seconds instead of the task's.
    pub wall_s: Option<f64>,
    /// Full scorings instead of the task's.
    pub candidates: Option<u64>,
    /// Money instead of the task's.
    pub cost_usd: Option<f64>,
    /// Tokens of models instead of the task's.
    pub tokens: Option<u64>,
    /// Device time in seconds instead of the task's.
    pub device_s: Option<f64>,
    /// Seed of the writer's choices; never of the judge's cases.
    pub seed: u64,
    /// Who proposes candidates.
    pub writer: WriterChoice,
    /// Which optional parts are on.
    pub mechanisms: Mechanisms,
    /// Who reviews, where mechanism `review` is on.
    pub review: ReviewOptions,
    /// Whether the user allowed candidates to run without a sandbox.
    pub sandbox: Sandbox,
    /// What the user asked of agents.
    pub agents: AgentOptions,
    /// What of the machine agents may use.
    pub agent_host: AgentHost,
    /// Set by a signal handler.
    pub interrupt: Interrupt,
    /// The command line, for the first record.
    pub command: Vec<String>,
    /// The key that signs certificates; absent means unsigned.
    pub signing_key: Option<PathBuf>,
}

/// Whether candidates must run boxed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sandbox {
    /// Without a box the answer is `error`, with the cause.
    #[default]
    Required,
    /// The user passed `--unsandboxed`; every record shows it.
    Unsandboxed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_pick_names_variable_and_dtype() {
        let pick: TypePick = "T=bf16".parse().unwrap();
        assert_eq!(
            pick,
            TypePick {
                variable: "T".into(),
                dtype: ksmith_task::DType::Bf16
            }
        );
        for wrong in ["bf16", "=bf16", "T=float", "T="] {
            assert!(wrong.parse::<TypePick>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_reviewer_survives_its_text_form() {
        for text in [
            "none",
            "lint",
            "python3 reviewer.py --strict",
            "api:some-model:latest",
        ] {
            assert_eq!(text.parse::<ReviewerChoice>().unwrap().to_string(), text);
        }
        for wrong in [" ", "api:"] {
            assert!(wrong.parse::<ReviewerChoice>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_writer_survives_its_text_form() {
        for text in [
            "search",
            "folder:mine/candidates",
            "cli:codex",
            "cli:./agent.sh",
            "api:some-model:latest",
            "replay:.ksmith/runs/3f07",
        ] {
            assert_eq!(text.parse::<WriterChoice>().unwrap().to_string(), text);
        }
        for wrong in ["claude", "cli:", "api:", "replay:", "acp:x"] {
            assert!(wrong.parse::<WriterChoice>().is_err(), "{wrong}");
        }
    }
}
