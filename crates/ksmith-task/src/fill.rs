//! Fill specifications: how a tensor's values are drawn. The judge draws; this file only names and parses.

use std::fmt;

use crate::expr::{Env, Expr, ExprError};
use crate::nearest::nearest;

/// How values are drawn. Parsed as `Fill<Expr>` (parameters may use axes), resolved to `Fill<f64>`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Fill<N = f64> {
    /// `normal(mean, sd)`: Gaussian.
    Normal {
        /// Mean.
        mean: N,
        /// Standard deviation.
        sd: N,
    },
    /// `uniform(low, high)`: evenly in `[low, high)`.
    Uniform {
        /// Lower end.
        low: N,
        /// Upper end.
        high: N,
    },
    /// `log_uniform(low, high)`: the logarithm evenly in `[ln low, ln high)`; both above zero.
    LogUniform {
        /// Lower end.
        low: N,
        /// Upper end.
        high: N,
    },
    /// `wide(decades)`: random sign, magnitude log-uniform over so many decades centred on 1.
    Wide {
        /// Decades covered.
        decades: N,
    },
    /// `constant(value)`.
    Constant {
        /// The value.
        value: N,
    },
    /// `spike(p, value)`: `normal(0, 1)`, but each element is `value` with probability `p`.
    Spike {
        /// Probability of a spike.
        probability: N,
        /// Value of a spike.
        value: N,
    },
    /// `tiny`: random sign, magnitudes around and below the smallest normal number of the dtype.
    Tiny,
    /// `integers(low, high)`: whole numbers, both ends included.
    Integers {
        /// Least value.
        low: N,
        /// Greatest value.
        high: N,
    },
    /// `zipf(n, s)`: whole numbers `0..n`, number `i` with weight `1 / (i + 1)^s`.
    Zipf {
        /// Count of distinct values.
        n: N,
        /// Exponent.
        s: N,
    },
    /// `bernoulli(p)`: 1 with probability `p`, else 0.
    Bernoulli {
        /// Probability of a 1.
        p: N,
    },
    /// `sorted(fill)`: the inner fill, ascending along the last dimension.
    Sorted(Box<Fill<N>>),
    /// `permutation(n)`: each run of `n` elements is a permutation of `0..n`.
    Permutation {
        /// Length of a permutation.
        n: N,
    },
    /// `distinct(n)`: whole numbers below `n`, no two equal along the last dimension.
    Distinct {
        /// Count of values to choose from.
        n: N,
    },
    /// `one_hot`: one 1 per last dimension, else 0.
    OneHot,
    /// `partition(total)`: offsets from 0 to `total`, ascending; some parts empty, one dominant.
    Partition {
        /// Last offset.
        total: N,
    },
    /// `generator`: this tensor is written by the task's generator program.
    Generator,
}

const NAMES: [(&str, usize); 16] = [
    ("normal", 2),
    ("uniform", 2),
    ("log_uniform", 2),
    ("wide", 1),
    ("constant", 1),
    ("spike", 2),
    ("tiny", 0),
    ("integers", 2),
    ("zipf", 2),
    ("bernoulli", 1),
    ("sorted", 1),
    ("permutation", 1),
    ("distinct", 1),
    ("one_hot", 0),
    ("partition", 1),
    ("generator", 0),
];

impl Fill<Expr> {
    /// Parses a specification such as `spike(0.01, 1e4)` or `sorted(normal(0, 1))`.
    pub fn parse(text: &str) -> Result<Self, ExprError> {
        parse_at(text, 0)
    }

    /// Evaluates the parameters under the axes of one workload and checks that they make sense.
    pub fn resolve(&self, env: &Env) -> Result<Fill, ExprError> {
        let resolved = self.try_map(&mut |expr: &Expr| expr.eval_float(env))?;
        match resolved.complaint() {
            None => Ok(resolved),
            Some(message) => Err(ExprError::new(format!("`{self}`: {message}"), 0..0)),
        }
    }

    /// The names of axes that the parameters use.
    pub(crate) fn expressions(&self) -> Vec<&Expr> {
        let mut found = Vec::new();
        self.visit(&mut |expr| found.push(expr));
        found
    }
}

impl<N> Fill<N> {
    fn visit<'a>(&'a self, see: &mut impl FnMut(&'a N)) {
        match self {
            Self::Normal { mean: a, sd: b }
            | Self::Uniform { low: a, high: b }
            | Self::LogUniform { low: a, high: b }
            | Self::Spike {
                probability: a,
                value: b,
            }
            | Self::Integers { low: a, high: b }
            | Self::Zipf { n: a, s: b } => {
                see(a);
                see(b);
            }
            Self::Wide { decades: a }
            | Self::Constant { value: a }
            | Self::Bernoulli { p: a }
            | Self::Permutation { n: a }
            | Self::Distinct { n: a }
            | Self::Partition { total: a } => see(a),
            Self::Sorted(inner) => inner.visit(see),
            Self::Tiny | Self::OneHot | Self::Generator => {}
        }
    }

    fn try_map<M, E>(&self, map: &mut impl FnMut(&N) -> Result<M, E>) -> Result<Fill<M>, E> {
        Ok(match self {
            Self::Normal { mean, sd } => Fill::Normal {
                mean: map(mean)?,
                sd: map(sd)?,
            },
            Self::Uniform { low, high } => Fill::Uniform {
                low: map(low)?,
                high: map(high)?,
            },
            Self::LogUniform { low, high } => Fill::LogUniform {
                low: map(low)?,
                high: map(high)?,
            },
            Self::Wide { decades } => Fill::Wide {
                decades: map(decades)?,
            },
            Self::Constant { value } => Fill::Constant { value: map(value)? },
            Self::Spike { probability, value } => Fill::Spike {
                probability: map(probability)?,
                value: map(value)?,
            },
            Self::Tiny => Fill::Tiny,
            Self::Integers { low, high } => Fill::Integers {
                low: map(low)?,
                high: map(high)?,
            },
            Self::Zipf { n, s } => Fill::Zipf {
                n: map(n)?,
                s: map(s)?,
            },
            Self::Bernoulli { p } => Fill::Bernoulli { p: map(p)? },
            Self::Sorted(inner) => Fill::Sorted(Box::new(inner.try_map(map)?)),
            Self::Permutation { n } => Fill::Permutation { n: map(n)? },
            Self::Distinct { n } => Fill::Distinct { n: map(n)? },
            Self::OneHot => Fill::OneHot,
            Self::Partition { total } => Fill::Partition { total: map(total)? },
            Self::Generator => Fill::Generator,
        })
    }

    /// The name used in contracts.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Normal { .. } => "normal",
            Self::Uniform { .. } => "uniform",
            Self::LogUniform { .. } => "log_uniform",
            Self::Wide { .. } => "wide",
            Self::Constant { .. } => "constant",
            Self::Spike { .. } => "spike",
            Self::Tiny => "tiny",
            Self::Integers { .. } => "integers",
            Self::Zipf { .. } => "zipf",
            Self::Bernoulli { .. } => "bernoulli",
            Self::Sorted(_) => "sorted",
            Self::Permutation { .. } => "permutation",
            Self::Distinct { .. } => "distinct",
            Self::OneHot => "one_hot",
            Self::Partition { .. } => "partition",
            Self::Generator => "generator",
        }
    }
}

impl Fill {
    /// Why the parameters make no sense, if they do not.
    fn complaint(&self) -> Option<&'static str> {
        let whole = |value: &f64| value.fract() == 0.0 && value.abs() < 2f64.powi(63);
        match self {
            Self::Normal { sd, .. } if *sd < 0.0 => Some("the standard deviation is negative"),
            Self::Uniform { low, high } if low > high => Some("the lower end is above the upper"),
            Self::LogUniform { low, high } if *low <= 0.0 || low > high => Some("needs 0 < low <= high"),
            Self::Wide { decades } if *decades <= 0.0 || *decades > 600.0 => Some("needs 0 < decades <= 600"),
            Self::Spike { probability: p, .. } | Self::Bernoulli { p } if !(0.0..=1.0).contains(p) => {
                Some("a probability lies in 0..1")
            }
            Self::Integers { low, high } if !(whole(low) && whole(high)) || low > high => {
                Some("needs whole numbers low <= high")
            }
            Self::Zipf { n, s } if !whole(n) || *n < 1.0 || *s < 0.0 => Some("needs n >= 1 and s >= 0"),
            Self::Permutation { n } | Self::Distinct { n } if !whole(n) || *n < 1.0 => {
                Some("needs a whole number n >= 1")
            }
            Self::Partition { total } if !whole(total) || *total < 0.0 => {
                Some("needs a whole number total >= 0")
            }
            Self::Sorted(inner) => inner.complaint(),
            _ => None,
        }
    }
}

impl<N: fmt::Display> fmt::Display for Fill<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Sorted(inner) = self {
            return write!(f, "sorted({inner})");
        }
        let mut parameters = Vec::new();
        self.visit(&mut |value| parameters.push(value.to_string()));
        f.write_str(self.name())?;
        if parameters.is_empty() {
            Ok(())
        } else {
            write!(f, "({})", parameters.join(", "))
        }
    }
}

impl<N: fmt::Display> serde::Serialize for Fill<N> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn parse_at(text: &str, offset: usize) -> Result<Fill<Expr>, ExprError> {
    let (name, arguments) = split_call(text, offset)?;
    let span = offset..offset + text.len();
    let Some((_, arity)) = NAMES.iter().find(|(known, _)| *known == name) else {
        let help = match nearest(name, NAMES.iter().map(|(name, _)| *name)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "the fills are {}",
                NAMES.map(|(name, _)| format!("`{name}`")).join(", ")
            ),
        };
        return Err(ExprError::new(format!("there is no fill `{name}`"), span).with_help(help));
    };
    if arguments.len() != *arity {
        return Err(ExprError::new(
            format!("`{name}` takes {arity} parameter(s), {} given", arguments.len()),
            span,
        ));
    }
    if name == "sorted" {
        return match parse_at(arguments[0].0, arguments[0].1)? {
            Fill::Sorted(_) | Fill::Generator => {
                Err(ExprError::new("`sorted` takes a fill that draws values", span))
            }
            inner => Ok(Fill::Sorted(Box::new(inner))),
        };
    }
    let mut parsed = Vec::new();
    for (argument, at) in arguments {
        let at = at + argument.len() - argument.trim_start().len();
        let argument = argument.trim();
        parsed.push(Expr::parse(argument).map_err(|mut error| {
            error.span = error.span.start + at..error.span.end + at;
            error
        })?);
    }
    let mut parsed = parsed.into_iter();
    // The count was checked against the table above.
    let mut next = || parsed.next().unwrap_or_else(|| Expr::int(0));
    Ok(match name {
        "normal" => Fill::Normal {
            mean: next(),
            sd: next(),
        },
        "uniform" => Fill::Uniform {
            low: next(),
            high: next(),
        },
        "log_uniform" => Fill::LogUniform {
            low: next(),
            high: next(),
        },
        "wide" => Fill::Wide { decades: next() },
        "constant" => Fill::Constant { value: next() },
        "spike" => Fill::Spike {
            probability: next(),
            value: next(),
        },
        "tiny" => Fill::Tiny,
        "integers" => Fill::Integers {
            low: next(),
            high: next(),
        },
        "zipf" => Fill::Zipf { n: next(), s: next() },
        "bernoulli" => Fill::Bernoulli { p: next() },
        "permutation" => Fill::Permutation { n: next() },
        "distinct" => Fill::Distinct { n: next() },
        "one_hot" => Fill::OneHot,
        "partition" => Fill::Partition { total: next() },
        _ => Fill::Generator,
    })
}

/// A name and its arguments, each with its offset in the whole text.
type Call<'a> = (&'a str, Vec<(&'a str, usize)>);

/// Splits `name(a, b)` into its name and its top-level arguments with their offsets.
fn split_call(text: &str, offset: usize) -> Result<Call<'_>, ExprError> {
    let lead = text.len() - text.trim_start().len();
    let (text, offset) = (text.trim(), offset + lead);
    let Some(open) = text.find('(') else {
        return Ok((text, Vec::new()));
    };
    let malformed = || ExprError::new("expected `name(parameters)`", offset..offset + text.len());
    let inner = text
        .strip_suffix(')')
        .and_then(|head| head.get(open + 1..))
        .ok_or_else(malformed)?;
    let mut arguments = Vec::new();
    let (mut depth, mut start) = (0i32, 0);
    for (at, character) in inner.char_indices() {
        match character {
            '(' => depth += 1,
            ')' if depth == 0 => return Err(malformed()),
            ')' => depth -= 1,
            ',' if depth == 0 => {
                arguments.push((&inner[start..at], offset + open + 1 + start));
                start = at + 1;
            }
            _ => {}
        }
    }
    if depth > 64 || depth != 0 {
        return Err(malformed());
    }
    if !inner.trim().is_empty() {
        arguments.push((&inner[start..], offset + open + 1 + start));
    }
    Ok((text[..open].trim_end(), arguments))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fills_of_the_contract_format_parse_and_print() {
        for text in [
            "normal(0, 1)",
            "spike(0.01, 1e4)",
            "sorted(normal(0, 1))",
            "wide(6)",
            "tiny",
            "one_hot",
            "permutation(n)",
            "partition(max(1, tokens / 2))",
            "generator",
        ] {
            assert_eq!(Fill::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn parameters_may_use_axes() {
        let env: Env = [("experts", 8)].into_iter().collect();
        let fill = Fill::parse("integers(0, experts - 1)")
            .unwrap()
            .resolve(&env)
            .unwrap();
        assert_eq!(fill, Fill::Integers { low: 0.0, high: 7.0 });
    }

    #[test]
    fn a_mistyped_fill_gets_its_nearest_name() {
        let error = Fill::parse("nromal(0, 1)").unwrap_err();
        assert_eq!(error.help.as_deref(), Some("did you mean `normal`?"));
        assert!(Fill::parse("normal(0)").is_err());
        assert!(Fill::parse("normal(0, 1").is_err());
        assert!(Fill::parse("normal 0, 1)").is_err());
        assert!(Fill::parse("bernoulli(2)").unwrap().resolve(&Env::new()).is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_the_fill_parser_panic(text in "[a-z_(),. 0-9é]{0,40}") {
            let _ = Fill::parse(&text).and_then(|fill| fill.resolve(&Env::new()));
        }
    }
}
