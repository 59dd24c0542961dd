//! The C side of a contract: the header a candidate implements, the header of a reference, prototypes read back.

mod header;
mod prototype;

pub use header::{declaration, header, header_for, prototype, reference_header};
pub use prototype::{Parameter, Prototype, PrototypeError, prototype_parse};
