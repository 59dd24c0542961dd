//! Outputs: tolerance, comparison, shared memory, states.

use std::collections::BTreeSet;

use super::context::{Context, Kind};
use crate::ContractError;
use crate::contract::{Compare, Input, Output, Overflow};
use crate::document::{At, CompareDocument, OutputDocument, TextOr};
use crate::expr::Expr;
use crate::nearest::nearest;

impl Context<'_> {
    pub(super) fn outputs(
        &mut self,
        documents: &At<Vec<At<OutputDocument>>>,
        inputs: &[Input],
    ) -> Result<Vec<Output>, ContractError> {
        if documents.is_empty() {
            return Err(self
                .error(&documents.span, "there are no outputs")
                .expected("expected at least one output"));
        }
        for document in documents.iter() {
            self.claim(&document.name, Kind::Tensor)?;
        }
        let mut outputs = Vec::new();
        for document in documents.iter() {
            outputs.push(self.output(document, inputs, documents)?);
        }
        for (document, output) in documents.iter().zip(&outputs) {
            self.check_along(document, output, &outputs)?;
        }
        for index in 0..outputs.len() {
            let cut = self.cut(&documents[index], &outputs, index, inputs)?;
            outputs[index].cut = cut;
        }
        Ok(outputs)
    }

    fn output(
        &self,
        document: &At<OutputDocument>,
        inputs: &[Input],
        all: &[At<OutputDocument>],
    ) -> Result<Output, ContractError> {
        let dtype = self.type_name(&document.dtype)?;
        let shared = document
            .inplace
            .as_ref()
            .map(|name| self.input_named(name, inputs))
            .transpose()?;
        let shape = match (&document.shape, shared) {
            (Some(shape), _) => self.shape(shape)?,
            (None, Some(input)) => input.shape.clone(),
            (None, None) => {
                return Err(self
                    .error(
                        &document.span,
                        format!("output `{}` has no shape", document.name.value),
                    )
                    .expected("expected `shape`"));
            }
        };
        let mut strides = self.strides(document.strides.as_ref(), shape.len())?;
        if let (Some(input), Some(name)) = (shared, &document.inplace) {
            if input.dtype != dtype || input.shape != shape {
                return Err(self
                    .error(
                        &name.span,
                        format!("`{}` and `{}` differ", document.name.value, input.name),
                    )
                    .expected("expected an input of the same dtype and shape"));
            }
            if strides.is_some() && strides != input.strides {
                return Err(self
                    .error(
                        &name.span,
                        format!(
                            "the strides of `{}` are those of `{}`",
                            document.name.value, input.name
                        ),
                    )
                    .expected("expected no strides here"));
            }
            strides = input.strides.clone();
            let others = all
                .iter()
                .filter(|other| other.inplace.as_ref().is_some_and(|n| n.value == name.value));
            if others.count() > 1 {
                return Err(self
                    .error(
                        &name.span,
                        format!("two outputs share the memory of `{}`", name.value),
                    )
                    .expected("expected one"));
            }
            if input.is_static {
                return Err(self
                    .error(
                        &name.span,
                        format!("`{}` is static and cannot be written", name.value),
                    )
                    .expected("expected an input that is not static"));
            }
        }
        let compare = self.compare(document, inputs, all)?;
        let dtypes = self.dtypes(&dtype);
        let floats: Vec<_> = dtypes.iter().copied().filter(|dtype| dtype.is_float()).collect();
        if let Some(scale) = document
            .scale
            .as_ref()
            .filter(|scale| !scale.value && document.ctol.is_some())
        {
            return Err(self
                .error(&scale.span, "`ctol` needs the reference's scale output")
                .expected("expected true, or no `ctol`"));
        }
        let output = Output {
            name: document.name.value.clone(),
            shape,
            strides,
            align: self.align(document.align.as_ref(), &dtype)?,
            atol: self.per_type(document.atol.as_ref(), &dtypes)?,
            rtol: self.per_type(document.rtol.as_ref(), &dtypes)?,
            ctol: self.per_type(document.ctol.as_ref(), &dtypes)?,
            scale: document
                .scale
                .as_ref()
                .map_or(document.ctol.is_some(), |scale| scale.value),
            inplace: document.inplace.as_ref().map(|name| name.value.clone()),
            state_of: document.state_of.as_ref().map(|name| name.value.clone()),
            cut: None,
            along: document.along.as_ref().map(|name| name.value.clone()),
            overflow: document.overflow.unwrap_or(Overflow::Inf),
            compare,
            dtype,
        };
        self.check_tolerance(document, &output, floats.len(), dtypes.len())?;
        Ok(output)
    }

    fn check_tolerance(
        &self,
        document: &At<OutputDocument>,
        output: &Output,
        floats: usize,
        all: usize,
    ) -> Result<(), ContractError> {
        let given = [&document.atol, &document.rtol, &document.ctol]
            .into_iter()
            .flatten()
            .next();
        let needs = matches!(output.compare, Compare::Elementwise) && floats > 0;
        if needs && given.is_none() {
            return Err(self
                .error(
                    &document.span,
                    format!("float output `{}` has no tolerance", document.name.value),
                )
                .expected("expected `atol`, `rtol` or `ctol`")
                .help("for example `rtol = { f32 = 1e-5 }`; for bit equality `compare = \"exact\"`"));
        }
        if let Some(given) = given {
            if floats < all {
                return Err(self
                    .error(&given.span, "integers and bools compare in their own type")
                    .expected("expected no tolerance")
                    .help("for rounding use `compare = { mode = \"rounded\", tie = .. }`"));
            }
            if matches!(output.compare, Compare::Exact) {
                return Err(self
                    .error(&given.span, "an exact comparison has no tolerance")
                    .expected("expected none"));
            }
        }
        if matches!(output.compare, Compare::Rounded { .. } | Compare::Index { .. }) && floats > 0 {
            return Err(self
                .error(&document.dtype.span, "this comparison is for integer outputs")
                .expected("expected an integer dtype"));
        }
        Ok(())
    }

    fn input_named<'i>(&self, name: &At<String>, inputs: &'i [Input]) -> Result<&'i Input, ContractError> {
        inputs
            .iter()
            .find(|input| input.name == name.value)
            .ok_or_else(|| {
                let near = nearest(name, inputs.iter().map(|input| input.name.as_str()));
                self.error(&name.span, format!("there is no input `{}`", name.value))
                    .expected("expected an input")
                    .maybe_help(near.map(|near| format!("did you mean `{near}`?")))
            })
    }

    fn compare(
        &self,
        document: &At<OutputDocument>,
        inputs: &[Input],
        all: &[At<OutputDocument>],
    ) -> Result<Compare<Expr>, ContractError> {
        let Some(compare) = &document.compare else {
            return Ok(Compare::Elementwise);
        };
        let table = match &compare.value {
            TextOr::Text(mode) => {
                let mode = At {
                    span: compare.span.clone(),
                    value: mode.clone(),
                };
                &CompareDocument {
                    mode: Some(mode),
                    of: None,
                    axis: None,
                    k: None,
                    tie: None,
                    checker: None,
                }
            }
            TextOr::Table(table) => table,
        };
        if let Some(checker) = &table.checker {
            if table.mode.is_some() || table.of.is_some() || table.k.is_some() || table.tie.is_some() {
                return Err(self
                    .error(&compare.span, "a checker decides alone")
                    .expected("expected only `checker`"));
            }
            return Ok(Compare::Checker {
                source: self.source(checker, &["c", "py"])?,
            });
        }
        let Some(mode) = &table.mode else {
            return Err(self
                .error(&compare.span, "the comparison has no mode")
                .expected("expected `mode` or `checker`"));
        };
        let tie = || table.tie.as_ref().map_or(Ok(Expr::int(0)), |tie| self.expr(tie));
        let index_only = [
            table.of.as_ref().map(|of| &of.span),
            table.axis.as_ref().map(|a| &a.span),
            table.k.as_ref().map(|k| &k.span),
        ];
        if mode.value != "index"
            && let Some(span) = index_only.into_iter().flatten().next()
        {
            return Err(self
                .error(span, format!("`{}` does not take this key", mode.value))
                .expected("a key of mode `index`"));
        }
        match mode.as_str() {
            "elementwise" => Ok(Compare::Elementwise),
            "exact" => Ok(Compare::Exact),
            "rounded" => Ok(Compare::Rounded { tie: tie()? }),
            "index" => {
                let Some(of) = &table.of else {
                    return Err(self
                        .error(&compare.span, "mode `index` needs the tensor with the scores")
                        .expected("expected `of`"));
                };
                let rank = self.rank_of(of, inputs, all)?;
                let axis = table.axis.as_ref().map_or(-1, |axis| axis.value);
                let signed_rank = rank as i64;
                let dimension = if axis < 0 { axis + signed_rank } else { axis };
                if dimension < 0 || dimension >= signed_rank {
                    let span = table.axis.as_ref().map_or(&compare.span, |axis| &axis.span);
                    return Err(self
                        .error(span, format!("`{}` has no dimension {axis}", of.value))
                        .expected(format!("expected {} to {}", -signed_rank, signed_rank - 1)));
                }
                Ok(Compare::Index {
                    of: of.value.clone(),
                    axis: dimension as usize,
                    k: table.k.as_ref().map_or(Ok(Expr::int(1)), |k| self.expr(k))?,
                    tie: tie()?,
                })
            }
            other => {
                let known = ["elementwise", "exact", "rounded", "index"];
                let near = nearest(other, known);
                Err(self
                    .error(&mode.span, format!("`{other}` is not a comparison"))
                    .expected("expected elementwise, exact, rounded or index")
                    .maybe_help(near.map(|near| format!("did you mean `{near}`?"))))
            }
        }
    }

    fn rank_of(
        &self,
        name: &At<String>,
        inputs: &[Input],
        all: &[At<OutputDocument>],
    ) -> Result<usize, ContractError> {
        if let Some(input) = inputs.iter().find(|input| input.name == name.value) {
            return Ok(input.shape.len());
        }
        let output = all.iter().find(|output| output.name.value == name.value);
        if let Some(shape) = output.and_then(|output| output.shape.as_ref()) {
            return Ok(shape.len());
        }
        let near = nearest(name, self.names_of(Kind::Tensor));
        Err(self
            .error(&name.span, format!("there is no tensor `{}`", name.value))
            .expected("expected an input or output")
            .maybe_help(near.map(|near| format!("did you mean `{near}`?"))))
    }

    fn check_along(
        &self,
        document: &At<OutputDocument>,
        output: &Output,
        outputs: &[Output],
    ) -> Result<(), ContractError> {
        let (Some(name), Some(along)) = (&document.along, &output.along) else {
            return Ok(());
        };
        let index = outputs.iter().find(|other| other.name == *along);
        match index {
            Some(index) if matches!(index.compare, Compare::Index { .. }) => Ok(()),
            Some(_) => Err(self
                .error(&name.span, format!("`{along}` is not compared as indices"))
                .expected("expected an output with `compare = { mode = \"index\", .. }`")),
            None => Err(self
                .error(&name.span, format!("there is no output `{along}`"))
                .expected("expected an index output")
                .maybe_help(
                    nearest(along, outputs.iter().map(|output| output.name.as_str()))
                        .map(|near| format!("did you mean `{near}`?")),
                )),
        }
    }

    /// The axis at which a sequence may be cut: given, or the only one that inputs and other outputs share and the
    /// state lacks.
    fn cut(
        &self,
        document: &At<OutputDocument>,
        outputs: &[Output],
        index: usize,
        inputs: &[Input],
    ) -> Result<Option<String>, ContractError> {
        let output = &outputs[index];
        let Some(state) = &document.state_of else {
            return match &document.cut {
                Some(cut) => Err(self.error(&cut.span, "`cut` is for outputs with `state_of`")),
                None => Ok(None),
            };
        };
        let initial = self.input_named(state, inputs)?;
        if initial.shape != output.shape || initial.dtype != output.dtype {
            return Err(self
                .error(
                    &state.span,
                    format!("`{}` and `{}` differ", output.name, initial.name),
                )
                .expected("expected an input of the same dtype and shape"));
        }
        if let Some(cut) = &document.cut {
            if self.names.get(&cut.value) == Some(&Kind::Axis) {
                return Ok(Some(cut.value.clone()));
            }
            return Err(self
                .error(&cut.span, format!("there is no axis `{}`", cut.value))
                .expected("expected an axis"));
        }
        let used = |shape: &[Expr]| -> BTreeSet<String> {
            shape
                .iter()
                .flat_map(|size| size.names().into_iter().map(str::to_owned))
                .collect()
        };
        let in_inputs: BTreeSet<_> = inputs.iter().flat_map(|input| used(&input.shape)).collect();
        let in_outputs: BTreeSet<_> = outputs
            .iter()
            .enumerate()
            .filter(|(other, o)| *other != index && o.state_of.is_none())
            .flat_map(|(_, output)| used(&output.shape))
            .collect();
        let own = used(&output.shape);
        let candidates: Vec<_> = in_inputs
            .intersection(&in_outputs)
            .filter(|axis| !own.contains(*axis))
            .cloned()
            .collect();
        match candidates.as_slice() {
            [one] => Ok(Some(one.clone())),
            _ => Err(self
                .error(
                    &state.span,
                    "the axis of the sequence does not follow from the shapes",
                )
                .expected("a state needs an axis to cut")
                .help(format!("add `cut = \"..\"`; possible: {}", candidates.join(", ")))),
        }
    }
}
