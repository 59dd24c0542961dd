//! Element types as bits: rounding a float64 to a dtype, and reading it back.
//!
//! Everything here is integer arithmetic on the bits of an `f64`, so the result is the same on every machine. There is
//! no intermediate `f32` on the way to a 16- or 8-bit float: rounding twice would move ties.

use ksmith_task::DType;

/// The values of one tensor, in the type in which the judge computes with them.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Elements of a float tensor.
    Real(Vec<f64>),
    /// Elements of an integer or bool tensor.
    Whole(Vec<i64>),
}

impl Values {
    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            Self::Real(values) => values.len(),
            Self::Whole(values) => values.len(),
        }
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Element `index` as a float (integers beyond 2^53 lose their last bits).
    pub fn real(&self, index: usize) -> f64 {
        match self {
            Self::Real(values) => values[index],
            Self::Whole(values) => values[index] as f64,
        }
    }
}

/// The layout of a float narrower than `f32`'s own conversions, or of `f32` itself.
#[derive(Debug, Clone, Copy)]
struct Layout {
    mantissa_bits: u32,
    exponent_bits: u32,
    /// Largest code of a finite magnitude.
    max_code: u32,
    /// Code of infinity; `None` where the format has none.
    infinity: Option<u32>,
    nan: u32,
}

fn layout(dtype: DType) -> Option<Layout> {
    let layout = match dtype {
        DType::F32 => Layout {
            mantissa_bits: 23,
            exponent_bits: 8,
            max_code: 0x7f7f_ffff,
            infinity: Some(0x7f80_0000),
            nan: 0x7fc0_0000,
        },
        DType::F16 => Layout {
            mantissa_bits: 10,
            exponent_bits: 5,
            max_code: 0x7bff,
            infinity: Some(0x7c00),
            nan: 0x7e00,
        },
        DType::Bf16 => Layout {
            mantissa_bits: 7,
            exponent_bits: 8,
            max_code: 0x7f7f,
            infinity: Some(0x7f80),
            nan: 0x7fc0,
        },
        DType::F8e4m3 => Layout {
            mantissa_bits: 3,
            exponent_bits: 4,
            max_code: 0x7e,
            infinity: None,
            nan: 0x7f,
        },
        DType::F8e5m2 => Layout {
            mantissa_bits: 2,
            exponent_bits: 5,
            max_code: 0x7b,
            infinity: Some(0x7c),
            nan: 0x7e,
        },
        DType::F64 | DType::I64 | DType::I32 | DType::I16 | DType::I8 | DType::U8 | DType::Bool => {
            return None;
        }
    };
    Some(layout)
}

/// Magnitude code of `value` rounded to nearest, ties to even; may exceed `max_code` (overflow).
fn magnitude(value: f64, layout: Layout) -> u32 {
    let bits = value.to_bits() & (u64::MAX >> 1);
    let exponent = (bits >> 52) as i32 - 1023;
    if exponent < -1022 {
        // Float64 subnormals lie far below the smallest value of every narrower format.
        return 0;
    }
    let significand = (bits & ((1 << 52) - 1)) | (1 << 52);
    let bias = (1i32 << (layout.exponent_bits - 1)) - 1;
    let least = 1 - bias;
    let (shift, base) = if exponent >= least {
        (
            52 - layout.mantissa_bits,
            ((exponent - least) as u32).saturating_mul(1 << layout.mantissa_bits),
        )
    } else {
        (52 - layout.mantissa_bits + (least - exponent) as u32, 0)
    };
    if shift > 54 {
        return 0;
    }
    let kept = (significand >> shift) as u32;
    let rest = significand & ((1u64 << shift) - 1);
    let half = 1u64 << (shift - 1);
    let up = rest > half || (rest == half && kept & 1 == 1);
    base.saturating_add(kept).saturating_add(u32::from(up))
}

fn narrow(value: f64, layout: Layout) -> u32 {
    let sign = u32::from(value.is_sign_negative()) << (layout.mantissa_bits + layout.exponent_bits);
    let code = if value.is_nan() {
        layout.nan
    } else if value.is_infinite() {
        layout.infinity.unwrap_or(layout.nan)
    } else {
        let code = magnitude(value, layout);
        if code > layout.max_code {
            layout.infinity.unwrap_or(layout.nan)
        } else {
            code
        }
    };
    sign | code
}

fn widen(code: u32, layout: Layout) -> f64 {
    let sign_bit = 1u32 << (layout.mantissa_bits + layout.exponent_bits);
    let magnitude = code & (sign_bit - 1);
    let value = if magnitude <= layout.max_code {
        let mantissa = magnitude & ((1 << layout.mantissa_bits) - 1);
        let exponent = (magnitude >> layout.mantissa_bits) as i32;
        let bias = (1i32 << (layout.exponent_bits - 1)) - 1;
        if exponent == 0 {
            f64::from(mantissa) * power_of_two(1 - bias - layout.mantissa_bits as i32)
        } else {
            let bits = (((exponent - bias + 1023) as u64) << 52)
                | (u64::from(mantissa) << (52 - layout.mantissa_bits));
            f64::from_bits(bits)
        }
    } else if Some(magnitude) == layout.infinity {
        f64::INFINITY
    } else {
        f64::NAN
    };
    if code & sign_bit == 0 { value } else { -value }
}

/// 2^exponent for exponents of normal float64 values.
pub(crate) fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// The largest finite value of a float dtype; infinity for integers (they have no overflow rule).
pub fn largest(dtype: DType) -> f64 {
    match layout(dtype) {
        Some(layout) => widen(layout.max_code, layout),
        None if dtype == DType::F64 => f64::MAX,
        None => f64::INFINITY,
    }
}

/// The smallest positive normal value of a float dtype.
pub fn smallest_normal(dtype: DType) -> f64 {
    match layout(dtype) {
        Some(layout) => widen(1 << layout.mantissa_bits, layout),
        None => f64::MIN_POSITIVE,
    }
}

/// Half a unit in the last place of the largest finite value: beyond `largest + this`, rounding overflows.
pub fn overflow_edge(dtype: DType) -> f64 {
    match layout(dtype) {
        Some(layout) => {
            let max = widen(layout.max_code, layout);
            let below = widen(layout.max_code - 1, layout);
            max + (max - below) / 2.0
        }
        None => f64::INFINITY,
    }
}

/// Rounds to the dtype and back. Integers round to nearest (ties to even) and saturate.
pub fn round(dtype: DType, value: f64) -> f64 {
    match layout(dtype) {
        Some(layout) => widen(narrow(value, layout), layout),
        None if dtype == DType::F64 => value,
        None => round_whole(dtype, value) as f64,
    }
}

/// Rounds to an integer dtype: nearest, ties to even, saturating; NaN is 0.
pub fn round_whole(dtype: DType, value: f64) -> i64 {
    let (least, most) = whole_range(dtype);
    // `as` saturates and maps NaN to zero.
    (libm::rint(value) as i64).clamp(least, most)
}

/// The range of an integer dtype.
pub fn whole_range(dtype: DType) -> (i64, i64) {
    match dtype {
        DType::I32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        DType::I16 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        DType::I8 => (i64::from(i8::MIN), i64::from(i8::MAX)),
        DType::U8 => (0, 255),
        DType::Bool => (0, 1),
        DType::I64 | DType::F64 | DType::F32 | DType::F16 | DType::Bf16 | DType::F8e4m3 | DType::F8e5m2 => {
            (i64::MIN, i64::MAX)
        }
    }
}

/// Writes `values`, rounded to `dtype`, as little-endian elements. `bytes` must hold exactly as many.
pub fn encode_reals(dtype: DType, values: &[f64], bytes: &mut [u8]) {
    debug_assert_eq!(bytes.len(), values.len() * dtype.bytes());
    match dtype {
        DType::F64 => {
            for (value, slot) in values.iter().zip(bytes.as_chunks_mut::<8>().0) {
                *slot = value.to_le_bytes();
            }
        }
        // `as` rounds to nearest even in one step: the same as the integer path, and vectorised.
        DType::F32 => {
            for (value, slot) in values.iter().zip(bytes.as_chunks_mut::<4>().0) {
                *slot = (*value as f32).to_le_bytes();
            }
        }
        DType::F16 | DType::Bf16 => {
            let Some(layout) = layout(dtype) else { return };
            for (value, slot) in values.iter().zip(bytes.as_chunks_mut::<2>().0) {
                *slot = (narrow(*value, layout) as u16).to_le_bytes();
            }
        }
        DType::F8e4m3 | DType::F8e5m2 => {
            let Some(layout) = layout(dtype) else { return };
            for (value, slot) in values.iter().zip(bytes) {
                *slot = narrow(*value, layout) as u8;
            }
        }
        DType::I64 | DType::I32 | DType::I16 | DType::I8 | DType::U8 | DType::Bool => {
            let whole: Vec<i64> = values.iter().map(|value| round_whole(dtype, *value)).collect();
            encode_whole(dtype, &whole, bytes);
        }
    }
}

/// Writes integers as little-endian elements, saturating at the dtype's range.
pub fn encode_whole(dtype: DType, values: &[i64], bytes: &mut [u8]) {
    let (least, most) = whole_range(dtype);
    let width = dtype.bytes();
    for (value, slot) in values.iter().zip(bytes.chunks_exact_mut(width)) {
        slot.copy_from_slice(&value.clamp(&least, &most).to_le_bytes()[..width]);
    }
}

/// Writes a tensor's values.
pub fn encode(dtype: DType, values: &Values, bytes: &mut [u8]) {
    match values {
        Values::Real(values) => encode_reals(dtype, values, bytes),
        Values::Whole(values) if dtype.is_float() => {
            let reals: Vec<f64> = values.iter().map(|value| *value as f64).collect();
            encode_reals(dtype, &reals, bytes);
        }
        Values::Whole(values) => encode_whole(dtype, values, bytes),
    }
}

/// Reads float elements into `values`.
pub fn decode_reals(dtype: DType, bytes: &[u8], values: &mut [f64]) {
    debug_assert_eq!(bytes.len(), values.len() * dtype.bytes());
    match dtype {
        DType::F64 => {
            for (slot, value) in bytes.as_chunks::<8>().0.iter().zip(values) {
                *value = f64::from_le_bytes(*slot);
            }
        }
        DType::F32 => {
            for (slot, value) in bytes.as_chunks::<4>().0.iter().zip(values) {
                *value = f64::from(f32::from_le_bytes(*slot));
            }
        }
        DType::Bf16 => {
            for (slot, value) in bytes.as_chunks::<2>().0.iter().zip(values) {
                *value = f64::from(f32::from_bits(u32::from(u16::from_le_bytes(*slot)) << 16));
            }
        }
        DType::F16 => {
            let Some(layout) = layout(dtype) else { return };
            for (slot, value) in bytes.as_chunks::<2>().0.iter().zip(values) {
                *value = widen(u32::from(u16::from_le_bytes(*slot)), layout);
            }
        }
        DType::F8e4m3 | DType::F8e5m2 => {
            let Some(layout) = layout(dtype) else { return };
            let table: [f64; 256] = std::array::from_fn(|code| widen(code as u32, layout));
            for (slot, value) in bytes.iter().zip(values) {
                *value = table[usize::from(*slot)];
            }
        }
        DType::I64 | DType::I32 | DType::I16 | DType::I8 | DType::U8 | DType::Bool => {
            let width = dtype.bytes();
            for (slot, value) in bytes.chunks_exact(width).zip(values) {
                *value = whole(dtype, slot) as f64;
            }
        }
    }
}

/// Reads integer elements. A bool byte that is neither 0 nor 1 keeps its value, so that exact comparison sees it.
pub fn decode_whole(dtype: DType, bytes: &[u8], values: &mut [i64]) {
    let width = dtype.bytes();
    for (slot, value) in bytes.chunks_exact(width).zip(values) {
        *value = whole(dtype, slot);
    }
}

fn whole(dtype: DType, slot: &[u8]) -> i64 {
    let mut wide = [0u8; 8];
    wide[..slot.len()].copy_from_slice(slot);
    let raw = i64::from_le_bytes(wide);
    match dtype {
        DType::I32 => i64::from(raw as i32),
        DType::I16 => i64::from(raw as i16),
        DType::I8 => i64::from(raw as i8),
        DType::I64
        | DType::U8
        | DType::Bool
        | DType::F64
        | DType::F32
        | DType::F16
        | DType::Bf16
        | DType::F8e4m3
        | DType::F8e5m2 => raw,
    }
}

/// Reads a tensor's elements.
pub fn decode(dtype: DType, bytes: &[u8]) -> Values {
    let count = bytes.len() / dtype.bytes();
    if dtype.is_float() {
        let mut values = vec![0.0; count];
        decode_reals(dtype, bytes, &mut values);
        Values::Real(values)
    } else {
        let mut values = vec![0; count];
        decode_whole(dtype, bytes, &mut values);
        Values::Whole(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NARROW: [DType; 5] = [DType::F32, DType::F16, DType::Bf16, DType::F8e4m3, DType::F8e5m2];

    #[test]
    fn known_values_have_the_bits_of_the_standards() {
        let bits = |dtype: DType, value: f64| {
            let mut bytes = vec![0; dtype.bytes()];
            encode_reals(dtype, &[value], &mut bytes);
            bytes
        };
        assert_eq!(bits(DType::F16, 1.0), [0x00, 0x3c]);
        assert_eq!(bits(DType::F16, 65504.0), [0xff, 0x7b]);
        assert_eq!(bits(DType::F16, 65520.0), [0x00, 0x7c]);
        assert_eq!(bits(DType::F16, 5.960_464_477_539_063e-8), [0x01, 0x00]);
        assert_eq!(bits(DType::Bf16, -1.0), [0x80, 0xbf]);
        assert_eq!(bits(DType::F8e4m3, 448.0), [0x7e]);
        assert_eq!(bits(DType::F8e4m3, 464.0), [0x7e]);
        assert_eq!(bits(DType::F8e4m3, 465.0), [0x7f]);
        assert_eq!(bits(DType::F8e5m2, 57344.0), [0x7b]);
        assert_eq!(bits(DType::F8e5m2, f64::INFINITY), [0x7c]);
        assert_eq!(bits(DType::I8, 300.0), [127]);
        assert_eq!(largest(DType::F16), 65504.0);
        assert_eq!(overflow_edge(DType::F16), 65520.0);
    }

    #[test]
    fn every_code_of_the_small_formats_survives_a_round_trip() {
        for dtype in [DType::F16, DType::Bf16, DType::F8e4m3, DType::F8e5m2] {
            let codes = 1u32 << (8 * dtype.bytes());
            for code in 0..codes {
                let bytes = code.to_le_bytes();
                let bytes = &bytes[..dtype.bytes()];
                let mut value = [0.0];
                decode_reals(dtype, bytes, &mut value);
                if value[0].is_nan() {
                    continue;
                }
                let mut back = vec![0; dtype.bytes()];
                encode_reals(dtype, &value, &mut back);
                assert_eq!(back, bytes, "{dtype} code {code:#x} is {}", value[0]);
            }
        }
    }

    proptest! {
        #[test]
        fn rounding_is_monotonic_and_within_half_an_ulp(a in any::<f64>(), b in any::<f64>()) {
            prop_assume!(!a.is_nan() && !b.is_nan() && a <= b);
            for dtype in NARROW {
                let (low, high) = (round(dtype, a), round(dtype, b));
                prop_assert!(low.is_nan() || high.is_nan() || low <= high, "{dtype}: {a} {b}");
                let unit = dtype.unit_roundoff().unwrap_or(0.0);
                if a.abs() <= largest(dtype) && a.abs() >= smallest_normal(dtype) {
                    prop_assert!((low - a).abs() <= unit * a.abs());
                }
            }
        }

        #[test]
        fn the_integer_path_agrees_with_the_hardware_on_f32(value in any::<f64>()) {
            let layout = layout(DType::F32).unwrap();
            let ours = narrow(value, layout);
            if !value.is_nan() {
                prop_assert_eq!(ours, (value as f32).to_bits());
            }
        }
    }
}
