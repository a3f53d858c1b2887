//! Detects repetitions that fall on a grid (a comb).

use super::difference_density::{BANDWIDTH, REACH, STEP, Table, kernel};
use super::scores::BlockCosts;

/// Distance up to which a comb is searched for: repetitions may consist of as few as one or two scheduler slices.
const COMB_REACH: f64 = 0.75;
/// Maximum number of repetitions of one process that are searched for a comb.
const COMB_REPETITIONS: usize = 256;
/// A second peak must be this many times as high as the gap before it.
const TOOTH: f64 = 3.0;

/// Returns how clearly the repetitions of a process fall on a grid: how often two of them differ by one
/// narrow amount, relative to how often they agree, provided that smaller differences are rare. For ordinary
/// noise the frequency of differences decreases from zero on, without such a peak; waiting for whole
/// scheduler slices creates one. Such repetitions show how often the process waited, and little about the
/// program.
pub fn comb(blocks: &[BlockCosts]) -> f64 {
    let kernel = kernel();
    let mut table = Table::zeros(-REACH * BANDWIDTH, COMB_REACH + REACH * BANDWIDTH);
    for process in blocks.iter().flatten() {
        // Every pair is compared, so only evenly spaced repetitions of a long process are used.
        let every = process.costs.len().div_ceil(COMB_REPETITIONS).max(1);
        let costs: Vec<f64> = process.costs.iter().step_by(every).copied().collect();
        for (at, one) in costs.iter().enumerate() {
            let apart: Vec<f64> = costs[..at].iter().map(|other| (one - other).abs()).collect();
            table.add(&apart, 1.0, &kernel);
        }
    }
    let agree = table.at(0.0);
    let (mut gap, mut tooth) = (agree, 0.0_f64);
    for cell in 0..=(COMB_REACH / STEP) as usize {
        let height = table.at(cell as f64 * STEP);
        gap = gap.min(height);
        if height > TOOTH * gap {
            tooth = tooth.max(height);
        }
    }
    if agree > 0.0 { tooth / agree } else { 0.0 }
}
