//! Level 0: the types that all crates share. Imports nothing else and does no IO.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

// Its macros are for the modules below.
#[macro_use]
mod word;

mod benchmark;
mod code;
mod count;
mod date;
mod device;
mod disclose;
mod effect;
mod foreign;
mod hex;
mod lint;
mod metric;
pub mod number;
mod outcome;
mod policy;
mod profile;
mod progress;
mod run;
mod sample;
mod store_url;
mod telemetry;
mod toolchain;
mod verdict;
mod verification;
mod visible;

pub use benchmark::{
    ARCHITECTURE, Artifact, Benchmark, BenchmarkGlob, BenchmarkName, JUDGED_BY, JUDGED_BY_OUTPUTS,
    MetricSeries, RENAMED_FROM, Workload, is_of_command,
};
pub use code::{GeneratedCode, KernelCode};
pub use count::counted;
pub use date::is_date;
pub use device::{DeviceKind, GpuClock, device_driver};
pub use disclose::Disclose;
pub use effect::{Estimate, Interval, Method, RunSummary, SideStats, Typical, WaiverUse};
pub use foreign::ForeignProcess;
pub use hex::{hex, is_commit, is_hex, is_sha256};
pub use lint::{Consequence, Lint, LintCode};
pub use metric::{Better, Metric, MetricKind, Unit};
pub use number::Number;
pub use outcome::{Outcome, Stage};
pub use policy::{Expectation, FailureKind, Floor, Override, Waiver};
pub use profile::{Kernel, Profile};
pub use progress::{Event, NextLook, Progress, Quiet, Standing};
pub use run::{Anchor, Calibration, Context, Origin, Run, SideName, Spread, Testbed};
pub use sample::{BlockSlot, Process, Series, Summary};
pub use store_url::{StoreScheme, StoreUrl, StoreUrlError};
pub use telemetry::Telemetry;
pub use toolchain::Toolchain;
pub use verdict::Verdict;
pub use verification::{Divergence, OutputCheck, Verification, VerifyCode};
pub use visible::{clean, excerpt, is_hidden, without_commands};
