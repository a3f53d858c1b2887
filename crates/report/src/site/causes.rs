//! Groups benchmarks that changed at the same time, because they probably have one cause. A change lies
//! between two sessions. Benchmarks whose ranges overlap may have one cause, and the smallest number of
//! causes is assumed (the fewest points that meet all intervals, which choosing the earliest end greedily
//! finds).

use jiff::Timestamp;

use benchgate_core::model::SourceCommit;
use benchgate_stats::change_points::change_points;

use super::history::{Session, Timeline, Track};
use super::layout::slug;

/// Maximum number of sessions between two causes that are merged: an outlier shifts an estimated change by one or two.
const APART: usize = 1;
/// A cause keeps its own range if it has this many times as many benchmarks as the other one.
const OUTNUMBERED: usize = 4;

/// One metric of one benchmark, with a change of level.
#[derive(Debug, Clone)]
pub struct Member<'a> {
    pub timeline: &'a Timeline,
    pub benchmark: &'a str,
    pub metric: &'a str,
    pub change: Move,
}

/// Benchmarks that changed at the same time.
#[derive(Debug, Clone)]
pub struct Cause<'a> {
    /// The members; the member that got worse most is first.
    pub members: Vec<Member<'a>>,
    /// The last session before the change and the first one after it. This is the range that all members have
    /// in common; if two causes were merged, it is the range of both, or the larger cause's.
    pub old: &'a Session,
    pub new: &'a Session,
    /// Further members whose new level was accepted, if that of others was not.
    pub accepted: Vec<Member<'a>>,
    /// Further slowdowns of the same benchmarks, oldest first, if one issue covers all of them.
    pub later: Vec<Cause<'a>>,
}

impl<'a> Member<'a> {
    /// Returns the range in which the change lies: after the first instant, and not after the second.
    pub fn range(&self) -> (Timestamp, Timestamp) {
        let (old, new) = self.bounds();
        (old.began, new.began)
    }

    fn bounds(&self) -> (&'a Session, &'a Session) {
        self.timeline.bounds(&self.change)
    }

    /// Returns the values of its metric.
    pub fn track(&self) -> Option<&'a Track> {
        self.timeline.benchmarks.get(self.benchmark)?.tracks.get(self.metric)
    }

    pub fn is_about(&self, timeline: &Timeline, benchmark: &str) -> bool {
        std::ptr::eq(self.timeline, timeline) && self.benchmark == benchmark
    }

    /// Returns a name for a marker, without characters that have a special meaning there.
    pub fn key(&self) -> String {
        key(self.timeline, self.benchmark)
    }

    /// Returns when the new level was first measured, as far as known.
    pub fn at(&self) -> Timestamp {
        self.timeline.sessions[self.change.at].began
    }
}

/// Returns a benchmark's name in markers.
pub fn key(timeline: &Timeline, benchmark: &str) -> String {
    let slug = slug(&[benchmark, &timeline.suite, &timeline.testbed.id]);
    slug[slug.len() - 8..].to_owned()
}

impl<'a> Cause<'a> {
    /// Returns the start of the range: the change lies after it, and not after [`Self::until`].
    pub fn after(&self) -> Timestamp {
        self.old.began
    }

    pub fn until(&self) -> Timestamp {
        self.new.began
    }

    /// Returns the benchmark that is slowest now, relative to its level before the change.
    pub fn slowest(&self) -> Option<&Member<'a>> {
        let ratio = |member: &&Member<'_>| member.change.total_ratio;
        self.members.iter().max_by(|a, b| ratio(a).total_cmp(&ratio(b)))
    }

    /// Returns how much slower the slowest benchmark is, as a log ratio.
    pub fn total(&self) -> f64 {
        self.slowest().map_or(0.0, |member| member.change.total_ratio.ln())
    }

    /// Returns this change and the later ones.
    pub fn steps(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.later)
    }

    pub fn is_worse(&self) -> bool {
        self.members.iter().any(|member| member.change.is_worse())
    }

    fn takes_in(&self, other: &Self) -> bool {
        let Some(first) = self.members.first() else { return false };
        let place = |at: Timestamp| first.timeline.sessions.partition_point(|session| session.began < at);
        let gap = |earlier: &Self, later: &Self| place(later.after()).checked_sub(place(earlier.until()));
        let between = gap(self, other).or_else(|| gap(other, self));
        let is_new = |member: &Member<'_>| {
            !self.members.iter().any(|own| own.is_about(member.timeline, member.benchmark))
        };
        between.is_some_and(|gap| gap <= APART) && other.members.iter().all(is_new)
    }

    fn take_in(&mut self, other: Cause<'a>) {
        if self.members.len() < OUTNUMBERED * other.members.len() {
            self.old = if other.after() < self.after() { other.old } else { self.old };
            self.new = if other.until() > self.until() { other.new } else { self.new };
        }
        self.members.extend(other.members);
    }
}

/// Groups changes by cause, newest first.
pub fn causes<'a>(mut moved: Vec<Member<'a>>) -> Vec<Cause<'a>> {
    moved.sort_by_key(|member| (member.range().1, member.at()));
    let mut points: Vec<Timestamp> = Vec::new();
    for member in &moved {
        let (after, until) = member.range();
        if !points.iter().any(|point| after < *point && *point <= until) {
            points.push(until);
        }
    }
    let mut groups: Vec<Vec<Member<'a>>> = points.iter().map(|_| Vec::new()).collect();
    for member in moved {
        let (after, until) = member.range();
        // A wide range contains several points; the one nearest to its most likely position is chosen.
        let distance = |point: &Timestamp| point.duration_since(member.at()).abs();
        let meeting = points.iter().enumerate().filter(|(_, point)| after < **point && **point <= until);
        if let Some((at, _)) = meeting.min_by_key(|(_, point)| distance(point)) {
            groups[at].push(member);
        }
    }
    let cause = |mut members: Vec<Member<'a>>| {
        members.sort_by(|a, b| b.change.cost_ratio.total_cmp(&a.change.cost_ratio));
        let old = members.iter().map(|member| member.bounds().0).max_by_key(|session| session.began)?;
        let new = members.iter().map(|member| member.bounds().1).min_by_key(|session| session.began)?;
        Some(Cause { members, old, new, accepted: Vec::new(), later: Vec::new() })
    };
    let mut found = joined(groups.into_iter().filter_map(cause).collect());
    found.reverse();
    found
}

/// Merges a cause with its neighbor: one outlier next to a change shifts its estimated position by a session
/// or two, and some of the benchmarks that changed together have such outliers. Two causes from different
/// nights may thus become one issue, whose range includes both. Without merging, one cause would become two
/// issues more often.
fn joined(mut found: Vec<Cause<'_>>) -> Vec<Cause<'_>> {
    found.sort_by_key(|cause| std::cmp::Reverse(cause.members.len()));
    let mut kept: Vec<Cause<'_>> = Vec::new();
    for cause in found {
        match kept.iter_mut().find(|larger| larger.takes_in(&cause)) {
            Some(larger) => larger.take_in(cause),
            None => kept.push(cause),
        }
    }
    for cause in &mut kept {
        cause.members.sort_by(|a, b| b.change.cost_ratio.total_cmp(&a.change.cost_ratio));
    }
    kept.sort_by_key(Cause::until);
    kept
}

/// Smallest change that is listed individually: no gate could have detected smaller ones.
const LEAST_SHOWN: f64 = 0.003;

/// One change of level of one metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Move {
    /// Session with the first value of the new level, and the earliest and latest session that it may be.
    pub at: usize,
    pub earliest: usize,
    pub latest: usize,
    /// Session with the last value that certainly has the old level.
    pub before: usize,
    /// Ratio of the new cost to the old one: above one is worse.
    pub cost_ratio: f64,
    /// Strength of the evidence; see [`benchgate_stats::change_points::ChangePoint::evidence`].
    pub evidence: f64,
    /// Values before and after the change.
    pub from: f64,
    pub to: f64,
    /// The newest level, after all changes; and the ratio of its cost to the cost before this change.
    pub now: f64,
    pub total_ratio: f64,
}

impl Move {
    pub fn is_worse(&self) -> bool {
        self.cost_ratio > 1.0
    }
}

impl Track {
    /// Returns every change of level that is shown, oldest first.
    pub fn moves(&self) -> Vec<Move> {
        let Some(costs) = self.costs() else { return Vec::new() };
        let session = |at: usize| self.points[at].session;
        let value = |cost: f64| (self.better.worse() * cost).exp();
        let changes = change_points(&costs);
        let newest = changes.last().map_or(0.0, |change| change.after);
        changes
            .into_iter()
            .filter(|change| (change.after - change.before).abs() >= LEAST_SHOWN)
            .map(|change| Move {
                at: session(change.at),
                earliest: session(change.earliest),
                latest: session(change.latest),
                before: session(change.earliest.saturating_sub(1)),
                cost_ratio: (change.after - change.before).exp(),
                evidence: change.evidence,
                from: value(change.before),
                to: value(change.after),
                now: value(newest),
                total_ratio: (newest - change.before).exp(),
            })
            .collect()
    }
}

/// A range of measured commits: everything after `from`, up to and including `to`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range<'a> {
    pub from: &'a str,
    pub to: &'a str,
}

/// Lists the commits of a range of the sources, newest first; empty if they are not known.
pub type ListCommits<'a> = &'a dyn Fn(&Range<'_>) -> Vec<SourceCommit>;

/// Returns the commits of the sources between two sessions; `None` if one is unknown, or if both are the
/// same.
pub fn sources<'a>(old: &'a Session, new: &'a Session) -> Option<Range<'a>> {
    let (from, to) = (old.commit.as_deref()?, new.commit.as_deref()?);
    (from != to).then_some(Range { from, to })
}

/// Returns the commits of the compiler between two sessions; `None` if one is unknown, or if both
/// are the same.
pub fn compiler<'a>(old: &'a Session, new: &'a Session) -> Option<Range<'a>> {
    let (from, to) = (old.toolchain.as_ref()?, new.toolchain.as_ref()?);
    let (from, to) = (from.compiler_commit.as_str(), to.compiler_commit.as_str());
    (from != to).then_some(Range { from, to })
}

impl Timeline {
    /// Returns the sessions between which a change lies: the last at the old level, and the first at the new
    /// one.
    pub fn bounds(&self, change: &Move) -> (&Session, &Session) {
        (&self.sessions[change.before], &self.sessions[change.latest])
    }
}
