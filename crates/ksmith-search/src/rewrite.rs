//! Rewrites of the baseline's own source, for operators without a structure.

use std::fs;
use std::path::{Path, PathBuf};

use ksmith_task::Candidate;

use crate::flags::write_manifest;
use crate::{Direction, SearchError};

/// A rewritten baseline, ready to be written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rewrite {
    pub(crate) label: String,
    pub(crate) idea: String,
    /// Predicted gain over the baseline.
    pub(crate) predicted: f64,
    entry: String,
    flags: Vec<String>,
    libraries: Vec<String>,
    sources: Vec<(PathBuf, String)>,
}

impl Rewrite {
    pub(crate) fn write(&self, folder: &Path) -> Result<(), SearchError> {
        let names: Vec<String> = self
            .sources
            .iter()
            .map(|(path, _)| path.to_string_lossy().into_owned())
            .collect();
        write_manifest(folder, &names, &self.entry, &self.flags, &self.libraries)?;
        for (path, text) in &self.sources {
            let path = folder.join(path);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(SearchError::io("create", parent))?;
            }
            fs::write(&path, text).map_err(SearchError::io("write", &path))?;
        }
        Ok(())
    }
}

/// Flags that a compiler does not use on its own, one idea each.
const FLAG_IDEAS: [(&str, &str, &[&str]); 6] = [
    (
        "no-errno",
        "Without errno and traps the compiler may use vector forms of sqrt and selection.",
        &["-fno-math-errno", "-fno-trapping-math"],
    ),
    (
        "reassociate",
        "Sums may be split over lanes once they may be reordered.",
        &[
            "-fno-math-errno",
            "-fno-trapping-math",
            "-fno-signed-zeros",
            "-fassociative-math",
            "-freciprocal-math",
        ],
    ),
    (
        "finite",
        "Without NaN a maximum is one instruction.",
        &[
            "-fno-math-errno",
            "-fno-trapping-math",
            "-fno-signed-zeros",
            "-ffinite-math-only",
        ],
    ),
    (
        "fast-math",
        "All of fast-math, with the vector forms of the mathematical library.",
        &["-ffast-math"],
    ),
    (
        "fast-math-wide",
        "All of fast-math on the widest registers, unrolled.",
        &["-ffast-math", "-funroll-loops", "-mprefer-vector-width=512"],
    ),
    (
        "unroll",
        "Unrolled loops hide the latency of the recurrence.",
        &["-funroll-loops", "-fvariable-expansion-in-unroller"],
    ),
];

/// All rewrites of a baseline, by direction.
pub(crate) fn directions(
    baseline: &Candidate,
    _out: &Path,
) -> Result<Vec<(Direction, Vec<Rewrite>)>, SearchError> {
    let Some(program) = baseline.cpu() else {
        return Ok(Vec::new());
    };
    let sources: Vec<(PathBuf, String)> = baseline
        .sources
        .iter()
        .map(|source| (source.path.clone(), source.text.clone()))
        .collect();
    let flags = FLAG_IDEAS
        .iter()
        .map(|(label, idea, more)| {
            let flags = ["-O3", "-march=native"]
                .iter()
                .chain(more.iter())
                .map(|flag| (*flag).to_owned())
                .collect();
            Rewrite {
                label: (*label).to_owned(),
                idea: (*idea).to_owned(),
                predicted: 1.2,
                entry: program.entry.clone(),
                flags,
                libraries: program.libraries.clone(),
                sources: sources.clone(),
            }
        })
        .collect();
    let about = Direction {
        name: "source-flags".to_owned(),
        idea: "The baseline's source under flags that change what the compiler may assume.".to_owned(),
        value: 1.2,
        risk: "Reordered sums and missing NaN handling can leave the tolerance.".to_owned(),
    };
    Ok(vec![(about, flags)])
}
