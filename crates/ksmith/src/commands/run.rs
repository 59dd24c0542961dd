//! `ksmith run`

use std::path::PathBuf;

use ksmith_agents::gateway::{Endpoint, Wire};
use ksmith_loop::{AgentOptions, Approve, Mechanisms, RunOptions, Sandbox, TypePick, WriterChoice};
use ksmith_task::Backend;

use super::reviewing::ReviewArgs;
use super::{Outcome, place, summary};
use crate::live::Live;
use crate::ui::Ui;
use crate::{duration, numbers, signals};

/// Search for a faster kernel until the budget, a plateau or the goal
///
/// Locks and audits the task, writes a draft and a plan, lets the writer propose candidates, and judges each one:
/// compiled, proved against the float64 reference on hidden cases, measured against the baseline in the same run.
/// Ends with a confirmed champion and its certificate, with "the baseline stands" (exit 1), or, where this machine was
/// too busy or too noisy for any statement, with just that (exit 3; `ksmith doctor` shows the noise). Each dtype instance
/// has a run of its own under `.ksmith/runs`; they share the budget. The wall time is a hard stop, the last confirmation
/// included. Ctrl-C stops within seconds and throws the step in flight away; `ksmith resume` goes on.
///
/// Example: ksmith run tasks/softmax --wall 5m
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The task's folder or its task.toml
    task: PathBuf,
    /// Which tier runs the candidates
    #[arg(long, value_parser = parse_backend, default_value = "cpu", value_name = "cpu|cuda")]
    backend: Backend,
    /// Fix a dtype variable, for example T=f32; the default is every instance in turn
    #[arg(long = "type", value_name = "VARIABLE=DTYPE")]
    types: Vec<TypePick>,
    /// Wall time for all instances together, for example 90s or 20m [default: the task's]
    #[arg(long, value_parser = duration::parse_some, value_name = "DURATION")]
    wall: Option<f64>,
    /// Full scorings for all instances together; screened candidates are counted apart [default: the task's]
    #[arg(long, value_parser = numbers::count, allow_negative_numbers = true, value_name = "NUMBER")]
    candidates: Option<u64>,
    /// Money for models in US dollars [default: the task's]
    #[arg(long, value_parser = numbers::money, allow_negative_numbers = true, value_name = "USD")]
    cost_usd: Option<f64>,
    /// Tokens of models, input and output together [default: the task's, or no limit]
    #[arg(long, value_parser = numbers::tokens, allow_negative_numbers = true, value_name = "NUMBER")]
    tokens: Option<u64>,
    /// Time for which the judge may hold the device, with backend cuda, for example 10m [default: the task's, or no limit]
    #[arg(long, value_parser = duration::parse_some, value_name = "DURATION")]
    device: Option<f64>,
    /// Seed of the writer's choices; never of the judge's cases
    #[arg(long, value_parser = numbers::seed, allow_negative_numbers = true, default_value = "0", value_name = "NUMBER")]
    seed: u64,
    /// Who proposes: `search`, `cli:PROFILE` (an agent's command line), `api:MODEL`, `replay:RUN`, or `folder:PATH` with
    /// candidates that exist already
    #[arg(long, default_value = "search", value_name = "WRITER")]
    writer: WriterChoice,
    /// Which optional parts are on: `all`, `none` (the goal-only control), or a list such as draft,plan,screen
    #[arg(long, default_value = "all", value_name = "LIST")]
    mechanisms: Mechanisms,
    #[command(flatten)]
    review: ReviewArgs,
    /// Run candidates and agents without a sandbox where the kernel gives none; every record and report shows it
    #[arg(long)]
    unsandboxed: bool,
    #[command(flatten)]
    agent: AgentArgs,
}

/// What is asked of agents.
#[derive(Debug, clap::Args)]
pub(crate) struct AgentArgs {
    /// The model that agents are pinned to
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Base address of the model's server [default: its vendor's]
    #[arg(long, value_name = "URL")]
    model_url: Option<String>,
    /// Format that the model's server speaks: chat, responses or messages [default: the agent's, else its vendor's]
    #[arg(long, value_parser = parse_wire, value_name = "WIRE")]
    model_wire: Option<Wire>,
    /// Environment variable that holds the key of the model's server [default: its vendor's]
    #[arg(long, value_name = "NAME")]
    model_key_env: Option<String>,
    /// Prices of models that come before the built-in table, as TOML
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
    /// Turns of one agent session
    #[arg(long, default_value_t = 60, value_name = "NUMBER")]
    turns: u32,
    /// Wall time of one agent session; never more than a part of what the run has left
    #[arg(long, value_parser = duration::parse, default_value = "15m", value_name = "DURATION")]
    session: f64,
    /// What happens when an agent leaves files outside its candidate: `deny` discards them, `ask` shows them as a
    /// difference in the terminal
    #[arg(long, default_value_t = Approve::Deny, value_name = "deny|ask")]
    approve: Approve,
}

impl AgentArgs {
    fn options(&self) -> AgentOptions {
        AgentOptions {
            model: self.model.clone(),
            endpoint: Endpoint {
                url: self.model_url.clone(),
                wire: self.model_wire,
                key_env: self.model_key_env.clone(),
            },
            prices: self.prices.clone(),
            turns: self.turns,
            session_s: self.session,
            approve: self.approve,
        }
    }
}

pub(crate) fn parse_wire(text: &str) -> Result<Wire, String> {
    Wire::ALL
        .into_iter()
        .find(|wire| wire.name() == text)
        .ok_or_else(|| format!("`{text}` is no wire format; expected `chat`, `responses` or `messages`"))
}

pub(crate) fn parse_backend(text: &str) -> Result<Backend, String> {
    [Backend::Cpu, Backend::Cuda]
        .into_iter()
        .find(|backend| backend.name() == text)
        .ok_or_else(|| format!("`{text}` is no backend; expected `cpu` or `cuda`"))
}

pub(crate) fn sandbox(unsandboxed: bool) -> Sandbox {
    if unsandboxed {
        Sandbox::Unsandboxed
    } else {
        Sandbox::Required
    }
}

pub(crate) fn run(args: &Args, ui: &mut Ui) -> Outcome {
    let options = RunOptions {
        task: args.task.clone(),
        home: place::home(),
        backend: args.backend,
        types: args.types.clone(),
        wall_s: args.wall,
        candidates: args.candidates,
        cost_usd: args.cost_usd,
        tokens: args.tokens,
        device_s: args.device,
        seed: args.seed,
        writer: args.writer.clone(),
        mechanisms: args.mechanisms.clone(),
        review: args.review.options(),
        sandbox: sandbox(args.unsandboxed),
        agents: args.agent.options(),
        agent_host: place::agent_host(ui),
        interrupt: signals::interrupt()?,
        command: place::command(),
        signing_key: place::signing_key(),
    };
    let mut live = Live::new(ui);
    let outcome = ksmith_loop::run(&options, &mut live);
    live.finish();
    summary::show(&outcome?, ui)
}
