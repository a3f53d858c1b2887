//! L2: divides a suite into shards for several machines, and joins their results into one run, completely or
//! not at all. Does no IO, and judges no results.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod complete;
mod formats;
mod join;
mod looks;
mod machines;
mod merge;
mod pack;
mod plan;
mod status;

pub use formats::{PlanFormat, ShardCommand, render};
pub use merge::{Merged, NotMergeable, merge};
pub use pack::{Cut, PackError};
pub use plan::{PlannedSuite, SuiteBenchmark, plan};
pub use status::{FleetStatus, ShardState, ShardStatus, status};
