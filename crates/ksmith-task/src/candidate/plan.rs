//! Manifest to launch plan: what can be checked without the task.

use super::cuda::{
    Argument, CudaPlan, DataType, FillMode, Kernel, Memset, Step, Swizzle, TensorMap, Variant, Workspace,
};
use super::load::Place;
use super::manifest::{CandidateDocument, StepDocument, TensorMapDocument, ValueDocument, VariantDocument};
use crate::CandidateError;
use crate::document::{At, Formula, TextOr};
use crate::expr::{Expr, Value};

impl Place<'_> {
    pub(super) fn cuda(&self, document: &CandidateDocument) -> Result<CudaPlan, CandidateError> {
        if let Some(entry) = &document.entry {
            return Err(self
                .error(&entry.span, "`entry` is a key of CPU candidates")
                .expected("not for backend `cuda`")
                .help("kernels are named by the steps of the launch plan"));
        }
        if let Some(library) = document.libraries.first() {
            return Err(self
                .error(&library.span, "device code links no libraries")
                .expected("expected none")
                .help("header libraries stand in `headers`"));
        }
        let word = |value: &Option<At<String>>, default: &str| {
            value
                .as_ref()
                .map_or_else(|| default.to_owned(), |value| value.value.clone())
        };
        let compiler = word(&document.compiler, "nvrtc");
        if let Some(given) = document
            .compiler
            .as_ref()
            .filter(|_| compiler != "nvrtc" && compiler != "nvcc")
        {
            return Err(self
                .error(
                    &given.span,
                    format!("`{}` is not a compiler", compiler.escape_debug()),
                )
                .expected("expected nvrtc or nvcc"));
        }
        let arch = word(&document.arch, "native");
        let sm = arch.strip_prefix("sm_").is_some_and(|rest| {
            let digits = rest.trim_end_matches(['a', 'f']);
            (2..=3).contains(&digits.len())
                && digits.chars().all(|c| c.is_ascii_digit())
                && rest.len() <= digits.len() + 1
        });
        if let Some(given) = document.arch.as_ref().filter(|_| arch != "native" && !sm) {
            return Err(self
                .error(
                    &given.span,
                    format!("`{}` is not an architecture", arch.escape_debug()),
                )
                .expected("expected native or, for example, sm_90a"));
        }
        let mut names: Vec<&At<String>> = Vec::new();
        for name in document
            .workspace
            .iter()
            .map(|workspace| &workspace.name)
            .chain(document.tensormap.iter().map(|map| &map.name))
        {
            if names.iter().any(|known| known.value == name.value) {
                return Err(self.error(&name.span, format!("the name `{}` is taken", name.value)));
            }
            names.push(name);
        }
        let workspaces = document
            .workspace
            .iter()
            .map(|workspace| {
                Ok(Workspace {
                    name: workspace.name.value.clone(),
                    bytes: self.expr(&workspace.bytes)?,
                })
            })
            .collect::<Result<Vec<_>, CandidateError>>()?;
        Ok(CudaPlan {
            compiler,
            arch,
            flags: document.flags.iter().map(|flag| flag.value.clone()).collect(),
            headers: self.libraries(&document.headers)?,
            workspaces,
            tensormaps: document
                .tensormap
                .iter()
                .map(|map| self.tensormap(map))
                .collect::<Result<Vec<_>, _>>()?,
            setup: document
                .setup
                .iter()
                .map(|step| self.step(step))
                .collect::<Result<Vec<_>, _>>()?,
            variants: self.variants(document)?,
        })
    }

    fn variants(&self, document: &CandidateDocument) -> Result<Vec<Variant>, CandidateError> {
        let Some((last, earlier)) = document.variant.split_last() else {
            return Err(self
                .error(&document.backend.span, "a CUDA candidate needs a launch plan")
                .expected("expected `[[variant]]` with steps"));
        };
        if let Some(when) = &last.when {
            return Err(self
                .error(&when.span, "the last variant must always apply")
                .expected("expected no `when`")
                .help("add a variant without `when` for the remaining shapes"));
        }
        if let Some(open) = earlier.iter().find(|variant| variant.when.is_none()) {
            return Err(self
                .error(&open.span, "only the last variant may have no `when`")
                .expected("expected a condition"));
        }
        document
            .variant
            .iter()
            .map(|variant| self.variant(variant))
            .collect()
    }

    fn variant(&self, variant: &VariantDocument) -> Result<Variant, CandidateError> {
        if variant.step.is_empty() {
            return Err(self
                .error(&variant.step.span, "a variant without steps")
                .expected("expected a step"));
        }
        if let Some(pdl) = variant.step[0].pdl.as_ref().filter(|pdl| pdl.value) {
            return Err(self
                .error(&pdl.span, "the first step has no step before it")
                .expected("`pdl` is for later steps"));
        }
        let when = variant
            .when
            .as_ref()
            .map(|text| {
                let literal = crate::document::Literal::Text(text.value.clone());
                self.expr(&At {
                    span: text.span.clone(),
                    value: literal,
                })
            })
            .transpose()?;
        let steps = variant
            .step
            .iter()
            .map(|step| self.step(step))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Variant { when, steps })
    }

    fn step(&self, step: &At<StepDocument>) -> Result<Step, CandidateError> {
        match (&step.memset, &step.kernel) {
            (Some(target), None) => {
                let launch = step.grid.is_some() || step.block.is_some() || step.args.is_some();
                if launch || step.cluster.is_some() || step.shared.is_some() {
                    return Err(self
                        .error(&step.span, "a memset launches nothing")
                        .expected("expected `memset`, `value`, `bytes`"));
                }
                Ok(Step::Memset(Memset {
                    target: target.value.clone(),
                    value: step.value.value.as_ref().map_or(0, |value| value.value),
                    bytes: step.bytes.as_ref().map(|bytes| self.expr(bytes)).transpose()?,
                }))
            }
            (None, Some(kernel)) => self
                .kernel(step, kernel)
                .map(|kernel| Step::Kernel(Box::new(kernel))),
            _ => Err(self
                .error(&step.span, "a step is either a launch or a memset")
                .expected("expected `kernel` or `memset`")),
        }
    }

    fn kernel(&self, step: &At<StepDocument>, name: &At<String>) -> Result<Kernel, CandidateError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_:<>,&*() -+".contains(c);
        if name.is_empty() || name.len() > 512 || !name.chars().all(plain) {
            return Err(self
                .error(
                    &name.span,
                    format!("`{}` is not a kernel's name", name.value.escape_debug()),
                )
                .expected("expected a C++ name expression such as attend<128, true>"));
        }
        if step.value.value.is_some() || step.bytes.is_some() {
            return Err(self
                .error(&step.span, "`value` and `bytes` are keys of a memset")
                .expected("expected neither"));
        }
        let sizes = |given: &Option<At<Vec<Formula>>>, key: &str| match given {
            Some(sizes) if (1..=3).contains(&sizes.len()) => self.exprs(sizes),
            Some(sizes) => Err(self
                .error(&sizes.span, format!("`{key}` has {} sizes", sizes.len()))
                .expected("expected 1 to 3")),
            None if key == "cluster" => Ok(Vec::new()),
            None => Err(self
                .error(&step.span, format!("the launch has no `{key}`"))
                .expected(format!("expected `{key}`"))),
        };
        let block = sizes(&step.block, "block")?;
        let threads = block
            .iter()
            .try_fold(1i64, |product, size| match size.as_constant() {
                Some(Value::Int(size)) => product.checked_mul(size),
                _ => Some(product),
            });
        if let Some(given) = step
            .block
            .as_ref()
            .filter(|_| threads.is_none_or(|threads| !(1..=1024).contains(&threads)))
        {
            return Err(self
                .error(&given.span, "a block has 1 to 1024 threads")
                .expected("expected at most 1024 threads"));
        }
        Ok(Kernel {
            name: name.value.clone(),
            grid: sizes(&step.grid, "grid")?,
            block,
            cluster: sizes(&step.cluster, "cluster")?,
            shared: step.shared.as_ref().map(|shared| self.expr(shared)).transpose()?,
            cooperative: step.cooperative.unwrap_or(false),
            pdl: step.pdl.as_ref().is_some_and(|pdl| pdl.value),
            args: step
                .args
                .as_deref()
                .unwrap_or_default()
                .iter()
                .map(|argument| self.argument(argument))
                .collect::<Result<Vec<_>, _>>()?,
        })
    }

    fn argument(&self, argument: &At<TextOr<ValueDocument>>) -> Result<Argument, CandidateError> {
        let table = match &argument.value {
            TextOr::Text(name) => return Ok(Argument::Name(name.clone())),
            TextOr::Table(table) => table,
        };
        let given: Vec<_> = [
            (DataType::I32, &table.i32),
            (DataType::U32, &table.u32),
            (DataType::I64, &table.i64),
            (DataType::U64, &table.u64),
            (DataType::F32, &table.f32),
            (DataType::F64, &table.f64),
        ]
        .into_iter()
        .filter_map(|(kind, value)| value.as_ref().map(|value| (kind, value)))
        .collect();
        match given.as_slice() {
            [(kind, value)] => Ok(Argument::Value(*kind, self.expr(value)?)),
            _ => Err(self
                .error(&argument.span, "a typed argument has exactly one type")
                .expected("expected one of i32, u32, i64, u64, f32, f64")),
        }
    }

    fn tensormap(&self, map: &At<TensorMapDocument>) -> Result<TensorMap, CandidateError> {
        let rank = map.dims.len();
        if !(1..=5).contains(&rank) {
            return Err(self
                .error(&map.dims.span, format!("a tensor map of {rank} dimensions"))
                .expected("expected 1 to 5"));
        }
        let fits = |given: &At<Vec<Formula>>, key: &str, count: usize| -> Result<Vec<Expr>, CandidateError> {
            if given.len() == count {
                return self.exprs(given);
            }
            Err(self
                .error(
                    &given.span,
                    format!("`{key}` has {} entries for {rank} dimension(s)", given.len()),
                )
                .expected(format!("expected {count}")))
        };
        Ok(TensorMap {
            name: map.name.value.clone(),
            tensor: map.tensor.value.clone(),
            dtype: map.dtype,
            dims: self.exprs(&map.dims)?,
            strides: fits(&map.strides, "strides", rank - 1)?,
            box_dims: fits(&map.box_dims, "box", rank)?,
            element_strides: match &map.element_strides {
                Some(given) => fits(given, "element_strides", rank)?,
                None => vec![Expr::int(1); rank],
            },
            swizzle: map.swizzle.unwrap_or(Swizzle::None),
            fill: map.fill.unwrap_or(FillMode::Zero),
        })
    }
}
