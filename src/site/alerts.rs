//! What to say about causes that got worse: which issue is opened, updated, closed or opened again. Pure: issues come
//! as what GitHub lists, and actions go back.
//!
//! An issue is found again by what its marker holds: when the new level began and whose it was. Estimates of a
//! change's place move by a session or two from night to night, so a cause is the one of an issue where the
//! issue's instant lies in the cause's range or close to it, and they share a benchmark.

use jiff::{SignedDuration, Timestamp};

use super::address::slug;
use super::causes::{Cause, Member, causes};
use super::history::{History, Timeline, Track};
use super::moves::Move;
use crate::stats::describe;

/// When to speak.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AlertPolicy {
    /// Slowdowns below this fraction are not worth an issue.
    pub floor: f64,
    /// Evidence that a benchmark needs to belong to a cause. Among 500 benchmarks in 365 nights, a normal deviate whose
    /// square is beyond 36 is met once in a thousand years.
    pub evidence: f64,
    /// Evidence that one benchmark of a cause needs for a new issue. Nights have heavier tails: at 36 there were three
    /// false issues in ten simulated years. More than for an issue that is there, so that it is followed until it is over.
    pub opening: f64,
    /// Sessions of each benchmark that are looked at.
    pub window: usize,
    /// Changes that are older open no issue: a first night must not report years.
    pub newest: SignedDuration,
    /// Issues opened in one night; the others follow in the next ones.
    pub limit: usize,
}

impl Default for AlertPolicy {
    fn default() -> Self {
        Self {
            floor: 0.01,
            evidence: 36.0,
            opening: 46.0,
            window: 200,
            newest: SignedDuration::from_hours(24 * 45),
            limit: 5,
        }
    }
}

/// A slowdown of benchmarks that were all part of an earlier cause belongs to that one for so long: a creep is one
/// cause, though it is found in steps.
const CONTINUES: SignedDuration = SignedDuration::from_hours(24 * 60);
/// How far an estimate of the same change's place moves from night to night.
const DRIFT: SignedDuration = SignedDuration::from_hours(24 * 6);
/// Newest sessions whose median is the present level, and sessions before a change that are the old one.
const PRESENT: usize = 7;
const BEFORE: usize = 20;
/// Newest sessions that all have to be slow for a new issue: two bad nights of three look like a new level.
const STEADY: usize = 3;
/// Part of a slowdown that may be left of one that is over.
const LEFT: f64 = 1.0 / 3.0;
/// Benchmarks that a marker names.
const NAMED: usize = 40;

/// What a marker holds of an issue.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// When the new level began, as far as it was known when the issue was opened.
    pub at: Timestamp,
    /// The largest slowdown then, as a log ratio.
    pub size: f64,
    /// Keys of the benchmarks.
    pub members: Vec<String>,
    /// benchgate closed it, and may open it again.
    pub recovered: bool,
}

/// An issue that benchgate opened.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    pub number: u64,
    pub open: bool,
    pub trace: Trace,
}

/// Why an issue is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Over {
    Recovered,
    Accepted { who: String, why: String },
}

impl std::fmt::Display for Over {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Recovered => f.write_str("back at the earlier level"),
            Self::Accepted { who, why } => write!(f, "accepted by {who}: {why}"),
        }
    }
}

/// What to do about one cause.
#[derive(Debug, Clone)]
pub enum Action<'a> {
    Open { cause: Cause<'a>, trace: Trace },
    Update { number: u64, cause: Cause<'a>, trace: Trace },
    Reopen { number: u64, cause: Cause<'a>, trace: Trace },
    Close { number: u64, trace: Trace, why: Over },
}

/// The actions of one night, and the number of causes that have to wait for another.
#[derive(Debug, Clone, Default)]
pub struct Plan<'a> {
    pub actions: Vec<Action<'a>>,
    pub waiting: usize,
}

/// Decides what to do, given the issues that are there.
pub fn plan<'a>(
    timelines: &'a [Timeline],
    known: &[Known],
    now: Timestamp,
    policy: &AlertPolicy,
) -> Plan<'a> {
    let found = worse_causes(timelines, policy);
    let mut plan = Plan::default();
    let mut spoken_of = Vec::new();
    for cause in &found {
        let same = known.iter().filter(|issue| is_same(&issue.trace, cause));
        // An open one first, then the newest: an old twin that is closed has nothing to say.
        let Some(issue) = same.max_by_key(|issue| (issue.open, issue.number)) else { continue };
        if spoken_of.contains(&issue.number) {
            continue;
        }
        spoken_of.push(issue.number);
        let mut trace = issue.trace.clone();
        if let Some(why) = over(timelines, &trace, cause) {
            if issue.open {
                trace.recovered = true;
                plan.actions.push(Action::Close { number: issue.number, trace, why });
            }
            continue;
        }
        for key in cause.members.iter().map(Member::key) {
            if !trace.members.contains(&key) && trace.members.len() < NAMED {
                trace.members.push(key);
            }
        }
        let reopen = !issue.open && trace.recovered;
        trace.recovered = false;
        if issue.open {
            plan.actions.push(Action::Update { number: issue.number, cause: cause.clone(), trace });
        } else if reopen {
            plan.actions.push(Action::Reopen { number: issue.number, cause: cause.clone(), trace });
        }
        // One that a person closed stays closed.
    }
    for issue in known.iter().filter(|issue| issue.open && !spoken_of.contains(&issue.number)) {
        if has_recovered(timelines, &issue.trace) {
            let trace = Trace { recovered: true, ..issue.trace.clone() };
            plan.actions.push(Action::Close { number: issue.number, trace, why: Over::Recovered });
        }
    }
    let opened = found.into_iter().filter(|cause| {
        cause.members.iter().any(|member| member.change.evidence >= policy.opening && is_steady(member))
            && !known.iter().any(|issue| is_same(&issue.trace, cause) || continues(&issue.trace, cause))
            && now.duration_since(cause.until()) <= policy.newest
    });
    for cause in opened {
        let trace = Trace {
            at: cause.members.first().map_or(cause.until(), Member::at),
            size: cause.members.first().map_or(0.0, |member| member.change.cost_ratio.ln()),
            members: cause.members.iter().take(NAMED).map(Member::key).collect(),
            recovered: false,
        };
        if over(timelines, &trace, &cause).is_some() {
            continue;
        }
        if plan.actions.iter().filter(|action| matches!(action, Action::Open { .. })).count() < policy.limit {
            plan.actions.push(Action::Open { cause, trace });
        } else {
            plan.waiting += 1;
        }
    }
    plan
}

impl Member<'_> {
    /// A name for a marker: whose it is, and nothing that a name could do there.
    pub fn key(&self) -> String {
        key(self.timeline, self.benchmark)
    }
}

/// A benchmark's name in markers.
pub fn key(timeline: &Timeline, benchmark: &str) -> String {
    let slug = slug(&[benchmark, &timeline.suite, &timeline.testbed.id]);
    slug[slug.len() - 8..].to_owned()
}

/// Causes with a benchmark that got worse by more than the floor, oldest first.
fn worse_causes<'a>(timelines: &'a [Timeline], policy: &AlertPolicy) -> Vec<Cause<'a>> {
    let mut moved = Vec::new();
    for timeline in timelines {
        for (benchmark, history) in &timeline.benchmarks {
            let Some((metric, track)) = history.main() else { continue };
            let changes = track.newest(policy.window).moves();
            let worse = changes.into_iter().filter(|change| {
                change.cost_ratio > 1.0 + policy.floor && change.evidence >= policy.evidence
            });
            moved.extend(worse.map(|change| Member { timeline, benchmark, metric, change }));
        }
    }
    let mut found = causes(moved);
    found.reverse();
    found
}

fn is_same(trace: &Trace, cause: &Cause<'_>) -> bool {
    let (from, to) = (cause.after() - DRIFT, cause.until() + DRIFT);
    let shares = cause.members.iter().any(|member| trace.members.contains(&member.key()));
    shares && from < trace.at && trace.at <= to
}

fn continues(trace: &Trace, cause: &Cause<'_>) -> bool {
    let since = cause.until().duration_since(trace.at);
    since > SignedDuration::ZERO
        && since <= CONTINUES
        && !trace.recovered
        && cause.members.iter().all(|member| trace.members.contains(&member.key()))
}

/// Why a cause needs no attention any more, if so.
fn over(timelines: &[Timeline], trace: &Trace, cause: &Cause<'_>) -> Option<Over> {
    let mut accepted = cause.members.iter().map(|member| accepted(member, cause.after()));
    if let Some(Some(first)) = accepted.next()
        && accepted.all(|accepted| accepted.is_some())
    {
        return Some(first);
    }
    has_recovered(timelines, trace).then_some(Over::Recovered)
}

/// An acceptance that makes the new level of a benchmark the normal.
fn accepted(member: &Member<'_>, after: Timestamp) -> Option<Over> {
    let covers = |glob: &String| {
        globset::Glob::new(glob).is_ok_and(|glob| glob.compile_matcher().is_match(member.benchmark))
    };
    let begins = |from: &str| {
        member.timeline.sessions.iter().any(|session| session.name == from && session.began > after)
    };
    let found = member
        .timeline
        .acceptances
        .iter()
        .find(|accepted| accepted.benchmark.as_ref().is_none_or(covers) && begins(&accepted.from))?;
    Some(Over::Accepted { who: found.who.clone(), why: found.why.clone() })
}

/// Whether every benchmark of an issue is back near the level that it had before. One that is no longer measured
/// has not recovered.
fn has_recovered(timelines: &[Timeline], trace: &Trace) -> bool {
    let mut found = 0;
    for timeline in timelines {
        for (benchmark, history) in &timeline.benchmarks {
            if !trace.members.contains(&key(timeline, benchmark)) {
                continue;
            }
            let Some(left) = slowdown_left(timeline, history, trace.at) else { return false };
            if left > (trace.size * LEFT).min(0.02) {
                return false;
            }
            found += 1;
        }
    }
    found == trace.members.len()
}

/// Whether each of the newest sessions is nearer to the new level than to the old one.
fn is_steady(member: &Member<'_>) -> bool {
    let history = member.timeline.benchmarks.get(member.benchmark);
    let Some((_, track)) = history.and_then(History::main) else { return false };
    let Some(costs) = track.costs() else { return false };
    let change = &member.change;
    let middle = (track.cost(change.from) + track.cost(change.to)) / 2.0;
    costs.iter().rev().take(STEADY).all(|cost| *cost > middle)
}

/// The present level against the one before, as a log ratio.
fn slowdown_left(timeline: &Timeline, history: &History, at: Timestamp) -> Option<f64> {
    let (_, track) = history.main()?;
    let costs = track.costs()?;
    let split = track.points.iter().position(|point| timeline.sessions[point.session].began >= at)?;
    let (before, after) = costs.split_at(split);
    if before.is_empty() || after.len() < PRESENT {
        return None;
    }
    let old = describe::median(&before[before.len().saturating_sub(BEFORE)..])?;
    Some(describe::median(&after[after.len() - PRESENT..])? - old)
}

impl Track {
    /// The newest points alone.
    fn newest(&self, count: usize) -> Self {
        Self { points: self.points[self.points.len().saturating_sub(count)..].to_vec(), ..self.clone() }
    }
}

/// The changes of a cause that are worth a row, the worst first.
pub fn rows<'a, 'b>(cause: &'b Cause<'a>) -> impl Iterator<Item = (&'b Member<'a>, &'b Move)> {
    cause.members.iter().map(|member| (member, &member.change))
}
