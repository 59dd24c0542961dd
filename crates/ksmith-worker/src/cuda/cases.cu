// Cases made where candidates run: inputs drawn by the laws of `ksmith-judge`, `cases/draw.rs`, bit for bit, and the wide
// copies that a float64 reference reads.
//
// Only IEEE operations and the logarithm and exponential of FreeBSD's msun in the form of crate `libm`, so that a draw
// here equals a draw there. Random bits are those of ChaCha with 12 rounds: one key for each tensor, one stream for each
// 4096 elements. Compiled with --fmad=false, behind kernels.cu.

struct Seed {
    u32 words[8];
};

// Numbers of a law, named there.
struct Law {
    double a, b;
    i64 low;
    u64 count;
    int kind;   // see the switch in `drawn`
    int words;  // random words of one element
};

// An element type: of a float its layout, of an integer its range.
struct Type {
    double largest, least, most;  // largest finite float; range of an integer
    double low, high;             // ends of the domain, infinite where it has none
    int low_included, high_included;
    int mantissa_bits, exponent_bits;
    int kind;   // as `real` has it, or 8 + as `whole` has it
    int bytes;  // size of one element
};

__device__ u32 rotate(u32 x, int by) { return __funnelshift_l(x, x, by); }

__device__ void quarter(u32 *s, int a, int b, int c, int d)
{
    s[a] += s[b]; s[d] = rotate(s[d] ^ s[a], 16);
    s[c] += s[d]; s[b] = rotate(s[b] ^ s[c], 12);
    s[a] += s[b]; s[d] = rotate(s[d] ^ s[a], 8);
    s[c] += s[d]; s[b] = rotate(s[b] ^ s[c], 7);
}

// One block of the stream: eight words of 64 bits.
__device__ void random_words(const Seed &seed, u64 stream, u64 counter, u64 *words)
{
    u32 first[16] = {0x61707865u, 0x3320646eu, 0x79622d32u, 0x6b206574u};
    for (int i = 0; i < 8; i++) first[4 + i] = seed.words[i];
    first[12] = (u32)counter;
    first[13] = (u32)(counter >> 32);
    first[14] = (u32)stream;
    first[15] = (u32)(stream >> 32);
    u32 s[16];
    for (int i = 0; i < 16; i++) s[i] = first[i];
    for (int round = 0; round < 6; round++) {
        quarter(s, 0, 4, 8, 12); quarter(s, 1, 5, 9, 13); quarter(s, 2, 6, 10, 14); quarter(s, 3, 7, 11, 15);
        quarter(s, 0, 5, 10, 15); quarter(s, 1, 6, 11, 12); quarter(s, 2, 7, 8, 13); quarter(s, 3, 4, 9, 14);
    }
    for (int i = 0; i < 8; i++)
        words[i] = (u64)(s[2 * i] + first[2 * i]) | (u64)(s[2 * i + 1] + first[2 * i + 1]) << 32;
}

__device__ double unit(u64 bits) { return ((double)(bits >> 12) + 0.5) * 2.220446049250313e-16; }

// Natural logarithm of a positive normal number below 1.
__device__ double log_of(double x)
{
    u64 bits = (u64)__double_as_longlong(x);
    u32 high = (u32)(bits >> 32) + (0x3ff00000u - 0x3fe6a09eu);
    int k = (int)(high >> 20) - 0x3ff;
    high = (high & 0x000fffffu) + 0x3fe6a09eu;
    x = from_bits((u64)high << 32 | (bits & 0xffffffffull));
    double f = x - 1.0, half = 0.5 * f * f, s = f / (2.0 + f), z = s * s, w = z * z;
    double even = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
    double odd = z * (6.666666666666735130e-01
                      + w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
    double r = odd + even, scale = (double)k;
    return s * (half + r) + scale * 1.90821492927058770002e-10 - half + f + scale * 6.93147180369123816490e-01;
}

// e^x for |x| < 700.
__device__ double exp_of(double x)
{
    u32 high = (u32)((u64)__double_as_longlong(x) >> 32);
    int negative = (int)(high >> 31);
    high &= 0x7fffffffu;
    double above, below;
    int k = 0;
    if (high > 0x3fd62e42u) {
        if (high >= 0x3ff0a2b2u) k = (int)(1.44269504088896338700e+00 * x + (negative ? -0.5 : 0.5));
        else k = 1 - negative - negative;
        above = x - (double)k * 6.93147180369123816490e-01;
        below = (double)k * 1.90821492927058770002e-10;
        x = above - below;
    } else if (high > 0x3e300000u) {
        above = x;
        below = 0.0;
    } else {
        return 1.0 + x;
    }
    double z = x * x;
    double c = x - z * (1.66666666666666019037e-01
                        + z * (-2.77777777770155933842e-03
                               + z * (6.61375632143793436117e-05
                                      + z * (-1.65339022054652515390e-06 + z * 4.13813679705723846039e-08))));
    double y = 1.0 + (x * c / (2.0 - c) - below + above);
    return k == 0 ? y : y * from_bits((u64)(k + 1023) << 52);
}

__device__ double horner(const double *coefficients, double x)
{
    double sum = 0.0;
    for (int i = 7; i >= 0; i--) sum = sum * x + coefficients[i];
    return sum;
}

__constant__ double CENTRAL_P[8] = {3.3871328727963665,      1.3314166789178438e2,  1.9715909503065513e3,
                                    1.373169376550946e4,     4.592195393154987e4,   6.726577092700870e4,
                                    3.343057558358813e4,     2.5090809287301227e3};
__constant__ double CENTRAL_Q[8] = {1.0,                     4.231333070160091e1,   6.871870074920579e2,
                                    5.394196021424751e3,     2.1213794301586597e4,  3.930789580009271e4,
                                    2.8729085735721943e4,    5.226495278852854e3};
__constant__ double MIDDLE_P[8] = {1.4234371107496835,       4.630337846156546,     5.769497221460691,
                                   3.6478483247632045,       1.2704582524523684,    2.417807251774506e-1,
                                   2.2723844989269184e-2,    7.745450142783414e-4};
__constant__ double MIDDLE_Q[8] = {1.0,                      2.053191626637759,     1.6763848301838038,
                                   6.897673349851e-1,        1.4810397642748008e-1, 1.5198666563616457e-2,
                                   5.475938084995345e-4,     1.0507500716444169e-9};
__constant__ double FAR_P[8] = {6.657904643501103,           5.463784911164114,     1.7848265399172913,
                                2.9656057182850487e-1,       2.6532189526576124e-2, 1.2426609473880784e-3,
                                2.7115555687434876e-5,       2.0103343992922881e-7};
__constant__ double FAR_Q[8] = {1.0,                         5.99832206555888e-1,   1.369298809227358e-1,
                                1.4875361290850615e-2,       7.868691311456133e-4,  1.8463183175100548e-5,
                                1.421511758316446e-7,        2.0442631033899398e-15};

// The quantile of the standard normal distribution, algorithm AS 241.
__device__ double normal(double p)
{
    double q = p - 0.5;
    if (fabs(q) <= 0.425) {
        double r = 0.180625 - q * q;
        return q * horner(CENTRAL_P, r) / horner(CENTRAL_Q, r);
    }
    double r = sqrt(-log_of(q < 0.0 ? p : 1.0 - p));
    double magnitude = r <= 5.0 ? horner(MIDDLE_P, r - 1.6) / horner(MIDDLE_Q, r - 1.6)
                                : horner(FAR_P, r - 5.0) / horner(FAR_Q, r - 5.0);
    return q < 0.0 ? -magnitude : magnitude;
}

__device__ double drawn(const Law &law, const u64 *words)
{
    switch (law.kind) {
    case 0: return law.a + law.b * normal(unit(words[0]));
    case 1: return law.a + law.b * unit(words[0]);
    case 2: return exp_of(law.a + law.b * unit(words[0]));
    case 3: {
        double magnitude = exp_of(law.a + law.b * unit(words[0]));
        return words[0] & 1 ? -magnitude : magnitude;
    }
    case 4: return law.a;
    case 5: return unit(words[0]) < law.a ? law.b : normal(unit(words[1]));
    case 6: return (double)(law.low + (i64)__umul64hi(words[0], law.count));
    default: return unit(words[0]) < law.a ? 1.0 : 0.0;
    }
}

// Bits of a finite value within the type's range, rounded to nearest, ties to even.
__device__ u32 narrow(double value, const Type &type)
{
    u64 bits = (u64)__double_as_longlong(value);
    u32 sign = (u32)(bits >> 63) << (type.mantissa_bits + type.exponent_bits);
    bits &= ~0ull >> 1;
    int exponent = (int)(bits >> 52) - 1023;
    if (exponent < -1022) return sign;
    u64 significand = (bits & ((1ull << 52) - 1)) | 1ull << 52;
    int least = 2 - (1 << (type.exponent_bits - 1)), shift = 52 - type.mantissa_bits;
    u32 base = 0;
    if (exponent >= least) base = (u32)(exponent - least) << type.mantissa_bits;
    else shift += least - exponent;
    if (shift > 54) return sign;
    u32 kept = (u32)(significand >> shift);
    u64 rest = significand & ((1ull << shift) - 1), half = 1ull << (shift - 1);
    return sign | (base + kept + (rest > half || (rest == half && (kept & 1u))));
}

__device__ bool inside(double value, const Type &type)
{
    bool above = value > type.low || (type.low_included && value >= type.low);
    bool below = value < type.high || (type.high_included && value <= type.high);
    return above && below;
}

// Writes an element; the rounded value is returned.
__device__ double store(u8 *bytes, i64 i, double value, const Type &type)
{
    if (type.kind >= 8) {
        double whole = fmin(fmax(rint(value), type.least), type.most);
        i64 number = __double2ll_rn(whole);
        switch (type.bytes) {
        case 8: ((i64 *)bytes)[i] = number; break;
        case 4: ((int *)bytes)[i] = (int)number; break;
        case 2: ((short *)bytes)[i] = (short)number; break;
        default: bytes[i] = (u8)number;
        }
        return whole;
    }
    value = fmin(fmax(value, -type.largest), type.largest);
    if (type.kind == 0) {
        ((double *)bytes)[i] = value;
        return value;
    }
    u32 code = narrow(value, type);
    switch (type.bytes) {
    case 4: ((u32 *)bytes)[i] = code; break;
    case 2: ((u16 *)bytes)[i] = (u16)code; break;
    default: bytes[i] = (u8)code;
    }
    return real(type.kind, bytes, i);
}

// Draws `count` elements. The result counts those outside the domain, which the host folds back in its own way, and
// values that are not finite. With `rows` only those of the rows of length `row` whose byte there is `which`.
extern "C" __global__ void draw(u8 *out, i64 count, Type type, Law law, Seed seed, const u8 *rows, i64 row, int which,
                                Result *result)
{
    i64 in_block = 8 / law.words, blocks = (count + in_block - 1) / in_block;
    u64 outside = 0;
    for (i64 t = blockIdx.x * (i64)blockDim.x + threadIdx.x; t < blocks; t += gridDim.x * (i64)blockDim.x) {
        i64 first = t * in_block;
        u64 words[8];
        random_words(seed, (u64)(first / 4096), (u64)(first % 4096 / in_block), words);
        for (int i = 0; i < in_block; i++) {
            if (first + i >= count) break;
            if (rows && rows[(first + i) / row] != which) continue;
            double value = drawn(law, words + i * law.words);
            outside += !finite(value) || !inside(store(out, first + i, value, type), type);
        }
    }
    add(result, outside, 0, 0.0);
}

// Elements of a float tensor in float64.
extern "C" __global__ void widen_real(const u8 *from, i64 count, int kind, double *to)
{
    for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (i64)blockDim.x)
        to[i] = real(kind, from, i);
}

// Elements of an integer tensor in 64 bits.
extern "C" __global__ void widen_whole(const u8 *from, i64 count, int kind, i64 *to)
{
    for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (i64)blockDim.x)
        to[i] = whole(kind, from, i);
}

// Magnitudes in place.
extern "C" __global__ void magnitudes(double *values, i64 count)
{
    for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (i64)blockDim.x)
        values[i] = fabs(values[i]);
}
