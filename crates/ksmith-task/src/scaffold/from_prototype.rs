//! A task from a C prototype. Shapes are a guess (every tensor has all axes); the reference is the user's to write.

use std::fmt::Write as _;

use super::{Files, entry, folder};
use crate::DType;
use crate::abi::{Parameter, Prototype};

pub(super) fn files(name: &str, prototype: &Prototype) -> Files {
    let axes: Vec<&str> = prototype
        .parameters
        .iter()
        .filter_map(|parameter| match parameter {
            Parameter::Axis(name) => Some(name.as_str()),
            Parameter::Input(..) | Parameter::Output(..) | Parameter::Scalar(..) => None,
        })
        .collect();
    let shape = axes
        .iter()
        .map(|axis| format!("\"{axis}\""))
        .collect::<Vec<_>>()
        .join(", ");
    let (mut inputs, mut outputs, mut scalars) = (String::new(), String::new(), String::new());
    for parameter in &prototype.parameters {
        match parameter {
            Parameter::Input(name, dtype) => {
                let _ = write!(
                    inputs,
                    "{{ name = \"{name}\", dtype = \"{dtype}\", shape = [{shape}] }}, "
                );
            }
            Parameter::Output(name, dtype) => {
                let tolerance = match dtype.unit_roundoff() {
                    Some(unit) => format!(", atol = 1e-30, rtol = {:.1e}", unit * 16.0),
                    None => String::new(),
                };
                let _ = write!(
                    outputs,
                    "{{ name = \"{name}\", dtype = \"{dtype}\", shape = [{shape}]{tolerance} }}, "
                );
            }
            Parameter::Scalar(name, dtype) => {
                let _ = write!(
                    scalars,
                    "{{ name = \"{name}\", dtype = \"{dtype}\", fill = \"{}\" }}, ",
                    scalar_fill(*dtype)
                );
            }
            Parameter::Axis(_) => {}
        }
    }
    let largest = match axes.len() {
        1 => 1 << 24,
        2 => 1 << 12,
        _ => 1 << 8,
    };
    let table =
        |size: &dyn Fn(&str) -> String| axes.iter().map(|axis| size(axis)).collect::<Vec<_>>().join(", ");
    let mut task = format!("schema = 1\nname = \"{name}\"\nfamily = \"custom\"\n");
    let _ = writeln!(
        task,
        "axes = {{ {} }}",
        table(&|axis| format!("{axis} = {{ max = {largest} }}"))
    );
    let _ = writeln!(task, "inputs = [{}]", inputs.trim_end_matches(", "));
    if !scalars.is_empty() {
        let _ = writeln!(task, "scalars = [{}]", scalars.trim_end_matches(", "));
    }
    let _ = writeln!(task, "outputs = [{}]", outputs.trim_end_matches(", "));
    task.push_str("reference = { source = \"reference.c\" }\nbaseline = { cpu = \"baseline/cpu\" }\n");
    task.push_str("performance = { goal = 0.90, protocol = \"course\" }\n");
    task.push_str("budget = { wall = \"20m\", cost_usd = 5, candidates = 60 }\n");
    let _ = writeln!(
        task,
        "workloads = [{{ name = \"host\", axes = {{ {} }} }}]",
        table(&|axis| format!("{axis} = {}", largest / 16))
    );
    let todo = "#error \"write what the kernel computes\"\n";
    let reference = format!(
        "#include <stdint.h>\n\n{}{{\n{todo}}}\n",
        signature(prototype, "reference", true)
    );
    let entry = entry(name);
    let kernel = format!(
        "#include <stdint.h>\n\n{}{{\n{todo}}}\n",
        signature(prototype, &entry, false)
    );
    let about = format!(
        "Begun from a prototype of `{}`: check the shapes, then write the two C files.",
        prototype.name
    );
    folder(name, &about, task, reference, kernel, &entry)
}

/// The values of a scalar of which only the type is known. They differ from case to case, so that a kernel that ignores
/// its argument fails; they are above zero, so that one may divide by them.
pub fn scalar_fill(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "bernoulli(0.5)",
        dtype if dtype.is_float() => "uniform(0.5, 2)",
        _ => "integers(1, 8)",
    }
}

/// The prototype in the task's order: inputs, outputs, scalars, axes.
fn signature(prototype: &Prototype, name: &str, reference: bool) -> String {
    let spell = |dtype: &DType| match (reference, dtype) {
        (true, dtype) if dtype.is_float() => "double",
        (true, _) | (_, DType::I64) => "int64_t",
        (_, DType::F64) => "double",
        (_, DType::F32) => "float",
        (_, DType::F16 | DType::Bf16) => "uint16_t",
        (_, DType::F8e4m3 | DType::F8e5m2 | DType::U8 | DType::Bool) => "uint8_t",
        (_, DType::I32) => "int32_t",
        (_, DType::I16) => "int16_t",
        (_, DType::I8) => "int8_t",
    };
    let list: Vec<_> = prototype
        .in_order()
        .into_iter()
        .map(|parameter| match parameter {
            Parameter::Input(name, dtype) => format!("const {}* {name}", spell(dtype)),
            Parameter::Output(name, dtype) => format!("{}* {name}", spell(dtype)),
            Parameter::Scalar(name, dtype) => format!("{} {name}", spell(dtype)),
            Parameter::Axis(name) => format!("int64_t {name}"),
        })
        .collect();
    format!("void {name}({}) ", list.join(", "))
}
