//! Our names for the profiler's metrics, and the few that are derived from them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

const DATA: &str = include_str!("../../rules/metrics.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[expect(
        dead_code,
        reason = "documents the data file; values are normalised on import"
    )]
    unit: String,
    names: Vec<String>,
}

fn entries() -> BTreeMap<String, Entry> {
    toml::from_str(DATA).expect("the embedded table of metrics parses, as its test shows")
}

/// Metrics under our names. What is missing is listed, never filled in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    values: BTreeMap<String, f64>,
    missing: Vec<String>,
}

/// Families of stall counters, each with a prefix and a suffix around the reason; newest first.
const STALLS: [(&str, &str); 3] = [
    ("smsp__average_warps_issue_stalled_", "_per_issue_active.ratio"),
    ("smsp__average_warp_latency_issue_stalled_", ".ratio"),
    ("smsp__pcsamp_warps_issue_stalled_", ""),
];

/// Derived metrics: name, and the two that are divided.
const RATIOS: [(&str, &str, &str); 5] = [
    ("load_sectors_per_request", "load_sectors", "load_requests"),
    ("store_sectors_per_request", "store_sectors", "store_requests"),
    ("conflict_share", "bank_conflicts", "shared_wavefronts"),
    ("sm_imbalance", "sm_cycles_max", "sm_cycles_average"),
    ("sampled_active_share", "sampled_sm_active", "cycles_elapsed"),
];

/// Every name that a metric can have here, derived ones included.
pub fn names() -> Vec<String> {
    let mut names: Vec<String> = entries().into_keys().collect();
    names.extend(RATIOS.iter().map(|(name, _, _)| (*name).to_owned()));
    names.extend(["tail_efficiency", "local_accesses", "dram_bytes"].map(str::to_owned));
    let stalls: Vec<String> = names
        .iter()
        .filter_map(|name| {
            name.strip_prefix("stall_")
                .map(|reason| format!("stall_percent_{reason}"))
        })
        .collect();
    names.extend(stalls);
    names.sort();
    names
}

impl Metrics {
    /// Picks and derives metrics from the columns of one row.
    pub(super) fn of(columns: &BTreeMap<&str, f64>) -> Self {
        let mut metrics = Self::default();
        for (name, entry) in entries() {
            match entry.names.iter().find_map(|theirs| columns.get(theirs.as_str())) {
                Some(value) => {
                    metrics.values.insert(name, *value);
                }
                None => metrics.missing.push(name),
            }
        }
        metrics.derive(columns);
        metrics
    }

    fn derive(&mut self, columns: &BTreeMap<&str, f64>) {
        for (name, over, under) in RATIOS {
            if let (Some(over), Some(under)) = (self.get(over), self.get(under)) {
                // Without any request there is no ratio; without any conflict its share is zero.
                if under > 0.0 {
                    self.values.insert(name.to_owned(), over / under);
                } else if over == 0.0 && name == "conflict_share" {
                    self.values.insert(name.to_owned(), 0.0);
                }
            }
        }
        if let Some(waves) = self.get("waves").filter(|waves| *waves > 0.0) {
            self.values
                .insert("tail_efficiency".to_owned(), waves / waves.ceil());
        }
        if let (Some(loads), Some(stores)) = (self.get("local_loads"), self.get("local_stores")) {
            self.values.insert("local_accesses".to_owned(), loads + stores);
        }
        if let (Some(read), Some(written)) = (self.get("dram_read_bytes"), self.get("dram_write_bytes")) {
            self.values.insert("dram_bytes".to_owned(), read + written);
        }
        self.stalls(columns);
    }

    /// Shares of each stall reason in all that were collected, in per cent.
    fn stalls(&mut self, columns: &BTreeMap<&str, f64>) {
        for (prefix, suffix) in STALLS {
            let family: Vec<(&str, f64)> = columns
                .iter()
                .filter_map(|(name, value)| Some((name.strip_prefix(prefix)?.strip_suffix(suffix)?, *value)))
                .filter(|(reason, value)| {
                    *value >= 0.0 && !reason.contains('.') && !reason.ends_with("_not_issued")
                })
                .collect();
            let sum: f64 = family.iter().map(|(_, value)| value).sum();
            if family.len() < 4 || sum <= 0.0 {
                continue;
            }
            for (reason, value) in family {
                self.values
                    .insert(format!("stall_percent_{reason}"), 100.0 * value / sum);
            }
            return;
        }
    }

    /// The value, if the report has it.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.values.get(name).copied()
    }

    /// All values by name.
    pub fn all(&self) -> &BTreeMap<String, f64> {
        &self.values
    }

    /// Our metrics that the report lacks.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// The largest stall reasons with their shares in per cent.
    pub fn top_stalls(&self, count: usize) -> Vec<(String, f64)> {
        let mut stalls: Vec<(String, f64)> = self
            .values
            .iter()
            .filter_map(|(name, value)| Some((name.strip_prefix("stall_percent_")?.to_owned(), *value)))
            .collect();
        stalls.sort_by(|one, two| two.1.total_cmp(&one.1));
        stalls.truncate(count);
        stalls
    }

    /// The same metrics with one replaced, or removed, for tests of rules and for what-if readings.
    #[must_use]
    pub fn with(&self, name: &str, value: Option<f64>) -> Self {
        let mut changed = self.clone();
        match value {
            Some(value) => {
                changed.values.insert(name.to_owned(), value);
                changed.missing.retain(|missing| missing != name);
            }
            None => {
                changed.values.remove(name);
                changed.missing.push(name.to_owned());
            }
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_table_parses_and_no_name_of_the_profiler_is_used_twice() {
        let entries = entries();
        assert!(entries.len() > 40);
        let mut all: Vec<&String> = entries.values().flat_map(|entry| &entry.names).collect();
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn a_renamed_metric_is_found_by_its_other_name() {
        let columns = BTreeMap::from([("dram__op_throughput.avg.pct_of_peak_sustained_elapsed", 77.0)]);
        let metrics = Metrics::of(&columns);
        assert_eq!(metrics.get("dram_percent"), Some(77.0));
        assert!(metrics.missing().contains(&"sm_percent".to_owned()));
        assert_eq!(metrics.get("dram_bytes"), None);
    }

    #[test]
    fn stall_shares_add_up_over_what_was_collected() {
        let columns = BTreeMap::from([
            (
                "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
                6.0,
            ),
            (
                "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio",
                3.0,
            ),
            (
                "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio",
                1.0,
            ),
            (
                "smsp__average_warps_issue_stalled_selected_per_issue_active.ratio",
                0.0,
            ),
        ]);
        let metrics = Metrics::of(&columns);
        assert_eq!(metrics.top_stalls(1), [("long_scoreboard".to_owned(), 60.0)]);
        assert!((metrics.get("stall_percent_barrier").unwrap() - 30.0).abs() < 1e-9);
    }
}
