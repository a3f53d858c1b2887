//! L4: plan, cache, export, compile, verify, measure. Takes sides of a suite to a run record.
//!
//! The stages overlap: a model is compiled as soon as it is exported, and verified as soon as it is
//! compiled, but nothing is measured before all of that is over, so that a measured process never
//! shares the machine with a compiler.

mod argv;
mod assemble;
mod backends;
mod budget;
mod bundle;
mod cache;
mod calibration;
mod candidates;
mod code;
mod commands;
mod compile;
mod compile_timing;
mod design;
mod devices;
mod diagnostics;
mod divergence;
mod error;
mod export;
mod flags;
mod host;
mod instructions;
mod interpreters;
mod ir;
mod journal;
mod later_calls;
mod loaded;
mod measure;
mod memo;
mod plan;
mod prepare;
mod prepared_side;
mod profile;
mod recorded_policy;
mod run;
mod schedule;
mod shard;
mod slots;
mod stage;
mod statistics;
mod targets;
mod timed;
mod timings;
mod trace;
mod tree;
mod trials;
mod unchanged;
mod verify;

pub use backends::{Axes, BackendsSource, CollectKind, DumpKind, Extras};
pub use bundle::{OpenBundle, PackedBundle, open_bundle};
pub use cache::Cache;
pub use calibration::{CALIBRATION_DAYS, CalibrationSource, keep_calibration};
pub use commands::CommandRows;
pub use error::PipelineError;
pub use flags::named_by_flags;
pub use interpreters::ExporterSource;
pub use plan::{DeclaredBenchmark, Filter, SideInput, declared_benchmarks, expected};
pub use recorded_policy::{planned_policy, record as record_policy, recorded_blocks, recorded_policy};
pub use run::{MeasuredRun, Options, PrepareFrom, PreparedRun, SuiteRun};
pub use schedule::sides_of_round;
pub use shard::Shard;
pub use targets::{listed_devices, listed_drivers};
