//! benchgate: the performance gate for ML compilers.
//!
//! The layers below the commands are separate crates in `crates/`, so that the
//! compiler rejects imports that point up. They are re-exported here under the names that the rest of the
//! program uses.
//!
//! | level | modules |
//! |---|---|
//! | 5 | [`cli`] |
//! | 4 | `benchgate-pipeline`: [`pipeline`] |
//! | 3 | `benchgate-toolchain`: [`toolchain`]; `benchgate-config`: [`config`], [`fleet`], [`import`]; `benchgate-store`: [`store`]; `benchgate-github`: [`github`]; `benchgate-report`: [`report`], [`site`]; `benchgate-host`: [`process`], [`device`], [`files`], [`git`] |
//! | 2 | `benchgate-gate`: [`gate`] |
//! | 1 | `benchgate-ingest`: [`ingest`]; `benchgate-core`: [`numerics`], [`record`] |
//! | 0 | `benchgate-core`: [`model`], [`exit_code`]; `benchgate-stats`: [`stats`] |

pub use benchgate_config as config;
pub use benchgate_config::{fleet, import};
pub use benchgate_core::{exit_code, model, numerics, record};
pub use benchgate_gate as gate;
pub use benchgate_github as github;
pub use benchgate_host::{device, files, git, process};
pub use benchgate_ingest as ingest;
pub use benchgate_pipeline as pipeline;
pub use benchgate_report::{report, site};
pub use benchgate_stats as stats;
pub use benchgate_store as store;
pub use benchgate_toolchain as toolchain;

pub mod cli;
