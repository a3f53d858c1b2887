#![doc = include_str!("../README.md")]

pub mod exit_code;
pub mod model;
pub mod numerics;
pub mod record;

/// The version of benchgate, which every stored file and report states.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
