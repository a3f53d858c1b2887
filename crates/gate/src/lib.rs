#![doc = include_str!("../README.md")]
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod accuracy;
mod appended;
pub mod bisect;
mod chance;
mod classical;
mod code;
mod common;
mod compare;
mod comparison;
mod context;
mod copied;
mod decide;
mod diagnosis;
mod disturbance;
mod draft;
mod estimate;
mod evidence;
mod exchange;
mod explain;
mod gradual;
mod history;
mod limits;
mod newest;
pub mod noise;
mod rounding;
mod rules;
mod separate;
mod sequential;
mod series;
mod status;
mod texts;
pub mod threads;
mod typical;
mod untrusted;
mod workload;

pub use accuracy::is_check;
pub use benchgate_core::model::{
    ChangedReference, Expectation, FailOn, FailureKind, Floor, Limit, MetricPolicy, Override, Policy,
    SequentialPolicy, TestKind, Waiver,
};
pub use benchgate_core::numerics::NumericsTolerance;
pub use code::{CodeChange, KernelState, kernel_counts};
pub use common::ALL_BENCHMARKS;
pub use compare::{CompareOptions, anchored, compare, compare_with_history};
pub use comparison::{
    AssumedSpread, Comparison, Estimate, Geomean, Interval, Method, Reason, Row, RunSummary, SideStats,
    TooLittle, Typical, WaiverUse, first_of,
};
pub use disturbance::{OtherPrograms, disturbed_side, record_unfit, unfit};
pub use evidence::SpreadSource;
pub use exchange::{Exchange, Exchanged, REVERSED, Sum};
pub use explain::{CountChange, Explanation, KernelChange, Machine, explain};
pub use gradual::{EarlierSessions, StoredSessions};
pub use limits::LimitReading;
pub use newest::LEVEL_SESSIONS;
pub use rules::{NumericsPolicy, decides, unmatched};
pub use sequential::{
    CHECKED_IDENTICAL_BLOCKS, IDENTICAL_BLOCKS, OpenRows, Outlook, looks, open_compile_times, open_in,
    open_in_shard, open_rows, outlook,
};
pub use series::{described, location};
pub use status::{Expectations, LOOKS_RENAMED, Met};
pub use typical::{Alignment, Latency, ShownSides};
pub use untrusted::{Expected, compare_untrusted};
