//! Kernels of one operator: cheats with the codes that must end them, and honest ones.

pub(crate) const HEAD: &str = "extern \"C\" __global__ void scale_add(const float *x, const float *y, float *z, float a, long long n)\n";
pub(crate) const INDEX: &str = "long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;";
const PLAN: &str =
    "grid = [\"ceil_div(n, 256)\"]\n  block = [256]\n  args = [\"x\", \"y\", \"z\", \"a\", \"n\"]\n";

/// The code of a candidate whose manifest is refused before anything runs; the words are the message's.
pub(crate) const REFUSED: &str = "refused";

/// What is judged, and how it must end.
pub(crate) struct Check {
    pub(crate) name: &'static str,
    /// What stands before the kernel.
    pub(crate) before: &'static str,
    pub(crate) body: &'static str,
    pub(crate) plan: &'static str,
    /// Codes of which one must be given.
    pub(crate) codes: &'static [&'static str],
    /// Words that the evidence must hold.
    pub(crate) words: &'static [&'static str],
}

pub(crate) const HONEST: Check = Check {
    name: "honest",
    before: "",
    body: "if (i < n) z[i] = a * x[i] + y[i];",
    plan: PLAN,
    codes: &["gain/not-measured"],
    words: &[],
};

pub(crate) const CHECKS: &[Check] = &[
    Check {
        name: "a wrong formula",
        body: "if (i < n) z[i] = a * x[i] - y[i];",
        codes: &["smoke/wrong-value"],
        words: &["\"output\":\"z\""],
        ..HONEST
    },
    Check {
        name: "the last element is left out",
        body: "if (i < n - 1) z[i] = a * x[i] + y[i];",
        codes: &["smoke/unwritten"],
        ..HONEST
    },
    Check {
        name: "a write to an input",
        body: "if (i < n) { z[i] = a * x[i] + y[i]; ((float *)y)[i] = 0.0f; }",
        codes: &["smoke/input-write"],
        words: &["\"buffer\":\"y\""],
        ..HONEST
    },
    Check {
        name: "a write behind the output",
        body: "if (i < n) z[i] = a * x[i] + y[i]; if (i == 0) z[n + 64] = 1.0f;",
        codes: &["smoke/crash", "smoke/canary"],
        words: &["\"buffer\":\"z\"", "\"side\":\"after\""],
        ..HONEST
    },
    Check {
        name: "a read behind an input",
        body: "if (i < n) z[i] = a * x[i] + y[i] + 0.0f * (x[n + 64] == 1.0f);",
        codes: &["smoke/crash"],
        words: &["\"buffer\":\"x\"", "\"side\":\"after\"", "\"access\":\"read\""],
        ..HONEST
    },
    Check {
        name: "accumulation into what the output held",
        body: "if (i < n) z[i] = z[i] + a * x[i] + y[i];",
        codes: &["smoke/non-finite", "smoke/unwritten"],
        ..HONEST
    },
    Check {
        name: "an answer remembered by address",
        before: "__device__ float memo[1 << 20]; __device__ const void *seen[1 << 20];",
        body: "if (i < n) { if (seen[i] != x) { memo[i] = a * x[i] + y[i]; seen[i] = x; } z[i] = memo[i]; }",
        codes: &[
            "smoke/wrong-value",
            "dev/wrong-value",
            "hidden/wrong-value",
            "probes/wrong-value",
            "depends/stale",
            "depends/wrong-value",
        ],
        ..HONEST
    },
    Check {
        name: "every third call is skipped after some",
        before: "__device__ unsigned calls[1 << 20];",
        body: "if (i < n) { unsigned c = calls[i]++; if (c < 9 || c % 3) z[i] = a * x[i] + y[i]; }",
        codes: &[
            "hidden/unwritten",
            "probes/unwritten",
            "repeat/unwritten",
            "depends/unwritten",
            "hidden/non-finite",
            "probes/non-finite",
            "repeat/non-finite",
            "depends/non-finite",
        ],
        ..HONEST
    },
    Check {
        name: "half precision inside",
        before: "__device__ float coarse(float v) { return __uint_as_float(__float_as_uint(v) & 0xfffff000u); }",
        body: "if (i < n) z[i] = coarse(a * x[i]) + y[i];",
        codes: &["smoke/wrong-value", "precision/too-coarse"],
        ..HONEST
    },
    Check {
        name: "a loop without end",
        body: "volatile float v = 1.0f; while (v == v) v += a; if (i < n) z[i] = v;",
        codes: &["smoke/timeout"],
        ..HONEST
    },
    Check {
        name: "device printf",
        body: "if (i < n) z[i] = a * x[i] + y[i]; if (i == 1 << 30) printf(\"%d\", 1);",
        codes: &["static/forbidden-import"],
        ..HONEST
    },
    Check {
        name: "an empty grid",
        plan: "grid = [\"n - n\"]\n  block = [256]\n  args = [\"x\", \"y\", \"z\", \"a\", \"n\"]\n",
        codes: &["smoke/plan"],
        words: &["it must be from 1"],
        ..HONEST
    },
    Check {
        name: "an argument of the wrong size",
        plan: "grid = [\"ceil_div(n, 256)\"]\n  block = [256]\n  args = [\"x\", \"y\", \"z\", \"a\", { i32 = \"n\" }]\n",
        codes: &["smoke/plan"],
        words: &["4 bytes"],
        ..HONEST
    },
    Check {
        name: "a syntax error",
        body: "oops",
        codes: &["compile/error"],
        ..HONEST
    },
    Check {
        name: "every 997th element is left out",
        body: "if (i < n && i % 997 != 5) z[i] = a * x[i] + y[i];",
        codes: &["smoke/unwritten"],
        ..HONEST
    },
    Check {
        name: "half as many blocks as elements need",
        plan: "grid = [\"ceil_div(n, 512)\"]\n  block = [256]\n  args = [\"x\", \"y\", \"z\", \"a\", \"n\"]\n",
        codes: &["smoke/unwritten"],
        ..HONEST
    },
    Check {
        name: "an answer remembered by one input's content",
        before: "__device__ float memo[1 << 20]; __device__ float seen[1 << 20];",
        body: "if (i < n) { if (seen[i] != x[i]) { memo[i] = a * x[i] + y[i]; seen[i] = x[i]; } z[i] = memo[i]; }",
        codes: &[
            "smoke/wrong-value",
            "dev/wrong-value",
            "hidden/wrong-value",
            "probes/wrong-value",
            "depends/stale",
            "depends/wrong-value",
        ],
        ..HONEST
    },
    Check {
        name: "an answer remembered by the first element",
        before: "__device__ float memo[1 << 20]; __device__ float seen[1 << 20];",
        body: "if (i < n) { if (seen[i] != x[0] + y[0]) { memo[i] = a * x[i] + y[i]; seen[i] = x[0] + y[0]; } z[i] = memo[i]; }",
        codes: &[
            "smoke/wrong-value",
            "dev/wrong-value",
            "hidden/wrong-value",
            "probes/wrong-value",
            "depends/stale",
            "depends/wrong-value",
        ],
        ..HONEST
    },
    Check {
        name: "the last call's output at its remembered address",
        before: "__device__ const float *last; __device__ long long most;",
        body: "if (i < n) { const float *old = last; z[i] = old && i < most ? old[i] : a * x[i] + y[i]; } if (i == 0) { most = n; last = z; }",
        codes: &[
            "smoke/wrong-value",
            "smoke/crash",
            "smoke/unwritten",
            "smoke/non-finite",
            "dev/wrong-value",
            "dev/crash",
            "hidden/wrong-value",
            "hidden/crash",
        ],
        ..HONEST
    },
    Check {
        name: "a scan of memory behind the output",
        body: "if (i < n) z[i] = a * x[i] + y[i]; \
               const float *page = (const float *)(((unsigned long long)(z + n - 1) | 0x1fffffull) + 1); \
               if (i == 0 && *page == z[0]) z[0] = page[1];",
        codes: &["smoke/crash"],
        ..HONEST
    },
    Check {
        name: "an input changed and put back",
        body: "if (i < n) { float old = x[i]; ((volatile float *)x)[i] = 0.0f; z[i] = a * old + y[i]; ((volatile float *)x)[i] = old; }",
        // A fault, as inputs are mapped for reading only; where they are not, nothing is left that names the buffer.
        codes: &["smoke/crash"],
        words: &["ILLEGAL_ADDRESS"],
        ..HONEST
    },
    Check {
        name: "a race between warps",
        body: "__shared__ float part[256]; part[threadIdx.x ^ 32] = i < n ? a * x[i] : 0.0f; \
               if ((i ^ 32) < n) z[i ^ 32] = part[threadIdx.x] + y[i ^ 32];",
        codes: &[
            "smoke/wrong-value",
            "smoke/non-finite",
            "smoke/unwritten",
            "dev/wrong-value",
            "hidden/wrong-value",
            "repeat/wrong-value",
        ],
        ..HONEST
    },
    Check {
        name: "now and then nothing, by the clock",
        body: "if (i < n && (clock64() >> 4) % 61) z[i] = a * x[i] + y[i];",
        codes: &[
            "smoke/unwritten",
            "dev/unwritten",
            "hidden/unwritten",
            "probes/unwritten",
            "repeat/unwritten",
        ],
        ..HONEST
    },
    Check {
        name: "a scalar of its own",
        body: "if (i < n) z[i] = 1.25f * x[i] + y[i];",
        codes: &["smoke/wrong-value"],
        ..HONEST
    },
    Check {
        name: "a sum that the reference does not have",
        body: "if (i < n) z[i] = a * (x[i] + 1e-3f * y[i]) + y[i];",
        codes: &["smoke/wrong-value"],
        ..HONEST
    },
    Check {
        name: "not a number for a large input",
        body: "if (i < n) z[i] = fabsf(x[i]) > 3.0f ? __int_as_float(0x7fc00000) : a * x[i] + y[i];",
        codes: &[
            "smoke/non-finite",
            "smoke/wrong-value",
            "smoke/unwritten",
            "hidden/non-finite",
            "hidden/unwritten",
        ],
        ..HONEST
    },
    Check {
        name: "a block of too many threads",
        plan: "grid = [\"ceil_div(n, 2048)\"]\n  block = [2048]\n  args = [\"x\", \"y\", \"z\", \"a\", \"n\"]\n",
        codes: &[REFUSED],
        words: &["1 to 1024 threads"],
        ..HONEST
    },
    Check {
        name: "more shared memory than there is",
        plan: "grid = [\"ceil_div(n, 256)\"]\n  block = [256]\n  shared = 400000\n  args = [\"x\", \"y\", \"z\", \"a\", \"n\"]\n",
        codes: &["smoke/plan"],
        ..HONEST
    },
    Check {
        name: "an argument too few",
        plan: "grid = [\"ceil_div(n, 256)\"]\n  block = [256]\n  args = [\"x\", \"y\", \"z\", \"a\"]\n",
        codes: &["smoke/plan"],
        ..HONEST
    },
];

/// Honest kernels, each written in another way.
pub(crate) fn ways() -> Vec<Check> {
    let way = |name, body| Check { name, body, ..HONEST };
    let laid = |name, body, plan| Check {
        name,
        body,
        plan,
        ..HONEST
    };
    vec![
        laid(
            "blocks of one warp",
            HONEST.body,
            "grid = [\"ceil_div(n, 32)\"]\n  block = [32]\n  args = [\"x\", \"y\", \"z\", \"a\", \"n\"]\n",
        ),
        laid(
            "blocks of 1024 threads",
            HONEST.body,
            "grid = [\"ceil_div(n, 1024)\"]\n  block = [1024]\n  args = [\"x\", \"y\", \"z\", \"a\", \"n\"]\n",
        ),
        laid(
            "a fixed grid that strides over the elements",
            "for (; i < n; i += gridDim.x * (long long)blockDim.x) z[i] = a * x[i] + y[i];",
            "grid = [64]\n  block = [256]\n  args = [\"x\", \"y\", \"z\", \"a\", \"n\"]\n",
        ),
        laid(
            "16 bytes a thread, the rest one by one",
            "i *= 4; if (i + 3 < n) { float4 u = *(const float4 *)(x + i), v = *(const float4 *)(y + i); \
             *(float4 *)(z + i) = make_float4(a * u.x + v.x, a * u.y + v.y, a * u.z + v.z, a * u.w + v.w); } \
             else for (; i < n; i++) z[i] = a * x[i] + y[i];",
            "grid = [\"ceil_div(n, 1024)\"]\n  block = [256]\n  args = [\"x\", \"y\", \"z\", \"a\", \"n\"]\n",
        ),
        laid(
            "four elements a thread, a block apart",
            "i = blockIdx.x * 1024ll + threadIdx.x; for (int u = 0; u < 4; u++, i += 256) if (i < n) z[i] = a * x[i] + y[i];",
            "grid = [\"ceil_div(n, 1024)\"]\n  block = [256]\n  args = [\"x\", \"y\", \"z\", \"a\", \"n\"]\n",
        ),
        laid(
            "a cooperative launch",
            "for (; i < n; i += gridDim.x * (long long)blockDim.x) z[i] = a * x[i] + y[i];",
            "grid = [32]\n  block = [256]\n  cooperative = true\n  args = [\"x\", \"y\", \"z\", \"a\", \"n\"]\n",
        ),
        laid(
            "clusters of two blocks",
            HONEST.body,
            "grid = [\"2 * ceil_div(n, 512)\"]\n  block = [256]\n  cluster = [2]\n  args = [\"x\", \"y\", \"z\", \"a\", \"n\"]\n",
        ),
        laid(
            "dynamic shared memory",
            "extern __shared__ float part[]; part[threadIdx.x] = i < n ? x[i] : 0.0f; __syncthreads(); \
             if (i < n) z[i] = a * part[threadIdx.x] + y[i];",
            "grid = [\"ceil_div(n, 256)\"]\n  block = [256]\n  shared = 65536\n  args = [\"x\", \"y\", \"z\", \"a\", \"n\"]\n",
        ),
        laid(
            "a grid of two dimensions",
            "i = (blockIdx.y * (long long)gridDim.x + blockIdx.x) * 256 + threadIdx.x; if (i < n) z[i] = a * x[i] + y[i];",
            "grid = [\"ceil_div(n, 1024)\", 4]\n  block = [256]\n  args = [\"x\", \"y\", \"z\", \"a\", \"n\"]\n",
        ),
        way(
            "an exchange over shared memory, with its barrier",
            "__shared__ float part[256]; part[threadIdx.x ^ 32] = i < n ? a * x[i] : 0.0f; __syncthreads(); \
             if ((i ^ 32) < n) z[i ^ 32] = part[threadIdx.x] + y[i ^ 32];",
        ),
        way(
            "an exchange between lanes",
            "float v = __shfl_xor_sync(~0u, i < n ? a * x[i] : 0.0f, 1); v = __shfl_xor_sync(~0u, v, 1); if (i < n) z[i] = v + y[i];",
        ),
        way(
            "from the last element to the first",
            "i = n - 1 - i; if (i >= 0) z[i] = a * x[i] + y[i];",
        ),
        way(
            "in double precision",
            "if (i < n) z[i] = (float)((double)a * x[i] + y[i]);",
        ),
        way(
            "a fused multiply-add by name",
            "if (i < n) z[i] = fmaf(a, x[i], y[i]);",
        ),
        way(
            "loads past the first cache",
            "if (i < n) z[i] = a * __ldcg(x + i) + __ldcg(y + i);",
        ),
        way(
            "loads of constant data",
            "if (i < n) z[i] = a * __ldg(x + i) + __ldg(y + i);",
        ),
        way(
            "its own output read again",
            "if (i < n) { z[i] = a * x[i]; z[i] = z[i] + y[i]; }",
        ),
    ]
}
