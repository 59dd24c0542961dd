//! Bytes to `f64` and back, for every dtype; rounding is to nearest, ties to even.
//!
//! Narrow floats are rounded from `f64` in one step: going through `f32` would round twice.

use crate::DType;
use crate::contract::Overflow;

/// A binary float format narrower than `f64`.
#[derive(Clone, Copy)]
struct Format {
    /// Significand bits without the hidden one.
    fraction: u32,
    /// Exponent bias.
    bias: i32,
    /// Bits of the whole.
    bits: u32,
    /// Bit pattern of the largest finite value, without sign.
    largest: u32,
    /// Bit pattern of infinity, if there is one.
    infinity: Option<u32>,
    /// Bit pattern of a quiet NaN, without sign.
    nan: u32,
}

const F32: Format = Format {
    fraction: 23,
    bias: 127,
    bits: 32,
    largest: 0x7f7f_ffff,
    infinity: Some(0x7f80_0000),
    nan: 0x7fc0_0000,
};
const F16: Format = Format {
    fraction: 10,
    bias: 15,
    bits: 16,
    largest: 0x7bff,
    infinity: Some(0x7c00),
    nan: 0x7e00,
};
const BF16: Format = Format {
    fraction: 7,
    bias: 127,
    bits: 16,
    largest: 0x7f7f,
    infinity: Some(0x7f80),
    nan: 0x7fc0,
};
/// The "fn" variant: no infinities, the all-ones pattern is NaN.
const F8E4M3: Format = Format {
    fraction: 3,
    bias: 7,
    bits: 8,
    largest: 0x7e,
    infinity: None,
    nan: 0x7f,
};
const F8E5M2: Format = Format {
    fraction: 2,
    bias: 15,
    bits: 8,
    largest: 0x7b,
    infinity: Some(0x7c),
    nan: 0x7e,
};

impl Format {
    /// Rounds to nearest, ties to even; `overflow` says what becomes of values beyond the range.
    fn encode(self, value: f64, overflow: Overflow) -> u32 {
        let sign = u32::from(value.is_sign_negative()) << (self.bits - 1);
        if value.is_nan() {
            return sign | self.nan;
        }
        if value.is_infinite() {
            return sign | self.overflowed(overflow);
        }
        let bits = value.to_bits() & (u64::MAX >> 1);
        if bits == 0 {
            return sign;
        }
        let exponent = (bits >> 52) as i32 - 1023;
        // f64 subnormals lie far below half of the least value of every format here.
        if exponent < 1 - self.bias - self.fraction as i32 - 1 {
            return sign;
        }
        let significand = (bits & ((1 << 52) - 1)) | (1 << 52);
        let least = 1 - self.bias;
        let below = (least - exponent).max(0) as u32;
        let shift = 52 - self.fraction + below;
        let kept = significand >> shift;
        let rest = significand & ((1u64 << shift) - 1);
        let half = 1u64 << (shift - 1);
        let up = rest > half || (rest == half && kept & 1 == 1);
        let rounded = kept + u64::from(up);
        // A carry out of the fraction moves into the exponent by itself.
        let biased = if below > 0 {
            0
        } else {
            (exponent + self.bias - 1) as u64
        };
        let magnitude = (biased << self.fraction) + rounded;
        if magnitude > u64::from(self.largest) {
            sign | self.overflowed(overflow)
        } else {
            sign | magnitude as u32
        }
    }

    fn overflowed(self, overflow: Overflow) -> u32 {
        match overflow {
            Overflow::Inf => self.infinity.unwrap_or(self.nan),
            Overflow::Saturate => self.largest,
            Overflow::Nan => self.nan,
        }
    }

    fn decode(self, bits: u32) -> f64 {
        let magnitude = bits & (u32::MAX >> (33 - self.bits));
        let negative = bits >> (self.bits - 1) & 1 == 1;
        let value = if magnitude > self.infinity.unwrap_or(self.largest) {
            f64::NAN
        } else if Some(magnitude) == self.infinity {
            f64::INFINITY
        } else {
            let exponent = (magnitude >> self.fraction) as i32;
            let fraction = f64::from(magnitude & ((1 << self.fraction) - 1));
            let scale = |power: i32| f64::from_bits(((power + 1023) as u64) << 52);
            let unit = scale(1 - self.bias - self.fraction as i32);
            if exponent == 0 {
                fraction * unit
            } else {
                (fraction + f64::from(1u32 << self.fraction)) * unit * scale(exponent - 1)
            }
        };
        if negative { -value } else { value }
    }
}

impl DType {
    fn format(self) -> Option<Format> {
        match self {
            Self::F32 => Some(F32),
            Self::F16 => Some(F16),
            Self::Bf16 => Some(BF16),
            Self::F8e4m3 => Some(F8E4M3),
            Self::F8e5m2 => Some(F8E5M2),
            Self::F64 | Self::I64 | Self::I32 | Self::I16 | Self::I8 | Self::U8 | Self::Bool => None,
        }
    }

    /// The value nearest to `value` that the dtype holds. Integers round to even and saturate; NaN becomes 0.
    pub fn round(self, value: f64, overflow: Overflow) -> f64 {
        match self {
            Self::F64 => value,
            Self::F32 if overflow == Overflow::Inf => f64::from(value as f32),
            Self::F32 | Self::F16 | Self::Bf16 | Self::F8e4m3 | Self::F8e5m2 => self
                .format()
                .map_or(value, |format| format.decode(format.encode(value, overflow))),
            Self::I64 => value.round_ties_even() as i64 as f64,
            Self::I32 => f64::from(value.round_ties_even() as i32),
            Self::I16 => f64::from(value.round_ties_even() as i16),
            Self::I8 => f64::from(value.round_ties_even() as i8),
            Self::U8 => f64::from(value.round_ties_even() as u8),
            Self::Bool => f64::from(u8::from(value != 0.0 && !value.is_nan())),
        }
    }

    /// The largest finite value; for integers the largest value.
    pub fn largest(self) -> f64 {
        match self {
            Self::F64 => f64::MAX,
            Self::I64 => i64::MAX as f64,
            Self::I32 => f64::from(i32::MAX),
            Self::I16 => f64::from(i16::MAX),
            Self::I8 => f64::from(i8::MAX),
            Self::U8 => f64::from(u8::MAX),
            Self::Bool => 1.0,
            Self::F32 | Self::F16 | Self::Bf16 | Self::F8e4m3 | Self::F8e5m2 => self
                .format()
                .map_or(f64::MAX, |format| format.decode(format.largest)),
        }
    }

    /// The smallest positive normal value; 1 for integers.
    pub fn smallest_normal(self) -> f64 {
        match self.format() {
            Some(format) => format.decode(1 << format.fraction),
            None if self == Self::F64 => f64::MIN_POSITIVE,
            None => 1.0,
        }
    }

    /// Decodes as many whole elements as both slices hold; returns how many. `i64` beyond 2^53 loses low bits: use
    /// [`DType::decode_int`] for integers.
    pub fn decode(self, bytes: &[u8], out: &mut [f64]) -> usize {
        match self {
            Self::F64 => each(bytes, out, f64::from_le_bytes),
            Self::F32 => each(bytes, out, |b| f64::from(f32::from_le_bytes(b))),
            Self::F16 => each(bytes, out, |b| f64::from(half::f16::from_le_bytes(b))),
            Self::Bf16 => each(bytes, out, |b| {
                f64::from(f32::from_bits(u32::from(u16::from_le_bytes(b)) << 16))
            }),
            Self::F8e4m3 => table(bytes, out, F8E4M3),
            Self::F8e5m2 => table(bytes, out, F8E5M2),
            Self::I64 => each(bytes, out, |b| i64::from_le_bytes(b) as f64),
            Self::I32 => each(bytes, out, |b| f64::from(i32::from_le_bytes(b))),
            Self::I16 => each(bytes, out, |b| f64::from(i16::from_le_bytes(b))),
            Self::I8 => each(bytes, out, |b| f64::from(i8::from_le_bytes(b))),
            Self::U8 | Self::Bool => each(bytes, out, |b: [u8; 1]| f64::from(b[0])),
        }
    }

    /// Encodes as many values as both slices hold, rounding as [`DType::round`] does; returns how many.
    pub fn encode(self, values: &[f64], bytes: &mut [u8], overflow: Overflow) -> usize {
        match self {
            Self::F64 => put(values, bytes, f64::to_le_bytes),
            Self::F32 if overflow == Overflow::Inf => put(values, bytes, |v| (v as f32).to_le_bytes()),
            Self::F32 => put(values, bytes, |v| F32.encode(v, overflow).to_le_bytes()),
            Self::F16 => put(values, bytes, |v| (F16.encode(v, overflow) as u16).to_le_bytes()),
            Self::Bf16 => put(values, bytes, |v| (BF16.encode(v, overflow) as u16).to_le_bytes()),
            Self::F8e4m3 => put(values, bytes, |v| [F8E4M3.encode(v, overflow) as u8]),
            Self::F8e5m2 => put(values, bytes, |v| [F8E5M2.encode(v, overflow) as u8]),
            Self::I64 => put(values, bytes, |v| (v.round_ties_even() as i64).to_le_bytes()),
            Self::I32 => put(values, bytes, |v| (v.round_ties_even() as i32).to_le_bytes()),
            Self::I16 => put(values, bytes, |v| (v.round_ties_even() as i16).to_le_bytes()),
            Self::I8 => put(values, bytes, |v| (v.round_ties_even() as i8).to_le_bytes()),
            Self::U8 => put(values, bytes, |v| [v.round_ties_even() as u8]),
            Self::Bool => put(values, bytes, |v| [u8::from(v != 0.0 && !v.is_nan())]),
        }
    }

    /// Decodes integers and bools without loss; `None` for floats.
    pub fn decode_int(self, bytes: &[u8], out: &mut [i64]) -> Option<usize> {
        Some(match self {
            Self::I64 => each(bytes, out, i64::from_le_bytes),
            Self::I32 => each(bytes, out, |b| i64::from(i32::from_le_bytes(b))),
            Self::I16 => each(bytes, out, |b| i64::from(i16::from_le_bytes(b))),
            Self::I8 => each(bytes, out, |b| i64::from(i8::from_le_bytes(b))),
            Self::U8 | Self::Bool => each(bytes, out, |b: [u8; 1]| i64::from(b[0])),
            Self::F64 | Self::F32 | Self::F16 | Self::Bf16 | Self::F8e4m3 | Self::F8e5m2 => return None,
        })
    }
}

fn each<const N: usize, T>(bytes: &[u8], out: &mut [T], decode: impl Fn([u8; N]) -> T) -> usize {
    let (chunks, _) = bytes.as_chunks::<N>();
    let count = chunks.len().min(out.len());
    for (slot, chunk) in out.iter_mut().zip(chunks) {
        *slot = decode(*chunk);
    }
    count
}

fn put<const N: usize>(values: &[f64], bytes: &mut [u8], encode: impl Fn(f64) -> [u8; N]) -> usize {
    let (chunks, _) = bytes.as_chunks_mut::<N>();
    let count = chunks.len().min(values.len());
    for (chunk, value) in chunks.iter_mut().zip(values) {
        *chunk = encode(*value);
    }
    count
}

fn table(bytes: &[u8], out: &mut [f64], format: Format) -> usize {
    let mut values = [0.0; 256];
    for (bits, value) in (0u32..).zip(values.iter_mut()) {
        *value = format.decode(bits);
    }
    each(bytes, out, |[byte]: [u8; 1]| values[usize::from(byte)])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NARROW: [DType; 4] = [DType::F16, DType::Bf16, DType::F8e4m3, DType::F8e5m2];

    fn decode_one(dtype: DType, bits: u32) -> f64 {
        let mut out = [0.0];
        assert_eq!(dtype.decode(&bits.to_le_bytes()[..dtype.bytes()], &mut out), 1);
        out[0]
    }

    fn encode_one(dtype: DType, value: f64, overflow: Overflow) -> u32 {
        let mut bytes = [0; 4];
        assert_eq!(dtype.encode(&[value], &mut bytes[..dtype.bytes()], overflow), 1);
        u32::from_le_bytes(bytes)
    }

    fn patterns(dtype: DType) -> std::ops::Range<u32> {
        0..1 << (8 * dtype.bytes())
    }

    #[test]
    fn every_pattern_of_narrow_floats_survives_decode_and_encode() {
        for dtype in NARROW {
            for bits in patterns(dtype) {
                let value = decode_one(dtype, bits);
                if value.is_nan() {
                    assert!(decode_one(dtype, encode_one(dtype, value, Overflow::Inf)).is_nan());
                } else {
                    assert_eq!(encode_one(dtype, value, Overflow::Inf), bits, "{dtype} {value}");
                }
            }
        }
    }

    #[test]
    fn midpoints_of_neighbours_round_to_the_even_pattern() {
        for dtype in NARROW {
            let half = patterns(dtype).end / 2;
            for bits in 0..half - 1 {
                let (low, high) = (decode_one(dtype, bits), decode_one(dtype, bits + 1));
                if !low.is_finite() || !high.is_finite() {
                    continue;
                }
                let middle = f64::midpoint(low, high);
                let even = if bits % 2 == 0 { bits } else { bits + 1 };
                assert_eq!(
                    encode_one(dtype, middle, Overflow::Inf),
                    even,
                    "{dtype} {bits:#x}"
                );
                assert_eq!(encode_one(dtype, middle.next_down(), Overflow::Inf), bits);
                assert_eq!(encode_one(dtype, middle.next_up(), Overflow::Inf), bits + 1);
            }
        }
    }

    #[test]
    fn known_constants_of_the_formats() {
        assert_eq!(DType::F16.largest(), 65504.0);
        assert_eq!(DType::F8e4m3.largest(), 448.0);
        assert_eq!(DType::F8e5m2.largest(), 57344.0);
        assert_eq!(DType::F8e4m3.smallest_normal(), 2f64.powi(-6));
        assert_eq!(DType::F16.smallest_normal(), 2f64.powi(-14));
        assert_eq!(DType::Bf16.smallest_normal(), f64::from(f32::MIN_POSITIVE));
        assert_eq!(encode_one(DType::F8e4m3, 1e9, Overflow::Saturate), 0x7e);
        assert_eq!(encode_one(DType::F8e4m3, 1e9, Overflow::Inf), 0x7f);
        assert_eq!(encode_one(DType::F8e4m3, 464.0, Overflow::Saturate), 0x7e);
        assert_eq!(encode_one(DType::F8e5m2, -1e9, Overflow::Inf), 0xfc);
        assert_eq!(encode_one(DType::F16, 65520.0, Overflow::Inf), 0x7c00);
        assert_eq!(encode_one(DType::F16, 65519.9, Overflow::Inf), 0x7bff);
    }

    #[test]
    fn integers_round_to_even_and_saturate() {
        assert_eq!(DType::I8.round(2.5, Overflow::Inf), 2.0);
        assert_eq!(DType::I8.round(1e9, Overflow::Inf), 127.0);
        assert_eq!(DType::U8.round(-3.0, Overflow::Inf), 0.0);
        assert_eq!(DType::Bool.round(-3.0, Overflow::Inf), 1.0);
        let mut out = [0i64];
        assert_eq!(DType::I64.decode_int(&i64::MIN.to_le_bytes(), &mut out), Some(1));
        assert_eq!(
            (out[0], DType::F32.decode_int(&[0; 4], &mut out)),
            (i64::MIN, None)
        );
    }

    proptest! {
        #[test]
        fn f32_and_half_agree_with_independent_implementations(bits: u64) {
            let value = f64::from_bits(bits);
            prop_assume!(!value.is_nan());
            prop_assert_eq!(F32.encode(value, Overflow::Inf), (value as f32).to_bits());
            let single = value as f32;
            prop_assert_eq!(F16.encode(f64::from(single), Overflow::Inf) as u16, half::f16::from_f32(single).to_bits());
            prop_assert_eq!(BF16.encode(f64::from(single), Overflow::Inf) as u16, half::bf16::from_f32(single).to_bits());
        }

        #[test]
        fn rounding_is_monotone(a in -1e6f64..1e6, b in -1e6f64..1e6) {
            let (low, high) = if a <= b { (a, b) } else { (b, a) };
            for dtype in NARROW {
                prop_assert!(dtype.round(low, Overflow::Saturate) <= dtype.round(high, Overflow::Saturate));
            }
        }

        #[test]
        fn the_error_is_at_most_the_unit_roundoff(value in 0.1f64..400.0) {
            for dtype in NARROW {
                let error = (dtype.round(value, Overflow::Saturate) - value).abs();
                prop_assert!(error <= dtype.unit_roundoff().unwrap() * value);
            }
        }

        #[test]
        fn odd_lengths_convert_whole_elements_only(bytes in proptest::collection::vec(any::<u8>(), 0..40), room in 0usize..20) {
            for dtype in DType::ALL {
                let mut out = vec![0.0; room];
                prop_assert_eq!(dtype.decode(&bytes, &mut out), room.min(bytes.len() / dtype.bytes()));
            }
        }
    }
}
