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
mod compile;
mod design;
mod devices;
mod diagnostics;
mod divergence;
mod error;
mod export;
mod failures;
mod flags;
mod interpreters;
mod ir;
mod journal;
mod measure;
mod plan;
mod prepare;
mod profile;
mod recorded_policy;
mod schedule;
mod session;
mod slots;
mod statistics;
mod targets;
mod timed;
mod timings;
mod trace;
mod tree;
mod trials;
mod verify;

pub use backends::{Axes, BackendsSource, Dumps};
pub use bundle::{MadeBundle, OpenBundle, make_bundle, open_bundle, run_bundle};
pub use cache::Cache;
pub use calibration::{CalibrationSource, keep_calibration};
pub use error::PipelineError;
pub use interpreters::ExporterSource;
pub use plan::{Filter, SideInput, expected};
pub use recorded_policy::{recorded_blocks, recorded_policy};
pub use schedule::sides_of_round;
pub use session::{Options, Session, run};
