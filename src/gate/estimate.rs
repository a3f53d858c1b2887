//! From the evidence of all rows to an effect for each: paired rows steady one another.

use crate::model::Spread;
use crate::stats::Effect;
use crate::stats::robust::{Fit, ScalePrior, fit};
use crate::stats::stability::{Counts, RatePrior, count, p_value};

use super::evidence::{Block, Reading};

/// What blocks say about one row.
#[derive(Debug, Clone, PartialEq)]
pub struct Paired {
    pub effect: Effect,
    pub counts: Counts,
    /// One-sided p of "head is not slow more often than base".
    pub p_stability: f64,
    /// Every head process is beyond every base process by more than the floor.
    pub separated: bool,
}

/// One row's blocks with what its policy and calibration say.
pub struct PairedRow<'a> {
    pub blocks: &'a [Block],
    /// Log scale.
    pub floor: f64,
    pub tolerance: f64,
    pub calibrated: Option<Spread>,
}

/// A calibrated spread between blocks is worth this many degrees of freedom where a row has no
/// neighbours to learn from: as many as the least number of blocks.
const CALIBRATION_DF: f64 = 4.0;

/// A process counts as slow when it is this many block scales above its block, and beyond the
/// tolerance: four, so that ordinary noise rarely counts on either side.
const SLOW_SCALES: f64 = 4.0;

/// Estimates all paired rows of one metric together. `None` for a row whose blocks give no two
/// differences.
pub fn paired(rows: &[PairedRow<'_>]) -> Vec<Option<Paired>> {
    let differences: Vec<Vec<f64>> =
        rows.iter().map(|row| row.blocks.iter().filter_map(Block::difference).collect()).collect();
    let first: Vec<Fit> = differences.iter().filter_map(|d| fit(d, ScalePrior::NONE)).collect();
    let neighbours = ScalePrior::pooled(&first);
    let fits: Vec<Option<Fit>> = rows
        .iter()
        .zip(&differences)
        .map(|(row, differences)| fit(differences, prior(neighbours, row.calibrated)))
        .collect();
    let counts: Vec<Counts> =
        rows.iter().zip(&fits).map(|(row, fit)| slow_counts(row, fit.as_ref())).collect();
    let rates = RatePrior::pooled(&counts);
    rows.iter()
        .zip(fits.iter().zip(&counts))
        .map(|(row, (fit, counts))| {
            Some(Paired {
                effect: fit.as_ref()?.effect(),
                counts: *counts,
                p_stability: p_value(counts, rates),
                separated: separated(row),
            })
        })
        .collect()
}

fn prior(neighbours: ScalePrior, calibrated: Option<Spread>) -> ScalePrior {
    if neighbours != ScalePrior::NONE {
        return neighbours;
    }
    match calibrated.and_then(|spread| spread.between_blocks).filter(super::evidence::usable) {
        Some(scale) => ScalePrior { variance: scale * scale, df: CALIBRATION_DF },
        None => ScalePrior::NONE,
    }
}

fn slow_counts(row: &PairedRow<'_>, fit: Option<&Fit>) -> Counts {
    let Some(fit) = fit else { return Counts::default() };
    let costs = |side: &[Reading]| side.iter().map(|reading| reading.middle).collect::<Vec<f64>>();
    let blocks: Vec<(Vec<f64>, Vec<f64>)> =
        row.blocks.iter().map(|block| (costs(&block.base), costs(&block.head))).collect();
    count(&blocks, fit.center, row.tolerance.max(SLOW_SCALES * fit.scale))
}

fn separated(row: &PairedRow<'_>) -> bool {
    let base = row.blocks.iter().flat_map(|b| &b.base).map(|r| r.clean).fold(f64::NEG_INFINITY, f64::max);
    let head = row.blocks.iter().flat_map(|b| &b.head).map(|r| r.clean).fold(f64::INFINITY, f64::min);
    head - row.floor > base
}
