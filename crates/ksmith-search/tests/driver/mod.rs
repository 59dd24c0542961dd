//! A C program that runs a candidate beside a task's reference on drawn inputs and prints the worst error ratio.
//!
//! It stands in for the judge where only the structures are under test: no secrets, no sandbox, no clock.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use ksmith_task::contract::{AxisValues, Compare};
use ksmith_task::expr::{Env, Value};
use ksmith_task::{Bound, DType, Fill, Instance, Role, ScalarValue, Tensor};

/// A named choice of sizes and fills.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) axes: AxisValues,
    pub(crate) fills: Vec<(String, Fill)>,
}

/// The first dev workload and every probe of the task, at the probe's sizes or those of the workload.
pub(crate) fn cases(instance: &Instance) -> Vec<Case> {
    let contract = instance.task().contract();
    let dev = &contract.workloads[0];
    let mut cases = vec![Case {
        name: "dev".to_owned(),
        axes: dev.axes.clone(),
        fills: Vec::new(),
    }];
    for probe in &contract.hidden.probes {
        let mut axes = dev.axes.clone();
        axes.extend(probe.axes.iter().map(|(name, size)| (name.clone(), *size)));
        let mut env = Env::new();
        for (name, size) in &axes {
            env.set(name.clone(), *size);
        }
        let fills = probe
            .fills
            .iter()
            .map(|(name, fill)| (name.clone(), fill.resolve(&env).expect("a probe's fill resolves")))
            .collect();
        cases.push(Case {
            name: probe.name.clone(),
            axes,
            fills,
        });
    }
    cases
}

/// Compiles `kernel.c` of `sources` with its flags and runs it on all cases. `Ok(worst ratio)`, or what went wrong.
pub(crate) fn run(
    instance: &Instance,
    cases: &[Case],
    sources: &Path,
    flags: &[String],
    scratch: &Path,
) -> Result<f64, String> {
    let task = instance.task();
    let main = scratch.join("main.c");
    let mut text = String::from(PRELUDE);
    for (number, case) in cases.iter().enumerate() {
        let bound = instance.bind(&case.axes).map_err(|error| error.to_string())?;
        text.push_str(&function(instance, &bound, case, number));
    }
    text.push_str("int main(void) {\n");
    for number in 0..cases.len() {
        let _ = writeln!(text, "    case_{number}();");
    }
    text.push_str("    printf(\"%.6f\\n\", worst);\n    return 0;\n}\n");
    fs::write(&main, text).map_err(|error| error.to_string())?;
    let binary = scratch.join("main");
    let reference = task.dir().join(&task.contract().reference.source);
    let object = scratch.join("kernel.o");
    let kernel = sources.join("kernel.c");
    gcc(Command::new("gcc")
        .args(["-Wall", "-Werror", "-c"])
        .args(flags)
        .arg("-o")
        .arg(&object)
        .arg(&kernel))?;
    gcc(Command::new("gcc")
        .args(["-O1", "-w", "-o"])
        .arg(&binary)
        .args(flags.iter().filter(|flag| *flag == "-fopenmp"))
        .arg(&object)
        .arg(&reference)
        .arg(&main)
        .arg("-lm"))?;
    let ran = Command::new("timeout")
        .arg("60")
        .arg(&binary)
        .output()
        .map_err(|error| error.to_string())?;
    if !ran.status.success() {
        return Err(format!(
            "{}: {}",
            ran.status,
            String::from_utf8_lossy(&ran.stdout)
        ));
    }
    String::from_utf8_lossy(&ran.stdout)
        .trim()
        .parse()
        .map_err(|_| "no ratio".to_owned())
}

/// Nanoseconds of one call of each library at `axes`: minima over interleaved rounds.
pub(crate) fn time(
    instance: &Instance,
    axes: &AxisValues,
    libraries: &[String],
    scratch: &Path,
) -> Result<Vec<f64>, String> {
    let bound = instance.bind(axes).map_err(|error| error.to_string())?;
    let case = Case {
        name: "time".to_owned(),
        axes: axes.clone(),
        fills: Vec::new(),
    };
    let mut text = String::from("#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <time.h>\n");
    text.push_str(PRELUDE);
    let body = function(instance, &bound, &case, 0);
    let call = body
        .lines()
        .rev()
        .find(|line| line.contains(&format!("{}(", instance.task().contract().name)));
    let call = call.ok_or("no call")?.trim();
    let arguments = &call[call.find('(').ok_or("no arguments")?..];
    let setup: String = body
        .lines()
        .skip_while(|line| !line.contains("what ="))
        .take_while(|line| {
            !line
                .trim_start()
                .starts_with(&instance.task().contract().reference.entry)
        })
        .map(|line| format!("{line}\n"))
        .collect();
    let extern_line = body
        .lines()
        .find(|line| line.starts_with("extern"))
        .ok_or("no prototype")?;
    let types = &extern_line[extern_line.find('(').ok_or("no types")?..extern_line.len() - 1];
    let _ = writeln!(text, "typedef void (*kernel){types};");
    text.push_str("static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + t.tv_nsec; }\n");
    let n = libraries.len();
    let list = libraries
        .iter()
        .map(|path| format!("{path:?}"))
        .collect::<Vec<_>>()
        .join(", ");
    let entry = &instance.task().contract().name;
    let _ = writeln!(
        text,
        "int main(void) {{\n    static const char *paths[] = {{{list}}};\n    static kernel f[{n}]; static double best[{n}]; static int reps[{n}];\n{setup}\
    for (int i = 0; i < {n}; i++) {{ f[i] = (kernel)dlsym(dlopen(paths[i], RTLD_NOW), \"{entry}\"); best[i] = 1e300; f[i]{arguments}\n\
        double s = now(); f[i]{arguments} reps[i] = 1 + 5e4 / (now() - s + 1); }}\n\
    for (int r = 0; r < 40; r++) for (int i = 0; i < {n}; i++) {{ f[i]{arguments} double s = now();\n\
        for (int k = 0; k < reps[i]; k++) {{ f[i]{arguments} }} double t = (now() - s) / reps[i]; if (t < best[i]) best[i] = t; }}\n\
    for (int i = 0; i < {n}; i++) printf(\"%.3f\\n\", best[i]);\n    return 0;\n}}"
    );
    let main = scratch.join("time.c");
    fs::write(&main, text).map_err(|error| error.to_string())?;
    let binary = scratch.join("time");
    gcc(Command::new("gcc")
        .args(["-O1", "-w", "-o"])
        .arg(&binary)
        .arg(&main)
        .args(["-ldl", "-lm"]))?;
    let ran = Command::new(&binary)
        .output()
        .map_err(|error| error.to_string())?;
    let times: Vec<f64> = String::from_utf8_lossy(&ran.stdout)
        .lines()
        .filter_map(|line| line.parse().ok())
        .collect();
    if times.len() == n {
        Ok(times)
    } else {
        Err(format!("{}: {} of {n} times", ran.status, times.len()))
    }
}

fn gcc(command: &mut Command) -> Result<(), String> {
    let built = command.output().map_err(|error| error.to_string())?;
    if built.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&built.stderr).into_owned())
    }
}

fn c_type(dtype: DType) -> &'static str {
    match dtype {
        DType::F64 => "double",
        DType::F32 => "float",
        DType::F16 | DType::Bf16 => "uint16_t",
        DType::F8e4m3 | DType::F8e5m2 | DType::U8 | DType::Bool => "uint8_t",
        DType::I64 => "int64_t",
        DType::I32 => "int32_t",
        DType::I16 => "int16_t",
        DType::I8 => "int8_t",
    }
}

/// The type in which the reference sees a tensor.
fn wide_type(tensor: &Tensor) -> &'static str {
    let real = matches!(&tensor.role, Role::Output(rule) if matches!(rule.compare, Compare::Rounded { .. }));
    if tensor.dtype.is_float() || real {
        "double"
    } else {
        "int64_t"
    }
}

const PRELUDE: &str = r#"
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static uint64_t state = 88172645463325252ull;
static double even(void) { state ^= state << 13; state ^= state >> 7; state ^= state << 17; return (double)(state >> 11) * 0x1p-53; }
static double bell(void) { double u = even() + 1e-300, v = even(); return sqrt(-2 * log(u)) * cos(6.283185307179586 * v); }
static int order(const void *a, const void *b) { double x = *(const double *)a, y = *(const double *)b; return (x > y) - (x < y); }
static void *room(size_t n) { n = (n + 8191) / 4096 * 4096; void *p = aligned_alloc(4096, n); memset(p, 0xa5, n); return p; }
static uint16_t to_bf16(double v) { float f = (float)v; uint32_t b; memcpy(&b, &f, 4); b += 0x7fff + ((b >> 16) & 1); return (uint16_t)(b >> 16); }
static uint16_t to_f16(double v) { _Float16 h = (_Float16)v; uint16_t b; memcpy(&b, &h, 2); return b; }
static double of_f16(uint16_t b) { _Float16 h; memcpy(&h, &b, 2); return (double)(float)h; }
static double of_bf16(uint16_t h) { uint32_t b = (uint32_t)h << 16; float f; memcpy(&f, &b, 4); return f; }
static double of_e4m3(uint8_t b) {
    int e = b >> 3 & 15, m = b & 7;
    double v = (b & 127) == 127 ? NAN : e ? ldexp(8 + m, e - 10) : ldexp(m, -9);
    return b & 128 ? -v : v;
}
static double worst = 0;
static const char *what = "";
static void ratio(const char *name, int64_t i, double got, double want, double allowed) {
    double r = fabs(got - want) / (allowed + 1e-300);
    if (!(r <= 1)) { printf("%s, %s[%ld]: got %.9g, want %.9g, ratio %g\n", what, name, (long)i, got, want, r); exit(1); }
    if (r > worst) worst = r;
}
"#;

fn function(instance: &Instance, bound: &Bound, case: &Case, number: usize) -> String {
    let contract = instance.task().contract();
    let entry = &contract.name;
    let mut text = String::new();
    let mut body = String::new();
    let (mut candidate, mut reference) = (Vec::new(), Vec::new());
    let (mut candidate_types, mut reference_types) = (Vec::new(), Vec::new());
    for tensor in &bound.tensors {
        let (name, n) = (&tensor.name, tensor.len());
        let (narrow, wide) = (c_type(tensor.dtype), wide_type(tensor));
        let _ = writeln!(body, "    {narrow} *t_{name} = room({n} * sizeof({narrow}));");
        let _ = writeln!(body, "    {wide} *w_{name} = room({n} * 8);");
        if let Role::Input(rule) = &tensor.role {
            let chosen = case
                .fills
                .iter()
                .find(|(input, _)| input == name)
                .map_or(&rule.fill, |(_, fill)| fill);
            let _ = writeln!(body, "    {{ double *d = room({n} * 8); {}", fill(chosen, n));
            let (store, load) = match tensor.dtype {
                DType::Bf16 => ("to_bf16(d[i])".to_owned(), format!("of_bf16(t_{name}[i])")),
                DType::F16 => ("to_f16(d[i])".to_owned(), format!("of_f16(t_{name}[i])")),
                _ => (format!("({narrow})d[i]"), format!("t_{name}[i]")),
            };
            let _ = writeln!(
                body,
                "      for (int64_t i = 0; i < {n}; i++) {{ t_{name}[i] = {store}; w_{name}[i] = {load}; }} }}"
            );
        }
        candidate.push(format!("t_{name}"));
        reference.push(format!("w_{name}"));
        candidate_types.push("void *".to_owned());
        reference_types.push("void *".to_owned());
        if matches!(&tensor.role, Role::Output(rule) if rule.tolerance.has_scale) {
            let _ = writeln!(body, "    double *s_{name} = room({n} * 8);");
            reference.push(format!("s_{name}"));
            reference_types.push("void *".to_owned());
        }
    }
    for scalar in &bound.scalars {
        let ScalarValue::Fixed(value) = &scalar.value else {
            panic!("drawn scalars are not used by shipped tasks")
        };
        let value = match value {
            Value::Int(value) => *value as f64,
            value => value.as_f64().expect("a number"),
        };
        let narrow = c_type(scalar.dtype);
        candidate.push(format!("({narrow}){value:e}"));
        candidate_types.push(narrow.to_owned());
        let wide = if scalar.dtype.is_float() {
            "double"
        } else {
            "int64_t"
        };
        reference.push(format!("({wide})({narrow}){value:e}"));
        reference_types.push(wide.to_owned());
    }
    for (_, size) in &bound.axes {
        candidate.push(size.to_string());
        reference.push(size.to_string());
        candidate_types.push("int64_t".to_owned());
        reference_types.push("int64_t".to_owned());
    }
    // The prototypes differ from the definitions only in the pointers' types, which share one calling convention.
    let _ = writeln!(text, "extern void {entry}({});", candidate_types.join(", "));
    let _ = writeln!(
        text,
        "extern void {}({});",
        contract.reference.entry,
        reference_types.join(", ")
    );
    let _ = writeln!(
        text,
        "static void case_{number}(void) {{\n    what = \"{}\";\n{body}",
        case.name
    );
    let _ = writeln!(
        text,
        "    {}({});",
        contract.reference.entry,
        reference.join(", ")
    );
    let _ = writeln!(text, "    {entry}({});", candidate.join(", "));
    for tensor in bound.outputs() {
        text.push_str(&comparison(tensor, bound));
    }
    text.push_str("}\n");
    text
}

fn comparison(tensor: &Tensor, bound: &Bound) -> String {
    let (name, n) = (&tensor.name, tensor.len());
    let Role::Output(rule) = &tensor.role else {
        return String::new();
    };
    let got = match tensor.dtype {
        DType::Bf16 => format!("of_bf16(t_{name}[i])"),
        DType::F16 => format!("of_f16(t_{name}[i])"),
        DType::F8e4m3 => format!("of_e4m3(t_{name}[i])"),
        _ => format!("(double)t_{name}[i]"),
    };
    let each = |line: &str| format!("    for (int64_t i = 0; i < {n}; i++) {line}\n");
    match &rule.compare {
        Compare::Rounded { tie } => each(&format!(
            "ratio(\"{name}\", i, {got}, (double)w_{name}[i], 0.5 + {tie:e});"
        )),
        // Ties may come in any order, so the chosen scores are compared, not the indices.
        Compare::Index { of, k, .. } => {
            let row = bound
                .tensor(of)
                .and_then(|scores| scores.shape.last().copied())
                .unwrap_or(1);
            let k = *k as usize;
            each(&format!(
                "{{ int64_t r = i / {k} * {row}; ratio(\"{name}\", i, (double)w_{of}[r + t_{name}[i]], (double)w_{of}[r + w_{name}[i]], 0); \
                 for (int64_t j = i / {k} * {k}; j < i; j++) ratio(\"{name} distinct\", i, t_{name}[j] == t_{name}[i], 0, 0); }}"
            ))
        }
        _ if tensor.dtype.is_float() => {
            let t = rule.tolerance;
            let scale = if t.has_scale {
                format!(" + {:e} * s_{name}[i]", t.ctol)
            } else {
                String::new()
            };
            let allowed = format!("{:e} + {:e} * fabs(w_{name}[i]){scale}", t.atol, t.rtol);
            each(&format!("ratio(\"{name}\", i, {got}, w_{name}[i], {allowed});"))
        }
        _ => each(&format!("ratio(\"{name}\", i, {got}, (double)w_{name}[i], 0);")),
    }
}

fn fill(fill: &Fill, n: usize) -> String {
    let each = |value: String| format!("for (int64_t i = 0; i < {n}; i++) d[i] = {value};");
    match fill {
        Fill::Normal { mean, sd } => each(format!("{mean:e} + {sd:e} * bell()")),
        Fill::Uniform { low, high } => each(format!("{low:e} + ({high:e} - {low:e}) * even()")),
        Fill::LogUniform { low, high } => each(format!("{low:e} * pow({high:e} / {low:e}, even())")),
        Fill::Wide { decades } => each(format!(
            "(even() < 0.5 ? -1 : 1) * pow(10, {decades:e} * (even() - 0.5))"
        )),
        Fill::Constant { value } => each(format!("{value:e}")),
        Fill::Spike { probability, value } => each(format!("even() < {probability:e} ? {value:e} : bell()")),
        Fill::Tiny => each("1e-39 * bell()".to_owned()),
        Fill::Integers { low, high } => each(format!("floor({low:e} + ({high:e} - {low:e} + 1) * even())")),
        Fill::Zipf { n, .. } => each(format!("floor(pow(even(), 3) * {n:e})")),
        Fill::Bernoulli { p } => each(format!("even() < {p:e}")),
        Fill::Sorted(inner) => format!("{} qsort(d, {n}, 8, order);", self::fill(inner, n)),
        other => panic!("the driver does not draw {other:?}"),
    }
}
