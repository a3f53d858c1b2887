//! Slowdowns that are neither over nor accepted: the benchmark, the start, and the commits that may have caused it.

use jiff::Timestamp;

use super::alerts::{AlertPolicy, BEFORE, PRESENT, acceptance, worse_causes};
use super::causes::{Cause, Member, Move, causes};
use super::history::{BenchmarkHistory, Timeline, Track};
use benchgate_core::record::QuarantineCause;
use benchgate_stats::describe;

/// Benchmarks that are slower now than before the same change.
#[derive(Debug, Clone)]
pub struct OpenSlowdown<'a> {
    pub cause: Cause<'a>,
    /// True if the newest session is quarantined for a regression of one of them.
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
                young.extend(red_since(timeline, benchmark, history));
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

/// Returns whether the newest session is quarantined for a regression of the benchmark.
pub fn is_held_red(timeline: &Timeline, benchmark: &str) -> bool {
    timeline.newest().is_some_and(|newest| {
        newest.held.iter().any(|reason| {
            reason.cause == QuarantineCause::Regressed
                && reason.benchmark.as_deref().is_none_or(|held| held == benchmark)
        })
    })
}

/// Returns a benchmark that fails, as a change between its last good session and the first session that has
/// been excluded since.
fn red_since<'a>(
    timeline: &'a Timeline,
    benchmark: &'a str,
    history: &'a BenchmarkHistory,
) -> Option<Member<'a>> {
    if !is_held_red(timeline, benchmark) {
        return None;
    }
    let (metric, track) = history.main()?;
    let good = track.points.iter().rposition(|point| !point.held)?;
    let first = track.points.get(good + 1)?;
    let level = |points: &mut dyn Iterator<Item = f64>| describe::median(&points.collect::<Vec<_>>());
    let mut before = track.points[..=good].iter().rev().filter(|point| !point.held).take(BEFORE);
    let from = level(&mut before.by_ref().map(|point| point.value))?;
    let now = level(&mut track.points[good + 1..].iter().rev().take(PRESENT).map(|point| point.value))?;
    let ratio = cost_ratio(track, from, now);
    let change = Move {
        at: first.session,
        earliest: first.session,
        latest: first.session,
        before: track.points[good].session,
        cost_ratio: ratio,
        evidence: 0.0,
        from,
        to: now,
        now,
        total_ratio: ratio,
    };
    (ratio > 1.0).then_some(Member { timeline, benchmark, metric, change })
}

fn cost_ratio(track: &Track, from: f64, to: f64) -> f64 {
    (track.cost(to) - track.cost(from)).exp()
}
