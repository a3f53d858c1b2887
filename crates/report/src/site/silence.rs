//! Benchmarks and testbeds that stopped reporting. Silence is an alarm: a machine that is off and a benchmark that was
//! dropped look like health to everything that only judges what was measured.

use jiff::{SignedDuration, Timestamp};

use super::history::Timeline;
use benchgate_stats::describe;

/// Number of sessions from which the usual time between two sessions is determined.
const RECENT: usize = 20;
/// Usual times between two sessions that may pass.
const MISSED: f64 = 3.0;
/// Facts that may differ between a testbed and the one that replaced it.
const MOST_DIFFERENCES: usize = 3;

/// Something that stopped reporting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Silence {
    pub suite: String,
    pub testbed: String,
    /// Absent if the whole testbed is silent.
    pub benchmark: Option<String>,
    /// When it was last measured.
    pub since: Timestamp,
    /// Why it is expected, if it is expected: acknowledged or replaced.
    pub explained: Option<String>,
}

impl Silence {
    /// Whole days that it has been silent.
    pub fn days(&self, now: Timestamp) -> i64 {
        now.duration_since(self.since).as_hours() / 24
    }
}

/// Everything that has been silent for more than `days`, and for three times its usual distance.
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
            // One that never worked is not missing; its failures are shown.
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

/// Time without a session after which a timeline counts as silent: a suite that is measured once a week is not silent
/// on the fourth day.
fn patience(timeline: &Timeline, days: u32) -> SignedDuration {
    let recent = &timeline.sessions[timeline.sessions.len().saturating_sub(RECENT)..];
    let gaps: Vec<f64> =
        recent.windows(2).map(|two| two[1].began.duration_since(two[0].began).as_secs_f64()).collect();
    let usual = describe::median(&gaps).unwrap_or_default() * MISSED;
    SignedDuration::from_secs_f64(usual.max(f64::from(days) * 86_400.0))
}

/// An acceptance after the last session of a silent timeline, so the silence is known.
fn acknowledged(timeline: &Timeline, benchmark: Option<&str>, since: Timestamp) -> Option<String> {
    // An acceptance of whole runs does not apply to one silent benchmark.
    let given = |created: &str| created.parse::<Timestamp>().is_ok_and(|created| created > since);
    let mut newest = timeline.acceptances.iter().rev();
    let found = newest.find(|known| {
        known.benchmark.is_some() == benchmark.is_some() && known.covers(benchmark) && given(&known.created)
    })?;
    Some(format!("acknowledged by {}: {}", found.who, found.why))
}

/// Another testbed of the same suite that differs in little, began after this one ended, and still reports.
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
    // One new machine replaces one old one: the one that ended last before it began.
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
