//! The allow-list of compiler flags: what speeds code up, and nothing that reads, writes, runs or links files.
//!
//! `-f` flags are listed one by one, because the namespace holds plugins (`-fplugin=`), dumps, profiles, sanitizers,
//! path maps and module files. `-m` and `-O` are checked by shape and by a list of what is refused.

use crate::nearest::nearest;

/// A flag that is not on the allow-list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the flag `{}` is not allowed: {reason}", .flag.escape_debug())]
pub struct FlagError {
    /// The flag.
    pub flag: String,
    /// Why not.
    pub reason: String,
}

/// `-O` levels.
const LEVELS: [&str; 7] = ["-O0", "-O1", "-O2", "-O3", "-Os", "-Ofast", "-Og"];

/// Optimisation flags that only change generated code.
const FEATURES: [&str; 44] = [
    "-ffast-math",
    "-fno-fast-math",
    "-fno-math-errno",
    "-fmath-errno",
    "-fno-trapping-math",
    "-fassociative-math",
    "-fno-associative-math",
    "-freciprocal-math",
    "-fno-reciprocal-math",
    "-ffinite-math-only",
    "-fno-finite-math-only",
    "-fno-signed-zeros",
    "-fsigned-zeros",
    "-funsafe-math-optimizations",
    "-fno-unsafe-math-optimizations",
    "-fno-rounding-math",
    "-fcx-limited-range",
    "-ffp-contract=fast",
    "-ffp-contract=on",
    "-ffp-contract=off",
    "-funroll-loops",
    "-fno-unroll-loops",
    "-funroll-all-loops",
    "-fpeel-loops",
    "-ftree-vectorize",
    "-fno-tree-vectorize",
    "-fvectorize",
    "-fslp-vectorize",
    "-ftree-slp-vectorize",
    "-fvect-cost-model=unlimited",
    "-fvect-cost-model=dynamic",
    "-fvect-cost-model=cheap",
    "-fomit-frame-pointer",
    "-fno-omit-frame-pointer",
    "-fstrict-aliasing",
    "-fno-strict-aliasing",
    "-fwrapv",
    "-fno-semantic-interposition",
    "-finline-functions",
    "-fprefetch-loop-arrays",
    "-ftree-loop-distribution",
    "-floop-interchange",
    "-floop-nest-optimize",
    "-fno-exceptions",
];

/// Language standards.
const STANDARDS: [&str; 14] = [
    "c99", "c11", "c17", "c18", "c23", "gnu99", "gnu11", "gnu17", "gnu23", "c++17", "c++20", "c++23",
    "gnu++17", "gnu++20",
];

/// Starts of `-m` flags that reach beyond code generation.
const REFUSED_MACHINE: [&str; 8] = [
    "-mllvm",
    "-mrelax",
    "-mcmodel",
    "-mdll",
    "-mwindows",
    "-mabi",
    "-minstrument",
    "-mrecord",
];

/// Starts of well-known flags, with why they are refused.
const REASONS: [(&str, &str); 14] = [
    ("-fplugin", "plugins run code in the compiler"),
    ("-fdump", "dumps write files"),
    ("-fprofile", "profiles read and write files"),
    ("-fsanitize", "the judge adds sanitizers itself"),
    ("-ffile-prefix-map", "path maps change what the record shows"),
    ("-fuse-ld", "the judge links"),
    ("-specs", "specs change every tool"),
    ("-wrapper", "wrappers run programs"),
    ("-include", "sources are listed in the manifest"),
    ("-I", "headers lie in the candidate's folder"),
    ("-l", "use the key `libraries`"),
    ("-L", "use the key `libraries`"),
    ("-Wl,", "the judge links"),
    ("@", "response files are not read"),
];

/// Checks one flag of a CPU candidate.
pub fn check_cpu_flag(flag: &str) -> Result<(), FlagError> {
    let refuse = |reason: String| {
        Err(FlagError {
            flag: flag.to_owned(),
            reason,
        })
    };
    if LEVELS.contains(&flag) || FEATURES.contains(&flag) || flag == "-fopenmp" || flag == "-fopenmp-simd" {
        return Ok(());
    }
    if flag.starts_with("-O") {
        return refuse(format!("the levels are {}", LEVELS.join(", ")));
    }
    if let Some((_, reason)) = REASONS.iter().find(|(start, _)| flag.starts_with(start)) {
        return refuse((*reason).to_owned());
    }
    if let Some(standard) = flag.strip_prefix("-std=") {
        return if STANDARDS.contains(&standard) {
            Ok(())
        } else {
            refuse(format!("the standards are {}", STANDARDS.join(", ")))
        };
    }
    if let Some(rest) = flag.strip_prefix("-D") {
        return define(rest).or_else(refuse);
    }
    if flag.starts_with("-m") {
        return machine(flag).or_else(refuse);
    }
    let known = LEVELS
        .into_iter()
        .chain(FEATURES)
        .chain(["-fopenmp", "-march=native"]);
    match nearest(flag, known) {
        Some(near) => refuse(format!("did you mean `{near}`?")),
        None => refuse("the list is -O*, -m*, a list of -f*, -D<name>=<int>, -std=*, -fopenmp".to_owned()),
    }
}

/// Checks one flag of a CUDA candidate (NVRTC and nvcc).
pub fn check_cuda_flag(flag: &str) -> Result<(), FlagError> {
    const FIXED: [&str; 17] = [
        "--use_fast_math",
        "-use_fast_math",
        "--ftz=true",
        "--ftz=false",
        "--prec-div=true",
        "--prec-div=false",
        "--prec-sqrt=true",
        "--prec-sqrt=false",
        "--fmad=true",
        "--fmad=false",
        "--extra-device-vectorization",
        "--restrict",
        "-default-device",
        "--device-as-default-execution-space",
        "--dlto",
        "-lineinfo",
        "--generate-line-info",
    ];
    const STANDARDS: [&str; 6] = [
        "--std=c++14",
        "--std=c++17",
        "--std=c++20",
        "-std=c++14",
        "-std=c++17",
        "-std=c++20",
    ];
    let refuse = |reason: String| {
        Err(FlagError {
            flag: flag.to_owned(),
            reason,
        })
    };
    if FIXED.contains(&flag) || STANDARDS.contains(&flag) {
        return Ok(());
    }
    if let Some(count) = flag
        .strip_prefix("--maxrregcount=")
        .or_else(|| flag.strip_prefix("-maxrregcount="))
    {
        return match count.parse::<u32>() {
            Ok(16..=255) => Ok(()),
            _ => refuse("expected 16 to 255 registers".to_owned()),
        };
    }
    if let Some(rest) = flag.strip_prefix("-D") {
        return define(rest).or_else(refuse);
    }
    match nearest(flag, FIXED.into_iter().chain(STANDARDS)) {
        Some(near) => refuse(format!("did you mean `{near}`?")),
        None => refuse(format!(
            "the list is {}, {}, -D<name>=<int>",
            FIXED.join(", "),
            "-maxrregcount=<n>, -std=*"
        )),
    }
}

/// `<name>=<int>`; reserved names could change system headers.
fn define(text: &str) -> Result<(), String> {
    let expected = || "expected -D<name>=<int>".to_owned();
    let (name, value) = text.split_once('=').ok_or_else(expected)?;
    let identifier = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !identifier || value.parse::<i64>().is_err() || value.starts_with('+') {
        return Err(expected());
    }
    if name.starts_with("__") || name.starts_with('_') {
        return Err("names that begin with `_` belong to the system".to_owned());
    }
    Ok(())
}

/// `-m<feature>` or `-m<feature>=<word>`.
fn machine(flag: &str) -> Result<(), String> {
    if REFUSED_MACHINE.iter().any(|start| flag.starts_with(start)) {
        return Err("it reaches beyond code generation".to_owned());
    }
    let rest = &flag[2..];
    let word = |text: &str, extra: &[char]| {
        !text.is_empty()
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || extra.contains(&c))
    };
    let valid = match rest.split_once('=') {
        None => word(rest, &['-', '.', '_']),
        Some((name @ ("arch" | "tune" | "cpu"), value)) => {
            word(name, &[]) && word(value, &['-', '+', '_', '.'])
        }
        Some(("prefer-vector-width", value)) => matches!(value, "128" | "256" | "512" | "none"),
        Some(("fpmath", value)) => value == "sse",
        Some((_, _)) => false,
    };
    if valid {
        Ok(())
    } else {
        Err("expected -m<feature>, -march=, -mtune=, -mprefer-vector-width=".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_that_tune_code_pass() {
        for flag in [
            "-O3",
            "-Ofast",
            "-march=native",
            "-mavx512f",
            "-mavx2",
            "-mfma",
            "-mprefer-vector-width=512",
            "-mtune=znver4",
            "-ffast-math",
            "-funroll-loops",
            "-DTILE=16",
            "-DN=-1",
            "-std=c17",
            "-fopenmp",
            "-march=x86-64-v3",
            "-mno-avx512f",
        ] {
            assert_eq!(check_cpu_flag(flag), Ok(()));
        }
        for flag in ["--use_fast_math", "-maxrregcount=128", "-DSTAGES=4", "-std=c++20"] {
            assert_eq!(check_cuda_flag(flag), Ok(()));
        }
    }

    #[test]
    fn flags_that_reach_files_tools_or_the_linker_are_refused() {
        for flag in [
            "-fplugin=x.so",
            "-fplugin-arg-x-y",
            "-fdump-tree-all",
            "-fprofile-use=/x",
            "-fprofile-generate",
            "-fsanitize=address",
            "-ffile-prefix-map=a=b",
            "-specs=x",
            "-wrapper",
            "-include",
            "-include/etc/passwd",
            "-I/",
            "-I..",
            "-L/x",
            "-lm",
            "-Wl,-z,now",
            "-Wa,-al=x",
            "-Wp,-MD,x",
            "-Xlinker",
            "@file",
            "-o",
            "-ox",
            "-x",
            "-E",
            "-S",
            "-B.",
            "-fuse-ld=gold",
            "-Dx=1 -o y",
            "-DX",
            "-DX=y",
            "-D__SSE__=1",
            "-D_GNU_SOURCE=1",
            "-save-temps",
            "--param=x=1",
            "-mllvm",
            "-mllvm=-load=x",
            "-march=native -o x",
            "-march=a/b",
            "-O3 -x",
            "-fopenmp=libx",
            "-T",
            "-Tx",
            "-MD",
            "-MF",
            "-g",
            "-fcallgraph-info",
            "-fopt-info-all=x",
            "-finstrument-functions",
            "-frandom-seed=1",
            "-fstack-usage",
            "-fmodules-ts",
            "-flto",
            "",
            "kernel.c",
            "-mstringop-strategy=libcall",
            "-nostdlib",
            "-shared",
            "-static",
            "-fauto-profile=x",
            "-O3\n-x",
        ] {
            assert!(check_cpu_flag(flag).is_err(), "{flag}");
        }
        for flag in [
            "--include-path=/",
            "-I/",
            "-Xcompiler",
            "--run",
            "-maxrregcount=1",
            "--pre-include=x",
            "-ptx",
        ] {
            assert!(check_cuda_flag(flag).is_err(), "{flag}");
        }
    }

    #[test]
    fn a_mistyped_flag_gets_its_nearest_name() {
        assert_eq!(
            check_cpu_flag("-ffast-maths").unwrap_err().to_string(),
            "the flag `-ffast-maths` is not allowed: did you mean `-ffast-math`?"
        );
    }
}
