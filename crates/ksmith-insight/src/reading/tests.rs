//! Each rule against the stored report and variants of it.

use std::collections::BTreeSet;

use super::*;
use crate::digest::digest;
use crate::ncu::{import, names};

fn real() -> KernelProfile {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/ncu/softmax_h200_raw.csv");
    import(&std::fs::read_to_string(path).unwrap())
        .unwrap()
        .kernels
        .remove(0)
}

/// The stored report with some metrics changed.
fn variant(changes: &[(&str, f64)]) -> KernelProfile {
    let mut profile = real();
    for (name, value) in changes {
        profile.metrics = profile.metrics.with(name, Some(*value));
    }
    profile
}

#[test]
fn every_name_in_the_rules_exists_and_ids_are_unique() {
    let known: BTreeSet<String> = names()
        .into_iter()
        .chain(["expects_tensor_cores".to_owned(), "expects_double".to_owned()])
        .collect();
    let mut ids = BTreeSet::new();
    for rule in rules() {
        assert!(ids.insert(rule.id.clone()), "{}", rule.id);
        assert!(!rule.when.is_empty(), "{}", rule.id);
        for condition in &rule.when {
            let (left, operator, right) = super::rules::parts(condition).unwrap();
            assert!(known.contains(left), "{}: {left}", rule.id);
            assert!(
                [">=", ">", "<", "<=", "=="].contains(&operator),
                "{}: {operator}",
                rule.id
            );
            assert!(
                right.parse::<f64>().is_ok() || known.contains(right),
                "{}: {right}",
                rule.id
            );
        }
        for slot in rule.says.split('{').skip(1) {
            let name = slot.split(['}', ':']).next().unwrap();
            assert!(known.contains(name), "{}: {name}", rule.id);
        }
        if let Some(edit) = &rule.edit {
            assert!(known.contains(&edit.metric), "{}: {}", rule.id, edit.metric);
        }
    }
}

#[test]
fn the_stored_softmax_is_bound_by_dram_and_all_six_dimensions_are_read() {
    let reading = read(&real(), Context::default());
    assert_eq!(reading.main.as_ref().unwrap().id, "memory/dram-bound");
    for entry in &reading.dimensions {
        assert!(!entry.says.is_empty(), "{:?}", entry.dimension);
    }
    let stalls: Vec<&str> = reading.all.iter().map(|reading| reading.id.as_str()).collect();
    assert!(
        stalls.contains(&"stalls/memory-latency") && stalls.contains(&"stalls/shared-latency"),
        "{stalls:?}"
    );
    assert!(!stalls.contains(&"tensor/missed"));
}

#[test]
fn each_rule_with_an_edit_becomes_the_main_reading_of_some_variant() {
    // Nothing saturated, nothing wrong: the ground on which the later rules stand.
    let calm: &[(&str, f64)] = &[
        ("dram_percent", 50.0),
        ("l2_percent", 50.0),
        ("sm_percent", 50.0),
        ("conflict_share", 0.0),
        ("stall_percent_long_scoreboard", 10.0),
        ("stall_percent_short_scoreboard", 10.0),
        ("stall_percent_barrier", 10.0),
    ];
    let on = |more: &[(&str, f64)]| -> Vec<(String, f64)> {
        calm.iter()
            .chain(more)
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect()
    };
    let product = Context {
        expects_tensor_cores: true,
        expects_double: false,
    };
    let plain = Context::default();
    let cases = vec![
        ("tensor/saturated", plain, on(&[("tensor_percent", 90.0)])),
        ("memory/dram-saturated", plain, on(&[("dram_percent", 91.0)])),
        ("launch/short", plain, on(&[("duration_ns", 4000.0)])),
        ("memory/spills", plain, on(&[("local_accesses", 4096.0)])),
        ("stalls/double-precision", plain, on(&[("fp64_percent", 30.0)])),
        ("launch/grid-too-small", plain, on(&[("waves", 0.2)])),
        ("tensor/missed", product, on(&[("tensor_percent", 0.0)])),
        (
            "memory/sparse-loads",
            plain,
            on(&[("load_bytes_per_sector", 4.0)]),
        ),
        (
            "memory/sparse-stores",
            plain,
            on(&[("store_bytes_per_sector", 4.0)]),
        ),
        ("memory/dram-bound", plain, on(&[("dram_percent", 75.0)])),
        ("memory/l2-bound", plain, on(&[("l2_percent", 80.0)])),
        ("memory/bank-conflicts", plain, on(&[("conflict_share", 3.0)])),
        ("tensor/starved", product, on(&[("tensor_percent", 20.0)])),
        (
            "stalls/memory-latency",
            plain,
            on(&[("stall_percent_long_scoreboard", 45.0)]),
        ),
        (
            "stalls/shared-latency",
            plain,
            on(&[("stall_percent_short_scoreboard", 25.0)]),
        ),
        (
            "stalls/synchronisation",
            plain,
            on(&[("stall_percent_barrier", 30.0)]),
        ),
        ("stalls/fences", plain, on(&[("stall_percent_membar", 30.0)])),
        (
            "stalls/front-end",
            plain,
            on(&[("stall_percent_no_instruction", 30.0)]),
        ),
        (
            "balance/tail",
            plain,
            on(&[("waves", 1.2), ("tail_efficiency", 0.6)]),
        ),
        ("balance/uneven", plain, on(&[("sm_imbalance", 3.0)])),
        (
            "launch/low-occupancy",
            plain,
            on(&[("occupancy_achieved_percent", 12.0)]),
        ),
        (
            "stalls/latency",
            plain,
            on(&[("sm_percent", 12.0), ("dram_percent", 9.0)]),
        ),
        ("stalls/mixed", plain, on(&[])),
    ];
    let mut seen = BTreeSet::new();
    for (id, context, changes) in &cases {
        let changes: Vec<(&str, f64)> = changes
            .iter()
            .map(|(name, value)| (name.as_str(), *value))
            .collect();
        let reading = read(&variant(&changes), *context);
        assert_eq!(reading.main.as_ref().unwrap().id, *id, "{changes:?}");
        seen.insert((*id).to_owned());
    }
    let with_edit: BTreeSet<String> = rules()
        .iter()
        .filter(|rule| rule.edit.is_some())
        .map(|rule| rule.id.clone())
        .collect();
    assert_eq!(seen, with_edit);
}

#[test]
fn rules_that_state_facts_hold_where_they_should() {
    let ids = |changes: &[(&str, f64)]| -> Vec<String> {
        read(&variant(changes), Context::default())
            .all
            .into_iter()
            .map(|reading| reading.id)
            .collect()
    };
    assert!(ids(&[("duration_ns", 8000.0)]).contains(&"timeline/too-short".to_owned()));
    assert!(ids(&[("sampled_active_share", 0.3)]).contains(&"timeline/flat-low".to_owned()));
    assert!(ids(&[]).contains(&"timeline/flat-high".to_owned()));
    assert!(ids(&[("occupancy_achieved_percent", 30.0)]).contains(&"launch/stalled-below-theory".to_owned()));
    for id in [
        "launch/facts",
        "balance/facts",
        "stalls/facts",
        "tensor/facts",
        "memory/facts",
    ] {
        assert!(ids(&[]).contains(&id.to_owned()), "{id}");
    }
}

#[test]
fn a_missing_metric_is_named_in_its_dimension_and_fires_nothing() {
    let mut profile = real();
    for name in ["dram_percent", "sm_percent", "l2_percent"] {
        profile.metrics = profile.metrics.with(name, None);
    }
    let reading = read(&profile, Context::default());
    let memory = reading
        .dimensions
        .iter()
        .find(|entry| entry.dimension == Dimension::Memory)
        .unwrap();
    assert!(
        memory.unavailable.contains(&"dram_percent".to_owned()),
        "{memory:?}"
    );
    assert!(
        reading
            .all
            .iter()
            .all(|reading| !reading.id.starts_with("memory/dram"))
    );
    let text = digest(&profile, &reading).text;
    assert!(text.contains("unavailable"), "{text}");
    assert!(text.contains("dram_percent"), "{text}");
}

#[test]
fn a_report_without_any_known_metric_asks_for_one() {
    let text = "\"ID\",\"Kernel Name\",\"something__else\"\n\"\",\"\",\"\"\n\"0\",\"k\",\"1\"\n";
    let profile = import(text).unwrap().kernels.remove(0);
    let reading = read(&profile, Context::default());
    assert!(reading.main.is_none());
    let digest = digest(&profile, &reading);
    assert_eq!(digest.text.matches("Next edit:").count(), 1);
    assert!(digest.next.change.contains("--set full"), "{:?}", digest.next);
}

#[test]
fn the_digest_is_short_and_ends_with_one_edit_and_its_metric() {
    let mut profile = real();
    // A long template name must not push the edit out.
    profile.name = "attend<".to_owned() + &"x".repeat(5000) + ">";
    let reading = read(&profile, Context::default());
    let digest = digest(&profile, &reading);
    assert!(digest.text.len() <= 2048, "{}", digest.text.len());
    assert_eq!(digest.text.matches("Next edit:").count(), 1);
    let last = digest.text.lines().last().unwrap();
    assert!(
        last.starts_with("Next edit:") && last.contains("dram_percent") && last.contains("up"),
        "{last}"
    );
    assert!(last.contains("82"), "{last}");
    assert_eq!(digest.next.metric, "dram_percent");
    assert_eq!(
        digest.strategies,
        ["vectorise", "more-loads-in-flight", "cut-bytes"]
    );
}
