//! Does a structure fit an instance, and how do its names map to the task's?
//!
//! Fitting is by signature alone: numbers, dtypes and shapes of the parameters. Whether the structure computes the
//! right thing is for the judge to say; a wrong guess costs one screening.

use std::collections::BTreeMap;

use ksmith_task::contract::{Input, Output, TypeName};
use ksmith_task::expr::{Env, Expr};
use ksmith_task::{DType, Instance};

use crate::Manifest;
use crate::manifest::TensorPattern;

/// How a structure's names map to an instance.
#[derive(Debug, Clone)]
pub struct Binding {
    /// The exported symbol.
    pub entry: String,
    /// The C prototype, without semicolon.
    pub signature: String,
    /// C declarations that give the structure's dimensions from the task's axes.
    pub prologue: String,
    /// Dtype of each dtype variable of the structure.
    pub dtypes: BTreeMap<String, DType>,
    /// The task's name of each tensor and scalar of the structure.
    pub names: BTreeMap<String, String>,
    /// Factors of each dimension of the structure, as expressions over the task's axes.
    dims: BTreeMap<String, Vec<Expr>>,
}

impl Binding {
    /// Each dimension of the structure as an expression over the task's axes.
    pub(crate) fn dimensions(&self) -> BTreeMap<String, String> {
        let word = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let factor = |expr: &Expr| match expr.text().trim() {
            text if word(text) => text.to_owned(),
            text => format!("({text})"),
        };
        let product = |factors: &[Expr]| match factors {
            [] => "1".to_owned(),
            [one] => factor(one),
            factors => format!("({})", factors.iter().map(factor).collect::<Vec<_>>().join(" * ")),
        };
        self.dims
            .iter()
            .map(|(name, factors)| (name.clone(), product(factors)))
            .collect()
    }

    /// Binds the structure's dimensions and dtypes for one workload.
    pub(crate) fn enter(&self, axes: &ksmith_task::AxisValues, env: &mut Env) {
        let mut task = Env::new();
        for (name, value) in axes {
            task.set(name.clone(), *value);
        }
        for (name, factors) in &self.dims {
            let product = factors
                .iter()
                .filter_map(|factor| factor.eval_int(&task).ok())
                .fold(1i64, i64::saturating_mul);
            env.set(name.clone(), product);
        }
        for (name, dtype) in &self.dtypes {
            env.set(name.clone(), *dtype);
            env.set(format!("size_{name}"), dtype.bytes() as i64);
        }
    }
}

/// The C type of an element; narrow floats travel as integers of their width.
pub(crate) fn c_type(dtype: DType) -> &'static str {
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

/// The device type of an element; those of narrow floats are declared by the device prelude.
pub(crate) fn cuda_type(dtype: DType) -> &'static str {
    match dtype {
        DType::F64 => "double",
        DType::F32 => "float",
        DType::F16 => "F16",
        DType::Bf16 => "Bf16",
        DType::F8e4m3 => "E4m3",
        DType::F8e5m2 => "E5m2",
        DType::U8 | DType::Bool => "unsigned char",
        DType::I64 => "long long",
        DType::I32 => "int",
        DType::I16 => "short",
        DType::I8 => "signed char",
    }
}

/// Matches a structure against an instance; `None` where the signatures differ. `entry` is the symbol to export.
pub fn bind(manifest: &Manifest, instance: &Instance, entry: &str) -> Option<Binding> {
    let contract = instance.task().contract();
    if manifest.inputs.len() != contract.inputs.len()
        || manifest.outputs.len() != contract.outputs.len()
        || manifest.scalars.len() != contract.scalars.len()
    {
        return None;
    }
    let mut found = Found {
        instance,
        manifest,
        dtypes: BTreeMap::new(),
        dims: BTreeMap::new(),
    };
    let mut parameters = Vec::new();
    for (pattern, input) in manifest.inputs.iter().zip(&contract.inputs) {
        found.input(pattern, input)?;
        parameters.push(format!(
            "const {} *{}",
            c_type(found.dtype(&input.dtype)?),
            pattern.name
        ));
    }
    for (pattern, output) in manifest.outputs.iter().zip(&contract.outputs) {
        found.output(pattern, output)?;
        parameters.push(format!(
            "{} *{}",
            c_type(found.dtype(&output.dtype)?),
            pattern.name
        ));
    }
    for (pattern, scalar) in manifest.scalars.iter().zip(&contract.scalars) {
        let dtype = found.dtype(&scalar.dtype)?;
        found.unify_dtype(&pattern.dtype, dtype)?;
        parameters.push(format!("{} {}", c_type(dtype), pattern.name));
    }
    let tensors = (manifest.inputs.iter().map(|pattern| &pattern.name))
        .zip(contract.inputs.iter().map(|input| &input.name))
        .chain(
            (manifest.outputs.iter().map(|pattern| &pattern.name))
                .zip(contract.outputs.iter().map(|output| &output.name)),
        )
        .chain(
            (manifest.scalars.iter().map(|pattern| &pattern.name))
                .zip(contract.scalars.iter().map(|scalar| &scalar.name)),
        );
    let tensors = tensors
        .map(|(ours, theirs)| (ours.clone(), theirs.clone()))
        .collect();
    let mut names = BTreeMap::new();
    for axis in &contract.axes {
        let same = found.dims.get(&axis.name).is_some_and(
            |factors| matches!(factors.as_slice(), [factor] if factor.text().trim() == axis.name),
        );
        let name = if same {
            axis.name.clone()
        } else {
            format!("axis_{}", axis.name)
        };
        parameters.push(format!("int64_t {name}"));
        names.insert(axis.name.clone(), name);
    }
    let mut prologue = String::new();
    for (dim, factors) in &found.dims {
        if names.get(dim) == Some(dim) {
            continue;
        }
        let product = factors
            .iter()
            .map(|factor| c_expression(factor, &names))
            .collect::<Option<Vec<_>>>()?;
        let product = if product.is_empty() {
            "1".to_owned()
        } else {
            product.join(" * ")
        };
        prologue.push_str(&format!("    const int64_t {dim} = {product};\n"));
    }
    Some(Binding {
        entry: entry.to_owned(),
        signature: format!("void {entry}({})", parameters.join(", ")),
        prologue,
        dtypes: found.dtypes,
        names: tensors,
        dims: found.dims,
    })
}

struct Found<'a> {
    instance: &'a Instance,
    manifest: &'a Manifest,
    dtypes: BTreeMap<String, DType>,
    dims: BTreeMap<String, Vec<Expr>>,
}

impl Found<'_> {
    fn dtype(&self, name: &TypeName) -> Option<DType> {
        match name {
            TypeName::Fixed(dtype) => Some(*dtype),
            TypeName::Variable(name) => self
                .instance
                .types()
                .iter()
                .find(|(variable, _)| variable == name)
                .map(|(_, dtype)| *dtype),
        }
    }

    fn input(&mut self, pattern: &TensorPattern, input: &Input) -> Option<()> {
        if input.strides.is_some() {
            return None;
        }
        let dtype = self.dtype(&input.dtype)?;
        self.unify_dtype(&pattern.dtype, dtype)?;
        self.unify_shape(pattern, &input.shape)
    }

    fn output(&mut self, pattern: &TensorPattern, output: &Output) -> Option<()> {
        let special = output.inplace.is_some() || output.state_of.is_some();
        if output.strides.is_some() || special != pattern.state {
            return None;
        }
        let dtype = self.dtype(&output.dtype)?;
        self.unify_dtype(&pattern.dtype, dtype)?;
        self.unify_shape(pattern, &output.shape)
    }

    fn unify_dtype(&mut self, pattern: &str, dtype: DType) -> Option<()> {
        if let Some(allowed) = self.manifest.dtypes.get(pattern) {
            let known = *self.dtypes.entry(pattern.to_owned()).or_insert(dtype);
            (known == dtype && allowed.contains(&dtype)).then_some(())
        } else {
            (pattern.parse() == Ok(dtype)).then_some(())
        }
    }

    fn unify_shape(&mut self, pattern: &TensorPattern, shape: &[Expr]) -> Option<()> {
        let (leading, dims) = match pattern.shape.split_first() {
            Some((first, rest)) if first.ends_with("..") => (Some(first.trim_end_matches("..")), rest),
            _ => (None, pattern.shape.as_slice()),
        };
        let split = shape.len().checked_sub(dims.len())?;
        match leading {
            Some(name) => self.unify_dim(name, &shape[..split])?,
            None if split > 0 => return None,
            None => {}
        }
        for (name, size) in dims.iter().zip(&shape[split..]) {
            self.unify_dim(name, std::slice::from_ref(size))?;
        }
        Some(())
    }

    fn unify_dim(&mut self, name: &str, factors: &[Expr]) -> Option<()> {
        if name.parse::<i64>().is_ok() {
            return matches!(factors, [size] if size.text().trim() == name).then_some(());
        }
        let known = self
            .dims
            .entry(name.to_owned())
            .or_insert_with(|| factors.to_vec());
        let texts = |list: &[Expr]| {
            list.iter()
                .map(|factor| factor.text().trim().to_owned())
                .collect::<Vec<_>>()
        };
        (texts(known) == texts(factors)).then_some(())
    }
}

/// The expression in C, where only names, integers and `+ - * /` occur.
fn c_expression(expr: &Expr, names: &BTreeMap<String, String>) -> Option<String> {
    let text = expr.text();
    let mut out = String::new();
    let mut word = String::new();
    for c in text.chars().chain(std::iter::once(' ')) {
        if c.is_ascii_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        if !word.is_empty() {
            if word.chars().all(|digit| digit.is_ascii_digit()) {
                out.push_str(&word);
            } else {
                out.push_str(names.get(&word)?);
            }
            word.clear();
        }
        if !" +-*/()".contains(c) {
            return None;
        }
        out.push(c);
    }
    let out = out.trim();
    Some(if out.contains(' ') {
        format!("({out})")
    } else {
        out.to_owned()
    })
}
