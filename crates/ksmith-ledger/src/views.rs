//! Views of the ledger in the shapes that users of KDA know: `candidates.jsonl` and `benchmark.csv`.
//!
//! Views are written anew from the record after each step and never read back. The tool writes each row, so that ids
//! join, times are real and a dropped candidate has its reason (the defects of hand-kept records).

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use ksmith_task::Digest;
use serde::Serialize;

use crate::{
    Arm, ArmTime, BenchStage, Benched, CandidateHistory, Decision, History, ObjectError, ObjectStore,
    ReadError, Speedup, Status,
};

/// Name of the candidates view.
pub const CANDIDATES_FILE: &str = "candidates.jsonl";

/// Name of the measurements view.
pub const BENCHMARK_FILE: &str = "benchmark.csv";

/// Name of the page that is rendered of a run.
pub const PAGE_FILE: &str = "report.html";

/// Why views could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ViewError {
    /// The run cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A candidate's file list cannot be read.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// The file system refused.
    #[error("cannot write `{}`", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A row that cannot be written.
    #[error("a row of `{file}` cannot be written: {detail}")]
    Row {
        /// The view.
        file: &'static str,
        /// The cause in words.
        detail: String,
    },
}

/// Both views of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Views {
    /// Content of `candidates.jsonl`.
    pub candidates: String,
    /// Content of `benchmark.csv`.
    pub benchmark: String,
}

/// One row of `candidates.jsonl`.
#[derive(Debug, Serialize)]
struct CandidateRow<'a> {
    id: &'a str,
    parent: &'a [String],
    timestamp_utc: &'a str,
    family: &'a str,
    /// `proposed`, `correct`, `measured`, `nogo`, `rejected` or `promoted`.
    status: &'static str,
    description: &'a str,
    source_files: Vec<String>,
    source_hash: Digest,
    env: Env<'a>,
    command: &'a [String],
    evidence: Evidence<'a>,
    sources: &'a [String],
    notes: String,
    superseded_by: Option<&'a str>,
    role: &'static str,
    round: u32,
    direction: &'a str,
    writer: &'a str,
    predicted_speedup_x: Option<f64>,
    verdict: Option<Decision>,
    code: Option<&'a str>,
    promoted: bool,
    rejection_reason: Option<&'a str>,
    scope: &'static str,
    scope_note: &'static str,
}

#[derive(Debug, Serialize)]
struct Env<'a> {
    device: &'a str,
    compiler: &'a str,
    isolation: &'a str,
    unsandboxed: bool,
    tier: &'a str,
    protocol: &'a str,
}

#[derive(Debug, Serialize)]
struct Evidence<'a> {
    correct: bool,
    over_champion: Option<Speedup>,
    over_baseline: Option<Speedup>,
    over_flag_control: Option<Speedup>,
    verdict_digest: Option<Digest>,
    benchmark_csv_candidate_id: Option<&'a str>,
}

/// Makes both views of a run.
pub fn views(history: &History, objects: &ObjectStore) -> Result<Views, ViewError> {
    Ok(Views {
        candidates: candidates(history, objects)?,
        benchmark: benchmark(history)?,
    })
}

/// Writes both views of the run in `run_dir` anew.
pub fn write(run_dir: &Path) -> Result<(), ViewError> {
    let views = views(&History::load(run_dir)?, &ObjectStore::new(run_dir))?;
    for (name, text) in [
        (CANDIDATES_FILE, views.candidates),
        (BENCHMARK_FILE, views.benchmark),
    ] {
        let path = run_dir.join(name);
        replace(&path, text.as_bytes()).map_err(|source| ViewError::Io { path, source })?;
    }
    Ok(())
}

/// Puts new content in the place of a file in one step.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let mut file = File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, path)
}

fn candidates(history: &History, objects: &ObjectStore) -> Result<String, ViewError> {
    let opened = &history.opened;
    let mut text = String::new();
    for candidate in &history.candidates {
        let proposed = &candidate.proposed;
        let manifest = objects.tree(proposed.tree)?;
        let status = kda_status(candidate);
        let dropped = matches!(status, "nogo" | "rejected");
        let row = CandidateRow {
            id: candidate.id(),
            parent: &proposed.parents,
            timestamp_utc: &candidate.proposed_at,
            family: &proposed.family,
            status,
            description: &proposed.hypothesis,
            source_files: manifest.files.into_iter().map(|file| file.path).collect(),
            source_hash: proposed.digest,
            env: Env {
                device: &opened.device_name,
                compiler: &opened.compiler,
                isolation: candidate
                    .verdict()
                    .map_or(&opened.isolation, |verdict| &verdict.isolation),
                unsandboxed: opened.unsandboxed,
                tier: candidate.verdict().map_or(&opened.tier, |verdict| &verdict.tier),
                protocol: &opened.protocol,
            },
            command: candidate.checked.as_ref().map_or(&[], |checked| &checked.command),
            evidence: Evidence {
                correct: candidate.is_correct(),
                over_champion: candidate.over_champion(),
                over_baseline: candidate.over_baseline(),
                over_flag_control: candidate.over_flag_control(),
                verdict_digest: candidate
                    .confirmation()
                    .map(|confirmed| confirmed.verdict_digest)
                    .or_else(|| candidate.decided.as_ref().map(|decided| decided.verdict_digest)),
                benchmark_csv_candidate_id: candidate.bench().map(|_| candidate.id()),
            },
            sources: &proposed.consulted,
            notes: if dropped {
                String::new()
            } else {
                candidate.reason().unwrap_or_default().to_owned()
            },
            superseded_by: candidate.superseded_by.as_deref(),
            role: proposed.role.name(),
            round: proposed.round,
            direction: &proposed.direction,
            writer: &proposed.writer,
            predicted_speedup_x: proposed.predicted,
            verdict: candidate.verdict().map(|verdict| verdict.verdict),
            code: candidate.code(),
            promoted: candidate.promoted.is_some() && candidate.demoted.is_none(),
            rejection_reason: dropped.then(|| candidate.reason().or(candidate.code())).flatten(),
            scope: opened.scope.name(),
            scope_note: opened.scope.sentence(),
        };
        let line = serde_json::to_string(&row).map_err(|error| ViewError::Row {
            file: CANDIDATES_FILE,
            detail: error.to_string(),
        })?;
        text.push_str(&line);
        text.push('\n');
    }
    Ok(text)
}

fn kda_status(candidate: &CandidateHistory) -> &'static str {
    match candidate.status() {
        Status::Champion | Status::Superseded => "promoted",
        Status::NoGain => "nogo",
        Status::Rejected => "rejected",
        Status::Unconfirmed | Status::NotConfirmed | Status::Confirmed | Status::Revise | Status::Demoted => {
            "measured"
        }
        Status::InFlight | Status::Screened | Status::Ambiguous | Status::Error => {
            if candidate
                .benched
                .iter()
                .any(|(_, benched)| benched.code.is_none())
            {
                "measured"
            } else if candidate.is_correct() {
                "correct"
            } else {
                "proposed"
            }
        }
    }
}

/// The columns of `benchmark.csv`.
pub const BENCHMARK_COLUMNS: [&str; 8] = [
    "timestamp_utc",
    "candidate_id",
    "case_name",
    "metric",
    "baseline_us",
    "candidate_us",
    "speedup_x",
    "notes",
];

fn benchmark(history: &History) -> Result<String, ViewError> {
    let row_error = |detail: String| ViewError::Row {
        file: BENCHMARK_FILE,
        detail,
    };
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer
        .write_record(BENCHMARK_COLUMNS)
        .map_err(|error| row_error(error.to_string()))?;
    let mut rows: Vec<(&str, &Benched)> = Vec::new();
    for candidate in &history.candidates {
        rows.extend(
            candidate
                .benched
                .iter()
                .map(|(time, benched)| (time.as_str(), benched)),
        );
    }
    // Times have one width, so that their order as text is their order.
    rows.sort_by_key(|(time, _)| *time);
    for (time, benched) in rows {
        for row in rows_of(time, benched, history) {
            writer
                .write_record(row)
                .map_err(|error| row_error(error.to_string()))?;
        }
    }
    let bytes = writer
        .into_inner()
        .map_err(|error| row_error(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| row_error(error.to_string()))
}

/// One row per workload, clock and lane; then one that sums the measurement up.
fn rows_of(time: &str, benched: &Benched, history: &History) -> Vec<[String; 8]> {
    let mut rows = Vec::new();
    let mut arms: BTreeMap<(&str, &str, &str), Vec<&ArmTime>> = BTreeMap::new();
    for arm in &benched.times {
        arms.entry((&arm.workload, &arm.clock, &arm.lane))
            .or_default()
            .push(arm);
    }
    for ((workload, clock, lane), times) in arms {
        let of = |wanted: Arm| times.iter().find(|time| time.arm == wanted);
        let (baseline, candidate) = (of(Arm::Baseline), of(Arm::Candidate));
        let gain = benched.workloads.iter().find(|gain| gain.workload == workload);
        let measured = gain
            .and_then(|gain| gain.over_baseline)
            .map(|speedup| speedup.point);
        let ratio = measured.or_else(|| Some(baseline?.median_us / candidate?.median_us));
        let mut notes = common_notes(benched, history);
        notes.push(format!("metric_kind={clock}"));
        notes.push(format!("lane={lane}"));
        for (prefix, time) in [("baseline", baseline), ("cand", candidate)] {
            let Some(time) = time else { continue };
            notes.push(format!(
                "{prefix}_mean={};{prefix}_std={};{prefix}_p10={};{prefix}_p90={};{prefix}_min={};{prefix}_calls={}",
                number(time.mean_us),
                number(time.std_us),
                number(time.p10_us),
                number(time.p90_us),
                number(time.min_us),
                time.calls
            ));
        }
        if let Some(speedup) = gain.and_then(|gain| gain.over_baseline) {
            notes.push(interval(speedup, benched.confidence));
        }
        rows.push([
            cell(time),
            cell(&benched.candidate),
            cell(workload),
            "median".into(),
            baseline.map_or_else(String::new, |time| number(time.median_us)),
            candidate.map_or_else(String::new, |time| number(time.median_us)),
            ratio.map_or_else(String::new, number),
            cell(&notes.join(";")),
        ]);
    }
    let sums = [
        ("weighted_geomean", benched.over_baseline),
        ("weighted_geomean_over_champion", benched.over_champion),
        ("weighted_geomean_over_flag_control", benched.over_flag_control),
        ("control_a_over_a", benched.control),
    ];
    for (metric, speedup) in sums {
        let Some(speedup) = speedup else { continue };
        let mut notes = common_notes(benched, history);
        notes.push(interval(speedup, benched.confidence));
        rows.push([
            cell(time),
            cell(&benched.candidate),
            "all".into(),
            metric.into(),
            String::new(),
            String::new(),
            number(speedup.point),
            cell(&notes.join(";")),
        ]);
    }
    rows
}

fn common_notes(benched: &Benched, history: &History) -> Vec<String> {
    let stage = match benched.stage {
        BenchStage::Screen => "screen",
        BenchStage::Decision => "decision",
        BenchStage::Confirmation => "confirmation",
    };
    vec![
        format!("stage={stage}"),
        format!("champion={}", benched.champion.as_deref().unwrap_or("baseline")),
        "interleaved=true".into(),
        format!("pairs={}", benched.pairs),
        format!("sets={}", benched.sets),
        format!("protocol={}", history.opened.protocol),
        format!("scope={}", history.opened.scope.name()),
    ]
}

fn interval(speedup: Speedup, confidence: f64) -> String {
    format!(
        "lower={};upper={};confidence={}",
        number(speedup.lower),
        number(speedup.upper),
        number(confidence)
    )
}

/// A number as text; nothing for what is no number.
fn number(value: f64) -> String {
    if value.is_finite() {
        format!("{value:.4}")
    } else {
        String::new()
    }
}

/// A text cell that no spreadsheet takes for a formula: a leading `=`, `+`, `-`, `@`, tab or carriage return gets an
/// apostrophe before it. Other control characters become spaces.
pub fn cell(text: &str) -> String {
    let clean: String = text
        .chars()
        .map(|c| {
            if c.is_control() && !"\t\r\n".contains(c) {
                ' '
            } else {
                c
            }
        })
        .collect();
    if clean.trim_start_matches(' ').starts_with([
        '=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
    ]) {
        format!("'{clean}")
    } else {
        clean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_that_begin_like_a_formula_are_made_text() {
        for text in ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1"] {
            assert!(cell(text).starts_with('\''), "{text:?}");
        }
        assert_eq!(cell("online softmax"), "online softmax");
        assert_eq!(cell("a\u{1b}[31mb"), "a [31mb");
    }
}
