//! The rules: parsed once from the embedded file, evaluated against metrics by name.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::Dimension;

const DATA: &str = include_str!("../../rules/reading.toml");

/// Where a metric should go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Direction {
    Up,
    Down,
}

/// One change, and the metric that should move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// What to change.
    pub change: String,
    /// The metric that should move.
    pub metric: String,
    /// Where it should go.
    pub direction: Direction,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Stable name.
    pub id: String,
    /// Dimension.
    pub dimension: Dimension,
    /// Conditions; all must hold.
    pub when: Vec<String>,
    /// Text with `{metric:digits}`.
    pub says: String,
    /// The change, if the rule asks for one.
    pub edit: Option<Edit>,
    /// Names that the search understands.
    #[serde(default)]
    pub strategies: Vec<String>,
    /// Whether it holds only where no rule with an edit before it does.
    #[serde(default)]
    pub fallback: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    rule: Vec<Rule>,
}

/// The embedded rules in their order.
pub fn rules() -> &'static [Rule] {
    static RULES: OnceLock<Vec<Rule>> = OnceLock::new();
    RULES.get_or_init(|| {
        let file: File = toml::from_str(DATA).expect("the embedded rules parse, as their test shows");
        file.rule
    })
}

impl Rule {
    /// Whether all conditions hold; the missing metrics, if one of them cannot be decided and none is false.
    pub(super) fn holds(&self, metric: &dyn Fn(&str) -> Option<f64>) -> Result<bool, Vec<String>> {
        let mut missing = Vec::new();
        for condition in &self.when {
            match decide(condition, metric) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(name) => missing.push(name),
            }
        }
        if missing.is_empty() {
            Ok(true)
        } else {
            Err(missing)
        }
    }

    /// The text with numbers; a metric that is missing reads `?`.
    pub(super) fn text(&self, metric: &dyn Fn(&str) -> Option<f64>) -> String {
        let mut text = String::new();
        let mut rest = self.says.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            text.push_str(before);
            let Some((slot, tail)) = after.split_once('}') else {
                break;
            };
            let (name, digits) = slot.split_once(':').unwrap_or((slot, "2"));
            let digits = digits.parse().unwrap_or(2);
            match metric(name) {
                Some(value) => text.push_str(&format!("{value:.digits$}")),
                None => text.push('?'),
            }
            rest = tail;
        }
        text.push_str(rest);
        text
    }
}

/// Parts of a condition: left metric, operator, right number or metric.
pub(super) fn parts(condition: &str) -> Option<(&str, &str, &str)> {
    let mut words = condition.split_whitespace();
    let parts = (words.next()?, words.next()?, words.next()?);
    words.next().is_none().then_some(parts)
}

fn decide(condition: &str, metric: &dyn Fn(&str) -> Option<f64>) -> Result<bool, String> {
    let (left, operator, right) = parts(condition).ok_or_else(|| condition.to_owned())?;
    let one = metric(left).ok_or_else(|| left.to_owned())?;
    let two = match right.parse::<f64>() {
        Ok(number) => number,
        Err(_) => metric(right).ok_or_else(|| right.to_owned())?,
    };
    match operator {
        ">=" => Ok(one >= two),
        ">" => Ok(one > two),
        "<" => Ok(one < two),
        "<=" => Ok(one <= two),
        // Only for the 0 and 1 of the contract's expectations.
        "==" => Ok((one - two).abs() < 0.5),
        other => Err(format!("operator `{other}`")),
    }
}
