//! Level 1, no IO: turns tensors (`.npy` bytes) into divergence metrics and verification codes.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod check;
mod file;
mod likeness;
mod parameters;
mod parts;
mod random;
mod sketch;
mod tensor;
#[cfg(test)]
mod tests;
mod tolerance;
mod verify;

pub use check::{check, typical_magnitude};
pub use file::{NpyError, TensorFile, TensorFileError, lacks_npy, literal_elements};
pub use parameters::{ArchiveError, ParameterFill, WeightArchive};
pub use random::{IntegerFlaw, RandomTensor};
pub use sketch::against_sketches;
pub use tensor::{DType, ShapeError, Tensor};
pub use tolerance::NumericsTolerance;
pub use verify::{against_base, equal_rows, vacuous, vacuous_base, verify, with_other_inputs};
