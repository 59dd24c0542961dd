//! Every scripted machine of `testdata/` against what `doctor` must say of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;

use super::*;
use crate::Machine;
use crate::scripted::ScriptedHost;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    route: RouteKind,
    #[serde(default = "yes")]
    kernel_program: bool,
    rows: BTreeMap<String, ExpectedRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectedRow {
    state: State,
    /// A part of the finding or of the fix.
    says: Option<String>,
}

fn yes() -> bool {
    true
}

fn diagnose(host: &ScriptedHost, kernel_program: bool) -> Diagnosis {
    let machine = Machine::read_from(host);
    doctor(&Probes {
        host,
        machine: &machine,
        isolation: IsolationFacts::default(),
        noise: None,
        load: None,
        data_dir: "/data".into(),
        kernel_program: kernel_program.then(|| vec!["/usr/bin/ksmith".to_owned(), "probe-kernel".to_owned()]),
        rental: None,
    })
}

#[test]
fn every_scripted_machine_is_diagnosed_as_expected() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let mut tried = BTreeSet::new();
    for entry in std::fs::read_dir(root)
        .unwrap()
        .flatten()
        .filter(|entry| entry.path().is_dir())
    {
        let case = entry.file_name().into_string().unwrap();
        let host = ScriptedHost::load(&case);
        assert!(
            !host.shows.is_empty(),
            "{case}: `shows` says what the case proves"
        );
        let Ok(text) = std::fs::read_to_string(entry.path().join("expect.toml")) else {
            continue;
        };
        let expected: Expected = toml::from_str(&text).unwrap_or_else(|error| panic!("{case}: {error}"));
        let diagnosis = diagnose(&host, expected.kernel_program);
        for (name, wanted) in &expected.rows {
            let row = diagnosis
                .row(name)
                .unwrap_or_else(|| panic!("{case}: no row `{name}`"));
            assert_eq!(row.state, wanted.state, "{case}: {row:?}");
            if let Some(says) = &wanted.says {
                let text = format!("{}\n{}", row.finding, row.fix.as_deref().unwrap_or_default());
                assert!(
                    text.contains(says.as_str()),
                    "{case}: `{name}` does not say `{says}`: {text}"
                );
            }
        }
        assert_eq!(
            diagnosis.route.kind, expected.route,
            "{case}: {:?}",
            diagnosis.route
        );
        tried.insert(case);
    }
    assert!(tried.len() >= 15, "{tried:?}");
}

#[test]
fn no_fix_anywhere_calls_sudo_and_every_missing_thing_has_one() {
    for case in [
        "bare",
        "driver-only",
        "ncu-without-permission",
        "ncu-without-permission-in-container",
        "awkward-tools",
    ] {
        for row in diagnose(&ScriptedHost::load(case), true).rows {
            let fix = row.fix.clone().unwrap_or_default();
            assert!(!fix.contains("sudo"), "{case}: {row:?}");
            assert!(
                row.state != State::Missing || row.fix.is_some(),
                "{case}: {row:?}"
            );
        }
    }
}

#[test]
fn all_machines_get_the_same_rows_in_the_same_order() {
    let names = |case: &str| -> Vec<String> {
        diagnose(&ScriptedHost::load(case), true)
            .rows
            .into_iter()
            .map(|row| row.name)
            .collect()
    };
    let bare = names("bare");
    for case in ["cpu-only", "h200", "gvisor", "vgpu"] {
        assert_eq!(names(case), bare, "{case}");
    }
}

#[test]
fn a_diagnosis_survives_its_json_form() {
    let diagnosis = diagnose(&ScriptedHost::load("h200"), true);
    let text = serde_json::to_string(&diagnosis).unwrap();
    assert_eq!(serde_json::from_str::<Diagnosis>(&text).unwrap(), diagnosis);
}

#[test]
fn without_a_gpu_renting_is_offered_with_what_to_check() {
    let route = diagnose(&ScriptedHost::load("cpu-only"), true).route;
    let rent = route
        .alternatives
        .iter()
        .find(|other| other.kind == RouteKind::RentByTheHour)
        .unwrap();
    assert_eq!(rent.checks.len(), 7);
    assert!(route.checks[0].contains("scope: \"cpu\""));
    let gpu = diagnose(&ScriptedHost::load("h200"), true).route;
    assert!(
        gpu.alternatives
            .iter()
            .all(|other| other.kind != RouteKind::RentByTheHour)
    );
    assert_eq!(gpu.checks, Vec::<String>::new());
}

#[test]
fn isolation_levels_become_states() {
    let host = ScriptedHost::default();
    let machine = Machine::read_from(&host);
    let layer = IsolationLayer {
        name: "namespaces".to_owned(),
        works: false,
        detail: "EPERM".to_owned(),
    };
    for (level, state) in [
        ("box", State::Ok),
        ("kernel", State::Limited),
        ("limits", State::Limited),
        ("none", State::Missing),
        ("", State::Missing),
    ] {
        let facts = IsolationFacts {
            level: level.to_owned(),
            layers: vec![layer.clone()],
        };
        let probes = Probes {
            host: &host,
            machine: &machine,
            isolation: facts,
            noise: None,
            load: None,
            data_dir: "/data".into(),
            kernel_program: None,
            rental: None,
        };
        let diagnosis = doctor(&probes);
        let row = diagnosis.row("isolation").unwrap();
        assert_eq!(row.state, state, "{level}");
        assert!(
            level.is_empty() || row.finding.contains("namespaces (EPERM)"),
            "{row:?}"
        );
    }
}
