//! What moved at the same change is one cause. A change lies between two sessions; benchmarks whose ranges share an
//! instant may have one cause, and as few causes as possible are assumed (the least number of points that meet all
//! intervals, which the greedy choice of the earliest end finds).

use jiff::Timestamp;

use super::history::Timeline;
use super::moves::Move;

/// One metric of one benchmark that moved.
#[derive(Debug, Clone)]
pub struct Member<'a> {
    pub timeline: &'a Timeline,
    pub benchmark: &'a str,
    pub metric: &'a str,
    pub change: Move,
}

/// Benchmarks that moved at the same change.
#[derive(Debug, Clone)]
pub struct Cause<'a> {
    /// The one that got worst first.
    pub members: Vec<Member<'a>>,
    /// Measured last before the change and first after it, in no member later or earlier.
    pub after: Timestamp,
    pub until: Timestamp,
}

impl Member<'_> {
    /// The change lies after the first and not after the second.
    pub fn range(&self) -> (Timestamp, Timestamp) {
        let (old, new) = self.timeline.bounds(&self.change);
        (old.began, new.began)
    }

    /// When the new level was first measured, as far as is known.
    pub fn at(&self) -> Timestamp {
        self.timeline.sessions[self.change.at].began
    }
}

impl Cause<'_> {
    pub fn is_worse(&self) -> bool {
        self.members.iter().any(|member| member.change.is_worse())
    }
}

/// Groups what moved, the newest cause first.
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
        // A wide range meets several: the one nearest to where it most likely lies.
        let distance = |point: &Timestamp| point.duration_since(member.at()).abs();
        let meeting = points.iter().enumerate().filter(|(_, point)| after < **point && **point <= until);
        if let Some((at, _)) = meeting.min_by_key(|(_, point)| distance(point)) {
            groups[at].push(member);
        }
    }
    let cause = |mut members: Vec<Member<'a>>| {
        members.sort_by(|a, b| b.change.cost_ratio.total_cmp(&a.change.cost_ratio));
        let after = members.iter().map(|member| member.range().0).max()?;
        let until = members.iter().map(|member| member.range().1).min()?;
        Some(Cause { members, after, until })
    };
    let mut found: Vec<Cause<'a>> = groups.into_iter().filter_map(cause).collect();
    found.reverse();
    found
}
