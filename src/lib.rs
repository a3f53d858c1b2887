//! benchgate: the performance gate for ML compilers.
//!
//! Most of the layers below the commands and the pipeline are separate crates in `crates/`, so that the
//! compiler rejects imports that point up. They are re-exported here under the names that the rest of the
//! program uses.
//!
//! | level | modules |
//! |---|---|
//! | 5 | [`cli`] |
//! | 4 | [`pipeline`] |
//! | 3 | [`config`], [`toolchain`], [`store`], [`github`]; `benchgate-report`: [`report`], [`site`]; `benchgate-host`: [`process`], [`device`], [`files`], [`git`] |
//! | 2 | [`fleet`], [`import`]; `benchgate-gate`: [`gate`] |
//! | 1 | `benchgate-ingest`: [`ingest`]; `benchgate-core`: [`numerics`], [`record`] |
//! | 0 | `benchgate-core`: [`model`], [`exit_code`]; `benchgate-stats`: [`stats`] |

pub use benchgate_core::{exit_code, model, numerics, record};
pub use benchgate_gate as gate;
pub use benchgate_host::{device, files, git, process};
pub use benchgate_ingest as ingest;
pub use benchgate_report::{report, site};
pub use benchgate_stats as stats;

pub mod cli;
pub mod config;
pub mod fleet;
pub mod github;
pub mod import;
pub mod pipeline;
pub mod store;
pub mod toolchain;
