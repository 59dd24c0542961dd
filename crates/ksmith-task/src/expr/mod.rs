//! Expressions over axes: the part of CEL's syntax that contracts need, parsed and evaluated by ourselves.
//!
//! Integers and floats mix (an integer meets a float as a float). Overflow, division by zero and type errors are
//! errors and never panics: a contract is outside input.

mod eval;
mod lexer;
mod parser;
#[cfg(test)]
mod tests;
mod value;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;

pub use value::Value;

use parser::Node;

/// A parsed expression together with its text.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    text: String,
    root: Node,
}

/// What is wrong with an expression, with the byte range of its text that is to blame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExprError {
    /// What happened, a lower-case fragment.
    pub message: String,
    /// Where in the expression's text.
    pub span: Range<usize>,
    /// What to do about it, where that is known.
    pub help: Option<String>,
}

impl ExprError {
    pub(crate) fn new(message: impl Into<String>, span: Range<usize>) -> Self {
        Self {
            message: message.into(),
            span,
            help: None,
        }
    }

    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// The names an expression may use.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Env(BTreeMap<String, Value>);

impl Env {
    /// An environment without names.
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds `name`, replacing an earlier binding.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        self.0.insert(name.into(), value.into());
    }

    /// The value bound to `name`.
    pub fn get(&self, name: &str) -> Option<Value> {
        self.0.get(name).copied()
    }

    /// All names, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl<N: Into<String>, V: Into<Value>> FromIterator<(N, V)> for Env {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        Self(
            pairs
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    }
}

impl Expr {
    /// Parses `text`.
    pub fn parse(text: &str) -> Result<Self, ExprError> {
        Ok(Self {
            text: text.to_owned(),
            root: parser::parse(text)?,
        })
    }

    /// An integer constant.
    pub fn int(value: i64) -> Self {
        Self {
            text: value.to_string(),
            root: Node::constant(Value::Int(value)),
        }
    }

    /// A float constant.
    pub fn float(value: f64) -> Self {
        Self {
            text: format!("{value:?}"),
            root: Node::constant(Value::Float(value)),
        }
    }

    /// The text it was parsed from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The value, if the expression is a literal.
    pub fn as_constant(&self) -> Option<Value> {
        self.root.as_constant()
    }

    /// The free names, in alphabetical order.
    pub fn names(&self) -> BTreeSet<&str> {
        let mut names = BTreeSet::new();
        self.root.collect_names(&mut names);
        names
    }

    /// The free names with their places in the text, in order of appearance.
    pub(crate) fn name_spans(&self) -> Vec<(&str, Range<usize>)> {
        let mut spans = Vec::new();
        self.root.collect_name_spans(&mut spans);
        spans
    }

    /// Evaluates under `env`.
    pub fn eval(&self, env: &Env) -> Result<Value, ExprError> {
        eval::eval(&self.root, env)
    }

    /// Evaluates to an integer; a float is a type error.
    pub fn eval_int(&self, env: &Env) -> Result<i64, ExprError> {
        match self.eval(env)? {
            Value::Int(value) => Ok(value),
            other => Err(self
                .wrong_type("an integer", other)
                .with_help("convert a float with `int(...)`")),
        }
    }

    /// Evaluates to a number, as a float.
    pub fn eval_float(&self, env: &Env) -> Result<f64, ExprError> {
        let value = self.eval(env)?;
        value.as_f64().ok_or_else(|| self.wrong_type("a number", value))
    }

    /// Evaluates to a truth value.
    pub fn eval_bool(&self, env: &Env) -> Result<bool, ExprError> {
        match self.eval(env)? {
            Value::Bool(value) => Ok(value),
            other => Err(self.wrong_type("a condition", other)),
        }
    }

    fn wrong_type(&self, expected: &str, found: Value) -> ExprError {
        ExprError::new(
            format!("`{}` is {}, expected {expected}", self.text, found.type_name()),
            0..self.text.len(),
        )
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl serde::Serialize for Expr {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.as_constant() {
            Some(Value::Int(value)) => serializer.serialize_i64(value),
            Some(Value::Float(value)) => serializer.serialize_f64(value),
            Some(Value::Bool(_) | Value::DType(_)) | None => serializer.serialize_str(&self.text),
        }
    }
}
