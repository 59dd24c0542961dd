//! What changed against the parent: numbers only, largest relative change first.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{ptxas, sass, x86};

/// One number before and after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// What it counts: `kernel/registers`.
    pub name: String,
    /// Before; `None` if the parent does not have it.
    pub before: Option<f64>,
    /// After; `None` if it is gone.
    pub after: Option<f64>,
}

/// All changes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Delta {
    /// Changed numbers.
    pub changes: Vec<Change>,
    /// Whether both codes have the same numbers throughout; identical code needs no new measurement, which is decided by
    /// the hash of the code, not here.
    pub same: bool,
}

/// Compares two tables of numbers.
pub fn compare(before: &BTreeMap<String, f64>, after: &BTreeMap<String, f64>) -> Delta {
    let mut changes: Vec<Change> = before
        .keys()
        .chain(after.keys().filter(|name| !before.contains_key(*name)))
        .map(|name| Change {
            name: name.clone(),
            before: before.get(name).copied(),
            after: after.get(name).copied(),
        })
        .filter(|change| {
            change
                .before
                .zip(change.after)
                .is_none_or(|(one, two)| one.total_cmp(&two).is_ne())
        })
        .collect();
    let size = |change: &Change| -> f64 {
        match (change.before, change.after) {
            (Some(one), Some(two)) => (two - one).abs() / one.abs().max(two.abs()).max(1e-300),
            _ => 1.0,
        }
    };
    changes.sort_by(|one, two| {
        size(two)
            .total_cmp(&size(one))
            .then_with(|| one.name.cmp(&two.name))
    });
    Delta {
        same: changes.is_empty(),
        changes,
    }
}

/// Numbers of an assembler's report.
pub fn of_ptxas(report: &ptxas::Ptxas) -> BTreeMap<String, f64> {
    let mut table = BTreeMap::new();
    for kernel in report.kernels.iter().filter(|kernel| kernel.complete) {
        let mut put = |name: &str, value: u64| table.insert(format!("{}/{name}", kernel.name), value as f64);
        put("registers", kernel.registers.into());
        put("barriers", kernel.barriers.into());
        put("stack_bytes", kernel.stack_bytes);
        put("spill_bytes", kernel.spill_store_bytes + kernel.spill_load_bytes);
        put("shared_bytes", kernel.shared_bytes);
    }
    table
}

/// Numbers of device code.
pub fn of_sass(code: &sass::Sass) -> BTreeMap<String, f64> {
    let mut table = BTreeMap::new();
    for kernel in &code.kernels {
        let mix = &kernel.whole;
        let mut put =
            |name: &str, value: u32| table.insert(format!("{}/{name}", kernel.name), f64::from(value));
        put("instructions", mix.total);
        put("local", mix.local);
        put("async_copies", mix.async_copies + mix.bulk_copies);
        put("tensor", mix.tensor.values().sum());
        put("barriers", mix.barriers);
        put("atomics", mix.atomics);
        put("shuffles", mix.shuffles);
        put("special", mix.special);
        put("global_loads", mix.global_loads.values().sum());
        put("global_stores", mix.global_stores.values().sum());
        if let Some(live) = &kernel.max_live {
            put("max_live", live.registers);
        }
    }
    table
}

/// Numbers of CPU code.
pub fn of_x86(code: &x86::Analysis) -> BTreeMap<String, f64> {
    let mut table = BTreeMap::new();
    for function in &code.functions {
        let mix = &function.whole;
        let mut put =
            |name: &str, value: u32| table.insert(format!("{}/{name}", function.name), f64::from(value));
        put("instructions", mix.total);
        put("widest_bits", mix.widest());
        put("fused", mix.fused);
        put("divisions", mix.divisions);
        put("stack_loads", mix.stack_loads);
        put("calls", mix.calls);
        put("gathers", mix.gathers);
    }
    table
}

impl Delta {
    /// The largest changes as lines.
    pub fn lines(&self, count: usize) -> Vec<String> {
        let show = |value: Option<f64>| value.map_or_else(|| "none".to_owned(), |value| format!("{value}"));
        self.changes
            .iter()
            .take(count)
            .map(|change| {
                format!(
                    "{}: {} -> {}",
                    change.name,
                    show(change.before),
                    show(change.after)
                )
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_change_comes_first_and_equal_code_has_none() {
        let before = BTreeMap::from([
            ("k/registers".to_owned(), 40.0),
            ("k/spill_bytes".to_owned(), 128.0),
        ]);
        let after = BTreeMap::from([
            ("k/registers".to_owned(), 44.0),
            ("k/spill_bytes".to_owned(), 0.0),
        ]);
        let delta = compare(&before, &after);
        assert_eq!(
            delta.lines(9),
            ["k/spill_bytes: 128 -> 0", "k/registers: 40 -> 44"]
        );
        assert!(compare(&before, &before).same);
        let gone = compare(&before, &BTreeMap::new());
        assert_eq!(gone.changes.len(), 2);
    }
}
