//! Sequential sampling: which rows need more blocks.

use crate::model::{BenchmarkName, Run, Verdict};
use crate::stats::spending::Looks;

use super::{CompareOptions, Comparison, Method, Policy, Reason, compare};

/// The answer after a look.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OpenRows {
    /// Benchmarks that need more blocks before they can be judged.
    pub open: Vec<BenchmarkName>,
    /// Blocks each of them should have at the next look; `None` when measuring is over.
    pub next_blocks: Option<u32>,
}

/// What is open after the blocks measured so far, and up to where to measure. Open benchmarks are
/// measured in step: all of them get `next_blocks` blocks before the next call.
///
/// A pure function of what was measured, so an interrupted job asks again and gets the same answer.
pub fn open_rows(base: &Run, head: &Run, policy: &Policy) -> OpenRows {
    open_in(&compare(base, head, policy, &CompareOptions::default()), policy)
}

/// The same, from a comparison that was made already.
pub fn open_in(comparison: &Comparison, policy: &Policy) -> OpenRows {
    let looks = Looks::new(policy.sequential.min_blocks, policy.sequential.max_blocks);
    let mut open = Vec::new();
    let mut next: Option<u32> = None;
    for row in comparison.rows.iter().filter(|row| row.fatal && row.verdict == Verdict::Inconclusive) {
        let blocks = row.estimate.as_ref().map_or(0, |estimate| estimate.blocks);
        let more_helps = match &row.reason {
            Reason::Open | Reason::Stability => {
                row.estimate.as_ref().is_some_and(|e| e.method == Method::Paired)
            }
            Reason::TooLittle(_) => true,
            _ => false,
        };
        let Some(point) = looks.after(blocks).filter(|_| more_helps) else { continue };
        if !open.contains(&row.benchmark) {
            open.push(row.benchmark.clone());
        }
        next = Some(next.map_or(point, |known: u32| known.min(point)));
    }
    OpenRows { next_blocks: next, open }
}
