//! Holds what is done on the device to what the host does: comparisons, draws, references.

use std::path::Path;
use std::time::{Duration, Instant};

use ksmith_box::Level;
use ksmith_task::{Backend, DType, Task};
use ksmith_worker::cuda::BufferAccess;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::Device;
use super::resident::real_rule;
use crate::cases::{Plan, dev_fills, tiny};
use crate::compare::{Cause, Overflow, Rule, compare};
use crate::number;
use crate::reference::{DeviceTrust, Oracle, OracleOptions};

#[test]
fn every_shipped_reference_agrees_with_the_hosts_and_large_cases_are_made_there() {
    let device = match Device::open(Level::Limits, false) {
        Ok(device) => device,
        Err(error) => {
            println!("skipped: 1 test on a device ({error})");
            return;
        }
    };
    let cache = tempfile::tempdir().unwrap();
    let tasks = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tasks");
    let mut folders: Vec<_> = std::fs::read_dir(tasks)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    folders.sort();
    let mut found = Vec::new();
    for folder in folders {
        let task = Task::load(&folder).unwrap();
        if task.contract().reference.cuda.is_none() {
            continue;
        }
        for instance in task.instances() {
            if !instance.applies_to(Backend::Cuda) {
                continue;
            }
            let plan = Plan::dev(&instance).on(Backend::Cuda);
            let shapes = tiny(&instance, &mut plan.decisions("tiny"), 5);
            let options = OracleOptions {
                cache: cache.path().to_owned(),
                least: Level::Limits,
                unsandboxed: false,
                limit: Duration::from_secs(60),
            };
            let mut oracle = Oracle::open(&instance, &shapes[0], options).unwrap();
            let mut specs: Vec<_> = (0..)
                .zip(&shapes)
                .map(|(number, bound)| plan.case(bound, dev_fills(bound), "tiny", number))
                .collect();
            specs.extend(plan.device_checks(&shapes[0]).unwrap());
            oracle.use_device(&device, &instance, &specs).unwrap();
            let mut times = Vec::new();
            for (_, spec) in plan.workloads(0).unwrap() {
                let began = Instant::now();
                let case = oracle.large_case(&spec).unwrap();
                times.push((case.resident.is_some(), began.elapsed().as_millis()));
            }
            println!(
                "{}: {:?}, (on the device, ms) {times:?}",
                instance.id(),
                oracle.device_trust()
            );
            found.push((instance.id(), oracle.device_trust().clone()));
        }
    }
    let refused: Vec<_> = found
        .iter()
        .filter(|(_, trust)| !matches!(trust, DeviceTrust::Agrees { .. }))
        .collect();
    assert!(refused.is_empty(), "{refused:?}");
}

#[test]
fn the_device_and_the_host_count_the_same_failures() {
    let device = match Device::open(Level::Limits, false) {
        Ok(device) => device,
        Err(error) => {
            println!("skipped: 1 test on a device ({error})");
            return;
        }
    };
    let floats = DType::ALL.into_iter().filter(|dtype| dtype.is_float());
    for dtype in floats {
        for overflow in [Overflow::Inf, Overflow::Saturate, Overflow::Nan] {
            let rule = Rule {
                dtype,
                atol: 1e-6,
                rtol: 4e-3,
                ctol: 1e-4,
                overflow,
                exact: false,
            };
            let element = (
                prop_oneof![
                    any::<f64>(),
                    -4.0f64..4.0,
                    Just(f64::INFINITY),
                    Just(f64::NAN),
                    Just(number::overflow_edge(dtype)),
                ],
                -2.0f64..2.0,
                0.0f64..10.0,
            );
            let mut runner = TestRunner::new(Config {
                cases: 12,
                failure_persistence: None,
                ..Config::default()
            });
            runner
                .run(&prop::collection::vec(element, 1..600), |elements| {
                    let want: Vec<f64> = elements.iter().map(|(want, ..)| *want).collect();
                    let scale: Vec<f64> = elements.iter().map(|(.., scale)| *scale).collect();
                    let out: Vec<f64> = elements
                        .iter()
                        .map(|(want, push, scale)| want + push * rule.bound(*want, *scale))
                        .collect();
                    let mut bytes = vec![0; out.len() * dtype.bytes()];
                    number::encode_reals(dtype, &out, &mut bytes);
                    let host = compare(&rule, &bytes, &want, Some(&scale));

                    let owner = &device.owner;
                    let buffer = |bytes: usize| owner.buffer(bytes, 256, BufferAccess::Output);
                    let got = buffer(bytes.len()).unwrap();
                    owner.write(&got, &bytes).unwrap();
                    let wanted = buffer(8 * want.len()).unwrap();
                    owner.write_reals(&wanted, &want).unwrap();
                    let scales = buffer(8 * want.len()).unwrap();
                    owner.write_reals(&scales, &scale).unwrap();
                    let found = device
                        .checks
                        .real(owner, &real_rule(&rule), &got, &wanted, Some(&scales), want.len())
                        .unwrap()
                        .unwrap();
                    prop_assert_eq!(found.values + found.non_finite, host.failures as u64);
                    if found.values == 0 && found.non_finite > 0 {
                        prop_assert_eq!(host.cause, Some(Cause::NonFinite));
                    }
                    Ok(())
                })
                .unwrap();
        }
    }
}
