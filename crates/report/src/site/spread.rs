//! The spread of one session's processes around the typical one, and whether one of them was slow.

use benchgate_stats::describe;

/// Fewest processes of a session of which one can be slow.
const LEAST: usize = 3;
/// Sessions that the usual distance from the quickest process to the typical one is learned from.
const LEARNED: usize = 20;
/// Sessions that it takes at least.
const KNOWN: usize = 5;
/// A process is slow that is so many times the usual distance above the typical one, and by this fraction.
const FAR: f64 = 5.0;
const SLOWER: f64 = 0.05;

/// The spread of one session's processes around the typical one, as costs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ProcessSpread {
    /// From the quickest process to the typical one.
    pub below: f64,
    /// By how much the slowest one is slower than the typical one, if it is slow; `None` with too little data.
    pub slow: Option<f64>,
}

impl ProcessSpread {
    /// The spread of the first `count` processes, which all benchmarks of the session have.
    pub fn new(costs: &[f64], count: usize, earlier: impl DoubleEndedIterator<Item = ProcessSpread>) -> Self {
        let costs = &costs[..count.min(costs.len())];
        let known = costs.len() >= LEAST && costs.iter().all(|cost| cost.is_finite());
        let Some(typical) = describe::median(costs).filter(|_| known) else {
            return Self::default();
        };
        let quickest = costs.iter().copied().fold(f64::INFINITY, f64::min);
        let slowest = costs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // Zero if a session had too few processes.
        let below = earlier.map(|spread| spread.below).filter(|below| *below > 0.0);
        let usual: Vec<f64> = below.rev().take(LEARNED).collect();
        let usual = describe::median(&usual).filter(|_| usual.len() >= KNOWN);
        let slow = usual.map(|usual| {
            let excess = slowest - typical;
            if excess > (FAR * usual).max(SLOWER.ln_1p()) { excess } else { 0.0 }
        });
        Self { below: typical - quickest, slow }
    }
}

/// The number of processes that are compared in a session: every benchmark with enough processes has them.
pub fn compared(processes: impl Iterator<Item = usize>) -> usize {
    processes.filter(|count| *count >= LEAST).min().unwrap_or(0)
}
