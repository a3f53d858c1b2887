//! L2: divides a suite into shards for several machines, and joins their results into one run, completely or
//! not at all. Does no IO, and judges no results.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod complete;
mod join;
mod merge;
mod plan;

pub use merge::{FleetStatus, Merged, NotMergeable, ShardState, ShardStatus, merge, status};
pub use plan::{Cut, PackError, Place, PlanFormat, ShardCommand, plan, render};
