//! Holds the device's draws to the host's without a device: its code, compiled for this CPU, draws the same bits.

use std::fs;
use std::process::Command;

use ksmith_task::contract::Domain;
use ksmith_task::expr::Env;
use ksmith_task::{DType, Fill};
use ksmith_worker::cuda::{Draw, SOURCE};

use super::draw::{self, Target};
use super::secret::Secret;
use super::stream::{BLOCK, Key};
use crate::number;

/// What device code has and this CPU's compiler has not: one thread, no neighbours.
const SHIM: &str = r#"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define finite finite_number
#define __device__ static
#define __global__
#define __constant__ static const
struct Place { int x; };
static const Place blockIdx = {0}, threadIdx = {0}, blockDim = {1}, gridDim = {1};
struct uint4 { unsigned x, y, z, w; };
static double __longlong_as_double(long long bits) { double d; memcpy(&d, &bits, 8); return d; }
static long long __double_as_longlong(double d) { long long bits; memcpy(&bits, &d, 8); return bits; }
static unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static unsigned __funnelshift_l(unsigned low, unsigned high, int by) { return high << by | low >> (32 - by); }
static long long __double2ll_rn(double d) { return d >= 9223372036854775807.0 ? 9223372036854775807ll : llrint(d); }
template <typename T> static T __shfl_xor_sync(unsigned, T, int) { return 0; }
static void atomicAdd(unsigned long long *to, unsigned long long by) { *to += by; }
static void atomicMax(unsigned long long *to, unsigned long long by) { *to = *to < by ? by : *to; }
"#;

/// Reads count, row length, then type, law, seed; writes how many elements left the domain, then the elements.
const MAIN: &str = r#"
int main() {
    long long sizes[2];
    Type type;
    Law law;
    Seed seed;
    if (fread(sizes, 16, 1, stdin) != 1 || fread(&type, sizeof type, 1, stdin) != 1
        || fread(&law, sizeof law, 1, stdin) != 1 || fread(&seed, sizeof seed, 1, stdin) != 1)
        return 1;
    Result result = {};
    u8 *out = (u8 *)calloc(sizes[0], type.bytes);
    draw(out, sizes[0], type, law, seed, nullptr, sizes[1], 0, &result);
    fwrite(&result.value, 8, 1, stdout);
    fwrite(out, type.bytes, sizes[0], stdout);
    return 0;
}
"#;

#[test]
fn the_devices_draws_have_the_hosts_bits() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("draw.cpp"), folder.path().join("draw"));
    fs::write(&source, format!("{SHIM}{SOURCE}{MAIN}")).unwrap();
    let compiled = Command::new("g++")
        .args(["-O1", "-ffp-contract=off", "-w", "-o"])
        .arg(&program)
        .arg(&source)
        .output()
        .unwrap();
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    let fills = [
        "normal(0, 1)",
        "normal(200, 5)",
        "uniform(-30, 30)",
        "log_uniform(1e-30, 1e-3)",
        "wide(6)",
        "constant(-77.25)",
        "spike(0.01, -1e30)",
        "integers(-7, 2047)",
        "bernoulli(0.3)",
    ];
    let shape = [3, 5001];
    for text in fills {
        let fill: Fill = Fill::parse(text)
            .and_then(|fill| fill.resolve(&Env::new()))
            .unwrap();
        for dtype in DType::ALL {
            let target = Target {
                dtype,
                shape: &shape,
                domain: None,
            };
            let key = Key::new(&Secret::dev(), "device", 0, text);
            let (law, drawn) = draw::on_device(&fill, &target).unwrap();
            let arguments = Draw {
                target: drawn,
                law,
                seed: *key.bytes(),
                rows: None,
            };
            let (outside, got) = run(&program, &arguments, target.len());
            let mut want = vec![0; got.len()];
            number::encode(dtype, &draw::draw(&fill, &target, &key), &mut want);
            assert_eq!(outside, 0, "{text} {dtype}");
            assert!(got == want, "{text} {dtype}");
            // Single blocks are parts of the whole.
            let width = dtype.bytes();
            for (index, whole) in want.chunks(BLOCK * width).enumerate() {
                assert!(
                    draw::block(&fill, &target, &key, index).unwrap() == whole,
                    "{text} {dtype}"
                );
            }
        }
    }
}

#[test]
fn what_leaves_a_domain_on_the_device_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("draw.cpp"), folder.path().join("draw"));
    fs::write(&source, format!("{SHIM}{SOURCE}{MAIN}")).unwrap();
    let compiled = Command::new("g++")
        .args(["-O1", "-ffp-contract=off", "-w", "-o"])
        .arg(&program)
        .arg(&source)
        .status()
        .unwrap();
    assert!(compiled.success());
    let fill: Fill = Fill::parse("uniform(-1, 1)")
        .and_then(|fill| fill.resolve(&Env::new()))
        .unwrap();
    let domain = |low, high| Domain {
        low,
        low_included: true,
        high,
        high_included: false,
    };
    for (domain, least) in [(domain(Some(0.0), None), 400), (domain(Some(-1.0), Some(2.0)), 0)] {
        let target = Target {
            dtype: DType::F32,
            shape: &[1000],
            domain: Some(domain),
        };
        let (law, drawn) = draw::on_device(&fill, &target).unwrap();
        let arguments = Draw {
            target: drawn,
            law,
            seed: [7; 32],
            rows: None,
        };
        let (outside, _) = run(&program, &arguments, 1000);
        assert!(outside >= least && outside <= 2 * least, "{outside}");
    }
}

fn run(program: &std::path::Path, draw: &Draw<'_>, count: usize) -> (u64, Vec<u8>) {
    use std::io::Write as _;
    use std::process::Stdio;
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = [(count as i64).to_le_bytes(), 1i64.to_le_bytes()].concat();
    input.extend(draw.arguments().unwrap().concat());
    child.stdin.take().unwrap().write_all(&input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let (outside, elements) = output.stdout.split_at(8);
    (u64::from_le_bytes(outside.try_into().unwrap()), elements.to_vec())
}
