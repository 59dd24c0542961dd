//! Look-ups behind `log`, `show` and `diff`: typed answers, no printing.

use std::path::Path;

use serde::Serialize;
use similar::TextDiff;

use crate::{
    BlobRef, CandidateHistory, History, ObjectError, ObjectStore, ReadError, Role, Speedup, Status, TreeRef,
    Verdict,
};

/// Why a look-up failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LookupError {
    /// The run cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// An object cannot be read.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// No candidate has this name.
    #[error("run `{run}` has no candidate `{wanted}`; `ksmith log {run}` lists them")]
    NoCandidate {
        /// The run.
        run: String,
        /// What was asked for.
        wanted: String,
    },
    /// There is no champion.
    #[error("run `{0}` has no champion; `ksmith log {0}` lists its candidates")]
    NoChampion(String),
}

/// One line of the log: a candidate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LogRow {
    /// The candidate.
    pub candidate: String,
    /// What part it plays.
    pub role: Role,
    /// Round.
    pub round: u32,
    /// When it was proposed.
    pub time: String,
    /// Where it stands.
    pub status: Status,
    /// Stable code, once there is one.
    pub code: Option<String>,
    /// Predicted ratio over the champion.
    pub predicted: Option<f64>,
    /// Rough gain over the champion of its time in the quick pass.
    pub screened: Option<f64>,
    /// Measured gain over the champion of its time.
    pub over_champion: Option<Speedup>,
    /// Measured gain over the baseline.
    pub over_baseline: Option<Speedup>,
    /// Measured gain over the flag control.
    pub over_flag_control: Option<Speedup>,
    /// Its hypothesis.
    pub hypothesis: String,
    /// Why it was kept or dropped.
    pub reason: Option<String>,
}

/// The log of a run, candidates in order of proposal.
pub fn log(history: &History) -> Vec<LogRow> {
    history.candidates.iter().map(row).collect()
}

fn row(candidate: &CandidateHistory) -> LogRow {
    LogRow {
        candidate: candidate.id().to_owned(),
        role: candidate.proposed.role,
        round: candidate.proposed.round,
        time: candidate.proposed_at.clone(),
        status: candidate.status(),
        code: candidate.code().map(Into::into),
        predicted: candidate.proposed.predicted,
        screened: candidate.screened.as_ref().and_then(|screened| screened.ratio),
        over_champion: candidate.over_champion(),
        over_baseline: candidate.over_baseline(),
        over_flag_control: candidate.over_flag_control(),
        hypothesis: candidate.proposed.hypothesis.clone(),
        reason: candidate.reason().map(Into::into),
    }
}

/// A file of a candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceFile {
    /// Path within the candidate.
    pub path: String,
    /// Content; bytes that are no UTF-8 are replaced.
    pub text: String,
}

/// All that is known of one candidate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shown {
    /// Its line of the log.
    pub row: LogRow,
    /// Candidates it was made from.
    pub parents: Vec<String>,
    /// Who wrote it.
    pub writer: String,
    /// Design family.
    pub family: String,
    /// Direction of the plan.
    pub direction: String,
    /// The verdict that holds.
    pub verdict: Option<Verdict>,
    /// Findings of check and profile.
    pub findings: Vec<String>,
    /// The compiler's command.
    pub command: Vec<String>,
    /// What the compiler said.
    pub compiler_log: Option<String>,
    /// Its files.
    pub files: Vec<SourceFile>,
    /// The sentence that goes with the scope of its numbers.
    pub scope_note: String,
}

/// Looks a candidate up: an id, `champion` or `baseline`; the baseline has files only.
pub fn show(run_dir: &Path, history: &History, wanted: &str) -> Result<Shown, LookupError> {
    let objects = ObjectStore::new(run_dir);
    if wanted == "baseline" {
        return baseline(history, &objects);
    }
    let candidate = find(history, wanted)?;
    let log = candidate.checked.as_ref().and_then(|checked| checked.log);
    let checked = candidate.checked.iter().flat_map(|checked| &checked.findings);
    let profiled = candidate.profiled.iter().flat_map(|profiled| &profiled.findings);
    Ok(Shown {
        row: row(candidate),
        parents: candidate.proposed.parents.clone(),
        writer: candidate.proposed.writer.clone(),
        family: candidate.proposed.family.clone(),
        direction: candidate.proposed.direction.clone(),
        verdict: candidate.verdict().cloned(),
        findings: checked.chain(profiled).cloned().collect(),
        command: candidate
            .checked
            .as_ref()
            .map(|checked| checked.command.clone())
            .unwrap_or_default(),
        compiler_log: log.map(|log| objects.get_text(log.blob)).transpose()?,
        files: source(&objects, candidate.proposed.tree)?,
        scope_note: history.opened.scope.sentence().to_owned(),
    })
}

/// The baseline has files and no verdict of its own.
fn baseline(history: &History, objects: &ObjectStore) -> Result<Shown, LookupError> {
    let opened = &history.opened;
    Ok(Shown {
        row: LogRow {
            candidate: "baseline".into(),
            role: Role::Baseline,
            round: 0,
            time: history.opened_at.clone(),
            status: match history.champion {
                Some(_) => Status::Superseded,
                None => Status::Champion,
            },
            code: None,
            predicted: None,
            screened: None,
            over_champion: None,
            over_baseline: None,
            over_flag_control: None,
            hypothesis: "what the task runs today".into(),
            reason: None,
        },
        parents: Vec::new(),
        writer: "the task".into(),
        family: String::new(),
        direction: String::new(),
        verdict: None,
        findings: Vec::new(),
        command: Vec::new(),
        compiler_log: None,
        files: source(objects, opened.baseline)?,
        scope_note: opened.scope.sentence().to_owned(),
    })
}

fn find<'a>(history: &'a History, wanted: &str) -> Result<&'a CandidateHistory, LookupError> {
    let run = || history.opened.run.clone();
    if wanted == "champion" {
        return history.champion().ok_or_else(|| LookupError::NoChampion(run()));
    }
    history.candidate(wanted).ok_or_else(|| LookupError::NoCandidate {
        run: run(),
        wanted: wanted.to_owned(),
    })
}

fn source(objects: &ObjectStore, tree: TreeRef) -> Result<Vec<SourceFile>, LookupError> {
    let files = objects.files(tree)?;
    Ok(files
        .into_iter()
        .map(|(path, bytes)| SourceFile {
            path,
            text: String::from_utf8_lossy(&bytes).into_owned(),
        })
        .collect())
}

/// How one file differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileDiff {
    /// Path within the candidates.
    pub path: String,
    /// Unified diff with three lines of context; empty where the files are the same.
    pub unified: String,
}

/// One figure of two candidates, side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NumberDiff {
    /// What it is.
    pub name: &'static str,
    /// Of the first.
    pub a: Option<Speedup>,
    /// Of the second.
    pub b: Option<Speedup>,
}

/// How two candidates of a run differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CandidateDiff {
    /// The first.
    pub a: String,
    /// The second.
    pub b: String,
    /// Files that differ.
    pub source: Vec<FileDiff>,
    /// Measured figures; those of different measurements are not a comparison of the two.
    pub numbers: Vec<NumberDiff>,
    /// Difference of the disassemblies; absent where one of them was not recorded.
    pub assembly: Option<FileDiff>,
    /// The sentence that goes with the scope of the numbers.
    pub scope_note: String,
}

type Figure = fn(&CandidateHistory) -> Option<Speedup>;

/// Compares two candidates: ids, `champion` or `baseline`.
pub fn diff(run_dir: &Path, history: &History, a: &str, b: &str) -> Result<CandidateDiff, LookupError> {
    let objects = ObjectStore::new(run_dir);
    let side = |wanted: &str| match wanted {
        "baseline" => Ok((history.opened.baseline, None)),
        _ => find(history, wanted).map(|candidate| (candidate.proposed.tree, Some(candidate))),
    };
    let ((tree_a, of_a), (tree_b, of_b)) = (side(a)?, side(b)?);
    let name =
        |wanted: &str, of: Option<&CandidateHistory>| of.map_or(wanted.to_owned(), |of| of.id().to_owned());
    let (name_a, name_b) = (name(a, of_a), name(b, of_b));
    let figures: [(&'static str, Figure); 3] = [
        ("over champion", CandidateHistory::over_champion),
        ("over baseline", CandidateHistory::over_baseline),
        ("over flag control", CandidateHistory::over_flag_control),
    ];
    let disassembly = |of: Option<&CandidateHistory>| of?.checked.as_ref()?.disassembly;
    Ok(CandidateDiff {
        source: diff_sources(
            &name_a,
            &source(&objects, tree_a)?,
            &name_b,
            &source(&objects, tree_b)?,
        ),
        numbers: figures
            .into_iter()
            .map(|(name, figure)| NumberDiff {
                name,
                a: of_a.and_then(figure),
                b: of_b.and_then(figure),
            })
            .collect(),
        assembly: assembly(
            &objects,
            (&name_a, disassembly(of_a)),
            (&name_b, disassembly(of_b)),
        )?,
        scope_note: history.opened.scope.sentence().to_owned(),
        a: name_a,
        b: name_b,
    })
}

fn assembly(
    objects: &ObjectStore,
    (name_a, a): (&str, Option<BlobRef>),
    (name_b, b): (&str, Option<BlobRef>),
) -> Result<Option<FileDiff>, LookupError> {
    let (Some(a), Some(b)) = (a, b) else {
        return Ok(None);
    };
    let (a, b) = (objects.get_text(a.blob)?, objects.get_text(b.blob)?);
    Ok(Some(FileDiff {
        path: "disassembly".into(),
        unified: diff_texts("disassembly", name_a, &a, name_b, &b),
    }))
}

/// Compares the files of two candidates, in ascending order of their paths; equal files are left out.
pub fn diff_sources(name_a: &str, a: &[SourceFile], name_b: &str, b: &[SourceFile]) -> Vec<FileDiff> {
    let text = |files: &[SourceFile], path: &str| {
        files
            .iter()
            .find(|file| file.path == path)
            .map(|file| file.text.clone())
            .unwrap_or_default()
    };
    let mut paths: Vec<&str> = a.iter().chain(b).map(|file| file.path.as_str()).collect();
    paths.sort_unstable();
    paths.dedup();
    paths
        .into_iter()
        .map(|path| FileDiff {
            path: path.to_owned(),
            unified: diff_texts(path, name_a, &text(a, path), name_b, &text(b, path)),
        })
        .filter(|diff| !diff.unified.is_empty())
        .collect()
}

/// Compares two texts, such as two disassemblies; empty where they are the same.
pub fn diff_texts(path: &str, name_a: &str, a: &str, name_b: &str, b: &str) -> String {
    if a == b {
        return String::new();
    }
    // A limit in time, because foreign text can be made so that the best diff takes very long.
    let lines = TextDiff::configure()
        .timeout(std::time::Duration::from_secs(2))
        .diff_lines(a, b);
    lines
        .unified_diff()
        .context_radius(3)
        .header(&format!("{name_a}/{path}"), &format!("{name_b}/{path}"))
        .to_string()
}
