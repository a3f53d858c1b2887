//! What to say about causes that got worse: which issue is opened, updated, closed or opened again. Pure: issues come
//! as what GitHub lists, and actions go back.
//!
//! An issue is found again by what its marker holds: when the new level began and whose it was. Estimates of a
//! change's place move by a session or two from night to night, so a cause is the one of an issue where the
//! issue's instant lies in the cause's range or close to it, and they share a benchmark.

use jiff::{SignedDuration, Timestamp};

use super::causes::{Cause, Member, causes};
use super::history::{BenchmarkHistory, Timeline, Track};
use super::moves::Move;
use super::recovery::{BEFORE, IssueTrace, Over, has_recovered, over};

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
/// Newest sessions that all have to be slow for a new issue: two bad nights of three look like a new level.
const STEADY: usize = 3;
/// Sessions after which the place of a change is known. Before that, one wild night moves it by up to [`NEAR`] sessions.
const SETTLED: usize = 7;
const NEAR: usize = 4;
/// Benchmarks that a marker names.
const NAMED: usize = 40;

/// An issue that benchgate opened.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownIssue {
    pub number: u64,
    pub open: bool,
    pub trace: IssueTrace,
}

/// What to do about one cause.
#[derive(Debug, Clone)]
pub enum Action<'a> {
    Open { cause: Cause<'a>, trace: IssueTrace },
    Update { number: u64, cause: Cause<'a>, trace: IssueTrace },
    Reopen { number: u64, cause: Cause<'a>, trace: IssueTrace },
    Close { number: u64, trace: IssueTrace, why: Over },
}

/// The actions of one night, and the number of causes that have to wait for another.
#[derive(Debug, Clone, Default)]
pub struct AlertPlan<'a> {
    pub actions: Vec<Action<'a>>,
    pub waiting: usize,
}

/// Decides what to do, given the issues that are there.
pub fn plan<'a>(
    timelines: &'a [Timeline],
    known: &[KnownIssue],
    now: Timestamp,
    policy: &AlertPolicy,
) -> AlertPlan<'a> {
    let found = worse_causes(timelines, policy);
    let mut plan = AlertPlan::default();
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
            let trace = IssueTrace { recovered: true, ..issue.trace.clone() };
            plan.actions.push(Action::Close { number: issue.number, trace, why: Over::Recovered });
        }
    }
    let mut opened: Vec<Cause<'_>> = found
        .into_iter()
        .filter(|cause| {
            cause.members.iter().any(|member| member.change.evidence >= policy.opening && is_steady(member))
                && !known.iter().any(|issue| is_same(&issue.trace, cause) || continues(&issue.trace, cause))
                && now.duration_since(cause.until()) <= policy.newest
        })
        .collect();
    opened.sort_by_key(|cause| std::cmp::Reverse(cause.members.len()));
    let mut begun: Vec<Timestamp> =
        known.iter().filter(|issue| issue.open).map(|issue| issue.trace.at).collect();
    for cause in opened {
        let trace = IssueTrace {
            at: cause.members.first().map_or(cause.until(), Member::at),
            size: cause.members.first().map_or(0.0, |member| member.change.cost_ratio.ln()),
            members: cause.members.iter().take(NAMED).map(Member::key).collect(),
            recovered: false,
        };
        if over(timelines, &trace, &cause).is_some() {
            continue;
        }
        let count = plan.actions.iter().filter(|action| matches!(action, Action::Open { .. })).count();
        if count < policy.limit && !may_be_one_of(&begun, &cause) {
            begun.push(trace.at);
            plan.actions.push(Action::Open { cause, trace });
        } else {
            plan.waiting += 1;
        }
    }
    plan
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

fn is_same(trace: &IssueTrace, cause: &Cause<'_>) -> bool {
    let (from, to) = (cause.after() - DRIFT, cause.until() + DRIFT);
    let shares = cause.members.iter().any(|member| trace.members.contains(&member.key()));
    shares && from < trace.at && trace.at <= to
}

fn continues(trace: &IssueTrace, cause: &Cause<'_>) -> bool {
    let since = cause.until().duration_since(trace.at);
    since > SignedDuration::ZERO
        && since <= CONTINUES
        && !trace.recovered
        && cause.members.iter().all(|member| trace.members.contains(&member.key()))
}

/// Whether a cause is so new that more sessions may show it to be one that began at about the same time.
fn may_be_one_of(begun: &[Timestamp], cause: &Cause<'_>) -> bool {
    let Some(first) = cause.members.first() else { return false };
    let sessions = &first.timeline.sessions;
    let place = |at: Timestamp| sessions.partition_point(|session| session.began < at);
    let own = place(cause.until());
    sessions.len() - own < SETTLED && begun.iter().any(|at| place(*at).abs_diff(own) <= NEAR)
}

/// Whether each of the newest sessions is nearer to the new level than to the old one, which enough sessions show.
fn is_steady(member: &Member<'_>) -> bool {
    let history = member.timeline.benchmarks.get(member.benchmark);
    let Some((_, track)) = history.and_then(BenchmarkHistory::main) else { return false };
    let Some(costs) = track.costs() else { return false };
    let change = &member.change;
    let middle = (track.cost(change.from) + track.cost(change.to)) / 2.0;
    let before = track.points.iter().filter(|point| point.session < change.at).count();
    before >= BEFORE && costs.iter().rev().take(STEADY).all(|cost| *cost > middle)
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
