//! Reads a C prototype, enough to begin a task from it.

use std::str::FromStr;

use crate::DType;

/// A parsed prototype.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prototype {
    /// The symbol.
    pub name: String,
    /// The parameters in order.
    pub parameters: Vec<Parameter>,
}

/// One parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parameter {
    /// A pointer to constant elements.
    Input(String, DType),
    /// A pointer to elements that may be written.
    Output(String, DType),
    /// A 64-bit integer: taken for an axis.
    Axis(String),
    /// Any other value.
    Scalar(String, DType),
}

/// A prototype that cannot be turned into a task.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{part}`: {message}")]
pub struct PrototypeError {
    /// The part of the text.
    pub part: String,
    /// What was expected.
    pub message: String,
}

impl Prototype {
    /// The parameters in the order of every task: inputs, outputs, scalars, axes.
    pub fn in_order(&self) -> Vec<&Parameter> {
        let mut parameters: Vec<&Parameter> = self.parameters.iter().collect();
        parameters.sort_by_key(|parameter| match parameter {
            Parameter::Input(..) => 0,
            Parameter::Output(..) => 1,
            Parameter::Scalar(..) => 2,
            Parameter::Axis(_) => 3,
        });
        parameters
    }
}

impl Parameter {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Input(name, _) | Self::Output(name, _) | Self::Scalar(name, _) | Self::Axis(name) => name,
        }
    }
}

impl FromStr for Prototype {
    type Err = PrototypeError;

    fn from_str(text: &str) -> Result<Self, PrototypeError> {
        prototype_parse(text)
    }
}

/// Parses for example `void f(const float* x, float* y, int64_t n)`.
pub fn prototype_parse(text: &str) -> Result<Prototype, PrototypeError> {
    let wrong = |part: &str, message: &str| PrototypeError {
        part: part.trim().to_owned(),
        message: message.to_owned(),
    };
    let text = text.trim().trim_end_matches(';').trim_end();
    let (head, rest) = text
        .split_once('(')
        .ok_or_else(|| wrong(text, "expected `void name(parameters)`"))?;
    let inner = rest
        .strip_suffix(')')
        .ok_or_else(|| wrong(text, "expected `)` at the end"))?;
    let mut words = head
        .split_whitespace()
        .filter(|word| *word != "extern" && *word != "\"C\"");
    let name = match (words.next(), words.next(), words.next()) {
        (Some("void"), Some(name), None) if identifier(name) => name.to_owned(),
        _ => return Err(wrong(head, "expected `void name`; the kernel returns nothing")),
    };
    let mut parameters = Vec::new();
    for part in inner.split(',') {
        parameters.push(parameter(part).map_err(|message| wrong(part, &message))?);
    }
    let outputs = parameters
        .iter()
        .filter(|p| matches!(p, Parameter::Output(..)))
        .count();
    let axes = parameters
        .iter()
        .filter(|p| matches!(p, Parameter::Axis(_)))
        .count();
    if outputs == 0 {
        return Err(wrong(inner, "expected an output: a pointer without `const`"));
    }
    if axes == 0 {
        return Err(wrong(
            inner,
            "expected a size: an `int64_t` or `size_t` parameter",
        ));
    }
    Ok(Prototype { name, parameters })
}

fn identifier(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn parameter(text: &str) -> Result<Parameter, String> {
    let spaced = text.replace('*', " * ");
    let mut words: Vec<&str> = spaced
        .split_whitespace()
        .filter(|word| !matches!(*word, "restrict" | "__restrict" | "__restrict__"))
        .collect();
    let name = words
        .pop()
        .filter(|name| identifier(name))
        .ok_or("expected a type and a name")?
        .to_owned();
    let constant = words.contains(&"const");
    words.retain(|word| *word != "const");
    let pointers = words.iter().filter(|word| **word == "*").count();
    words.retain(|word| *word != "*");
    let spelled = words.join(" ");
    let dtype = match spelled.as_str() {
        "double" => DType::F64,
        "float" => DType::F32,
        "f16" | "_Float16" | "half" => DType::F16,
        "bf16" | "__bf16" => DType::Bf16,
        "f8e4m3" => DType::F8e4m3,
        "f8e5m2" => DType::F8e5m2,
        "int64_t" | "long" | "long long" | "size_t" => DType::I64,
        "int" | "int32_t" => DType::I32,
        "short" | "int16_t" => DType::I16,
        "int8_t" | "signed char" => DType::I8,
        "uint8_t" | "unsigned char" => DType::U8,
        "bool" | "_Bool" => DType::Bool,
        _ => return Err(format!("the type `{spelled}` is not known")),
    };
    match (pointers, constant) {
        (1, true) => Ok(Parameter::Input(name, dtype)),
        (1, false) => Ok(Parameter::Output(name, dtype)),
        (0, _) if dtype == DType::I64 => Ok(Parameter::Axis(name)),
        (0, _) => Ok(Parameter::Scalar(name, dtype)),
        _ => Err("pointers to pointers are not tensors".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_prototype_splits_into_inputs_outputs_scalars_and_axes() {
        let parsed =
            prototype_parse("void f(const float* restrict x, float *y, float eps, int64_t n);").unwrap();
        assert_eq!(
            parsed.parameters,
            [
                Parameter::Input("x".to_owned(), DType::F32),
                Parameter::Output("y".to_owned(), DType::F32),
                Parameter::Scalar("eps".to_owned(), DType::F32),
                Parameter::Axis("n".to_owned()),
            ]
        );
    }

    #[test]
    fn prototypes_without_output_size_or_known_types_are_refused() {
        for text in [
            "",
            "void f",
            "int f(float* y, int64_t n)",
            "void f(const float* x, int64_t n)",
            "void f(float* y)",
            "void f(struct x* y, int64_t n)",
            "void f(float** y, int64_t n)",
        ] {
            assert!(prototype_parse(text).is_err(), "{text}");
        }
    }
}
