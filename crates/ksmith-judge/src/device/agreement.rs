//! Holds the comparison on the device to the one on the host.

use ksmith_box::Level;
use ksmith_task::DType;
use ksmith_worker::cuda::BufferAccess;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::Device;
use super::resident::real_rule;
use crate::compare::{Cause, Overflow, Rule, compare};
use crate::number;

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
