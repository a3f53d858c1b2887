//! L2: a suite on several machines. Divides it into shards, and joins their results into one run, completely or not at
//! all. Does no IO, and judges nothing.
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
