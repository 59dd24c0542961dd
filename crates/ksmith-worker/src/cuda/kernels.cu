// The judge's own device code: comparisons and counts, in float64, in the judge's own context.
//
// Compiled with --fmad=false, so that a bound is rounded as on the host. One result block is shared by all threads:
// elements outside the tolerance, elements that are not finite where they should be (or the other way round), the bits
// of the largest error over bound, and the complement of the first failing place.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

struct Result {
    u64 value;
    u64 non_finite;
    u64 ratio;
    u64 not_first;
};

struct Rule {
    double atol, rtol, ctol;
    double edge;   // beyond it rounding overflows
    double limit;  // magnitude of an overflowed element; NaN where it becomes one
};

__device__ double from_bits(u64 bits) { return __longlong_as_double((i64)bits); }

__device__ double widen(u32 code, int mantissa_bits, int exponent_bits, u32 max_code, bool has_infinity)
{
    u32 sign = 1u << (mantissa_bits + exponent_bits);
    u32 magnitude = code & (sign - 1u);
    double value;
    if (magnitude <= max_code) {
        u64 mantissa = magnitude & ((1u << mantissa_bits) - 1u);
        int exponent = (int)(magnitude >> mantissa_bits);
        int bias = (1 << (exponent_bits - 1)) - 1;
        if (exponent == 0)
            value = (double)mantissa * from_bits((u64)(1 - bias - mantissa_bits + 1023) << 52);
        else
            value = from_bits(((u64)(exponent - bias + 1023) << 52) | (mantissa << (52 - mantissa_bits)));
    } else if (has_infinity && magnitude == max_code + 1u) {
        value = from_bits(0x7ff0000000000000ull);
    } else {
        value = from_bits(0x7ff8000000000000ull);
    }
    return code & sign ? -value : value;
}

__device__ double real(int kind, const u8 *bytes, i64 i)
{
    switch (kind) {
    case 0: return ((const double *)bytes)[i];
    case 1: return widen(((const u32 *)bytes)[i], 23, 8, 0x7f7fffffu, true);
    case 2: return widen(((const u16 *)bytes)[i], 10, 5, 0x7bffu, true);
    case 3: return widen(((const u16 *)bytes)[i], 7, 8, 0x7f7fu, true);
    case 4: return widen(bytes[i], 3, 4, 0x7eu, false);
    default: return widen(bytes[i], 2, 5, 0x7bu, true);
    }
}

__device__ i64 whole(int kind, const u8 *bytes, i64 i)
{
    switch (kind) {
    case 0: return ((const i64 *)bytes)[i];
    case 1: return ((const int *)bytes)[i];
    case 2: return ((const short *)bytes)[i];
    case 3: return ((const signed char *)bytes)[i];
    default: return bytes[i];
    }
}

__device__ bool finite(double x) { return x - x == 0.0; }

// 0: right, 1: outside the tolerance, 2: finiteness differs.
__device__ int judge(const Rule &rule, double out, double want, double scale)
{
    if (want != want) return out != out ? 0 : 2;
    double size = fabs(want);
    double bound = rule.atol + rule.rtol * size + rule.ctol * scale;
    bool may_overflow = size + bound >= rule.edge || !finite(want);
    bool may_stay = finite(want) && size - bound <= rule.edge;
    if (may_overflow) {
        double limit = rule.limit != rule.limit ? rule.limit : copysign(rule.limit, want);
        if (out == limit || (limit != limit && out != out)) return 0;
    }
    if (!finite(out) || !may_stay) return 2;
    return fabs(out - want) <= bound ? 0 : 1;
}

__device__ void add(Result *result, u64 value, u64 non_finite, double ratio)
{
    for (int step = 16; step; step /= 2) {
        value += __shfl_xor_sync(~0u, value, step);
        non_finite += __shfl_xor_sync(~0u, non_finite, step);
        ratio = fmax(ratio, __shfl_xor_sync(~0u, ratio, step));
    }
    if (threadIdx.x % 32 == 0) {
        if (value) atomicAdd(&result->value, value);
        if (non_finite) atomicAdd(&result->non_finite, non_finite);
        if (ratio > 0.0) atomicMax(&result->ratio, (u64)__double_as_longlong(ratio));
    }
}

extern "C" __global__ void compare_real(const u8 *got, const double *want, const double *scale, i64 count, int kind,
                                        Rule rule, Result *result)
{
    u64 value = 0, non_finite = 0;
    double worst = 0.0;
    for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (i64)blockDim.x) {
        double out = real(kind, got, i), wanted = want[i], size = scale ? scale[i] : 0.0;
        int verdict = judge(rule, out, wanted, size);
        value += verdict == 1;
        non_finite += verdict == 2;
        if (verdict) atomicMax(&result->not_first, ~(u64)i);
        double ratio = fabs(out - wanted) / (rule.atol + rule.rtol * fabs(wanted) + rule.ctol * size);
        if (finite(ratio)) worst = fmax(worst, ratio);
    }
    add(result, value, non_finite, worst);
}

// `slack` below zero: `want` holds integers that must be met exactly; else float64 values to be met within it.
extern "C" __global__ void compare_whole(const u8 *got, const void *want, i64 count, int kind, double slack,
                                         double least, double most, Result *result)
{
    u64 value = 0;
    for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (i64)blockDim.x) {
        i64 out = whole(kind, got, i);
        bool wrong;
        if (slack < 0.0) {
            wrong = out != ((const i64 *)want)[i];
        } else {
            double wanted = ((const double *)want)[i];
            if (wanted == wanted) wanted = fmin(fmax(wanted, least), most);
            wrong = !(fabs((double)out - wanted) <= slack);
        }
        value += wrong;
        if (wrong) atomicMax(&result->not_first, ~(u64)i);
    }
    add(result, value, 0, 0.0);
}

// Bytes that differ from `filler`.
extern "C" __global__ void count_other(const u8 *bytes, i64 count, int filler, Result *result)
{
    u64 value = 0;
    for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (i64)blockDim.x)
        value += bytes[i] != (u8)filler;
    add(result, value, 0, 0.0);
}

// Reads all words; the sum is stored so that no read can be left out.
extern "C" __global__ void read_all(const uint4 *words, i64 count, Result *result)
{
    u32 sum = 0;
    for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (i64)blockDim.x) {
        uint4 word = words[i];
        sum ^= word.x ^ word.y ^ word.z ^ word.w;
    }
    if (sum == 0x9e3779b9u) result->value = sum;
}

// Copies 16 bytes at a time; each thread has `N` loads in flight before its first store.
template <int N> __device__ void copy(const uint4 *from, uint4 *to, i64 count)
{
    i64 first = blockIdx.x * (i64)blockDim.x * N + threadIdx.x;
    uint4 words[N];
    for (int n = 0; n < N; n++)
        if (first + n * (i64)blockDim.x < count) words[n] = from[first + n * (i64)blockDim.x];
    for (int n = 0; n < N; n++)
        if (first + n * (i64)blockDim.x < count) to[first + n * (i64)blockDim.x] = words[n];
}

extern "C" __global__ void copy_1(const uint4 *from, uint4 *to, i64 count) { copy<1>(from, to, count); }
extern "C" __global__ void copy_2(const uint4 *from, uint4 *to, i64 count) { copy<2>(from, to, count); }
extern "C" __global__ void copy_4(const uint4 *from, uint4 *to, i64 count) { copy<4>(from, to, count); }
extern "C" __global__ void copy_8(const uint4 *from, uint4 *to, i64 count) { copy<8>(from, to, count); }

extern "C" __global__ void nothing() {}
