use ksmith_task::contract::Domain;
use ksmith_task::expr::Env;
use ksmith_task::{DType, Digest, Fill};
use proptest::prelude::*;

use super::draw::{Target, draw};
use super::secret::Secret;
use super::stream::Key;
use crate::number::{self, Values};

fn fill(text: &str) -> Fill {
    Fill::parse(text)
        .and_then(|fill| fill.resolve(&Env::new()))
        .unwrap()
}

fn key(number: u64) -> Key {
    Key::new(&Secret::dev(), "test", number, "x")
}

fn drawn(text: &str, dtype: DType, shape: &[usize], number: u64) -> Values {
    draw(
        &fill(text),
        &Target {
            dtype,
            shape,
            domain: None,
        },
        &key(number),
    )
}

fn digest(values: &Values, dtype: DType) -> String {
    let mut bytes = vec![0; values.len() * dtype.bytes()];
    number::encode(dtype, values, &mut bytes);
    Digest::of(&bytes).short()
}

const FILLS: [&str; 15] = [
    "normal(0, 1)",
    "uniform(-2, 5)",
    "log_uniform(1e-6, 1e3)",
    "wide(8)",
    "constant(3.25)",
    "spike(0.01, 40)",
    "tiny",
    "integers(-5, 9)",
    "zipf(1000, 1.1)",
    "bernoulli(0.3)",
    "sorted(normal(0, 20))",
    "permutation(100)",
    "distinct(300)",
    "one_hot",
    "partition(1000)",
];

#[test]
fn generated_inputs_are_pinned_bit_by_bit() {
    let shape = [50, 200];
    let found: Vec<String> = FILLS
        .iter()
        .flat_map(|text| {
            [DType::F32, DType::Bf16, DType::F8e4m3, DType::I32]
                .map(|dtype| format!("{text} {dtype} {}", digest(&drawn(text, dtype, &shape, 7), dtype)))
        })
        .collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/fills.golden");
    if std::env::var_os("KSMITH_BLESS").is_some() {
        std::fs::write(path, found.join("\n") + "\n").unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap();
    assert_eq!(golden.lines().collect::<Vec<_>>(), found);
}

#[test]
fn a_draw_does_not_depend_on_the_number_of_threads() {
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| FILLS.map(|text| drawn(text, DType::F32, &[37, 1001], 3)))
    };
    assert_eq!(on(1), on(3));
}

#[test]
fn a_longer_tensor_starts_like_a_shorter_one() {
    let (long, short) = (
        drawn("normal(0, 1)", DType::F64, &[20_000], 1),
        drawn("normal(0, 1)", DType::F64, &[9_000], 1),
    );
    let (Values::Real(long), Values::Real(short)) = (long, short) else {
        panic!("floats")
    };
    assert_eq!(long[..9_000], short[..]);
}

#[test]
fn moments_of_the_laws_are_right() {
    let mean_sd = |text: &str| {
        let Values::Real(values) = drawn(text, DType::F64, &[200_000], 5) else {
            panic!("floats")
        };
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        (
            mean,
            (values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / values.len() as f64).sqrt(),
        )
    };
    let near = |(mean, sd): (f64, f64), want: (f64, f64)| {
        assert!(
            (mean - want.0).abs() < 0.02 * want.1.max(1.0),
            "mean {mean}, want {}",
            want.0
        );
        assert!(
            (sd - want.1).abs() < 0.02 * want.1.max(0.1),
            "sd {sd}, want {}",
            want.1
        );
    };
    near(mean_sd("normal(3, 2)"), (3.0, 2.0));
    near(mean_sd("uniform(-1, 1)"), (0.0, 1.0 / 3f64.sqrt()));
    near(mean_sd("bernoulli(0.25)"), (0.25, 0.1875f64.sqrt()));
    near(mean_sd("integers(0, 9)"), (4.5, 8.25f64.sqrt()));
}

#[test]
fn zipf_weights_fall_as_a_power() {
    let Values::Whole(values) = drawn("zipf(50, 1.0)", DType::I32, &[400_000], 2) else {
        panic!("integers")
    };
    let count = |n: i64| values.iter().filter(|value| **value == n).count() as f64;
    assert!((count(0) / count(1) - 2.0).abs() < 0.1);
    assert!((count(0) / count(9) - 10.0).abs() < 0.8);
    assert!(values.iter().all(|value| (0..50).contains(value)));
}

#[test]
fn structured_fills_have_their_structure() {
    let Values::Whole(values) = drawn("permutation(100)", DType::I32, &[3, 100], 1) else {
        panic!("integers")
    };
    for row in values.chunks(100) {
        let mut sorted = row.to_vec();
        sorted.sort_unstable();
        assert!(sorted.iter().copied().eq(0..100));
        assert!(!row.is_sorted());
    }
    let Values::Whole(values) = drawn("one_hot", DType::U8, &[20, 7], 1) else {
        panic!("integers")
    };
    assert!(values.chunks(7).all(|row| row.iter().sum::<i64>() == 1));
    let Values::Whole(values) = drawn("distinct(40)", DType::I64, &[20, 30], 1) else {
        panic!("integers")
    };
    for row in values.chunks(30) {
        let set: std::collections::BTreeSet<_> = row.iter().collect();
        assert!(set.len() == 30 && row.iter().all(|value| (0..40).contains(value)));
    }
    let Values::Whole(values) = drawn("partition(1000)", DType::I64, &[9], 1) else {
        panic!("integers")
    };
    assert!(values[0] == 0 && values[8] == 1000 && values.is_sorted());
    let parts: Vec<i64> = values.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(
        parts.contains(&0) && parts.iter().any(|part| *part >= 500),
        "{parts:?}"
    );
}

#[test]
fn tiny_draws_are_mostly_subnormal_and_never_all_zero() {
    for dtype in [DType::F32, DType::F16, DType::Bf16, DType::F8e5m2] {
        let Values::Real(values) = drawn("tiny", dtype, &[4000], 1) else {
            panic!("floats")
        };
        let normal = number::smallest_normal(dtype);
        assert!(values.iter().all(|value| value.abs() <= 4.0 * normal));
        assert!(
            values.iter().filter(|value| value.abs() < normal).count() > 1000,
            "{dtype}"
        );
        assert!(values.iter().any(|value| *value != 0.0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn draws_lie_in_their_domain_and_in_their_dtype(
        which in 0..FILLS.len(),
        dtype in prop::sample::select(DType::ALL.to_vec()),
        low in prop::option::of(-100.0f64..0.0),
        high in prop::option::of(1.0f64..100.0),
        number in any::<u64>(),
    ) {
        let domain = Domain { low, low_included: true, high, high_included: true };
        let target = Target { dtype, shape: &[13, 37], domain: Some(domain) };
        let values = draw(&fill(FILLS[which]), &target, &key(number));
        prop_assert_eq!(values.len(), 13 * 37);
        for index in 0..values.len() {
            let value = values.real(index);
            prop_assert!(domain.contains(value), "{} of {dtype}: {value}", FILLS[which]);
            prop_assert!(value == number::round(dtype, value) && value.is_finite());
        }
    }
}
