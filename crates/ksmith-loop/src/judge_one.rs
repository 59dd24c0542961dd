//! Judges one candidate that exists already: a run of one candidate with nothing around it.

use std::path::PathBuf;

use ksmith_ledger::{History, Verdict};
use ksmith_task::Candidate;

use crate::{
    AgentHost, AgentOptions, Interrupt, Mechanisms, Progress, RunError, RunOptions, Sandbox, TypePick,
    WriterChoice, run,
};

/// What is to be judged, and how.
#[derive(Debug, Clone)]
pub struct JudgeRequest {
    /// The candidate's folder.
    pub candidate: PathBuf,
    /// The task's folder or its `task.toml`.
    pub task: PathBuf,
    /// Where `.ksmith/` lies.
    pub home: PathBuf,
    /// Fixed dtype variables.
    pub types: Vec<TypePick>,
    /// Whether candidates must run boxed.
    pub sandbox: Sandbox,
    /// Set by a signal handler.
    pub interrupt: Interrupt,
    /// The command line, for the record.
    pub command: Vec<String>,
    /// The key that signs certificates.
    pub signing_key: Option<PathBuf>,
}

/// What the judge said.
#[derive(Debug, Clone)]
pub struct Judged {
    /// The run that holds the record.
    pub run: String,
    /// Its folder.
    pub dir: PathBuf,
    /// The verdict; absent where the candidate was refused before the judge saw it, or the run was interrupted.
    pub verdict: Option<Verdict>,
    /// Why there is no verdict.
    pub refusal: Option<String>,
}

/// Judges one candidate with a record of its own, for the first instance that fits.
///
/// # Errors
/// When nothing can be judged.
pub fn judge(request: &JudgeRequest, progress: &mut dyn Progress) -> Result<Judged, RunError> {
    // A wrong folder is an answer before anything is opened.
    let candidate = Candidate::load(&request.candidate).map_err(RunError::Candidate)?;
    let options = RunOptions {
        task: request.task.clone(),
        home: request.home.clone(),
        backend: candidate.backend(),
        types: request.types.clone(),
        wall_s: Some(f64::INFINITY),
        candidates: Some(1),
        cost_usd: None,
        tokens: None,
        device_s: None,
        seed: 0,
        writer: WriterChoice::Folder(run::absolute(&request.candidate)),
        mechanisms: Mechanisms::none(),
        review: crate::ReviewOptions::default(),
        sandbox: request.sandbox,
        agents: AgentOptions::default(),
        agent_host: AgentHost::default(),
        interrupt: request.interrupt.clone(),
        command: request.command.clone(),
        signing_key: request.signing_key.clone(),
    };
    let outcome = run::run_first(&options, progress)?;
    let history = History::load(&outcome.dir)?;
    let candidate = history.candidates.last();
    Ok(Judged {
        run: outcome.run,
        verdict: candidate.and_then(|candidate| candidate.verdict()).cloned(),
        refusal: candidate
            .and_then(|candidate| candidate.code())
            .map(str::to_owned),
        dir: outcome.dir,
    })
}
