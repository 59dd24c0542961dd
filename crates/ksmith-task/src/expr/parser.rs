//! Tokens to a tree, by precedence climbing (Pratt).

use std::collections::BTreeSet;
use std::ops::Range;
use std::str::FromStr;

use super::lexer::{Token, tokens};
use super::{ExprError, Value};
use crate::{DType, nearest::nearest};

/// Deeper nesting than any contract needs; bounds the recursion of parser and evaluator.
const MAX_DEPTH: usize = 64;
/// Longer than any contract needs.
const MAX_LENGTH: usize = 4096;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) span: Range<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Constant(Value),
    Name(String),
    Unary(Unary, Box<Node>),
    Binary(Binary, Box<Node>, Box<Node>),
    Choice(Box<Node>, Box<Node>, Box<Node>),
    Call(Function, Vec<Node>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unary {
    Minus,
    Not,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
    And,
    Or,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Min,
    Max,
    CeilDiv,
    RoundUp,
    IsPow2,
    Sqrt,
    Log2,
    Float,
    Int,
    Roundoff,
}

impl Function {
    const ALL: [(&'static str, Self); 10] = [
        ("min", Self::Min),
        ("max", Self::Max),
        ("ceil_div", Self::CeilDiv),
        ("round_up", Self::RoundUp),
        ("is_pow2", Self::IsPow2),
        ("sqrt", Self::Sqrt),
        ("log2", Self::Log2),
        ("float", Self::Float),
        ("int", Self::Int),
        ("u", Self::Roundoff),
    ];

    pub(super) fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(_, function)| *function == self)
            .map_or("", |(name, _)| name)
    }

    /// Least and greatest number of arguments.
    fn arity(self) -> (usize, usize) {
        match self {
            Self::Min | Self::Max => (1, 64),
            Self::CeilDiv | Self::RoundUp => (2, 2),
            Self::IsPow2 | Self::Sqrt | Self::Log2 | Self::Float | Self::Int | Self::Roundoff => (1, 1),
        }
    }
}

impl Node {
    pub(super) fn constant(value: Value) -> Self {
        Self {
            kind: Kind::Constant(value),
            span: 0..0,
        }
    }

    pub(super) fn as_constant(&self) -> Option<Value> {
        match &self.kind {
            Kind::Constant(value) => Some(*value),
            Kind::Unary(Unary::Minus, inner) => match inner.as_constant()? {
                Value::Int(value) => value.checked_neg().map(Value::Int),
                Value::Float(value) => Some(Value::Float(-value)),
                Value::Bool(_) | Value::DType(_) => None,
            },
            Kind::Unary(Unary::Not, _)
            | Kind::Name(_)
            | Kind::Binary(..)
            | Kind::Choice(..)
            | Kind::Call(..) => None,
        }
    }

    pub(super) fn collect_names<'a>(&'a self, names: &mut BTreeSet<&'a str>) {
        let mut spans = Vec::new();
        self.collect_name_spans(&mut spans);
        names.extend(spans.into_iter().map(|(name, _)| name));
    }

    pub(super) fn collect_name_spans<'a>(&'a self, spans: &mut Vec<(&'a str, Range<usize>)>) {
        match &self.kind {
            Kind::Constant(_) => {}
            Kind::Name(name) => spans.push((name, self.span.clone())),
            Kind::Unary(_, inner) => inner.collect_name_spans(spans),
            Kind::Binary(_, left, right) => {
                left.collect_name_spans(spans);
                right.collect_name_spans(spans);
            }
            Kind::Choice(condition, yes, no) => {
                for node in [condition, yes, no] {
                    node.collect_name_spans(spans);
                }
            }
            Kind::Call(_, arguments) => arguments.iter().for_each(|node| node.collect_name_spans(spans)),
        }
    }
}

pub(super) fn parse(text: &str) -> Result<Node, ExprError> {
    if text.len() > MAX_LENGTH {
        return Err(ExprError::new(
            format!("expression is longer than {MAX_LENGTH} bytes"),
            0..0,
        ));
    }
    let mut parser = Parser {
        tokens: tokens(text)?,
        at: 0,
    };
    let node = parser.choice(0)?;
    let (token, span) = parser.peek();
    match token {
        Token::End => Ok(node),
        other => Err(ExprError::new(
            format!(
                "{} is not expected here: the expression ends before it",
                describe(other)
            ),
            span.clone(),
        )),
    }
}

struct Parser {
    tokens: Vec<(Token, Range<usize>)>,
    at: usize,
}

/// Binding power and operator of an infix symbol; all are left-associative.
fn infix(symbol: &str) -> Option<(u8, Binary)> {
    Some(match symbol {
        "||" => (1, Binary::Or),
        "&&" => (2, Binary::And),
        "<" => (3, Binary::Less),
        "<=" => (3, Binary::LessEqual),
        ">" => (3, Binary::Greater),
        ">=" => (3, Binary::GreaterEqual),
        "==" => (3, Binary::Equal),
        "!=" => (3, Binary::NotEqual),
        "+" => (4, Binary::Add),
        "-" => (4, Binary::Subtract),
        "*" => (5, Binary::Multiply),
        "/" => (5, Binary::Divide),
        "%" => (5, Binary::Remainder),
        _ => return None,
    })
}

impl Parser {
    fn peek(&self) -> (&Token, &Range<usize>) {
        let (token, span) = &self.tokens[self.at.min(self.tokens.len() - 1)];
        (token, span)
    }

    fn next(&mut self) -> (Token, Range<usize>) {
        let pair = self.tokens[self.at.min(self.tokens.len() - 1)].clone();
        self.at += 1;
        pair
    }

    fn eat(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek().0, Token::Symbol(s) if *s == symbol);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<Range<usize>, ExprError> {
        let (token, span) = self.next();
        match token {
            Token::Symbol(s) if s == symbol => Ok(span),
            other => Err(ExprError::new(
                format!("expected `{symbol}`, found {}", describe(&other)),
                span,
            )),
        }
    }

    fn choice(&mut self, depth: usize) -> Result<Node, ExprError> {
        let condition = self.binary(0, depth + 1)?;
        if !self.eat("?") {
            return Ok(condition);
        }
        let yes = self.choice(depth + 1)?;
        self.expect(":")?;
        let no = self.choice(depth + 1)?;
        let span = condition.span.start..no.span.end;
        Ok(Node {
            kind: Kind::Choice(Box::new(condition), Box::new(yes), Box::new(no)),
            span,
        })
    }

    fn binary(&mut self, least: u8, depth: usize) -> Result<Node, ExprError> {
        let mut left = self.unary(depth + 1)?;
        let mut chain = 0;
        while let Token::Symbol(symbol) = *self.peek().0 {
            let Some((power, operator)) = infix(symbol) else {
                break;
            };
            if power <= least {
                break;
            }
            self.at += 1;
            // A chain of left-associative operators deepens the tree as much as brackets do.
            chain += 1;
            if chain > MAX_DEPTH {
                return Err(ExprError::new("expression is nested too deeply", left.span));
            }
            let right = self.binary(power, depth + 1)?;
            let span = left.span.start..right.span.end;
            left = Node {
                kind: Kind::Binary(operator, Box::new(left), Box::new(right)),
                span,
            };
        }
        Ok(left)
    }

    fn unary(&mut self, depth: usize) -> Result<Node, ExprError> {
        let (token, span) = self.next();
        if depth > MAX_DEPTH {
            return Err(ExprError::new("expression is nested too deeply", span));
        }
        let operator = match token {
            Token::Symbol("-") => Unary::Minus,
            Token::Symbol("!") => Unary::Not,
            other => return self.primary(other, span, depth),
        };
        let inner = self.unary(depth + 1)?;
        let span = span.start..inner.span.end;
        Ok(Node {
            kind: Kind::Unary(operator, Box::new(inner)),
            span,
        })
    }

    fn primary(&mut self, token: Token, span: Range<usize>, depth: usize) -> Result<Node, ExprError> {
        let kind = match token {
            Token::Int(value) => Kind::Constant(Value::Int(value)),
            Token::Float(value) => Kind::Constant(Value::Float(value)),
            Token::Name(name) if matches!(self.peek().0, Token::Symbol("(")) => {
                return self.call(&name, span, depth);
            }
            Token::Name(name) if name == "true" => Kind::Constant(Value::Bool(true)),
            Token::Name(name) if name == "false" => Kind::Constant(Value::Bool(false)),
            Token::Name(name) => match DType::from_str(&name) {
                Ok(dtype) => Kind::Constant(Value::DType(dtype)),
                Err(()) => Kind::Name(name),
            },
            Token::Symbol("(") => {
                let inner = self.choice(depth + 1)?;
                let end = self.expect(")")?.end;
                return Ok(Node {
                    kind: inner.kind,
                    span: span.start..end,
                });
            }
            other @ (Token::Symbol(_) | Token::End) => {
                return Err(ExprError::new(
                    format!("expected a number, a name or `(`, found {}", describe(&other)),
                    span,
                ));
            }
        };
        Ok(Node { kind, span })
    }

    fn call(&mut self, name: &str, span: Range<usize>, depth: usize) -> Result<Node, ExprError> {
        let Some((_, function)) = Function::ALL.into_iter().find(|(known, _)| *known == name) else {
            let known = Function::ALL.map(|(name, _)| name);
            let help = match nearest(name, known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!(
                    "the functions are {}",
                    known.map(|name| format!("`{name}`")).join(", ")
                ),
            };
            return Err(ExprError::new(format!("there is no function `{name}`"), span).with_help(help));
        };
        self.expect("(")?;
        let mut arguments = Vec::new();
        if !matches!(self.peek().0, Token::Symbol(")")) {
            loop {
                arguments.push(self.choice(depth + 1)?);
                if !self.eat(",") {
                    break;
                }
            }
        }
        let span = span.start..self.expect(")")?.end;
        let (least, most) = function.arity();
        if arguments.len() < least || arguments.len() > most {
            let wanted = if least == most {
                least.to_string()
            } else {
                format!("{least} or more")
            };
            return Err(ExprError::new(
                format!("`{name}` takes {wanted} argument(s), {} given", arguments.len()),
                span,
            ));
        }
        Ok(Node {
            kind: Kind::Call(function, arguments),
            span,
        })
    }
}

fn describe(token: &Token) -> String {
    match token {
        Token::Int(value) => format!("`{value}`"),
        Token::Float(value) => format!("`{value:?}`"),
        Token::Name(name) => format!("`{name}`"),
        Token::Symbol(symbol) => format!("`{symbol}`"),
        Token::End => "the end".to_owned(),
    }
}
