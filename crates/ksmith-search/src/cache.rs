//! The tuner cache: every measured configuration, one JSON object per line.
//!
//! The cache only orders what is tried. A number from it never reaches a verdict or a report as a measurement.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use ksmith_task::AxisValues;
use serde::{Deserialize, Serialize};

use crate::SearchError;

/// One measured configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheEntry {
    /// Version of the format: 2; 1 had no `axes`.
    pub schema: u32,
    /// Digest of the machine it was measured on.
    pub machine: String,
    /// Family of the task.
    pub family: String,
    /// Instance, such as `softmax[T=f32]`.
    pub instance: String,
    /// Structure.
    pub structure: String,
    /// Sizes of the dev workloads: the geometric mean of each axis.
    #[serde(default)]
    pub axes: BTreeMap<String, f64>,
    /// Configuration, such as `lanes=16 unroll=2`.
    pub config: String,
    /// Predicted time as a ratio to plain C.
    pub prior: f64,
    /// Measured time as a ratio to the baseline; absent where it failed.
    pub time: Option<f64>,
    /// Code of the verdict.
    pub code: String,
}

/// The geometric mean of each axis over workloads, as [`CacheEntry::axes`] holds it.
pub fn mean_axes<'a>(workloads: impl IntoIterator<Item = &'a AxisValues>) -> BTreeMap<String, f64> {
    let mut logs: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for (name, size) in workloads.into_iter().flatten() {
        let (sum, count) = logs.entry(name.clone()).or_default();
        *sum += (*size as f64).max(1.0).ln();
        *count += 1.0;
    }
    logs.into_iter()
        .map(|(name, (sum, count))| (name, (sum / count).exp()))
        .collect()
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(config: &str, time: Option<f64>) -> CacheEntry {
        CacheEntry {
            schema: 2,
            machine: "m".to_owned(),
            family: "row-reduction".to_owned(),
            instance: "softmax[T=f32]".to_owned(),
            structure: "softmax-rows".to_owned(),
            axes: BTreeMap::new(),
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
    fn a_line_of_the_first_version_is_read_without_sizes() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("cache.jsonl");
        let line = r#"{"schema":1,"machine":"m","family":"f","instance":"i","structure":"s","config":"a=1","prior":0.5,"time":0.2,"code":"c"}"#;
        fs::write(&path, format!("{line}\n")).expect("write");
        let cache = Cache::read(&path).expect("version 1 is read");
        assert_eq!(cache.entries()[0].axes, BTreeMap::new());
    }

    #[test]
    fn sizes_are_geometric_means() {
        let axes = |cols: i64| AxisValues::from_iter([("cols".to_owned(), cols)]);
        let mean = mean_axes(&[axes(100), axes(10_000)]);
        assert!((mean["cols"] - 1000.0).abs() < 1e-6, "{mean:?}");
    }
}
