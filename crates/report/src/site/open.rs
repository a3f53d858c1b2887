//! Slowdowns that are neither over nor accepted: the benchmark, the start, and the commits that may have caused it.

use jiff::Timestamp;

use super::alerts::{AlertPolicy, acceptance, worse_causes};
use super::causes::{Cause, Member, causes};
use super::held::{is_held_red, red_since};
use super::history::Timeline;

/// Benchmarks that are slower now than before the same change.
#[derive(Debug, Clone)]
pub struct OpenSlowdown<'a> {
    pub cause: Cause<'a>,
    /// True if the newest session is quarantined for a regression of one of these benchmarks.
    pub red: bool,
}

/// Returns the open slowdowns, largest first. A slowdown that no gate fails is listed as long as an alert
/// would report it.
pub fn open_slowdowns<'a>(
    timelines: &'a [Timeline],
    now: Timestamp,
    policy: &AlertPolicy,
) -> Vec<OpenSlowdown<'a>> {
    let is_open = |cause: &Cause<'_>| {
        acceptance(cause).is_none()
            && cause.total() > policy.floor.ln_1p()
            && (is_red(cause) || now.duration_since(cause.until()) <= policy.newest)
    };
    let mut found: Vec<Cause<'a>> = worse_causes(timelines, policy).into_iter().filter(is_open).collect();
    let known = |timeline: &Timeline, benchmark: &str| {
        found.iter().flat_map(|cause| &cause.members).any(|member| member.is_about(timeline, benchmark))
    };
    // A slowdown that is a few nights old makes the gate fail before a change of level is detected.
    let mut young = Vec::new();
    for timeline in timelines {
        for (benchmark, history) in &timeline.benchmarks {
            if !known(timeline, benchmark) {
                young.extend(red_since(timeline, benchmark, history, 1));
            }
        }
    }
    found.extend(causes(young));
    found.sort_by_key(Cause::until);
    let mut open: Vec<OpenSlowdown<'a>> = Vec::new();
    for cause in found {
        let is_step = |open: &&mut OpenSlowdown<'_>| {
            let of_open = |member: &Member<'_>| {
                open.cause.members.iter().any(|known| known.is_about(member.timeline, member.benchmark))
            };
            cause.members.iter().all(of_open)
        };
        match open.iter_mut().find(is_step) {
            Some(open) => open.cause.later.push(cause),
            None => open.push(OpenSlowdown { red: is_red(&cause), cause }),
        }
    }
    open.sort_by(|a, b| b.red.cmp(&a.red).then(b.cause.total().total_cmp(&a.cause.total())));
    open
}

fn is_red(cause: &Cause<'_>) -> bool {
    cause.members.iter().any(|member| is_held_red(member.timeline, member.benchmark))
}
