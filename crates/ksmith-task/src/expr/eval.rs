//! Evaluates a tree; every failure names the part of the text to blame.

use super::parser::{Binary, Function, Kind, Node, Unary};
use super::{Env, ExprError, Value};
use crate::nearest::nearest;

pub(super) fn eval(node: &Node, env: &Env) -> Result<Value, ExprError> {
    match &node.kind {
        Kind::Constant(value) => Ok(*value),
        Kind::Name(name) => env.get(name).ok_or_else(|| unknown_name(name, node, env)),
        Kind::Unary(operator, inner) => unary(*operator, eval(inner, env)?, node),
        Kind::Binary(Binary::And, left, right) => {
            Ok(Value::Bool(condition(left, env)? && condition(right, env)?))
        }
        Kind::Binary(Binary::Or, left, right) => {
            Ok(Value::Bool(condition(left, env)? || condition(right, env)?))
        }
        Kind::Binary(operator, left, right) => binary(*operator, eval(left, env)?, eval(right, env)?, node),
        Kind::Choice(test, yes, no) => eval(if condition(test, env)? { yes } else { no }, env),
        Kind::Call(function, arguments) => {
            let values = arguments
                .iter()
                .map(|argument| eval(argument, env))
                .collect::<Result<Vec<_>, _>>()?;
            call(*function, &values, node)
        }
    }
}

fn unknown_name(name: &str, node: &Node, env: &Env) -> ExprError {
    let error = ExprError::new(
        format!("there is no axis or variable `{name}`"),
        node.span.clone(),
    );
    match nearest(name, env.names()) {
        Some(near) => error.with_help(format!("did you mean `{near}`?")),
        None => error.with_help(format!(
            "known here: {}",
            env.names().collect::<Vec<_>>().join(", ")
        )),
    }
}

fn condition(node: &Node, env: &Env) -> Result<bool, ExprError> {
    match eval(node, env)? {
        Value::Bool(value) => Ok(value),
        other => Err(ExprError::new(
            format!("{} is no condition", other.type_name()),
            node.span.clone(),
        )),
    }
}

fn overflow(node: &Node) -> ExprError {
    ExprError::new("overflow: the value does not fit", node.span.clone())
}

fn int(value: Option<i64>, node: &Node) -> Result<Value, ExprError> {
    value.map(Value::Int).ok_or_else(|| overflow(node))
}

fn float(value: f64, node: &Node) -> Result<Value, ExprError> {
    if value.is_finite() {
        Ok(Value::Float(value))
    } else {
        Err(overflow(node))
    }
}

fn unary(operator: Unary, value: Value, node: &Node) -> Result<Value, ExprError> {
    match (operator, value) {
        (Unary::Minus, Value::Int(value)) => int(value.checked_neg(), node),
        (Unary::Minus, Value::Float(value)) => Ok(Value::Float(-value)),
        (Unary::Not, Value::Bool(value)) => Ok(Value::Bool(!value)),
        (Unary::Minus, Value::Bool(_) | Value::DType(_)) => Err(ExprError::new(
            format!("cannot negate {}", value.type_name()),
            node.span.clone(),
        )),
        (Unary::Not, Value::Int(_) | Value::Float(_) | Value::DType(_)) => Err(ExprError::new(
            format!("`!` needs a condition, found {}", value.type_name()),
            node.span.clone(),
        )),
    }
}

fn binary(operator: Binary, left: Value, right: Value, node: &Node) -> Result<Value, ExprError> {
    let mismatch = || {
        ExprError::new(
            format!(
                "{} and {} do not go together here",
                left.type_name(),
                right.type_name()
            ),
            node.span.clone(),
        )
    };
    if let (Value::Int(a), Value::Int(b)) = (left, right) {
        return integers(operator, a, b, node);
    }
    match (left, right) {
        (Value::Bool(a), Value::Bool(b)) => equality(operator, a == b).ok_or_else(mismatch),
        (Value::DType(a), Value::DType(b)) => equality(operator, a == b).ok_or_else(mismatch),
        _ => match (left.as_f64(), right.as_f64()) {
            (Some(a), Some(b)) => floats(operator, a, b, node),
            _ => Err(mismatch()),
        },
    }
}

fn equality(operator: Binary, equal: bool) -> Option<Value> {
    match operator {
        Binary::Equal => Some(Value::Bool(equal)),
        Binary::NotEqual => Some(Value::Bool(!equal)),
        _ => None,
    }
}

fn integers(operator: Binary, a: i64, b: i64, node: &Node) -> Result<Value, ExprError> {
    let division = |value: Option<i64>| {
        if b == 0 {
            Err(ExprError::new("division by zero", node.span.clone()))
        } else {
            int(value, node)
        }
    };
    match operator {
        Binary::Add => int(a.checked_add(b), node),
        Binary::Subtract => int(a.checked_sub(b), node),
        Binary::Multiply => int(a.checked_mul(b), node),
        Binary::Divide => division(a.checked_div(b)),
        Binary::Remainder => division(a.checked_rem(b)),
        Binary::Less => Ok(Value::Bool(a < b)),
        Binary::LessEqual => Ok(Value::Bool(a <= b)),
        Binary::Greater => Ok(Value::Bool(a > b)),
        Binary::GreaterEqual => Ok(Value::Bool(a >= b)),
        Binary::Equal => Ok(Value::Bool(a == b)),
        Binary::NotEqual => Ok(Value::Bool(a != b)),
        Binary::And | Binary::Or => Err(ExprError::new("an integer is no condition", node.span.clone())),
    }
}

fn floats(operator: Binary, a: f64, b: f64, node: &Node) -> Result<Value, ExprError> {
    if b == 0.0 && matches!(operator, Binary::Divide | Binary::Remainder) {
        return Err(ExprError::new("division by zero", node.span.clone()));
    }
    match operator {
        Binary::Add => float(a + b, node),
        Binary::Subtract => float(a - b, node),
        Binary::Multiply => float(a * b, node),
        Binary::Divide => float(a / b, node),
        Binary::Remainder => float(a % b, node),
        Binary::Less => Ok(Value::Bool(a < b)),
        Binary::LessEqual => Ok(Value::Bool(a <= b)),
        Binary::Greater => Ok(Value::Bool(a > b)),
        Binary::GreaterEqual => Ok(Value::Bool(a >= b)),
        Binary::Equal => Ok(Value::Bool(a == b)),
        Binary::NotEqual => Ok(Value::Bool(a != b)),
        Binary::And | Binary::Or => Err(ExprError::new("a float is no condition", node.span.clone())),
    }
}

fn call(function: Function, values: &[Value], node: &Node) -> Result<Value, ExprError> {
    let wrong = |expected: &str, found: Value| {
        ExprError::new(
            format!(
                "`{}` needs {expected}, found {}",
                function.name(),
                found.type_name()
            ),
            node.span.clone(),
        )
    };
    let integer = |index: usize| match values.get(index) {
        Some(Value::Int(value)) => Ok(*value),
        Some(other) => Err(wrong("an integer", *other)),
        None => Err(overflow(node)),
    };
    let number = |value: Value| value.as_f64().ok_or_else(|| wrong("a number", value));
    let first = values.first().copied().unwrap_or(Value::Int(0));
    match function {
        Function::Min | Function::Max => extreme(function, values, number),
        Function::CeilDiv | Function::RoundUp => {
            let (a, b) = (integer(0)?, integer(1)?);
            if b <= 0 || a < 0 {
                let message = format!("`{}` needs a >= 0 and b > 0, found {a} and {b}", function.name());
                return Err(ExprError::new(message, node.span.clone()));
            }
            let quotient = a / b + i64::from(a % b != 0);
            int(
                if function == Function::CeilDiv {
                    Some(quotient)
                } else {
                    quotient.checked_mul(b)
                },
                node,
            )
        }
        Function::IsPow2 => integer(0).map(|value| Value::Bool(value > 0 && value & (value - 1) == 0)),
        Function::Sqrt => match number(first)? {
            value if value >= 0.0 => float(value.sqrt(), node),
            value => Err(ExprError::new(format!("`sqrt` of {value}"), node.span.clone())),
        },
        Function::Log2 => match number(first)? {
            value if value > 0.0 => float(libm::log2(value), node),
            value => Err(ExprError::new(format!("`log2` of {value}"), node.span.clone())),
        },
        Function::Float => float(number(first)?, node),
        Function::Int => match first {
            Value::Int(value) => Ok(Value::Int(value)),
            // 2^63 itself does not fit; -2^63 does.
            Value::Float(value) if value >= -(2f64.powi(63)) && value < 2f64.powi(63) => {
                Ok(Value::Int(value as i64))
            }
            Value::Float(_) => Err(overflow(node)),
            Value::Bool(_) | Value::DType(_) => Err(wrong("a number", first)),
        },
        Function::Roundoff => match first {
            Value::DType(dtype) => dtype
                .unit_roundoff()
                .map(Value::Float)
                .ok_or_else(|| ExprError::new(format!("`{dtype}` has no rounding unit"), node.span.clone())),
            other => Err(wrong("a dtype", other).with_help("for example `u(f32)`")),
        },
    }
}

fn extreme(
    function: Function,
    values: &[Value],
    number: impl Fn(Value) -> Result<f64, ExprError>,
) -> Result<Value, ExprError> {
    let mut all_int = Vec::with_capacity(values.len());
    let mut all_float = Vec::with_capacity(values.len());
    for value in values {
        if let Value::Int(int) = value {
            all_int.push(*int);
        }
        all_float.push(number(*value)?);
    }
    let largest = function == Function::Max;
    if all_int.len() == values.len() {
        let best = if largest {
            all_int.iter().max()
        } else {
            all_int.iter().min()
        };
        return Ok(Value::Int(best.copied().unwrap_or(0)));
    }
    let best = all_float
        .into_iter()
        .reduce(|a, b| if largest { a.max(b) } else { a.min(b) });
    Ok(Value::Float(best.unwrap_or(0.0)))
}
