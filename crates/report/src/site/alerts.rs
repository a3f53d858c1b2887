//! Chooses the actions for causes of slowdowns: which issue is opened, updated, closed or reopened. It does
//! no IO: it takes GitHub's list of issues and returns actions.
//!
//! An issue is recognized by its marker, which contains the start of the new level and the
//! benchmarks. The estimated position of a change varies by a session or two from night to night.
//! So a cause belongs to an issue if the issue's time lies in the cause's range or close to it, and
//! if they share a benchmark.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use benchgate_stats::describe;

use super::causes::{Cause, Member, Move, causes, key};
use super::history::{BenchmarkHistory, Timeline, Track};
use super::stability::{BEFORE, PRESENT, is_red_elsewhere, level_before, red_since};

/// Thresholds for opening and updating issues.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AlertPolicy {
    /// Slowdowns below this fraction don't open an issue.
    pub floor: f64,
    /// Evidence that a benchmark needs to belong to a cause. Among 500 benchmarks in 365 nights, the square
    /// of a normal deviate exceeds 36 once in a thousand years.
    pub evidence: f64,
    /// Evidence that one benchmark of a cause needs for a new issue. Nights have heavier tails than a normal
    /// distribution: at 36 there were three false issues in ten simulated years. The threshold is lower for
    /// an existing issue, so that the issue is updated until the slowdown is over.
    pub opening: f64,
    /// Number of newest sessions of each benchmark that are examined.
    pub window: usize,
    /// Maximum age of a change that opens an issue, so that the first night does not report years of history.
    pub newest: SignedDuration,
    /// Maximum number of issues that are opened in one night; the others follow in later nights.
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

/// Time within which a slowdown may follow an earlier cause and still belong to it, if all its benchmarks
/// were part of that cause: a gradual slowdown has one cause, although it is detected in steps.
const CONTINUES: SignedDuration = SignedDuration::from_hours(24 * 60);
/// Largest shift of a change's estimated position from one night to the next.
const DRIFT: SignedDuration = SignedDuration::from_hours(24 * 6);
/// Number of newest sessions that must all be slow for a new issue: two bad nights of three can look like a
/// new level.
const STEADY: usize = 3;
/// Number of sessions after which the position of a change is known. Before that, one outlier moves it by up
/// to [`NEAR`] sessions.
const SETTLED: usize = 7;
pub(super) const NEAR: usize = 4;
/// A slowdown is reported again if it has grown by this share of the reported slowdown.
const GROWTH: f64 = 0.25;
/// Maximum number of benchmarks that a marker names.
const NAMED: usize = 40;

/// An issue that benchgate opened.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownIssue {
    pub number: u64,
    pub open: bool,
    pub trace: IssueTrace,
}

#[derive(Debug, Clone)]
pub enum Action<'a> {
    Open {
        cause: Cause<'a>,
        trace: IssueTrace,
    },
    /// Updates an issue. `grew` is the previously reported slowdown, if the slowdown is much larger
    /// now.
    Update {
        number: u64,
        cause: Cause<'a>,
        trace: IssueTrace,
        grew: Option<f64>,
    },
    Reopen {
        number: u64,
        cause: Cause<'a>,
        trace: IssueTrace,
    },
    Close {
        number: u64,
        trace: IssueTrace,
        why: Over,
    },
}

/// The actions of one night, and the number of causes that have to wait for a later night.
#[derive(Debug, Clone, Default)]
pub struct AlertPlan<'a> {
    pub actions: Vec<Action<'a>>,
    pub waiting: usize,
}

/// Chooses the actions, given the existing issues.
pub fn plan<'a>(
    timelines: &'a [Timeline],
    known: &[KnownIssue],
    now: Timestamp,
    policy: &AlertPolicy,
) -> AlertPlan<'a> {
    let mut of_issues: BTreeMap<u64, Vec<Cause<'_>>> = BTreeMap::new();
    let mut new = Vec::new();
    for cause in worse_causes(timelines, policy) {
        match issue_of(known, &cause) {
            Some(issue) => of_issues.entry(issue.number).or_default().push(cause),
            None => new.push(cause),
        }
    }
    let mut plan = AlertPlan::default();
    for issue in known {
        let steps = of_issues.remove(&issue.number).unwrap_or_default();
        plan.actions.extend(followed(timelines, issue, steps, policy));
    }
    new.retain(|cause| {
        cause.members.iter().any(|member| member.change.evidence >= policy.opening && is_steady(member))
            && now.duration_since(cause.until()) <= policy.newest
    });
    new.sort_by_key(|cause| std::cmp::Reverse(cause.members.len()));
    let mut begun: Vec<Timestamp> =
        known.iter().filter(|issue| issue.open).map(|issue| issue.trace.at).collect();
    for cause in new {
        let trace = IssueTrace {
            at: cause.members.first().map_or(cause.until(), Member::at),
            size: cause.members.first().map_or(0.0, |member| member.change.cost_ratio.ln()),
            total: cause.total(),
            members: keys(&cause),
            recovered: false,
        };
        if acceptance(&cause).is_some() || has_recovered(timelines, &trace, &[]) {
            continue;
        }
        let opened = plan.actions.iter_mut().find_map(|action| match action {
            Action::Open { cause: first, trace } if is_step(trace, &cause) => Some(first),
            _ => None,
        });
        if let Some(first) = opened {
            first.later.push(cause);
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

/// Returns the issue that a cause belongs to: an open one if possible, otherwise the newest, because an older
/// closed one is irrelevant.
fn issue_of<'i>(known: &'i [KnownIssue], cause: &Cause<'_>) -> Option<&'i KnownIssue> {
    let newest = |found: &&KnownIssue| (found.open, found.number);
    let same = known.iter().filter(|issue| is_same(&issue.trace, cause)).max_by_key(newest);
    same.or_else(|| known.iter().filter(|issue| continues(issue, cause)).max_by_key(newest))
}

/// Returns the action for an issue with these causes, oldest first.
fn followed<'a>(
    timelines: &'a [Timeline],
    issue: &KnownIssue,
    mut steps: Vec<Cause<'a>>,
    policy: &AlertPolicy,
) -> Option<Action<'a>> {
    let number = issue.number;
    let mut trace = issue.trace.clone();
    let accepted = steps.last().and_then(acceptance);
    let of_steps = |step: &Cause<'_>| step.accepted.iter().map(Member::key).collect::<Vec<_>>();
    let settled: Vec<String> = steps.iter().flat_map(of_steps).collect();
    steps.retain(|step| acceptance(step).is_none());
    // A benchmark that is slower again is not settled by an earlier acceptance.
    let is_open =
        |key: &String| steps.iter().flat_map(|step| &step.members).any(|member| member.key() == *key);
    let settled: Vec<String> = settled.into_iter().filter(|key| !is_open(key)).collect();
    let over = match accepted {
        Some(accepted) if steps.is_empty() => Some(accepted),
        _ => has_recovered(timelines, &trace, &settled).then_some(Over::Recovered),
    };
    if let Some(why) = over {
        trace.recovered = true;
        return issue.open.then_some(Action::Close { number, trace, why });
    }
    if steps.is_empty() {
        return None;
    }
    let mut cause = steps.remove(0);
    cause.later = steps;
    for key in cause.members.iter().map(Member::key) {
        if !trace.members.contains(&key) && trace.members.len() < NAMED {
            trace.members.push(key);
        }
    }
    let reopen = !issue.open && trace.recovered;
    trace.recovered = false;
    let before = trace.total;
    let grew = has_grown(&cause, before, policy);
    if grew || reopen {
        trace.total = cause.total();
    }
    if issue.open {
        return Some(Action::Update { number, cause, trace, grew: grew.then_some(before) });
    }
    // An issue that a person closed stays closed.
    reopen.then_some(Action::Reopen { number, cause, trace })
}

/// Returns whether, in each of the newest sessions, the slowdown has grown enough since the last report for a
/// comment.
fn has_grown(cause: &Cause<'_>, before: f64, policy: &AlertPolicy) -> bool {
    let total = cause.total();
    if total - before < (before * GROWTH).max(policy.floor) {
        return false;
    }
    let Some(worst) = cause.slowest() else { return false };
    let Some(track) = worst.track() else { return false };
    let Some(costs) = track.costs() else { return false };
    let middle = track.cost(worst.change.from) + before.midpoint(total);
    costs.iter().rev().take(STEADY).all(|cost| *cost > middle)
}

/// Returns the causes with a benchmark that got worse by more than the floor, oldest first.
pub(super) fn worse_causes<'a>(timelines: &'a [Timeline], policy: &AlertPolicy) -> Vec<Cause<'a>> {
    let mut moved = Vec::new();
    for timeline in timelines {
        for (benchmark, history) in &timeline.benchmarks {
            let Some((metric, track)) = history.main() else { continue };
            let changes = track.newest(policy.window).moves();
            let worse = changes.into_iter().filter(|change| {
                change.cost_ratio > 1.0 + policy.floor && change.evidence >= policy.evidence
            });
            let mut worse: Vec<Member<'_>> =
                worse.map(|change| Member { timeline, benchmark, metric, change }).collect();
            // Another metric is followed while the gate fails on it.
            let elsewhere = red_since(timeline, benchmark, history, 1).filter(|red| red.metric != metric);
            if let Some((track, red)) = elsewhere.and_then(|red| Some((red.track()?, red))) {
                let changes = track.newest(policy.window).moves().into_iter().filter(|change| {
                    change.cost_ratio > 1.0 + policy.floor
                        && change.evidence >= policy.evidence
                        && change.latest + NEAR >= red.change.at
                        && !worse.iter().any(|known| known.change.latest.abs_diff(change.latest) <= NEAR)
                });
                let found: Vec<Member<'_>> = changes.map(|change| Member { change, ..red.clone() }).collect();
                worse.extend(found);
            }
            // The gate reported a regression in each of these sessions, which is enough evidence.
            let red = red_since(timeline, benchmark, history, SETTLED).map(|mut red| {
                red.change.evidence = policy.opening;
                red
            });
            let is_detected = |red: &Member<'_>| {
                worse.iter().any(|known| {
                    if known.metric == red.metric {
                        known.change.latest + NEAR >= red.change.at
                    } else {
                        known.change.latest.abs_diff(red.change.at) <= NEAR
                    }
                })
            };
            let red = red.filter(|red| red.change.cost_ratio > 1.0 + policy.floor && !is_detected(red));
            worse.extend(red);
            moved.append(&mut worse);
        }
    }
    let mut found: Vec<Cause<'_>> = causes(moved).into_iter().map(without_accepted).collect();
    found.reverse();
    found
}

/// Sets the members whose new level was accepted apart. A cause that was accepted as a whole stays as it is, because it
/// closes its issue.
fn without_accepted(mut cause: Cause<'_>) -> Cause<'_> {
    let after = cause.after();
    let is_accepted = |member: &Member<'_>| accepted(member, after).is_some();
    if cause.members.iter().all(is_accepted) {
        return cause;
    }
    (cause.accepted, cause.members) = cause.members.into_iter().partition(is_accepted);
    cause
}

/// Returns the keys of the benchmarks of a cause. A benchmark may be among its members with two metrics.
fn keys(cause: &Cause<'_>) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for key in cause.members.iter().map(Member::key) {
        if keys.len() < NAMED && !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

fn is_same(trace: &IssueTrace, cause: &Cause<'_>) -> bool {
    let (from, to) = (cause.after() - DRIFT, cause.until() + DRIFT);
    let shares = cause.members.iter().any(|member| trace.members.contains(&member.key()));
    shares && from < trace.at && trace.at <= to
}

/// Returns whether a cause is a further step of an issue. If a person closed the issue, a slowdown
/// larger than the one that was reported opens another issue.
fn continues(issue: &KnownIssue, cause: &Cause<'_>) -> bool {
    let trace = &issue.trace;
    let size = cause.members.first().map_or(0.0, |worst| worst.change.cost_ratio.ln());
    !trace.recovered && (issue.open || size <= trace.total) && is_step(trace, cause)
}

/// Returns whether a cause is a further step of a trace: it began not long after the trace's
/// change, and all its benchmarks got slower at that change too.
fn is_step(trace: &IssueTrace, cause: &Cause<'_>) -> bool {
    let since = cause.until().duration_since(trace.at);
    since > SignedDuration::ZERO
        && since <= CONTINUES
        && cause.members.iter().all(|member| trace.members.contains(&member.key()))
}

/// Returns whether a cause is so new that more sessions may show it to be the same as one that began at about
/// the same time.
fn may_be_one_of(begun: &[Timestamp], cause: &Cause<'_>) -> bool {
    let Some(first) = cause.members.first() else { return false };
    let sessions = &first.timeline.sessions;
    let place = |at: Timestamp| sessions.partition_point(|session| session.began < at);
    let own = place(cause.until());
    sessions.len() - own < SETTLED && begun.iter().any(|at| place(*at).abs_diff(own) <= NEAR)
}

/// Returns whether each of the newest sessions is nearer to the new level than to the old one, and the old
/// level has enough sessions.
fn is_steady(member: &Member<'_>) -> bool {
    let Some(track) = member.track() else { return false };
    let Some(costs) = track.costs() else { return false };
    let change = &member.change;
    let middle = (track.cost(change.from) + track.cost(change.to)) / 2.0;
    let before = track.points.iter().filter(|point| point.session < change.at).count();
    before >= BEFORE && costs.iter().rev().take(STEADY).all(|cost| *cost > middle)
}

impl Track {
    /// Returns only the newest points.
    fn newest(&self, count: usize) -> Self {
        Self { points: self.points[self.points.len().saturating_sub(count)..].to_vec(), ..self.clone() }
    }
}

/// Returns the changes of a cause that get a row, worst first.
pub fn rows<'a, 'b>(cause: &'b Cause<'a>) -> impl Iterator<Item = (&'b Member<'a>, &'b Move)> {
    cause.members.iter().map(|member| (member, &member.change))
}

// Decides whether the slowdown of an issue is over: every benchmark of the issue is back at its earlier
// level, or its new level was accepted.

/// Number of sessions of a suite and testbed below which no issue can be opened.
pub const LEAST_SESSIONS: usize = BEFORE + STEADY;
/// Share of a slowdown that may remain when it counts as over.
const LEFT: f64 = 1.0 / 3.0;

/// The content of an issue's marker.
#[derive(Debug, Clone, PartialEq)]
pub struct IssueTrace {
    /// Start of the new level, as far as it was known when the issue was opened.
    pub at: Timestamp,
    /// The largest slowdown at that time, as a log ratio.
    pub size: f64,
    /// The largest slowdown that was reported.
    pub total: f64,
    /// Keys of the benchmarks.
    pub members: Vec<String>,
    /// True if benchgate closed the issue, and may reopen it.
    pub recovered: bool,
}

/// The reason why an issue is over.
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

/// Returns the first acceptance if the new level of every benchmark of a cause is accepted.
pub(super) fn acceptance(cause: &Cause<'_>) -> Option<Over> {
    let mut accepted = cause.members.iter().map(|member| accepted(member, cause.after()));
    let first = accepted.next()??;
    accepted.all(|accepted| accepted.is_some()).then_some(first)
}

/// Returns the acceptance of the new level of a benchmark.
fn accepted(member: &Member<'_>, after: Timestamp) -> Option<Over> {
    let begins = |from: &str| {
        member.timeline.sessions.iter().any(|session| session.name == from && session.began > after)
    };
    let found = member
        .timeline
        .acceptances
        .iter()
        .find(|accepted| accepted.covers(Some(member.benchmark)) && begins(&accepted.from))?;
    Some(Over::Accepted { who: found.who.clone(), why: found.why.clone() })
}

/// Returns whether every benchmark of an issue is back near the level that it had before, except those in `settled`,
/// whose new level was accepted. A benchmark that is no longer measured has not recovered.
fn has_recovered(timelines: &[Timeline], trace: &IssueTrace, settled: &[String]) -> bool {
    let mut found = 0;
    for timeline in timelines {
        for (benchmark, history) in &timeline.benchmarks {
            let key = key(timeline, benchmark);
            if !trace.members.contains(&key) {
                continue;
            }
            if is_red_elsewhere(timeline, benchmark, history) {
                return false;
            }
            if settled.contains(&key) {
                found += 1;
                continue;
            }
            let Some(left) = slowdown_left(timeline, history, trace) else { return false };
            if left > (trace.size * LEFT).min(0.02) {
                return false;
            }
            found += 1;
        }
    }
    found == trace.members.len()
}

/// Returns the present level relative to the level before the slowdown, as a log ratio.
fn slowdown_left(timeline: &Timeline, history: &BenchmarkHistory, trace: &IssueTrace) -> Option<f64> {
    let (_, track) = history.main()?;
    let costs = track.costs()?;
    let split = track.points.iter().position(|point| timeline.sessions[point.session].began >= trace.at)?;
    let (before, after) = costs.split_at(split);
    if before.is_empty() || after.len() < PRESENT {
        return None;
    }
    // If a larger improvement shortly preceded the slowdown, the slowdown is measured from the
    // improved level.
    let old = level_before(before, trace.size / 2.0)?;
    Some(describe::median(&after[after.len() - PRESENT..])? - old)
}
