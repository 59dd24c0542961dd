//! How a run ended, for whoever started it.

use std::path::{Path, PathBuf};

use ksmith_ledger::{History, Outcome, Scope, Speedup};
use ksmith_task::{Digest, ExitCode};
use serde::Serialize;

use crate::RunError;

/// The champion of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChampionOutcome {
    /// Its id.
    pub id: String,
    /// Its trust tier.
    pub tier: String,
    /// The isolation it ran under.
    pub isolation: String,
    /// Confirmed gain over the task's baseline.
    pub speedup: Option<Speedup>,
    /// Confirmed gain over the flag control.
    pub over_flag_control: Option<Speedup>,
}

/// What a run's models used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ModelsOutcome {
    /// Calls sent.
    pub calls: u64,
    /// Tokens, input and output together.
    pub tokens: u64,
    /// Money in US dollars.
    pub cost_usd: f64,
    /// The part of it that is an upper bound, because nobody told what was used.
    pub estimated_usd: f64,
    /// Money beyond the budget: at most one call per writer or reviewer.
    pub over_budget_usd: f64,
}

/// One instance's run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InstanceOutcome {
    /// The run's id.
    pub run: String,
    /// The instance.
    pub instance: String,
    /// What hardware the figures speak of.
    pub scope: Scope,
    /// The sentence that goes with the scope.
    pub scope_note: String,
    /// Whether the user asked to run without a sandbox.
    pub unsandboxed: bool,
    /// How it ended.
    pub outcome: Outcome,
    /// Why no further candidate was begun.
    pub reason: String,
    /// Scored candidates on which no statement was possible.
    pub unstated: u64,
    /// Whether the machine was too busy or too noisy for any statement; then nothing is said of the baseline either.
    pub no_statement: bool,
    /// The champion; null where there is none.
    pub champion: Option<ChampionOutcome>,
    /// Full scorings.
    pub candidates: u64,
    /// Candidates that went through the quick pass.
    pub screened: u64,
    /// Wall time in seconds, over all sittings.
    pub wall_s: f64,
    /// Seconds for which the judge held the device; zero on the CPU.
    pub device_s: f64,
    /// What its models used.
    pub models: ModelsOutcome,
    /// Hash of the last record.
    pub head: Digest,
    /// The run's folder.
    #[serde(skip)]
    pub dir: PathBuf,
}

/// How a command's runs ended: one per dtype instance.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunOutcome {
    /// One per instance that was begun, in order.
    pub instances: Vec<InstanceOutcome>,
}

impl ModelsOutcome {
    fn of(history: &History) -> Self {
        let totals = history.models.totals();
        let limit = history.opened.budget.cost_usd;
        Self {
            calls: totals.calls,
            tokens: totals.tokens(),
            cost_usd: totals.cost_usd,
            estimated_usd: totals.estimated_usd,
            over_budget_usd: limit.map_or(0.0, |limit| (totals.cost_usd - limit).max(0.0)),
        }
    }
}

impl InstanceOutcome {
    /// Reads how far a run has come.
    ///
    /// # Errors
    /// When its ledger cannot be read.
    pub fn read(dir: &Path, wall_s: f64) -> Result<Self, RunError> {
        let history = History::load(dir)?;
        let opened = &history.opened;
        let closed = history.closed.as_ref();
        let champion = history.champion().and_then(|champion| {
            let verdict = champion.verdict()?;
            Some(ChampionOutcome {
                id: champion.id().to_owned(),
                tier: verdict.tier.clone(),
                isolation: verdict.isolation.clone(),
                speedup: verdict.over_baseline,
                over_flag_control: verdict.over_flag_control,
            })
        });
        Ok(Self {
            run: opened.run.clone(),
            instance: opened.instance.clone(),
            scope: opened.scope,
            scope_note: opened.scope_note.clone(),
            unsandboxed: opened.unsandboxed,
            outcome: closed.map_or(Outcome::Interrupted, |closed| closed.outcome),
            reason: closed.map_or_else(|| "interrupt".to_owned(), |closed| closed.reason.clone()),
            unstated: history.unstated(),
            no_statement: history.allows_no_statement(),
            champion,
            candidates: closed.map_or_else(
                || {
                    history
                        .candidates
                        .iter()
                        .filter(|candidate| candidate.decided.is_some())
                        .count() as u64
                },
                |closed| closed.candidates,
            ),
            screened: closed.map_or_else(
                || {
                    history
                        .candidates
                        .iter()
                        .filter(|candidate| candidate.screened.is_some())
                        .count() as u64
                },
                |closed| closed.screened,
            ),
            wall_s: closed.map_or(wall_s, |closed| closed.wall_s),
            device_s: crate::resume::remember(dir)?.spent.device_s,
            models: ModelsOutcome::of(&history),
            head: history.head,
            dir: dir.to_owned(),
        })
    }
}

impl RunOutcome {
    /// The instance that the command's one-line answer speaks of: the one that went worst.
    pub fn headline(&self) -> Option<&InstanceOutcome> {
        let rank = |instance: &InstanceOutcome| match instance.outcome {
            Outcome::Interrupted => 0,
            Outcome::GoalNotMet if instance.no_statement => 1,
            Outcome::GoalNotMet => 2,
            Outcome::GoalMet => 3,
        };
        let lower = |instance: &InstanceOutcome| {
            instance
                .champion
                .as_ref()
                .and_then(|champion| champion.speedup)
                .map_or(0.0, |speedup| speedup.lower)
        };
        self.instances
            .iter()
            .min_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| lower(a).total_cmp(&lower(b))))
    }

    /// What the process tells its caller.
    pub fn exit_code(&self) -> ExitCode {
        let Some(headline) = self.headline() else {
            return ExitCode::NotAccepted;
        };
        match headline.outcome {
            Outcome::GoalMet => ExitCode::Done,
            Outcome::GoalNotMet if headline.no_statement => ExitCode::Environment,
            Outcome::GoalNotMet => ExitCode::NotAccepted,
            Outcome::Interrupted => ExitCode::Interrupted,
        }
    }
}
