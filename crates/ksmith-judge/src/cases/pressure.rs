//! The judge's own probes: what it does to any input of any task, whatever the task's author thought of.
//!
//! A pressure rewrites the drawn values of *one* input (rescaling two at once may leave the range of honest arithmetic)
//! or, where nothing grows, of all float inputs. Which results count: `gates/pressure.rs` and `docs/probes.md`.

use ksmith_task::contract::Domain;
use ksmith_task::{DType, Fill, Role, Tensor};

use super::domain;
use super::draw::Target;
use super::stream::Stream;
use crate::number;

/// What is done to an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Pressure {
    /// Every element exactly zero.
    Zeros,
    /// Half of the rows and a tenth of the other elements are zeros of either sign.
    SomeZeros,
    /// Some elements below the smallest normal number.
    Subnormals,
    /// Everything times a power of two near 1e8.
    Up,
    /// Everything times a power of two near 1e-8.
    Down,
    /// Each row times a power of two of its own, between 1e-6 and 1e6.
    RowAmplitudes,
    /// Each row repeats one number of few bits, so that sums of it are exact.
    ConstantRows,
    /// A handful of different values: ties.
    Few,
    /// Each row ascending.
    Ascending,
    /// Each row descending.
    Descending,
    /// Far into the open side of a one-sided domain, or at the ends of a closed one; the ends of an integer's range.
    FarEnds,
    /// Everything times a power of two near 1e30.
    Vast,
    /// One element per row near ±1e30.
    VastElements,
    /// Each row of one sign, all between an eighth and a half of the dtype's largest value.
    Edges,
    /// One element per row above a flat background, so far below it that many small terms decide.
    Plateau,
    /// Each row of one sign, one element 2^4 to 2^22 times the others.
    Dominant,
    /// Each row's own values, its largest at places of one residue modulo a power of two.
    Striped,
}

/// How far a pressure's result is held against a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tier {
    /// Within eight decades of the task's own fill: the contract's tolerance is meant to hold.
    Plain,
    /// Beyond: only for inputs whose declared domain holds such values.
    Beyond,
}

impl Pressure {
    /// All of them.
    pub(crate) const ALL: [Self; 17] = [
        Self::Zeros,
        Self::SomeZeros,
        Self::Subnormals,
        Self::Up,
        Self::Down,
        Self::RowAmplitudes,
        Self::ConstantRows,
        Self::Few,
        Self::Ascending,
        Self::Descending,
        Self::FarEnds,
        Self::Vast,
        Self::VastElements,
        Self::Edges,
        Self::Plateau,
        Self::Dominant,
        Self::Striped,
    ];

    pub(crate) fn tier(self) -> Tier {
        match self {
            Self::Vast | Self::VastElements | Self::Edges => Tier::Beyond,
            _ => Tier::Plain,
        }
    }

    /// Kinds of the pressure, each a case of its own: where one kind is set aside (an ill-conditioned place, a baseline
    /// that fails there), the others still count.
    pub(crate) fn kinds(self) -> usize {
        match self {
            Self::SomeZeros => SIGNS.len(),
            Self::RowAmplitudes => AMPLITUDES.len(),
            Self::Plateau => 4,
            Self::Dominant => 2 * DOMINANCES.len(),
            Self::Striped => PERIODS.len(),
            _ => 1,
        }
    }

    /// Whether it may be put on all float inputs at once: nothing grows.
    pub(crate) fn fits_all(self) -> bool {
        matches!(self, Self::Zeros | Self::SomeZeros | Self::Few | Self::Ascending)
    }
}

/// Decades of [`Pressure::Up`] as a power of two.
const SHIFT: i32 = 27;
/// The same, and half of it for cases where another input is far from its own fill already ([`super::crossed`]).
const SHIFTS: [i32; 2] = [SHIFT, 13];
/// That of [`Pressure::Vast`].
const VAST: i32 = 99;
/// A declared end beyond this lets vast values through.
const VAST_END: f64 = 1e29;
/// Rows are scaled by at most two to one of these powers, either way. Small ones keep a case well-conditioned where a
/// large one would not.
const AMPLITUDES: [i32; 3] = [20, 8, 4];
/// What signs a row's elements have beside its zeros: any, none above zero, none below it.
const SIGNS: [Option<f64>; 3] = [None, Some(-1.0), Some(1.0)];
/// Depths of a plateau below its peak.
const DEPTHS: (f64, f64) = (1.0, 40.0);
/// Spread of a plateau.
const FLATNESS: f64 = 1.0 / 64.0;
/// Powers of two between a dominant element and the others. Below 24: what single precision loses one by one, an honest chain of
/// additions in it loses too, whatever a probabilistic tolerance says of long ones.
const DOMINANCES: [(f64, f64); 2] = [(4.0, 14.0), (14.0, 22.0)];
/// Distances of the places that hold a striped row's largest elements.
const PERIODS: [usize; 5] = [4, 8, 16, 32, 64];

/// The values of `tensor` under a kind (below [`Pressure::kinds`]) of a pressure; `None` where the input does not take it.
pub(crate) fn press(
    pressure: Pressure,
    kind: usize,
    tensor: &Tensor,
    drawn: &[f64],
    stream: &mut Stream,
) -> Option<Vec<f64>> {
    let Role::Input(rule) = &tensor.role else {
        return None;
    };
    if drawn.is_empty() || drawn.len() != tensor.len() || !takes_pressure(&rule.fill) {
        return None;
    }
    let target = Target {
        dtype: tensor.dtype,
        shape: &tensor.shape,
        domain: rule.domain,
    };
    if !tensor.dtype.is_float() {
        return whole(pressure, &rule.fill, drawn.len(), stream);
    }
    let row = target.row().max(1);
    let mut values = drawn.to_vec();
    let scale = |values: &mut Vec<f64>, exponent: i32| {
        let factor = number::power_of_two(exponent);
        values.iter_mut().for_each(|value| *value *= factor);
    };
    let bounded = rule
        .domain
        .is_some_and(|domain| domain.low.is_some() && domain.high.is_some());
    match pressure {
        Pressure::Zeros if holds(rule.domain, 0.0) => values.fill(0.0),
        Pressure::SomeZeros if holds(rule.domain, 0.0) => {
            if let Some(sign) = SIGNS.get(kind).copied().flatten() {
                if !holds(rule.domain, sign) {
                    return None;
                }
                values.iter_mut().for_each(|value| *value = sign * value.abs());
            }
            some_zeros(&mut values, row, stream);
        }
        Pressure::Subnormals => subnormals(&mut values, &target, stream)?,
        Pressure::Up if !bounded => scale(&mut values, limited(tensor.dtype, *SHIFTS.get(kind)?)),
        Pressure::Down if !bounded => scale(&mut values, -limited(tensor.dtype, SHIFT)),
        Pressure::RowAmplitudes if !bounded => {
            let most = limited(tensor.dtype, *AMPLITUDES.get(kind)?);
            for row in values.chunks_mut(row) {
                let exponent = stream.below(2 * most as u64 + 1) as i32 - most;
                let factor = number::power_of_two(exponent);
                row.iter_mut().for_each(|value| *value *= factor);
            }
        }
        Pressure::ConstantRows => {
            for row in values.chunks_mut(row) {
                row.fill(short(rule.domain, stream)?);
            }
        }
        Pressure::Few => few(&mut values, rule.domain, stream)?,
        Pressure::Ascending => values
            .chunks_mut(row)
            .for_each(|row| row.sort_unstable_by(f64::total_cmp)),
        Pressure::Descending => values
            .chunks_mut(row)
            .for_each(|row| row.sort_unstable_by(|one, other| other.total_cmp(one))),
        Pressure::FarEnds => far_ends(&mut values, rule.domain?, &target, stream),
        Pressure::Vast if vouches(rule.domain) => scale(&mut values, limited_vast(tensor.dtype)),
        Pressure::VastElements if vouches(rule.domain) => {
            let end = number::power_of_two(limited_vast(tensor.dtype));
            for row in values.chunks_mut(row) {
                let place = stream.below(row.len() as u64) as usize;
                let sign = if stream.below(2) == 0 { 1.0 } else { -1.0 };
                row[place] = sign * end * (1.0 + stream.unit());
            }
        }
        Pressure::Edges if vouches(rule.domain) => edges(&mut values, &target, stream)?,
        Pressure::Plateau if !bounded => {
            values
                .chunks_mut(row)
                .for_each(|row| plateau(row, kind, &target, stream));
        }
        Pressure::Dominant if !bounded => {
            values
                .chunks_mut(row)
                .for_each(|row| dominant(row, kind, &target, stream));
        }
        Pressure::Striped => {
            let period = *PERIODS.get(kind)?;
            values
                .chunks_mut(row)
                .for_each(|row| striped(row, period, stream));
        }
        _ => return None,
    }
    values
        .iter_mut()
        .for_each(|value| *value = domain::settle(*value, target.dtype, target.domain.as_ref()));
    (values != drawn).then_some(values)
}

/// Inputs with structure of their own stay as they are: a change would break what the contract promises.
pub(crate) fn takes_pressure(fill: &Fill) -> bool {
    !matches!(
        fill,
        Fill::Generator
            | Fill::Partition { .. }
            | Fill::Permutation { .. }
            | Fill::Distinct { .. }
            | Fill::OneHot
            | Fill::Sorted(_)
    )
}

pub(super) fn holds(domain: Option<Domain>, value: f64) -> bool {
    domain.is_none_or(|domain| domain.contains(value))
}

/// Whether the contract declares a domain that holds values near 1e30 of both signs.
fn vouches(domain: Option<Domain>) -> bool {
    domain.is_some_and(|domain| {
        domain.low.is_none_or(|low| low <= -VAST_END) && domain.high.is_none_or(|high| high >= VAST_END)
    })
}

/// A power of two that leaves a quarter of the dtype's exponents to the arithmetic.
pub(super) fn limited(dtype: DType, wanted: i32) -> i32 {
    wanted.min((libm::log2(number::largest(dtype)) / 4.0) as i32)
}

/// The vast power of two, below the end of the dtype by a fifth of its exponents.
fn limited_vast(dtype: DType) -> i32 {
    VAST.min((libm::log2(number::largest(dtype)) * 0.78) as i32)
}

fn some_zeros(values: &mut [f64], row: usize, stream: &mut Stream) {
    let zero = |bit: u64| if bit == 0 { 0.0 } else { -0.0 };
    for row in values.chunks_mut(row) {
        if row.len() > 1 && stream.below(2) == 0 {
            let sign = stream.below(2);
            row.fill(zero(sign));
            continue;
        }
        for value in row {
            if stream.below(10) == 0 {
                *value = zero(stream.below(2));
            }
        }
    }
}

/// One element in sixteen becomes subnormal, never the first of a row: a row's own scale stays a normal number, as tasks
/// that divide by it want. Dtypes without subnormals of their own do not take it.
fn subnormals(values: &mut [f64], target: &Target<'_>, stream: &mut Stream) -> Option<()> {
    target.dtype.unit_roundoff()?;
    let smallest = number::smallest_normal(target.dtype);
    for row in values.chunks_mut(target.row().max(1)) {
        for value in row.iter_mut().skip(1) {
            if stream.below(16) == 0 {
                let sign = if stream.below(2) == 0 { 1.0 } else { -1.0 };
                *value = sign * smallest * stream.unit();
            }
        }
    }
    Some(())
}

/// A number of at most three significant bits between 1/8 and 28, of either sign, inside the domain.
fn short(domain: Option<Domain>, stream: &mut Stream) -> Option<f64> {
    (0..32).find_map(|_| {
        let mantissa = 1.0 + 2.0 * stream.below(4) as f64;
        let value = mantissa * number::power_of_two(stream.below(6) as i32 - 3);
        let value = if stream.below(2) == 0 { value } else { -value };
        holds(domain, value).then_some(value)
    })
}

fn few(values: &mut [f64], domain: Option<Domain>, stream: &mut Stream) -> Option<()> {
    let allowed: Vec<f64> = [-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0]
        .into_iter()
        .filter(|value| holds(domain, *value))
        .collect();
    if allowed.len() < 2 {
        return None;
    }
    // Three of them, so that ties are long.
    let first = stream.below(allowed.len() as u64) as usize;
    for value in values {
        *value = allowed[(first + stream.below(3) as usize) % allowed.len()];
    }
    Some(())
}

fn far_ends(values: &mut [f64], domain: Domain, target: &Target<'_>, stream: &mut Stream) {
    let vast = number::power_of_two(limited(target.dtype, SHIFT));
    match (domain.low, domain.high) {
        (Some(low), Some(high)) => {
            for value in values {
                let inset = stream.below(2) as f64 * 1e-6 * (high - low);
                *value = if stream.below(2) == 0 {
                    low + inset
                } else {
                    high - inset
                };
            }
        }
        // One and the same distance in a draw: a mixture of near and far would test cancellation, which is another
        // pressure.
        (Some(low), None) => values
            .iter_mut()
            .for_each(|value| *value = low + vast * (1.0 + stream.unit())),
        (None, Some(high)) => values
            .iter_mut()
            .for_each(|value| *value = high - vast * (1.0 + stream.unit())),
        // Both sides open: that is `Up`.
        (None, None) => {}
    }
}

/// One sign per row; `None` where the domain ends before half of the largest value.
fn edges(values: &mut [f64], target: &Target<'_>, stream: &mut Stream) -> Option<()> {
    let largest = number::largest(target.dtype);
    let ends = [-largest / 2.0, largest / 2.0];
    if !ends.iter().all(|end| holds(target.domain, *end)) {
        return None;
    }
    for row in values.chunks_mut(target.row().max(1)) {
        let end = ends[stream.below(2) as usize];
        row.iter_mut()
            .for_each(|value| *value = end * (0.25 + 0.75 * stream.unit()));
    }
    Some(())
}

/// The place of the one element that differs: the first in even kinds, any in odd ones.
fn special(row: &[f64], kind: usize, stream: &mut Stream) -> usize {
    match kind % 2 {
        0 => 0,
        _ => stream.below(row.len() as u64) as usize,
    }
}

/// Depths are log-uniform in the first two kinds; in the others `exp` of one lies near the unit roundoff, where each term
/// vanishes beside the peak and all of them together do not.
fn plateau(row: &mut [f64], kind: usize, target: &Target<'_>, stream: &mut Stream) {
    if row.len() < 2 {
        return;
    }
    let place = special(row, kind, stream);
    let (least, most) = DEPTHS;
    let depth = match target.dtype.unit_roundoff() {
        Some(unit) if kind >= 2 => 4.0 * stream.unit() - 1.0 - libm::log(unit),
        _ => least * libm::pow(most / least, stream.unit()),
    };
    let level = row[place];
    let (peak, flat) = if holds(target.domain, level - depth - FLATNESS) {
        (level, level - depth)
    } else {
        (level + depth, level)
    };
    for value in row.iter_mut() {
        *value = flat + FLATNESS * (2.0 * stream.unit() - 1.0);
    }
    row[place] = peak;
}

/// The others differ by up to a factor of four, so that their roundings have no common direction.
fn dominant(row: &mut [f64], kind: usize, target: &Target<'_>, stream: &mut Stream) {
    if row.len() < 2 {
        return;
    }
    let place = special(row, kind, stream);
    let (low, high) = DOMINANCES[kind / 2 % DOMINANCES.len()];
    let half = ((low + (high - low) * stream.unit()) / 2.0).min(f64::from(limited(target.dtype, SHIFT)));
    let sign = match (holds(target.domain, -1.0), holds(target.domain, 1.0)) {
        (true, true) => [-1.0, 1.0][stream.below(2) as usize],
        (true, false) => -1.0,
        _ => 1.0,
    };
    for value in row.iter_mut() {
        *value = sign * libm::exp2(2.0 * stream.unit() - 1.0 - half);
    }
    row[place] = sign * libm::exp2(half);
}

/// The same values in another order: no arithmetic gets harder, only the places are those of one lane.
fn striped(row: &mut [f64], period: usize, stream: &mut Stream) {
    if row.len() <= period {
        return;
    }
    let residue = stream.below(period as u64) as usize;
    let mut sorted = row.to_vec();
    sorted.sort_unstable_by(|one, other| other.total_cmp(one));
    let stripe = (residue..row.len()).step_by(period);
    let (largest, mut rest) = {
        let rest = sorted.split_off(stripe.len());
        (sorted, rest)
    };
    for at in (1..rest.len()).rev() {
        rest.swap(at, stream.below(at as u64 + 1) as usize);
    }
    let (mut largest, mut rest) = (largest.into_iter(), rest.into_iter());
    for (at, value) in row.iter_mut().enumerate() {
        let next = if at % period == residue {
            largest.next()
        } else {
            rest.next()
        };
        *value = next.unwrap_or(*value);
    }
}

/// Integers know their ends only.
fn whole(pressure: Pressure, fill: &Fill, len: usize, stream: &mut Stream) -> Option<Vec<f64>> {
    let (low, high) = match fill {
        Fill::Integers { low, high } => (*low, *high),
        Fill::Zipf { n, .. } => (0.0, *n - 1.0),
        _ => return None,
    };
    match pressure {
        Pressure::Zeros if low <= 0.0 && high >= 0.0 => Some(vec![0.0; len]),
        Pressure::FarEnds => Some(
            (0..len)
                .map(|_| if stream.below(2) == 0 { low } else { high })
                .collect(),
        ),
        Pressure::ConstantRows => {
            let value = low + stream.below((high - low) as u64 + 1) as f64;
            Some(vec![value; len])
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::{Key, Secret};

    fn dice(name: &str) -> Stream {
        Key::new(&Secret::dev(), "pressure", 0, name).block(0)
    }

    const FINITE: Domain = Domain {
        low: None,
        low_included: false,
        high: None,
        high_included: false,
    };

    #[test]
    fn vast_values_need_a_declared_domain_that_holds_them() {
        assert!(!vouches(None));
        assert!(vouches(Some(FINITE)));
        assert!(!vouches(Some(Domain {
            low: Some(-100.0),
            ..FINITE
        })));
        assert!(vouches(Some(Domain {
            low: Some(-1e30),
            high: Some(1e30),
            ..FINITE
        })));
    }

    #[test]
    fn scales_leave_room_in_every_dtype() {
        for dtype in [DType::F64, DType::F32, DType::Bf16, DType::F16, DType::F8e4m3] {
            let largest = number::largest(dtype);
            // A square of the rescaled value, and a small multiple of the vast one, stay in range.
            assert!(
                number::power_of_two(2 * limited(dtype, SHIFT)) < largest,
                "{dtype}"
            );
            assert!(
                3.0 * number::power_of_two(limited_vast(dtype)) < largest,
                "{dtype}"
            );
        }
    }

    #[test]
    fn sums_of_constant_rows_are_exact_in_single_precision() {
        let mut stream = dice("short");
        for _ in 0..200 {
            let value = short(None, &mut stream).unwrap() as f32;
            let mut sum = 0.0f32;
            for count in 1..=4096u32 {
                sum += value;
                assert_eq!(f64::from(sum), f64::from(value) * f64::from(count));
            }
        }
    }

    #[test]
    fn few_values_and_ends_stay_inside_the_domain() {
        let unit = Domain {
            low: Some(0.0),
            low_included: true,
            high: Some(1.0),
            high_included: true,
        };
        let target = Target {
            dtype: DType::F32,
            shape: &[1000],
            domain: Some(unit),
        };
        let mut values = vec![0.3; 1000];
        few(&mut values, Some(unit), &mut dice("few")).unwrap();
        assert!(values.iter().all(|value| unit.contains(*value)));
        far_ends(&mut values, unit, &target, &mut dice("ends"));
        assert!(values.contains(&0.0) && values.contains(&1.0));
        assert!(values.iter().all(|value| unit.contains(*value)));
        let below = Domain {
            high: Some(0.0),
            high_included: true,
            ..FINITE
        };
        far_ends(&mut values, below, &target, &mut dice("below"));
        assert!(values.iter().all(|value| *value < -1e8));
    }

    fn single(domain: Option<Domain>) -> Target<'static> {
        Target {
            dtype: DType::F32,
            shape: &[8, 256],
            domain,
        }
    }

    #[test]
    fn edges_are_of_one_sign_and_leave_room_for_a_difference() {
        for dtype in [DType::F64, DType::F32, DType::Bf16, DType::F16] {
            let target = Target {
                dtype,
                ..single(Some(FINITE))
            };
            let mut values = vec![0.0; 8 * 256];
            edges(&mut values, &target, &mut dice("edges")).unwrap();
            let largest = number::largest(dtype);
            for row in values.chunks(256) {
                assert!(row.iter().all(|value| value.signum() == row[0].signum()));
                assert!(
                    row.iter()
                        .all(|value| (largest / 8.0..=largest / 2.0).contains(&value.abs()))
                );
            }
            assert!(values.iter().any(|value| *value < 0.0) && values.iter().any(|value| *value > 0.0));
        }
        let narrow = single(Some(Domain {
            low: Some(-1e30),
            high: Some(1e30),
            ..FINITE
        }));
        assert!(edges(&mut [0.0; 256], &narrow, &mut dice("edges")).is_none());
    }

    #[test]
    fn plateaus_lie_at_depths_where_single_terms_vanish_and_their_sum_does_not() {
        let mut stream = dice("plateau");
        for turn in 0..400 {
            let (kind, mut row) = (turn % Pressure::Plateau.kinds(), vec![0.5; 256]);
            plateau(&mut row, kind, &single(None), &mut stream);
            assert!(kind % 2 == 1 || row[1..].iter().all(|value| *value < row[0]));
            let peak = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let mut below: Vec<f64> = row.into_iter().filter(|value| *value < peak).collect();
            assert_eq!(below.len(), 255);
            below.sort_unstable_by(f64::total_cmp);
            assert!(below[254] - below[0] <= 2.0 * FLATNESS);
            let depth = peak - below[127];
            assert!(depth > DEPTHS.0 - 0.1 && depth < DEPTHS.1 + 0.1);
            assert!(kind < 2 || (15.5..19.7).contains(&depth), "{depth}");
        }
    }

    #[test]
    fn dominant_rows_are_of_one_sign_and_their_others_add_up() {
        let positive = Domain {
            low: Some(0.0),
            ..FINITE
        };
        let mut stream = dice("dominant");
        for domain in [None, Some(positive)] {
            for turn in 0..100 {
                let (kind, mut row) = (turn % Pressure::Dominant.kinds(), vec![0.5; 256]);
                dominant(&mut row, kind, &single(domain), &mut stream);
                assert!(row.iter().all(|value| value.signum() == row[0].signum()));
                assert!(domain.is_none() || row[0] > 0.0);
                let mut sizes: Vec<f64> = row.iter().map(|value| value.abs()).collect();
                sizes.sort_unstable_by(f64::total_cmp);
                let ratio = sizes[255] / sizes[254];
                assert!((8.0..=f64::from(1u32 << 23)).contains(&ratio), "{ratio}");
                assert!(sizes[254] <= 4.0 * sizes[0]);
            }
        }
    }

    #[test]
    fn striped_rows_hold_their_own_values_and_their_largest_in_one_lane() {
        let mut stream = dice("striped");
        for turn in 0..50 {
            let drawn: Vec<f64> = (0..300).map(|_| stream.unit()).collect();
            let (period, mut row) = (PERIODS[turn % PERIODS.len()], drawn.clone());
            striped(&mut row, period, &mut stream);
            let mut order: Vec<usize> = (0..row.len()).collect();
            order.sort_unstable_by(|one, other| row[*other].total_cmp(&row[*one]));
            // 300 places hold at least four of any residue modulo 64.
            assert!(order[..4].iter().all(|at| at % period == order[0] % period));
            let sorted = |mut values: Vec<f64>| {
                values.sort_unstable_by(f64::total_cmp);
                values
            };
            assert_eq!(sorted(row), sorted(drawn));
        }
    }

    #[test]
    fn integers_go_to_the_ends_of_their_fill_and_nowhere_else() {
        let fill = Fill::Integers {
            low: 0.0,
            high: 2047.0,
        };
        let ends = whole(Pressure::FarEnds, &fill, 500, &mut dice("whole")).unwrap();
        assert!(ends.contains(&0.0) && ends.contains(&2047.0));
        assert!(ends.iter().all(|value| *value == 0.0 || *value == 2047.0));
        assert!(whole(Pressure::Up, &fill, 5, &mut dice("whole")).is_none());
    }
}
