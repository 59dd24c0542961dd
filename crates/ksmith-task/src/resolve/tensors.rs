//! Inputs and scalars.

use super::context::{Context, Kind};
use crate::contract::{Domain, Input, Scalar, ScalarSource, TypeName};
use crate::document::{At, FamilyDocument, FamilyFill, Formula, InputDocument, ScalarDocument};
use crate::expr::Expr;
use crate::{ContractError, DType, Fill};

impl Context<'_> {
    pub(super) fn inputs(
        &mut self,
        documents: &[At<InputDocument>],
        family: &FamilyDocument,
    ) -> Result<Vec<Input>, ContractError> {
        documents
            .iter()
            .map(|document| self.input(document, family))
            .collect()
    }

    fn input(&mut self, document: &InputDocument, family: &FamilyDocument) -> Result<Input, ContractError> {
        self.claim(&document.name, Kind::Tensor)?;
        let dtype = self.type_name(&document.dtype)?;
        let shape = self.shape(&document.shape)?;
        let strides = self.strides(document.strides.as_ref(), shape.len())?;
        let defaults = self.family_fill(&dtype, family);
        let fill = match &document.fill {
            Some(text) => self.fill(text)?,
            None => parse_default(&defaults.fill),
        };
        let hidden = match (&document.hidden, &document.fill) {
            (Some(list), _) => list
                .iter()
                .map(|text| self.fill(text))
                .collect::<Result<Vec<_>, _>>()?,
            // A fill of one's own says what makes sense; the family's hidden fills might not.
            (None, Some(_)) => Vec::new(),
            (None, None) => defaults.hidden.iter().map(|text| parse_default(text)).collect(),
        };
        Ok(Input {
            name: document.name.value.clone(),
            shape,
            fill,
            hidden,
            domain: document
                .domain
                .as_ref()
                .map(|text| self.domain(text))
                .transpose()?
                .flatten(),
            strides,
            align: self.align(document.align.as_ref(), &dtype)?,
            is_static: document.is_static.unwrap_or(false),
            dtype,
        })
    }

    fn family_fill<'f>(&self, dtype: &TypeName, family: &'f FamilyDocument) -> &'f FamilyFill {
        let float = self.dtypes(dtype).first().is_some_and(|dtype| dtype.is_float());
        if float {
            &family.input.float
        } else {
            &family.input.int
        }
    }

    pub(super) fn shape(&self, shape: &At<Vec<Formula>>) -> Result<Vec<Expr>, ContractError> {
        if shape.len() > 8 {
            return Err(self
                .error(&shape.span, "more than 8 dimensions")
                .expected("expected at most 8"));
        }
        shape.iter().map(|size| self.expr(size)).collect()
    }

    pub(super) fn strides(
        &self,
        strides: Option<&At<Vec<Formula>>>,
        rank: usize,
    ) -> Result<Option<Vec<Expr>>, ContractError> {
        let Some(strides) = strides else { return Ok(None) };
        if strides.len() != rank {
            return Err(self
                .error(
                    &strides.span,
                    format!("{} strides for {rank} dimension(s)", strides.len()),
                )
                .expected("expected one stride per dimension"));
        }
        strides
            .iter()
            .map(|stride| self.expr(stride))
            .collect::<Result<Vec<_>, _>>()
            .map(Some)
    }

    pub(super) fn align(
        &self,
        align: Option<&At<u32>>,
        dtype: &TypeName,
    ) -> Result<Option<u32>, ContractError> {
        let Some(align) = align else { return Ok(None) };
        let least = self
            .dtypes(dtype)
            .iter()
            .map(|dtype| dtype.bytes())
            .max()
            .unwrap_or(1);
        let power = align.value.is_power_of_two() && align.value as usize >= least && align.value <= 4096;
        if power {
            return Ok(Some(align.value));
        }
        Err(self
            .error(
                &align.span,
                format!("{} is not an alignment of this dtype", align.value),
            )
            .expected(format!("expected a power of two from {least} to 4096")))
    }

    /// `<= 0`, `> 0`, `0..1`, `finite`.
    fn domain(&self, text: &At<String>) -> Result<Option<Domain>, ContractError> {
        let plain = text.trim();
        let open = Domain {
            low: None,
            low_included: false,
            high: None,
            high_included: false,
        };
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|value| value.is_finite());
        if plain == "finite" {
            return Ok(Some(open));
        }
        let parsed = if let Some((low, high)) = plain.split_once("..") {
            number(low)
                .zip(number(high))
                .filter(|(low, high)| low <= high)
                .map(|(low, high)| Domain {
                    low: Some(low),
                    low_included: true,
                    high: Some(high),
                    high_included: true,
                })
        } else if let Some(rest) = plain.strip_prefix("<=") {
            number(rest).map(|high| Domain {
                high: Some(high),
                high_included: true,
                ..open
            })
        } else if let Some(rest) = plain.strip_prefix(">=") {
            number(rest).map(|low| Domain {
                low: Some(low),
                low_included: true,
                ..open
            })
        } else if let Some(rest) = plain.strip_prefix('<') {
            number(rest).map(|high| Domain {
                high: Some(high),
                ..open
            })
        } else if let Some(rest) = plain.strip_prefix('>') {
            number(rest).map(|low| Domain {
                low: Some(low),
                ..open
            })
        } else {
            None
        };
        parsed.map(Some).ok_or_else(|| {
            self.error(
                &text.span,
                format!("`{}` is not a domain", text.value.escape_debug()),
            )
            .expected("expected for example \"<= 0\", \"> 0\", \"0..1\", \"finite\"")
        })
    }

    pub(super) fn check_generator(
        &self,
        documents: &[At<InputDocument>],
        has_generator: bool,
    ) -> Result<(), ContractError> {
        let fills = documents.iter().filter_map(|document| document.fill.as_ref());
        match fills.into_iter().find(|fill| fill.trim() == "generator") {
            Some(fill) if !has_generator => Err(self
                .error(&fill.span, "the task has no generator")
                .expected("expected a fill that needs none")
                .help("add `generator = { source = \"gen.c\" }`")),
            _ => Ok(()),
        }
    }

    pub(super) fn scalars(&mut self, documents: &[At<ScalarDocument>]) -> Result<Vec<Scalar>, ContractError> {
        documents.iter().map(|document| self.scalar(document)).collect()
    }

    fn scalar(&mut self, document: &At<ScalarDocument>) -> Result<Scalar, ContractError> {
        self.claim(&document.name, Kind::Scalar)?;
        let dtype = self.type_name(&document.dtype)?;
        let narrow = [DType::F16, DType::Bf16, DType::F8e4m3, DType::F8e5m2];
        if let Some(bad) = self.dtypes(&dtype).iter().find(|dtype| narrow.contains(dtype)) {
            return Err(self
                .error(
                    &document.dtype.span,
                    format!("a scalar argument cannot be `{bad}`"),
                )
                .expected("expected f64, f32, an integer dtype or bool")
                .help("pass it as f32, or as a tensor with one element"));
        }
        let source = match (&document.value.value, &document.value.fill) {
            (Some(value), None) => ScalarSource::Value(self.expr(value)?),
            (None, Some(fill)) => ScalarSource::Fill(self.fill(fill)?),
            _ => {
                return Err(self
                    .error(
                        &document.span,
                        format!("scalar `{}` needs one source", document.name.value),
                    )
                    .expected("expected either `value` or `fill`"));
            }
        };
        Ok(Scalar {
            name: document.name.value.clone(),
            dtype,
            source,
        })
    }
}

/// A fill of a family; the families are tested, so a bad one cannot occur.
fn parse_default(text: &str) -> Fill<Expr> {
    Fill::parse(text).unwrap_or(Fill::OneHot)
}
