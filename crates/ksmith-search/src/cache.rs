//! The tuner cache: every measured configuration, one JSON object per line.
//!
//! The cache only orders what is tried. A number from it never reaches a verdict or a report as a measurement.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{Config, SearchError};

/// One measured configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheEntry {
    /// Version of the format: 1.
    pub schema: u32,
    /// Digest of the machine it was measured on.
    pub machine: String,
    /// Family of the task.
    pub family: String,
    /// Instance, such as `softmax[T=f32]`.
    pub instance: String,
    /// Structure.
    pub structure: String,
    /// Configuration, such as `lanes=16 unroll=2`.
    pub config: String,
    /// Predicted time as a ratio to plain C.
    pub prior: f64,
    /// Measured time as a ratio to the baseline; absent where it failed.
    pub time: Option<f64>,
    /// Code of the verdict.
    pub code: String,
}

/// All entries, oldest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cache {
    entries: Vec<CacheEntry>,
}

impl Cache {
    /// Reads a cache; a missing file is an empty one, a torn last line is dropped.
    pub fn read(path: &Path) -> Result<Self, SearchError> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(SearchError::io("read", path)(error)),
        };
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut entries = Vec::new();
        for (index, line) in whole
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty())
        {
            entries.push(serde_json::from_str(line).map_err(|error| SearchError::Cache {
                path: path.to_owned(),
                line: index + 1,
                message: error.to_string(),
            })?);
        }
        Ok(Self { entries })
    }

    /// Appends one entry to the file.
    pub fn append(path: &Path, entry: &CacheEntry) -> Result<(), SearchError> {
        let mut line = serde_json::to_string(entry).map_err(|error| SearchError::Cache {
            path: path.to_owned(),
            line: 0,
            message: error.to_string(),
        })?;
        line.push('\n');
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .and_then(|mut file| file.write_all(line.as_bytes()))
            .map_err(SearchError::io("append to", path))
    }

    /// A cache of these entries.
    pub fn of(entries: Vec<CacheEntry>) -> Self {
        Self { entries }
    }

    /// All entries, oldest first.
    pub fn entries(&self) -> &[CacheEntry] {
        &self.entries
    }

    /// Keeps what was measured on this machine.
    pub fn on_machine(mut self, machine: &str) -> Self {
        self.entries.retain(|entry| entry.machine == machine);
        self
    }

    /// The best configuration of each instance that a structure was measured on, fastest first.
    pub(crate) fn best_of(&self, structure: &str) -> Vec<Config> {
        let mut best: Vec<&CacheEntry> = Vec::new();
        for entry in self
            .entries
            .iter()
            .filter(|entry| entry.structure == structure && entry.time.is_some())
        {
            match best.iter_mut().find(|known| known.instance == entry.instance) {
                Some(known) if entry.time < known.time => *known = entry,
                Some(_) => {}
                None => best.push(entry),
            }
        }
        best.sort_by(|a, b| a.time.unwrap_or(f64::MAX).total_cmp(&b.time.unwrap_or(f64::MAX)));
        let mut configs: Vec<Config> = best
            .iter()
            .filter_map(|entry| Config::parse(&entry.config))
            .collect();
        configs.dedup();
        configs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn entry(config: &str, time: Option<f64>) -> CacheEntry {
        CacheEntry {
            schema: 1,
            machine: "m".to_owned(),
            family: "row-reduction".to_owned(),
            instance: "softmax[T=f32]".to_owned(),
            structure: "softmax-rows".to_owned(),
            config: config.to_owned(),
            prior: 0.1,
            time,
            code: "accept/confirmed".to_owned(),
        }
    }

    #[test]
    fn a_torn_last_line_is_dropped_and_damage_is_named() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("cache.jsonl");
        let one = entry("lanes=16", Some(0.1));
        Cache::append(&path, &one).expect("append");
        Cache::append(&path, &entry("lanes=8", None)).expect("append");
        let text = fs::read_to_string(&path).expect("read");
        fs::write(&path, format!("{text}{{\"schema\":1,")).expect("write");
        assert_eq!(Cache::read(&path).expect("torn tail").entries().len(), 2);
        fs::write(&path, format!("{{}}\n{text}")).expect("write");
        assert!(matches!(
            Cache::read(&path),
            Err(SearchError::Cache { line: 1, .. })
        ));
    }

    #[test]
    fn the_best_of_each_instance_seeds_the_search() {
        let mut other = entry("lanes=4", Some(0.05));
        other.instance = "my_softmax".to_owned();
        let cache = Cache::of(vec![
            entry("lanes=8", Some(0.2)),
            entry("lanes=16", Some(0.1)),
            entry("lanes=32", None),
            other,
        ]);
        let best: Vec<_> = cache
            .best_of("softmax-rows")
            .iter()
            .map(Config::to_string)
            .collect();
        assert_eq!(best, ["lanes=4", "lanes=16"]);
    }
}
