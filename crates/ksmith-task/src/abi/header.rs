//! Writes C headers.

use std::fmt::Write as _;

use crate::contract::{Compare, Output};
use crate::{DType, Instance};

/// The C type of an element.
fn c_type(dtype: DType) -> &'static str {
    match dtype {
        DType::F64 => "double",
        DType::F32 => "float",
        DType::F16 => "f16",
        DType::Bf16 => "bf16",
        DType::F8e4m3 => "f8e4m3",
        DType::F8e5m2 => "f8e5m2",
        DType::I64 => "int64_t",
        DType::I32 => "int32_t",
        DType::I16 => "int16_t",
        DType::I8 => "int8_t",
        DType::U8 => "uint8_t",
        DType::Bool => "uint8_t",
    }
}

/// The integer behind a dtype that C does not have.
fn carrier(dtype: DType) -> Option<(&'static str, &'static str)> {
    match dtype {
        DType::F16 => Some(("uint16_t", "IEEE binary16 bits")),
        DType::Bf16 => Some(("uint16_t", "bfloat16 bits")),
        DType::F8e4m3 => Some(("uint8_t", "float8 e4m3 bits, no infinities")),
        DType::F8e5m2 => Some(("uint8_t", "float8 e5m2 bits")),
        _ => None,
    }
}

/// The prototype of the entry symbol: inputs, outputs, scalars, axes. A tensor written in place appears once, as a
/// writable input.
pub fn prototype(instance: &Instance, entry: &str) -> String {
    let contract = instance.task().contract();
    let mut parameters = Vec::new();
    for input in &contract.inputs {
        let written = contract
            .outputs
            .iter()
            .any(|output| output.inplace.as_ref() == Some(&input.name));
        let constant = if written { "" } else { "const " };
        parameters.push(format!(
            "{constant}{}* {}",
            c_type(instance.dtype(&input.dtype)),
            input.name
        ));
    }
    for output in contract.outputs.iter().filter(|output| output.inplace.is_none()) {
        parameters.push(format!(
            "{}* {}",
            c_type(instance.dtype(&output.dtype)),
            output.name
        ));
    }
    for scalar in &contract.scalars {
        parameters.push(format!(
            "{} {}",
            c_type(instance.dtype(&scalar.dtype)),
            scalar.name
        ));
    }
    parameters.extend(contract.axes.iter().map(|axis| format!("int64_t {}", axis.name)));
    signature(entry, &parameters)
}

fn signature(entry: &str, parameters: &[String]) -> String {
    let line = format!("void {entry}({});", parameters.join(", "));
    if line.len() <= 100 {
        line
    } else {
        format!("void {entry}(\n    {});", parameters.join(",\n    "))
    }
}

/// The header of the instance with `entry` as the symbol's name.
pub fn header_for(instance: &Instance, entry: &str) -> String {
    let contract = instance.task().contract();
    let mut text = format!("/* {}: one call does the whole workload. */\n", instance.id());
    text.push_str("#pragma once\n#include <stdint.h>\n\n");
    let used = contract
        .inputs
        .iter()
        .map(|input| &input.dtype)
        .chain(contract.outputs.iter().map(|output| &output.dtype))
        .map(|name| instance.dtype(name));
    let mut carried: Vec<DType> = used.filter(|dtype| carrier(*dtype).is_some()).collect();
    carried.sort();
    carried.dedup();
    for dtype in &carried {
        if let Some((integer, note)) = carrier(*dtype) {
            let _ = writeln!(text, "typedef {integer} {}; /* {note} */", c_type(*dtype));
        }
    }
    if !carried.is_empty() {
        text.push('\n');
    }
    for input in &contract.inputs {
        let shared = contract
            .outputs
            .iter()
            .find(|output| output.inplace.as_ref() == Some(&input.name));
        let role = match shared {
            Some(output) => format!("input, overwritten by output `{}`", output.name),
            None if input.is_static => "input, unchanged between calls".to_owned(),
            None => "input".to_owned(),
        };
        describe(
            &mut text,
            &input.name,
            &role,
            &input.shape,
            input.strides.as_deref(),
            input.align,
        );
    }
    for output in contract.outputs.iter().filter(|output| output.inplace.is_none()) {
        describe(
            &mut text,
            &output.name,
            "output",
            &output.shape,
            output.strides.as_deref(),
            output.align,
        );
    }
    text.push_str("#ifdef __cplusplus\nextern \"C\"\n#endif\n");
    text.push_str(&prototype(instance, entry));
    text.push('\n');
    text
}

/// The bare declaration of `entry`: types only, spelled without typedefs, so that nothing in a candidate's sources clashes
/// with it but another signature.
pub fn declaration(instance: &Instance, entry: &str) -> String {
    let contract = instance.task().contract();
    let plain = |dtype: DType| carrier(dtype).map_or(c_type(dtype), |(integer, _)| integer);
    let inplace = |name: &str| {
        contract
            .outputs
            .iter()
            .any(|output| output.inplace.as_deref() == Some(name))
    };
    let inputs = contract.inputs.iter().map(|input| {
        let constant = if inplace(&input.name) { "" } else { "const " };
        format!("{constant}{}*", plain(instance.dtype(&input.dtype)))
    });
    let outputs = contract
        .outputs
        .iter()
        .filter(|output| output.inplace.is_none())
        .map(|output| format!("{}*", plain(instance.dtype(&output.dtype))));
    let scalars = contract
        .scalars
        .iter()
        .map(|scalar| plain(instance.dtype(&scalar.dtype)).to_owned());
    let axes = contract.axes.iter().map(|_| "int64_t".to_owned());
    let parameters: Vec<String> = inputs.chain(outputs).chain(scalars).chain(axes).collect();
    format!(
        "#include <stdint.h>\n#ifdef __cplusplus\nextern \"C\"\n#endif\nvoid {entry}({});\n",
        parameters.join(", ")
    )
}

/// The header that `ksmith abi` prints; the symbol is called after the task.
pub fn header(instance: &Instance) -> String {
    header_for(instance, &instance.task().contract().name.replace('-', "_"))
}

fn describe(
    text: &mut String,
    name: &str,
    role: &str,
    shape: &[crate::expr::Expr],
    strides: Option<&[crate::expr::Expr]>,
    align: Option<u32>,
) {
    let list = |exprs: &[crate::expr::Expr]| {
        exprs
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let layout = match strides {
        None => "row-major".to_owned(),
        Some(strides) => format!("strides [{}] in elements", list(strides)),
    };
    let align = align.map_or_else(|| "64 bytes".to_owned(), |align| format!("{align} bytes"));
    let _ = writeln!(
        text,
        "/* {name}: {role}, [{}], {layout}, aligned to {align} */",
        list(shape)
    );
}

/// What a reference sees of an output: doubles for floats and for integers compared as rounded reals.
fn reference_type(instance: &Instance, output: &Output) -> &'static str {
    let real = instance.dtype(&output.dtype).is_float() || matches!(output.compare, Compare::Rounded { .. });
    if real { "double" } else { "int64_t" }
}

/// The header of a C reference: as a candidate's, but float tensors are `double`, integers and bools `int64_t`, all
/// dense and row-major; nothing is in place; each output with a scale is followed by `double* <name>_scale`.
pub fn reference_header(instance: &Instance) -> String {
    let contract = instance.task().contract();
    let wide = |dtype: DType| if dtype.is_float() { "double" } else { "int64_t" };
    let mut parameters = Vec::new();
    for input in &contract.inputs {
        parameters.push(format!(
            "const {}* {}",
            wide(instance.dtype(&input.dtype)),
            input.name
        ));
    }
    for output in &contract.outputs {
        parameters.push(format!("{}* {}", reference_type(instance, output), output.name));
        if output.scale {
            parameters.push(format!("double* {}_scale", output.name));
        }
    }
    for scalar in &contract.scalars {
        parameters.push(format!("{} {}", wide(instance.dtype(&scalar.dtype)), scalar.name));
    }
    parameters.extend(contract.axes.iter().map(|axis| format!("int64_t {}", axis.name)));
    format!(
        "#include <stdint.h>\n{}\n",
        signature(&contract.reference.entry, &parameters)
    )
}
