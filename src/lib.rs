//! benchgate: the performance gate for ML compilers.
//!
//! The map of the house. An arrow may only point down; `tests/layering.rs` holds the table and
//! `clippy.toml` lists what counts as IO in the pure rooms (`model` to `gate`).
//!
//! | level | rooms |
//! |---|---|
//! | L5 | [`cli`] |
//! | L4 | [`pipeline`] |
//! | L3 | [`files`], [`config`], [`report`], [`process`], [`device`], [`toolchain`], [`store`], [`git`], [`github`], [`site`] |
//! | L2 | [`gate`] |
//! | L1 | [`stats`], [`numerics`], [`record`], [`ingest`] |
//! | L0 | [`model`], [`exit_code`] |

pub mod cli;
pub mod config;
pub mod device;
pub mod exit_code;
pub mod files;
pub mod fleet;
pub mod gate;
pub mod git;
pub mod github;
pub mod ingest;
pub mod model;
pub mod numerics;
pub mod pipeline;
pub mod process;
pub mod record;
pub mod report;
pub mod site;
pub mod stats;
pub mod store;
pub mod toolchain;
