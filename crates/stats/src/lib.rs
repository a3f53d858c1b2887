#![doc = include_str!("../README.md")]
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod change_points;
pub mod classical;
pub mod density;
pub mod describe;
mod distributions;
pub mod draws;
mod inference;
pub mod multiplicity;
pub mod prediction;
pub mod robust;
pub mod scores;
pub mod shift;
pub mod stability;
pub mod tail;
pub mod unpaired;

pub use distributions::{binomial_tail, sign_test, student_quantile, student_tail};
pub use inference::{Effect, Inference};
