//! Machine code of a compiled CPU kernel: what each loop body is made of.
//!
//! Reads the shared library itself, without outside tools. Loops are address ranges closed by a branch back; a loop's
//! counts are of instructions in its text, inner loops included.

mod analyse;
mod binary;
mod load;
mod mix;

pub use analyse::{Analysis, FunctionCode, LoopCode, Options, analyse, analyse_bytes};
pub use load::{function, name_at, only_chooses, pointers, same_code, system_calls};
pub use mix::Mix;
