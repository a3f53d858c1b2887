//! L1, pure: locations, intervals, tests, corrections, power. statrs underneath; seeds are arguments.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod describe;
mod effect;
pub mod multiplicity;
pub mod paired;
pub mod spending;
pub mod unpaired;

pub use effect::Effect;
