#![doc = include_str!("../README.md")]

pub mod exit_code;
pub mod model;
pub mod numerics;
pub mod record;

/// The version of benchgate, which each stored file and report names.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
