//! Sequential testing: the distribution of an error budget over looks that were declared beforehand.
//!
//! The budget that a test may have used at information fraction t is given by a spending function (Lan and
//! DeMets 1983, Biometrika 70:659–663), here from the power family `t^rho` (Kim and DeMets 1987, Biometrika
//! 74:149–154). Each look tests at the level that it adds, and Bonferroni's inequality combines the looks.
//! The inequality holds whatever the dependence between looks. The usual Gaussian process is not needed; a
//! robust estimate from four blocks doesn't follow it.

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
