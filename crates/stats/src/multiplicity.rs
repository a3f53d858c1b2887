//! Corrections for judging many rows at once.
//!
//! Sequential testing: the distribution of an error budget over looks that were declared beforehand.
//!
//! The budget that a test may have used at information fraction t is given by a spending function (Lan and
//! DeMets 1983, Biometrika 70:659–663), here from the power family `t^rho` (Kim and DeMets 1987, Biometrika
//! 74:149–154). Each look tests at the level that it adds, and Bonferroni's inequality combines the looks.
//! The inequality holds whatever the dependence between looks. The usual Gaussian process is not needed; a
//! robust estimate from four blocks doesn't follow it.

/// Returns the order of `p` from the smallest; ties keep their original order.
fn ascending(p: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    order
}

/// Returns p-values with Holm's step-down adjustment (Holm 1979, Scand. J. Statist. 6:65–70): the adjusted
/// values control the chance of one false positive among all rows, whatever the dependence between them.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut adjusted = vec![1.0; p.len()];
    let mut highest: f64 = 0.0;
    for (rank, &index) in ascending(p).iter().enumerate() {
        let value = (p[index] * (p.len() - rank) as f64).min(1.0);
        highest = highest.max(value);
        adjusted[index] = highest;
    }
    adjusted
}

/// Returns the level at which Holm's procedure at family level `alpha` finally tests each row: `alpha / (m −
/// rank)` for a rejected row, and for every other row the level at which the procedure stopped. An interval
/// at this level agrees with the adjusted p.
pub fn holm_levels(p: &[f64], alpha: f64) -> Vec<f64> {
    let mut levels = vec![alpha; p.len()];
    let mut stopped_at: Option<f64> = None;
    for (rank, &index) in ascending(p).iter().enumerate() {
        let level = stopped_at.unwrap_or(alpha / (p.len() - rank) as f64);
        if p[index] > level {
            stopped_at = Some(level);
        }
        levels[index] = level;
    }
    levels
}

/// Returns p-values with Benjamini and Hochberg's adjustment (1995, J. R. Statist. Soc. B 57:289–300), which
/// controls the share of false entries in a list. The adjustment only orders lists for people and never
/// affects the gate.
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let mut adjusted = vec![1.0; p.len()];
    let mut lowest: f64 = 1.0;
    for (rank, &index) in ascending(p).iter().enumerate().rev() {
        lowest = lowest.min(p[index] * p.len() as f64 / (rank + 1) as f64);
        adjusted[index] = lowest;
    }
    adjusted
}

/// Number of blocks before which a randomization test can't reach the level of a suite, so that a look would
/// only cost budget.
const FIRST_USEFUL: u32 = 8;

/// The declared looks, as the numbers of blocks after which rows are judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looks {
    points: Vec<u32>,
}

impl Looks {
    /// Declares looks from `min` to `max`, each after half as many blocks again as the one before. `max` is
    /// always a look; before [`FIRST_USEFUL`] there is no other.
    pub fn new(min: u32, max: u32) -> Self {
        let max = max.max(min).max(1);
        let more = |blocks: &u32| Some(blocks.saturating_add(blocks.div_ceil(2)));
        let mut points: Vec<u32> =
            std::iter::successors(Some(min.max(FIRST_USEFUL)), more).take_while(|n| *n < max).collect();
        points.push(max);
        Self { points }
    }

    /// Returns the first declared look.
    pub fn first(&self) -> u32 {
        self.points.first().copied().unwrap_or(1)
    }

    /// Returns the last declared look.
    pub fn last(&self) -> u32 {
        self.points.last().copied().unwrap_or(1)
    }

    pub fn points(&self) -> &[u32] {
        &self.points
    }

    /// Returns the next look after `blocks`, if measuring continues.
    pub fn after(&self, blocks: u32) -> Option<u32> {
        self.points.iter().copied().find(|&point| point > blocks)
    }

    /// Returns the share of the budget for a test after `blocks` blocks: the increase of the spending
    /// function since the previous look. A row that stopped between two looks (because the time ran out)
    /// counts as a separate look.
    pub fn share(&self, blocks: u32, rho: f64) -> f64 {
        if blocks == 0 {
            return 0.0;
        }
        let whole = f64::from(self.last().max(blocks));
        let spent = |n: u32| (f64::from(n) / whole).powf(rho);
        let before = self.points.iter().copied().rfind(|&point| point < blocks).map_or(0.0, spent);
        spent(blocks) - before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holm_multiplies_by_the_hypotheses_still_standing_and_never_decreases() {
        assert_eq!(holm(&[0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02]);
    }

    #[test]
    fn holm_levels_agree_with_adjusted_values() {
        let p = [0.001, 0.2, 0.004, 0.0034, 0.9];
        let adjusted = holm(&p);
        for (level, (p, adjusted)) in holm_levels(&p, 0.01).iter().zip(p.iter().zip(&adjusted)) {
            assert_eq!(p <= level, *adjusted <= 0.01, "p {p}, level {level}, adjusted {adjusted}");
        }
    }

    #[test]
    fn benjamini_hochberg_divides_by_the_rank() {
        let adjusted = benjamini_hochberg(&[0.01, 0.02, 0.03, 0.5]);
        assert_eq!(adjusted, [0.04, 0.04, 0.04, 0.5]);
    }

    #[test]
    fn the_shares_of_all_looks_are_the_whole_budget() {
        let looks = Looks::new(12, 24);
        let sum: f64 = looks.points().iter().map(|&n| looks.share(n, 3.0)).sum();
        assert!((sum - 1.0).abs() < 1e-12);
        assert_eq!(looks.points(), [12, 18, 24]);
        assert_eq!(Looks::new(4, 12).points(), [8, 12]);
        assert_eq!(Looks::new(2, 4).points(), [4]);
    }

    #[test]
    fn a_single_look_has_everything() {
        let looks = Looks::new(6, 6);
        assert_eq!(looks.share(6, 2.0), 1.0);
        assert_eq!(looks.after(6), None);
    }

    #[test]
    fn stopping_between_looks_costs_less_than_the_next_look() {
        let looks = Looks::new(12, 24);
        assert!(looks.share(13, 2.0) < looks.share(18, 2.0));
        assert!(looks.share(2, 2.0) > 0.0);
    }
}
