//! From the evidence of all rows to an effect for each: paired rows steady one another.

use crate::model::Spread;
use crate::stats::robust::{Fit, ScalePrior, fit};
use crate::stats::stability::{Counts, RatePrior, count, p_value};
use crate::stats::{Effect, sign_test};

use super::evidence::{Block, Reading};

/// What blocks say about one row.
#[derive(Debug, Clone, PartialEq)]
pub struct Paired {
    pub effect: Effect,
    pub counts: Counts,
    /// One-sided p of "head is not slow more often than base".
    pub p_stability: f64,
    /// Sign test of the lopsided blocks alone: neighbours have no say in it.
    pub p_split: f64,
    /// Every head process is beyond every base process by more than the floor.
    pub separated: bool,
    /// Sign tests of the blocks against the floor on either side: they assume nothing about tails.
    pub p_sign_worse: f64,
    pub p_sign_better: f64,
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
        .zip(fits.iter().zip(&counts).zip(&differences))
        .map(|(row, ((fit, counts), differences))| {
            let beyond = |worse: f64| differences.iter().filter(|&&d| d * worse > row.floor).count();
            Some(Paired {
                p_sign_worse: sign_test(beyond(1.0), differences.len()),
                p_sign_better: sign_test(beyond(-1.0), differences.len()),
                effect: fit.as_ref()?.effect(),
                counts: *counts,
                p_stability: p_value(counts, rates),
                p_split: sign_test(
                    counts.head_slower as usize,
                    (counts.head_slower + counts.base_slower) as usize,
                ),
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

/// Effects of rows with one process a side and a default spread: how much the rows of one comparison
/// differ among themselves says how much processes differ on this machine, and corrects a default
/// that is too small or too large. A change of many rows by different amounts widens the spread, and
/// then two files can't tell; a change of all rows by the same amount doesn't.
pub fn steadied(effects: &[Effect]) -> Vec<Effect> {
    let mut centers: Vec<f64> = effects.iter().map(|effect| effect.center).collect();
    centers.sort_by(f64::total_cmp);
    let Some(fit) = fit(&centers, ScalePrior::NONE).filter(|_| centers.len() >= LEAST_NEIGHBOURS) else {
        return effects.to_vec();
    };
    let rows = centers.len() as f64;
    let steady = |effect: &Effect| {
        let variance = ASSUMED_DF * effect.se * effect.se + rows * fit.scale * fit.scale;
        Effect { se: (variance / (ASSUMED_DF + rows)).sqrt(), ..*effect }
    };
    effects.iter().map(steady).collect()
}

/// Rows from which their differences say something about the machine.
const LEAST_NEIGHBOURS: usize = 5;

/// One row of a comparison with stored sessions.
pub struct HistoryRow<'a> {
    pub stored: &'a [f64],
    pub now: f64,
    pub assumed_sd: f64,
}

/// Sessions from which rows' own histories outweigh what was assumed. Below it the chip and the weather
/// of few days are shared by all rows, so that many rows don't help.
pub const ENOUGH_SESSIONS: usize = 5;
/// Degrees of freedom that an assumed spread is worth beside data.
const ASSUMED_DF: f64 = 4.0;

/// The effects of one session against history: the prediction of a further session, whose variance is
/// the spread between sessions plus that of their centre.
pub fn histories(rows: &[HistoryRow<'_>]) -> Vec<Option<Effect>> {
    let long: Vec<Fit> = rows
        .iter()
        .filter(|row| row.stored.len() >= ENOUGH_SESSIONS)
        .filter_map(|row| fit(row.stored, ScalePrior::NONE))
        .collect();
    let neighbours = ScalePrior::pooled(&long);
    rows.iter()
        .map(|row| {
            let enough = row.stored.len() >= ENOUGH_SESSIONS && neighbours != ScalePrior::NONE;
            let assumed = ScalePrior { variance: row.assumed_sd * row.assumed_sd, df: ASSUMED_DF };
            let Some(fit) = fit(row.stored, if enough { neighbours } else { assumed }) else {
                // One stored session: all that is known of the spread is assumed, and may have tails.
                let stored = row.stored.first()?;
                let se = row.assumed_sd * std::f64::consts::SQRT_2;
                return Some(Effect { center: row.now - stored, se, df: ASSUMED_DF });
            };
            let of_center = fit.effect().se;
            let se = (fit.scale * fit.scale + of_center * of_center).sqrt();
            Some(Effect { center: row.now - fit.center, se, df: fit.df })
        })
        .collect()
}
