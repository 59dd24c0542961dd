//! What all checks share: the texts for error places, the names that expressions may use, paths.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use crate::contract::TypeName;
use crate::document::{At, Formula, Literal, PerType};
use crate::expr::{Expr, ExprError};
use crate::family::Family;
use crate::nearest::nearest;
use crate::{ContractError, DType, Fill};

/// Words that are no C identifiers, or that a generated header uses itself.
const RESERVED: [&str; 44] = [
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum",
    "extern", "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return",
    "short", "signed", "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void",
    "volatile", "while", "class", "new", "delete", "this", "template", "true", "false", "int64_t", "main",
    "u",
];

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Type,
    Axis,
    Tensor,
    Scalar,
}

pub(super) struct Context<'a> {
    path: &'a Path,
    text: &'a str,
    family: String,
    pub(super) names: BTreeMap<String, Kind>,
    pub(super) types: BTreeMap<String, Vec<DType>>,
}

impl<'a> Context<'a> {
    pub(super) fn new(path: &'a Path, text: &'a str, family: &str) -> Self {
        Self {
            path,
            text,
            family: family.to_owned(),
            names: BTreeMap::new(),
            types: BTreeMap::new(),
        }
    }

    /// An error at `span`, in the task's file or, behind its end, in the family's.
    pub(super) fn error(&self, span: &Range<usize>, message: impl Into<String>) -> ContractError {
        let length = self.text.len();
        if span.start > length {
            let text = Family::find(&self.family).map_or("", |family| family.defaults);
            let path = PathBuf::from(format!("family {}", self.family));
            return ContractError::new(&path, text, Some(span.start - length..span.end - length), message);
        }
        ContractError::new(self.path, self.text, Some(span.clone()), message)
    }

    /// Takes `name` for `kind`; refuses what C cannot name and what is taken.
    pub(super) fn claim(&mut self, name: &At<String>, kind: Kind) -> Result<(), ContractError> {
        let identifier = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && name.len() <= 48;
        if !identifier {
            return Err(self
                .error(
                    &name.span,
                    format!("`{}` cannot be a C parameter", name.value.escape_debug()),
                )
                .expected("expected letters, digits and `_`, a letter first"));
        }
        if RESERVED.contains(&name.as_str()) || name.parse::<DType>().is_ok() {
            return Err(self
                .error(&name.span, format!("`{}` is a reserved word", name.value))
                .expected("expected another name"));
        }
        if self.names.contains_key(&name.value) {
            return Err(self
                .error(&name.span, format!("the name `{}` is taken", name.value))
                .expected("expected a new name")
                .help("dtype variables, axes, tensors and scalars share one space of names"));
        }
        self.names.insert(name.value.clone(), kind);
        Ok(())
    }

    /// Names of one kind.
    pub(super) fn names_of(&self, kind: Kind) -> impl Iterator<Item = &str> {
        self.names
            .iter()
            .filter(move |(_, k)| **k == kind)
            .map(|(name, _)| name.as_str())
    }

    /// An expression over axes and dtype variables.
    pub(super) fn expr(&self, formula: &Formula) -> Result<Expr, ContractError> {
        self.literal(&formula.value, &formula.span)
    }

    pub(super) fn literal(&self, literal: &Literal, span: &Range<usize>) -> Result<Expr, ContractError> {
        match literal {
            Literal::Int(value) => Ok(Expr::int(*value)),
            Literal::Float(value) => Ok(Expr::float(*value)),
            Literal::Text(text) => {
                let expr = Expr::parse(text).map_err(|error| self.inside(span, text, &error))?;
                self.check_names(&expr, span, 0)?;
                Ok(expr)
            }
        }
    }

    /// An expression given as text.
    pub(super) fn condition(&self, text: &At<String>) -> Result<Expr, ContractError> {
        self.literal(&Literal::Text(text.value.clone()), &text.span)
    }

    /// A fill.
    pub(super) fn fill(&self, text: &At<String>) -> Result<Fill<Expr>, ContractError> {
        let fill = Fill::parse(text).map_err(|error| self.inside(&text.span, text, &error))?;
        for expr in fill.expressions() {
            let shift = text.find(expr.text()).unwrap_or(0);
            self.check_names(expr, &text.span, shift)?;
        }
        Ok(fill)
    }

    fn check_names(&self, expr: &Expr, span: &Range<usize>, shift: usize) -> Result<(), ContractError> {
        for (name, place) in expr.name_spans() {
            if matches!(self.names.get(name), Some(Kind::Axis | Kind::Type)) {
                continue;
            }
            let usable: Vec<_> = self
                .names_of(Kind::Axis)
                .chain(self.names_of(Kind::Type))
                .collect();
            let error = ExprError::new(
                format!("there is no axis `{name}`"),
                place.start + shift..place.end + shift,
            );
            let error = match nearest(name, usable.iter().copied()) {
                Some(near) => error.with_help(format!("did you mean `{near}`?")),
                None => error.with_help(format!("the axes are {}", usable.join(", "))),
            };
            return Err(self
                .inside(span, expr.text(), &error)
                .expected("no axis or dtype variable"));
        }
        Ok(())
    }

    /// An error of an expression, placed inside the string that holds it where that is written plainly.
    pub(super) fn inside(&self, span: &Range<usize>, text: &str, error: &ExprError) -> ContractError {
        let source = self.text.get(span.clone()).unwrap_or_default();
        let plain = source.len() == text.len() + 2 || source.contains(text);
        let place = if plain && source.starts_with(['"', '\'']) {
            // Where the text ends too early, the closing quote is the place.
            let start = span.start + 1 + error.span.start;
            start..start + error.span.len().max(1)
        } else {
            span.clone()
        };
        self.error(&place, error.message.clone())
            .maybe_help(error.help.clone())
    }

    /// A dtype or a dtype variable.
    pub(super) fn type_name(&self, name: &At<String>) -> Result<TypeName, ContractError> {
        if let Ok(dtype) = name.parse() {
            return Ok(TypeName::Fixed(dtype));
        }
        if self.names.get(&name.value) == Some(&Kind::Type) {
            return Ok(TypeName::Variable(name.value.clone()));
        }
        let known: Vec<_> = DType::ALL
            .map(DType::name)
            .into_iter()
            .chain(self.names_of(Kind::Type))
            .collect();
        let near = nearest(name, known.iter().copied()).map(|near| format!("did you mean `{near}`?"));
        Err(self
            .error(
                &name.span,
                format!("`{}` is no dtype and no dtype variable", name.value),
            )
            .expected(format!("expected one of {}", known.join(", ")))
            .maybe_help(near))
    }

    /// The dtypes a type name ranges over.
    pub(super) fn dtypes(&self, name: &TypeName) -> Vec<DType> {
        match name {
            TypeName::Fixed(dtype) => vec![*dtype],
            TypeName::Variable(variable) => self.types.get(variable).cloned().unwrap_or_default(),
        }
    }

    /// Formulas per dtype. Those for dtypes that cannot occur are errors.
    pub(super) fn per_type(
        &self,
        given: Option<&At<PerType>>,
        dtypes: &[DType],
    ) -> Result<BTreeMap<DType, Expr>, ContractError> {
        let Some(given) = given else {
            return Ok(BTreeMap::new());
        };
        match &given.value {
            PerType::All(literal) => {
                let expr = self.literal(literal, &given.span)?;
                Ok(dtypes.iter().map(|dtype| (*dtype, expr.clone())).collect())
            }
            PerType::Each(entries) => {
                let mut formulas = BTreeMap::new();
                for (name, formula) in entries {
                    let dtype = name
                        .parse()
                        .ok()
                        .filter(|dtype| dtypes.contains(dtype))
                        .ok_or_else(|| {
                            let known: Vec<_> = dtypes.iter().map(|dtype| dtype.name()).collect();
                            let near = nearest(name, known.iter().copied());
                            self.error(&name.span, format!("this output is never `{}`", name.value))
                                .expected(format!("expected one of {}", known.join(", ")))
                                .maybe_help(near.map(|near| format!("did you mean `{near}`?")))
                        })?;
                    formulas.insert(dtype, self.expr(formula)?);
                }
                if let Some(missing) = dtypes.iter().find(|dtype| !formulas.contains_key(dtype)) {
                    return Err(self
                        .error(&given.span, format!("there is no value for `{missing}`"))
                        .expected("expected one entry per dtype of the output"));
                }
                Ok(formulas)
            }
        }
    }

    /// A relative path that stays in the task's folder.
    pub(super) fn relative(&self, path: &At<String>) -> Result<PathBuf, ContractError> {
        let given = Path::new(&path.value);
        let inside = !path.is_empty()
            && given
                .components()
                .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if !inside {
            return Err(self
                .error(
                    &path.span,
                    format!("`{}` is outside the task's folder", path.value.escape_debug()),
                )
                .expected("expected a relative path without `..`"));
        }
        Ok(given
            .components()
            .filter(|part| !matches!(part, Component::CurDir))
            .collect())
    }

    /// A relative path of a folder. Whether it exists is lint's business.
    pub(super) fn folder(&self, path: &At<String>) -> Result<PathBuf, ContractError> {
        self.relative(path)
    }

    /// A relative path with one of the endings.
    pub(super) fn source(&self, path: &At<String>, endings: &[&str]) -> Result<PathBuf, ContractError> {
        let file = self.relative(path)?;
        let ending = file
            .extension()
            .and_then(|ending| ending.to_str())
            .unwrap_or_default();
        if endings.contains(&ending) {
            return Ok(file);
        }
        let list = endings
            .iter()
            .map(|ending| format!("`.{ending}`"))
            .collect::<Vec<_>>()
            .join(", ");
        Err(self
            .error(
                &path.span,
                format!("`{}` has an ending that is not known here", path.value),
            )
            .expected(format!("expected one of {list}")))
    }

    /// A C symbol, or its default.
    pub(super) fn symbol(&self, name: Option<&At<String>>, default: &str) -> Result<String, ContractError> {
        let Some(name) = name else {
            return Ok(default.to_owned());
        };
        let valid = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !RESERVED.contains(&name.as_str());
        if valid {
            return Ok(name.value.clone());
        }
        Err(self
            .error(
                &name.span,
                format!("`{}` cannot be a symbol", name.value.escape_debug()),
            )
            .expected("expected a C identifier"))
    }

    /// A duration such as `20m`, `1h30m`, `90s`, `500ms`.
    pub(super) fn duration(&self, text: &At<String>) -> Result<Duration, ContractError> {
        parse_duration(text).ok_or_else(|| {
            self.error(
                &text.span,
                format!("`{}` is not a duration", text.value.escape_debug()),
            )
            .expected("expected for example \"20m\", \"1h30m\", \"90s\", \"500ms\"")
        })
    }

    /// A number within bounds.
    pub(super) fn within(
        &self,
        value: &At<f64>,
        low: f64,
        high: f64,
        what: &str,
    ) -> Result<f64, ContractError> {
        if value.value >= low && value.value <= high {
            return Ok(value.value);
        }
        Err(self
            .error(&value.span, format!("{what} = {} is out of range", value.value))
            .expected(format!("expected {low} to {high}")))
    }
}

/// Parses a duration: numbers with `d h m s ms`, largest unit first, each at most once.
fn parse_duration(text: &str) -> Option<Duration> {
    const UNITS: [(&str, u64); 5] = [
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("m", 60_000),
        ("s", 1000),
        ("ms", 1),
    ];
    let mut rest = text.trim();
    let mut total: u64 = 0;
    let mut smallest = u64::MAX;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let count: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let length = rest
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(rest.len());
        let (_, factor) = UNITS.into_iter().find(|(unit, _)| *unit == &rest[..length])?;
        if factor >= smallest {
            return None;
        }
        smallest = factor;
        total = total.checked_add(count.checked_mul(factor)?)?;
        rest = rest[length..].trim_start();
    }
    Some(Duration::from_millis(total))
}

/// A duration in the form that [`parse_duration`] reads.
pub(crate) fn print_duration(duration: Duration) -> String {
    let mut rest = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if rest == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (unit, factor) in [
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("m", 60_000),
        ("s", 1000),
        ("ms", 1),
    ] {
        if rest >= factor {
            text.push_str(&format!("{}{unit}", rest / factor));
            rest %= factor;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_back_as_printed() {
        for text in ["20m", "1h30m", "90s", "500ms", "2d"] {
            let duration = parse_duration(text).unwrap();
            assert_eq!(parse_duration(&print_duration(duration)), Some(duration));
        }
        assert_eq!(parse_duration("1h 30m"), Some(Duration::from_secs(5400)));
        for text in ["", "20", "m", "20x", "30m1h", "99999999999999999999d", "1m1m"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }
}
