//! Differences of facts and qualities that chance does not explain. Programs whose processes differ state other values in each.

use benchgate_core::model::{Benchmark, Series};
use benchgate_stats::classical::{TestResult, UMethod, fewest_of_one_side, mann_whitney};

/// The least number of values of each side that are compared by their ranks.
pub const ENOUGH_RANKED: usize = 8;

/// Probability below which head's values are not worse by chance. It is small, because a suite has many.
pub const NOT_CHANCE: f64 = 0.0005;

/// Probability with which a fact that all of base's processes state is another one in some of head's by chance.
pub const OF_ONE_FACT: f64 = 1.0 / 16.0;

/// Compares the ranks of head's values with those of base's, if there are enough; `less` is the probability that head's are
/// smaller by chance.
pub fn ranked(base: &[f64], head: &[f64]) -> Option<TestResult> {
    let is_enough = base.len().min(head.len()) >= ENOUGH_RANKED;
    is_enough.then(|| mann_whitney(head, base, UMethod::Auto)).flatten()
}

/// Processes of head that differ from all of base's.
pub struct OtherProcesses {
    differing: usize,
    of_head: usize,
    of_base: usize,
}

impl OtherProcesses {
    /// Returns whether both sides have so many processes that they show how much these differ.
    pub fn are_enough(&self) -> bool {
        self.of_head.min(self.of_base) >= ENOUGH_RANKED
    }

    /// Returns whether more processes differ than chance explains. Few processes don't show what varies.
    pub fn is_beyond_chance(&self, limit: f64) -> bool {
        !self.are_enough() || self.differing >= fewest_of_one_side(self.of_head, self.of_base, limit)
    }
}

/// Counts the processes of head of which a value `differs`.
pub fn other_processes(sides: [&Benchmark; 2], name: &str, differs: impl Fn(f64) -> bool) -> OtherProcesses {
    let [base, head] = sides.map(|side| side.metric(name).map(|series| &series.series));
    let processes = |series: Option<&Series>| series.map_or(0, Series::processes);
    let differing = match head {
        Some(Series::Processes(all)) => {
            all.iter().filter(|process| process.samples.iter().any(|value| differs(*value))).count()
        }
        Some(Series::Summaries(all)) => {
            all.iter().filter(|it| it.median.or(it.mean).is_some_and(&differs)).count()
        }
        Some(Series::Exact(value)) => usize::from(differs(*value)),
        None => 0,
    };
    OtherProcesses { differing, of_head: processes(head), of_base: processes(base) }
}
