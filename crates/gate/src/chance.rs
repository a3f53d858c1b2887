//! Differences of facts and qualities that chance does not explain. Programs whose processes differ state other values in each.

use benchgate_stats::classical::{TestResult, UMethod, mann_whitney};

/// The least number of values of each side that are compared by their ranks.
pub const ENOUGH_RANKED: usize = 8;

/// Probability below which head's values are not worse by chance. It is small, because a suite has many.
pub const NOT_CHANCE: f64 = 0.0005;

/// Compares the ranks of head's values with those of base's, if there are enough; `less` is the probability that head's are
/// smaller by chance.
pub fn ranked(base: &[f64], head: &[f64]) -> Option<TestResult> {
    let is_enough = base.len().min(head.len()) >= ENOUGH_RANKED;
    is_enough.then(|| mann_whitney(head, base, UMethod::Auto)).flatten()
}
