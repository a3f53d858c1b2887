//! Processor time used so far.

use std::time::Duration;

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeVal;

/// Processor time of benchgate and of all its child processes that have ended.
pub fn processor_time() -> Duration {
    let of = |who| getrusage(who).as_ref().map_or(Duration::ZERO, spent);
    of(UsageWho::RUSAGE_SELF) + of(UsageWho::RUSAGE_CHILDREN)
}

fn spent(usage: &Usage) -> Duration {
    let seconds = |time: TimeVal| Duration::try_from_secs_f64(f64_of(time)).unwrap_or_default();
    seconds(usage.user_time()) + seconds(usage.system_time())
}

fn f64_of(time: TimeVal) -> f64 {
    time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6
}
