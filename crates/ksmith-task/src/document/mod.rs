//! `task.toml` as written: serde types that are parser and JSON Schema in one, each value with its place.

mod at;
mod either;
mod errors;
mod parse;
mod task;
mod tensor;

pub(crate) use at::{At, Ordered};
pub(crate) use either::{ByteCount, DTypes, Formula, Literal, PerBackend, PerType, TextOr};
pub(crate) use errors::translate;
pub(crate) use parse::{FamilyDocument, FamilyFill, ParsedTask, parse_task};
pub(crate) use task::*;
pub(crate) use tensor::*;
