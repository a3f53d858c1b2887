//! Benchmarks and testbeds that stopped reporting. Silence must be reported: a machine that is off, or a
//! benchmark that was dropped, goes unnoticed if only measured results are judged.
//!
//! Slowdowns that are neither over nor accepted: the benchmark, the start, and the commits that may have caused it.

use jiff::{SignedDuration, Timestamp};

use benchgate_core::record::QuarantineCause;
use benchgate_stats::describe;

use super::alerts::{AlertPolicy, NEAR, acceptance, worse_causes};
use super::causes::{Cause, Member, causes};
use super::history::{Session, Timeline};
use super::stability::{is_held_red, red_metric, red_since};

/// Number of sessions from which the usual time between two sessions is determined.
const RECENT: usize = 20;
/// Number of usual times between sessions that may pass without one.
const MISSED: f64 = 3.0;
/// Maximum number of facts in which a testbed may differ from the one that replaced it.
const MOST_DIFFERENCES: usize = 3;

/// A benchmark or testbed that stopped reporting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Silence {
    pub suite: String,
    pub testbed: String,
    /// The benchmark; `None` if the whole testbed is silent.
    pub benchmark: Option<String>,
    /// Time of its last measurement.
    pub since: Timestamp,
    /// The reason why the silence is expected, if it was acknowledged or the testbed was replaced.
    pub explained: Option<String>,
}

impl Silence {
    /// Returns the number of whole days of silence.
    pub fn days(&self, now: Timestamp) -> i64 {
        now.duration_since(self.since).as_hours() / 24
    }
}

/// Returns everything that has been silent for more than `days`, and for more than three times its usual
/// interval.
pub fn silences(timelines: &[Timeline], now: Timestamp, days: u32) -> Vec<Silence> {
    let mut found = Vec::new();
    for timeline in timelines {
        // A session in the future, from a machine with a wrong clock, does not count as recent.
        let past = |began: Timestamp| now.duration_since(began) >= SignedDuration::ZERO;
        let Some(newest) = timeline.sessions.iter().rfind(|session| past(session.began)) else { continue };
        let patience = patience(timeline, days);
        let silent = |since: Timestamp| now.duration_since(since) > patience;
        if silent(newest.began) {
            found.push(Silence {
                suite: timeline.suite.clone(),
                testbed: timeline.testbed.id.clone(),
                benchmark: None,
                since: newest.began,
                explained: acknowledged(timeline, None, newest.began)
                    .or_else(|| replacement(timeline, timelines, now, days)),
            });
            continue;
        }
        for (name, history) in &timeline.benchmarks {
            // A benchmark that never worked is not missing; its failures are shown.
            let Some(last) = history.last_measured() else { continue };
            let since = timeline.sessions[last].began;
            if last + 1 < timeline.sessions.len() && silent(since) {
                found.push(Silence {
                    suite: timeline.suite.clone(),
                    testbed: timeline.testbed.id.clone(),
                    benchmark: Some(name.clone()),
                    since,
                    explained: acknowledged(timeline, Some(name), since),
                });
            }
        }
    }
    found
}

/// Returns the time without a session after which a timeline counts as silent: a suite that is measured once
/// a week is not silent on the fourth day.
fn patience(timeline: &Timeline, days: u32) -> SignedDuration {
    let recent = &timeline.sessions[timeline.sessions.len().saturating_sub(RECENT)..];
    let gaps: Vec<f64> =
        recent.windows(2).map(|two| two[1].began.duration_since(two[0].began).as_secs_f64()).collect();
    let usual = describe::median(&gaps).unwrap_or_default() * MISSED;
    SignedDuration::from_secs_f64(usual.max(f64::from(days) * 86_400.0))
}

/// Returns an acceptance that was made after the last session of a silent timeline, which means that the
/// silence is known.
fn acknowledged(timeline: &Timeline, benchmark: Option<&str>, since: Timestamp) -> Option<String> {
    // An acceptance of whole runs does not apply to one silent benchmark.
    let given = |created: &str| created.parse::<Timestamp>().is_ok_and(|created| created > since);
    let mut newest = timeline.acceptances.iter().rev();
    let found = newest.find(|known| {
        known.benchmark.is_some() == benchmark.is_some() && known.covers(benchmark) && given(&known.created)
    })?;
    Some(format!("acknowledged by {}: {}", found.who, found.why))
}

/// Returns another testbed of the same suite that differs in few facts, began after this one ended, and still
/// reports.
fn replacement(silent: &Timeline, timelines: &[Timeline], now: Timestamp, days: u32) -> Option<String> {
    let ended = silent.newest()?.began;
    let differing = |other: &Timeline| {
        let (old, new) = (&silent.testbed.facts, &other.testbed.facts);
        let keys = old.keys().chain(new.keys().filter(|key| !old.contains_key(*key)));
        keys.filter(|key| old.get(*key) != new.get(*key)).count()
    };
    let follows = |other: &&Timeline| {
        let first = other.sessions.first().is_some_and(|first| first.began > ended);
        let alive =
            other.newest().is_some_and(|newest| now.duration_since(newest.began) <= patience(other, days));
        other.suite == silent.suite && first && alive && differing(other) <= MOST_DIFFERENCES
    };
    // One new machine replaces only one old machine: the one that ended last before the new one began.
    let taken = |other: &&Timeline| {
        let began = other.sessions.first().map(|first| first.began);
        !timelines.iter().any(|rival| {
            let rival_ended = rival.newest().map(|newest| newest.began);
            rival.suite == silent.suite
                && rival.testbed.id != silent.testbed.id
                && rival_ended < began
                && rival_ended > Some(ended)
        })
    };
    let found = timelines.iter().filter(follows).find(taken)?;
    Some(format!("replaced by testbed {}", found.testbed.id))
}

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
    let known = |red: &Member<'_>| {
        let mut members = found.iter().flat_map(|cause| &cause.members);
        members.any(|member| {
            member.is_about(red.timeline, red.benchmark)
                && (member.metric == red.metric || member.change.latest.abs_diff(red.change.at) <= NEAR)
        })
    };
    // A slowdown that is a few nights old makes the gate fail before a change of level is detected.
    let mut young = Vec::new();
    for timeline in timelines {
        for (benchmark, history) in &timeline.benchmarks {
            young.extend(red_since(timeline, benchmark, history, 1).filter(|red| !known(red)));
        }
    }
    found.extend(causes(young));
    found.sort_by_key(Cause::until);
    let mut open: Vec<OpenSlowdown<'a>> = Vec::new();
    for cause in found {
        let is_step = |open: &&mut OpenSlowdown<'_>| {
            let of_open = |member: &Member<'_>| {
                open.cause.members.iter().any(|known| {
                    known.metric == member.metric && known.is_about(member.timeline, member.benchmark)
                })
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

/// A benchmark that is red in the newest session although the sessions that were read don't show a change: they have no
/// good session before it, or no values of the metric.
#[derive(Debug, Clone)]
pub struct RedRow<'a> {
    pub timeline: &'a Timeline,
    /// The benchmark; `None` if the whole session is quarantined.
    pub benchmark: Option<&'a str>,
    /// The stored reason.
    pub why: &'a str,
    /// The first of the sessions that have been red since, and whether it is the first one that was read.
    pub since: Timestamp,
    pub is_first: bool,
}

/// Returns what is red in the newest sessions but not among the open slowdowns.
pub fn red_rows<'a>(timelines: &'a [Timeline], open: &[OpenSlowdown<'_>]) -> Vec<RedRow<'a>> {
    let steps = open.iter().flat_map(|open| open.cause.steps());
    let listed: Vec<&Member<'_>> = steps.flat_map(|step| &step.members).collect();
    let mut found = Vec::new();
    for timeline in timelines {
        let has_value = |benchmark: &str| {
            let history = timeline.benchmarks.get(benchmark);
            history.is_some_and(|history| red_metric(timeline, benchmark, history).is_some())
        };
        let held = timeline.newest().map(|newest| &newest.held);
        let red = held.into_iter().flatten().filter(|reason| reason.cause == QuarantineCause::Regressed);
        for reason in red {
            let benchmark = reason.benchmark.as_deref();
            let is_listed = listed.iter().any(|member| match benchmark {
                Some(benchmark) => member.is_about(timeline, benchmark) && has_value(benchmark),
                None => std::ptr::eq(member.timeline, timeline),
            });
            if is_listed {
                continue;
            }
            let same = |session: &Session| {
                session
                    .held
                    .iter()
                    .any(|other| other.cause == reason.cause && other.benchmark == reason.benchmark)
            };
            let good = timeline.sessions.iter().rposition(|session| !same(session));
            let first = good.map_or(0, |good| good + 1);
            found.push(RedRow {
                timeline,
                benchmark,
                why: &reason.why,
                since: timeline.sessions[first].began,
                is_first: first == 0,
            });
        }
    }
    found
}
