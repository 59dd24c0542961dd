//! Reads a KDA workspace for comparison: `candidates.jsonl` or `solutions.jsonl`, `benchmark.csv`, in the variants that
//! are in use. Nothing is written, and nothing of it counts as shown.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

/// What every imported figure is.
pub const PROOF: &str = "unproved";

/// Bytes of one file that are read.
const LIMIT: u64 = 64 << 20;

/// Why a workspace cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// There is nothing to read.
    #[error("`{}` holds neither `candidates.jsonl` nor `solutions.jsonl` nor `benchmark.csv`", .0.display())]
    NoWorkspace(PathBuf),
    /// A file is too large.
    #[error("`{}` is larger than 64 MiB", .0.display())]
    TooLarge(PathBuf),
    /// A file cannot be read.
    #[error("cannot read `{}`", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

/// A candidate as its record claims it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ImportedCandidate {
    /// Its id.
    pub id: String,
    /// Ids of those that it was made from.
    pub parents: Vec<String>,
    /// Design family.
    pub family: String,
    /// Status as written.
    pub status: String,
    /// What it tried.
    pub description: String,
    /// Claimed ratio of times over the workspace's own baseline: geometric mean over its rows.
    pub claimed: Option<f64>,
    /// Rows of the benchmark about it.
    pub rows: u64,
    /// Always [`PROOF`].
    pub proof: &'static str,
    #[serde(skip)]
    is_promoted: bool,
    #[serde(skip)]
    worst: Option<f64>,
}

/// A workspace as it describes itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Imported {
    /// Candidates, in the order of the file; those that only stand in the benchmark come last.
    pub candidates: Vec<ImportedCandidate>,
    /// Contradictions and gaps of the record, one sentence each.
    pub defects: Vec<String>,
    /// Whether there is a draft, a plan and at least one profile.
    pub has_draft: bool,
    /// As above.
    pub has_plan: bool,
    /// As above.
    pub profiles: u64,
    /// Always [`PROOF`].
    pub proof: &'static str,
}

/// Reads the workspace in `folder`.
///
/// # Errors
/// When there is none, or a file cannot be read. Rows that cannot be understood are defects, not errors.
pub fn import(folder: &Path) -> Result<Imported, ImportError> {
    let mut imported = Imported {
        proof: PROOF,
        has_draft: folder.join("docs/draft.md").is_file(),
        has_plan: folder.join("docs/plan.md").is_file(),
        profiles: fs::read_dir(folder.join("profile")).map_or(0, |entries| {
            entries.flatten().filter(|entry| entry.path().is_dir()).count() as u64
        }),
        ..Imported::default()
    };
    let mut found = false;
    for name in ["candidates.jsonl", "solutions.jsonl"] {
        if let Some(text) = read(&folder.join(name))? {
            found = true;
            imported.add_candidates(name, &text);
            break;
        }
    }
    if let Some(text) = read(&folder.join("benchmark.csv"))? {
        found = true;
        imported.add_rows(&text);
    }
    if !found {
        return Err(ImportError::NoWorkspace(folder.to_owned()));
    }
    imported.look_for_contradictions();
    Ok(imported)
}

fn read(path: &Path) -> Result<Option<String>, ImportError> {
    let failed = |source| ImportError::Io {
        path: path.to_owned(),
        source,
    };
    match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
        Ok(metadata) if metadata.len() > LIMIT => Err(ImportError::TooLarge(path.to_owned())),
        Ok(_) => {
            let bytes = fs::read(path).map_err(failed)?;
            Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
        }
    }
}

/// The first of several names that a record uses for one thing.
fn field<'a>(row: &'a Value, names: &[&str]) -> Option<&'a Value> {
    names
        .iter()
        .find_map(|name| row.get(name).filter(|value| !value.is_null()))
}

fn text(row: &Value, names: &[&str]) -> String {
    match field(row, names) {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => String::new(),
    }
}

/// A time that nobody's clock showed.
fn is_placeholder(time: &str) -> bool {
    time.get(11..19) == Some("00:00:00")
}

impl Imported {
    fn add_candidates(&mut self, file: &str, content: &str) {
        let mut placeholders = 0;
        for (index, line) in content.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let Ok(row) = serde_json::from_str::<Value>(line) else {
                self.defects
                    .push(format!("line {} of `{file}` is no JSON", index + 1));
                continue;
            };
            let id = text(&row, &["id", "candidate", "candidate_id", "name"]);
            if id.is_empty() {
                self.defects
                    .push(format!("line {} of `{file}` names no candidate", index + 1));
                continue;
            }
            if self.candidates.iter().any(|other| other.id == id) {
                self.defects.push(format!("`{id}` stands twice in `{file}`"));
                continue;
            }
            placeholders += u64::from(is_placeholder(&text(
                &row,
                &["timestamp_utc", "timestamp", "time"],
            )));
            let parents = match field(&row, &["parent", "parents"]) {
                Some(Value::Array(parents)) => parents
                    .iter()
                    .filter_map(|parent| parent.as_str().map(str::to_owned))
                    .collect(),
                Some(Value::String(parent)) if !parent.is_empty() => vec![parent.clone()],
                Some(_) | None => Vec::new(),
            };
            let status = text(&row, &["status"]);
            let is_promoted = row.get("promoted") == Some(&Value::Bool(true)) || status == "promoted";
            if is_promoted && !text(&row, &["rejection_reason"]).is_empty() {
                self.defects
                    .push(format!("`{id}` is promoted and has a reason of rejection"));
            }
            if field(&row, &["source_hash"]).is_none() {
                self.defects.push(format!("`{id}` has no hash of its source"));
            }
            self.candidates.push(ImportedCandidate {
                id,
                parents,
                family: text(&row, &["family"]),
                status,
                description: text(&row, &["description", "idea"]),
                proof: PROOF,
                is_promoted,
                ..ImportedCandidate::default()
            });
        }
        if placeholders > 0 {
            self.defects.push(format!(
                "{placeholders} rows of `{file}` have a placeholder for their time"
            ));
        }
    }

    fn add_rows(&mut self, content: &str) {
        let mut reader = csv::ReaderBuilder::new()
            .flexible(true)
            .from_reader(content.as_bytes());
        let header: Vec<String> = reader
            .headers()
            .map(|header| header.iter().map(|name| name.trim().to_owned()).collect())
            .unwrap_or_default();
        let column = |names: &[&str]| {
            names
                .iter()
                .find_map(|name| header.iter().position(|found| found == name))
        };
        let id = column(&["candidate_id", "candidate", "id", "name"]);
        let baseline = column(&["baseline_us", "reference_us"]);
        let time = column(&["candidate_us", "median_us"]);
        let ratio = column(&["speedup_x", "speedup"]);
        let metric = column(&["metric"]);
        let mut claims: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for (index, row) in reader.records().enumerate() {
            let number = index + 2;
            let Ok(row) = row else {
                self.defects
                    .push(format!("line {number} of `benchmark.csv` cannot be read"));
                continue;
            };
            let cell = |column: Option<usize>| column.and_then(|at| row.get(at)).unwrap_or_default().trim();
            let value = |column| cell(column).parse::<f64>().ok().filter(|value| *value > 0.0);
            let candidate = cell(id).trim_start_matches('\'').to_owned();
            if candidate.is_empty() {
                self.defects
                    .push(format!("line {number} of `benchmark.csv` names no candidate"));
                continue;
            }
            let from_times = value(baseline)
                .zip(value(time))
                .map(|(baseline, time)| baseline / time);
            if let (Some(times), Some(said)) = (from_times, value(ratio))
                && (times / said - 1.0).abs() > 0.01
            {
                self.defects.push(format!(
                    "line {number} of `benchmark.csv` says {said:.3}, its own times give {times:.3}"
                ));
            }
            // Rows of sums repeat what the others say.
            let is_sum = cell(metric).contains("geomean") || cell(metric).contains("control");
            let entry = claims.entry(candidate).or_default();
            if let Some(claim) = from_times.or(value(ratio)).filter(|_| !is_sum) {
                entry.push(claim);
            }
        }
        for (id, ratios) in claims {
            let known = self.candidates.iter_mut().find(|candidate| candidate.id == id);
            let candidate = match known {
                Some(candidate) => candidate,
                None => {
                    if id != "baseline" && !self.candidates.is_empty() {
                        self.defects
                            .push(format!("`{id}` of `benchmark.csv` is no candidate of the list"));
                    }
                    self.candidates.push(ImportedCandidate {
                        id,
                        proof: PROOF,
                        ..ImportedCandidate::default()
                    });
                    // Just pushed.
                    let Some(last) = self.candidates.last_mut() else {
                        continue;
                    };
                    last
                }
            };
            candidate.rows = ratios.len() as u64;
            if !ratios.is_empty() {
                let logs: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
                candidate.claimed = Some((logs / ratios.len() as f64).exp());
                candidate.worst = ratios.iter().copied().reduce(f64::min);
            }
        }
    }

    fn look_for_contradictions(&mut self) {
        let mut defects = Vec::new();
        for candidate in &self.candidates {
            if candidate.is_promoted && candidate.rows == 0 {
                defects.push(format!(
                    "`{}` is promoted and has no row in the benchmark",
                    candidate.id
                ));
            }
            if let Some(worst) = candidate
                .worst
                .filter(|worst| candidate.is_promoted && *worst < 1.0)
            {
                defects.push(format!(
                    "`{}` is promoted although one of its rows is slower than the baseline ({worst:.2}x)",
                    candidate.id
                ));
            }
            for parent in &candidate.parents {
                if parent != "baseline" && !self.candidates.iter().any(|other| other.id == *parent) {
                    defects.push(format!(
                        "`{}` names a parent `{parent}` that is not there",
                        candidate.id
                    ));
                }
            }
        }
        self.defects.extend(defects);
    }

    /// The candidate with the greatest claim among those that the workspace calls promoted, else among all.
    pub fn best(&self) -> Option<&ImportedCandidate> {
        let claim = |candidate: &&ImportedCandidate| candidate.claimed.unwrap_or(0.0);
        let promoted = self.candidates.iter().filter(|candidate| candidate.is_promoted);
        promoted
            .filter(|candidate| candidate.claimed.is_some())
            .max_by(|a, b| claim(a).total_cmp(&claim(b)))
            .or_else(|| {
                let all = self
                    .candidates
                    .iter()
                    .filter(|candidate| candidate.claimed.is_some());
                all.max_by(|a, b| claim(a).total_cmp(&claim(b)))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        folder
    }

    #[test]
    fn the_pilot_variant_is_read_and_its_claims_are_unproved() {
        let folder = workspace(&[
            (
                "solutions.jsonl",
                concat!(
                    r#"{"id":"v0","parent":null,"timestamp_utc":"2026-06-01T10:11:12Z","family":"rms","status":"measured","description":"port","source_hash":"ab"}"#,
                    "\n",
                    r#"{"id":"v1","parent":"v0","timestamp_utc":"2026-06-01T12:00:01Z","family":"rms","status":"promoted","description":"vector loads","source_hash":"cd"}"#,
                    "\n"
                ),
            ),
            (
                "benchmark.csv",
                "timestamp_utc,candidate_id,case_name,metric,baseline_us,candidate_us,speedup_x,notes\n\
                 t,v1,a,median,20,10,2.0,k=v\nt,v1,b,median,32,4,8.0,k=v\nt,v1,all,production_geomean,,,4.0,\n",
            ),
            ("docs/draft.md", "# Draft"),
            ("profile/run1/REPORT.md", "# Report"),
        ]);
        let found = import(folder.path()).unwrap();
        assert_eq!(
            (found.proof, found.has_draft, found.has_plan, found.profiles),
            (PROOF, true, false, 1)
        );
        let best = found.best().unwrap();
        assert_eq!((best.id.as_str(), best.rows, best.proof), ("v1", 2, PROOF));
        assert!((best.claimed.unwrap() - 4.0).abs() < 1e-12);
        assert_eq!(found.defects, Vec::<String>::new());
    }

    #[test]
    fn defects_of_hand_kept_records_are_named() {
        let folder = workspace(&[
            (
                "candidates.jsonl",
                concat!(
                    r#"{"candidate":"a","promoted":true,"rejection_reason":"better than b","timestamp_utc":"2026-07-01T00:00:00Z"}"#,
                    "\nnot json\n",
                    r#"{"candidate":"b","parent":["z"],"promoted":true,"rejection_reason":"","source_hash":"x"}"#,
                    "\n"
                ),
            ),
            (
                "benchmark.csv",
                "candidate,gpu,median_us,reference_us,speedup\na,h200,10,4.7,0.47\nc,h200,10,20,3.0\n",
            ),
        ]);
        let defects = import(folder.path()).unwrap().defects.join("\n");
        for said in [
            "`a` is promoted and has a reason of rejection",
            "`a` has no hash of its source",
            "line 2 of `candidates.jsonl` is no JSON",
            "1 rows of `candidates.jsonl` have a placeholder for their time",
            "line 3 of `benchmark.csv` says 3.000, its own times give 2.000",
            "`c` of `benchmark.csv` is no candidate of the list",
            "`a` is promoted although one of its rows is slower than the baseline (0.47x)",
            "`b` is promoted and has no row in the benchmark",
            "`b` names a parent `z` that is not there",
        ] {
            assert!(defects.contains(said), "{said} not in:\n{defects}");
        }
    }

    #[test]
    fn a_folder_without_records_is_no_workspace_and_reading_changes_nothing() {
        let folder = workspace(&[("README.md", "x")]);
        assert!(matches!(import(folder.path()), Err(ImportError::NoWorkspace(_))));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    proptest::proptest! {
        #[test]
        fn no_content_panics(jsonl in ".{0,300}", csv in "[a-z_,0-9.\n'\"-]{0,300}") {
            let folder = workspace(&[("candidates.jsonl", &jsonl), ("benchmark.csv", &csv)]);
            let found = import(folder.path()).unwrap();
            proptest::prop_assert!(found.candidates.iter().all(|candidate| candidate.proof == PROOF));
        }
    }
}
