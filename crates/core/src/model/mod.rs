//! The types that all crates share. This module is level 0: it imports no other module and does no IO.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

// Declared first, so that the modules below can use its macros.
#[macro_use]
mod word;

mod benchmark;
mod device;
mod effect;
mod label_words;
mod lint;
mod metric;
mod naming;
pub mod number;
mod policy;
mod progress;
mod run;
mod sides;
mod store_url;
mod text;
mod verification;

pub use benchmark::{
    ANY_TEXT, ARCHITECTURE, Artifact, Benchmark, BenchmarkGlob, BenchmarkName, BlockSlot, DEVICE_CLOCK,
    ENVIRONMENT, FIELD, FIELDS, GeneratedCode, JUDGED_BY, JUDGED_BY_OUTPUTS, Kernel, KernelCode, LABEL,
    LABEL_WORDS, MetricSeries, PREPARE, Process, Profile, RENAMED_FROM, RUN_LINE, SETUP, SILENT,
    STANDARD_OUTPUT, Series, Summary, VARIES, Workload, is_axis, is_of_command,
};
pub use device::{BACKENDS, DeviceFacts, DeviceKind, GpuClock, Vendor, device_driver, is_cpu};
pub use effect::{Estimate, Interval, Method, RunSummary, SideStats, Typical, WaiverUse};
pub use label_words::LabelWords;
pub use lint::{Consequence, Lint, LintCode, Subject};
pub use metric::{Better, Metric, MetricKind, Unit};
pub use naming::{Quality, is_in, name_words, states_costs, states_rate, states_waste, words};
pub use number::Number;
pub use policy::{
    ChangedReference, Disclose, Expectation, FailOn, FailureKind, Floor, Limit, MetricPolicy, Override,
    Policy, SequentialPolicy, TestKind, Waiver,
};
pub use progress::{Event, NextLook, Progress, Quiet, Standing};
pub use run::{
    Anchor, Calibration, Context, ForeignProcess, Origin, Run, SideName, SourceCommit, Spread, Telemetry,
    Testbed, Toolchain,
};
pub use sides::{name_parts, name_their_sides};
pub use store_url::{StoreScheme, StoreUrl, StoreUrlError};
pub use text::{
    clean, counted, digest_of, excerpt, hex, is_commit, is_date, is_hash, is_hex, is_hidden, is_sha256,
    percents, rounded, shell_word, short_commit, significant, without_colors, without_commands,
};
pub use verification::{
    Divergence, Outcome, OutputCheck, OutputSketch, OutputSketches, Stage, Verdict, Verification, VerifyCode,
};
