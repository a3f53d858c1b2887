//! L1, pure: tensors (`.npy` bytes) → divergence metrics and verification codes.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod tolerance;

pub use tolerance::NumericsTolerance;
