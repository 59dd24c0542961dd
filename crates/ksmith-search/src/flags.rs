//! The flag control: the baseline's source under the best of six flag sets.
//!
//! Whatever the agent gains over this is owed to the code and not to the compiler's options.

use std::fs;
use std::path::Path;

use ksmith_task::{Candidate, Proposal};

use crate::SearchError;
use crate::history::with_label;

/// Name of the direction.
pub(crate) const DIRECTION: &str = "flag-control";

/// A named set of compiler flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlagSet {
    /// Name, also the folder.
    pub name: &'static str,
    /// The flags.
    pub flags: &'static [&'static str],
}

/// The six sets.
pub const FLAG_SETS: [FlagSet; 6] = [
    FlagSet {
        name: "o2",
        flags: &["-O2", "-march=native"],
    },
    FlagSet {
        name: "o3",
        flags: &["-O3", "-march=native"],
    },
    FlagSet {
        name: "o3-unroll",
        flags: &["-O3", "-march=native", "-funroll-loops"],
    },
    FlagSet {
        name: "o3-no-errno",
        flags: &[
            "-O3",
            "-march=native",
            "-fno-math-errno",
            "-fno-trapping-math",
            "-mprefer-vector-width=512",
        ],
    },
    FlagSet {
        name: "o3-fast-math",
        flags: &["-O3", "-march=native", "-ffast-math"],
    },
    FlagSet {
        name: "o3-fast-math-wide",
        flags: &[
            "-O3",
            "-march=native",
            "-ffast-math",
            "-funroll-loops",
            "-mprefer-vector-width=512",
        ],
    },
];

/// Writes the baseline under each flag set into `out/<set>`.
pub fn flag_control(baseline: &Path, out: &Path) -> Result<Vec<Proposal>, SearchError> {
    let candidate = Candidate::load(baseline).map_err(|error| SearchError::Baseline(Box::new(error)))?;
    FLAG_SETS
        .iter()
        .map(|set| {
            let folder = out.join(set.name);
            write_with_flags(&candidate, set.flags, &folder)?;
            Ok(Proposal {
                folder,
                hypothesis: with_label(
                    "The baseline's own source gains from other compiler flags.",
                    set.name,
                ),
                predicted_gain: None,
                direction: DIRECTION.to_owned(),
                parent: None,
            })
        })
        .collect()
}

/// Writes a candidate's sources with other flags.
pub(crate) fn write_with_flags(
    candidate: &Candidate,
    flags: &[&str],
    folder: &Path,
) -> Result<(), SearchError> {
    for source in &candidate.sources {
        let path = folder.join(&source.path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(SearchError::io("create", parent))?;
        }
        fs::write(&path, &source.text).map_err(SearchError::io("write", &path))?;
    }
    let names: Vec<String> = candidate
        .sources
        .iter()
        .map(|source| source.path.to_string_lossy().into_owned())
        .collect();
    let program = candidate.cpu();
    let entry = program.map_or("", |program| program.entry.as_str());
    let libraries = program.map_or(&[][..], |program| program.libraries.as_slice());
    let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
    write_manifest(folder, &names, entry, &flags, libraries)
}

/// Writes `candidate.toml`.
pub(crate) fn write_manifest(
    folder: &Path,
    sources: &[String],
    entry: &str,
    flags: &[String],
    libraries: &[String],
) -> Result<(), SearchError> {
    let list = |items: &[String]| {
        items
            .iter()
            .map(|item| format!("{item:?}"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let mut text = format!(
        "schema = 1\nbackend = \"cpu\"\nsources = [{}]\nentry = {entry:?}\nflags = [{}]\n",
        list(sources),
        list(flags)
    );
    if !libraries.is_empty() {
        text.push_str(&format!("libraries = [{}]\n", list(libraries)));
    }
    fs::create_dir_all(folder).map_err(SearchError::io("create", folder))?;
    let path = folder.join("candidate.toml");
    fs::write(&path, text).map_err(SearchError::io("write", &path))
}
