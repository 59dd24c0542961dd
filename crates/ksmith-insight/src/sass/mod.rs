//! Device machine code (SASS) as `nvdisasm` and `cuobjdump` print it: instruction mix of the whole and of each loop
//! body, width of global accesses, copies, tensor-core class, synchronisation, live registers.
//!
//! Opcode meanings were observed on code that CUDA 13 makes for sm_80 and sm_90a. An opcode that is not known makes the
//! report `incomplete`.

mod analyse;
mod mix;
mod opcode;
mod text;

pub use analyse::{Expect, KernelCode, LoopCode, MaxLive, Sass, analyse};
pub use mix::Mix;
pub use opcode::{Class, TensorClass};
