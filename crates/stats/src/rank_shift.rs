//! The shift between two samples that corresponds to Mann and Whitney's test (Hodges and Lehmann 1963, Ann.
//! Math. Statist. 34:598–611): the median of all pairwise differences, and the interval of the shifts that
//! the test would not reject (Bauer 1972, J. Amer. Statist. Assoc. 67:687–690).
//!
//! There are n·m differences, too many to list; the k-th smallest is found by bisection, counting in the sorted samples.

use super::classical::{UMethod, rank_test};
use super::describe;
use super::student_quantile;

/// Two samples, sorted, and the distribution of the statistic that compares them.
#[derive(Debug)]
pub struct RankShift {
    first: Vec<f64>,
    second: Vec<f64>,
    /// P(U ≥ u), indexed by u, if computed exactly.
    tail: Option<Vec<f64>>,
    deviation: f64,
}

impl RankShift {
    /// Computes the shift of the first sample relative to the second; `None` if a side is empty or a value is
    /// not finite.
    pub fn new(first: &[f64], second: &[f64]) -> Option<Self> {
        let finite = first.iter().chain(second).all(|value| value.is_finite());
        if !finite || first.is_empty() || second.is_empty() {
            return None;
        }
        let test = rank_test(first, second, UMethod::Auto);
        Some(Self {
            first: describe::sorted(first),
            second: describe::sorted(second),
            tail: test.tail,
            deviation: test.deviation,
        })
    }

    fn pairs(&self) -> usize {
        self.first.len() * self.second.len()
    }

    /// Returns the median of all differences.
    pub fn estimate(&self) -> f64 {
        let pairs = self.pairs();
        f64::midpoint(self.smallest(pairs.div_ceil(2)), self.smallest(pairs / 2 + 1))
    }

    /// Returns the interval of the shifts that the test does not reject at `alpha` on either side; `None` if
    /// there are too few values to reject anything.
    pub fn interval(&self, alpha: f64) -> Option<(f64, f64)> {
        let rank = self.rejected(alpha);
        (rank > 0).then(|| (self.smallest(rank), self.smallest(self.pairs() + 1 - rank)))
    }

    /// Returns the number of smallest differences that lie below every shift that is not rejected: the
    /// largest c with P(U ≤ c − 1) ≤ `alpha`.
    fn rejected(&self, alpha: f64) -> usize {
        let pairs = self.pairs();
        match &self.tail {
            // U is symmetric: P(U ≤ c − 1) = P(U ≥ pairs − c + 1).
            Some(tail) => (1..=pairs / 2).take_while(|c| tail[pairs + 1 - c] <= alpha).count(),
            None => {
                let pairs = pairs as f64;
                let rank = pairs / 2.0 + 0.5 - student_quantile(alpha, f64::INFINITY) * self.deviation;
                // An infinite quantile makes the rank negative, and the conversion then saturates at zero.
                rank.min(pairs / 2.0).floor() as usize
            }
        }
    }

    /// Returns the `rank`-th smallest difference, counted from one.
    fn smallest(&self, rank: usize) -> f64 {
        let (Some(low), Some(high)) = (self.first.first(), self.first.last()) else { return f64::NAN };
        let (Some(least), Some(most)) = (self.second.first(), self.second.last()) else { return f64::NAN };
        let (mut below, mut found) = (ordered(low - most), ordered(high - least));
        while below < found {
            let middle = below + (found - below) / 2;
            if self.at_most(value(middle)) >= rank { found = middle } else { below = middle + 1 }
        }
        value(found)
    }

    /// Returns the number of differences that are at most `limit`.
    fn at_most(&self, limit: f64) -> usize {
        let mut beyond = 0;
        let mut count = 0;
        for x in &self.first {
            // For a larger x, at least as many differences exceed the limit.
            beyond += self.second[beyond..].iter().take_while(|y| x - *y > limit).count();
            count += self.second.len() - beyond;
        }
        count
    }
}

/// Maps finite numbers to integers in the same order, so that bisection ends after 64 steps.
fn ordered(number: f64) -> u64 {
    let bits = number.to_bits();
    if bits >> 63 == 0 { bits | (1 << 63) } else { !bits }
}

fn value(ordered: u64) -> f64 {
    f64::from_bits(if ordered >> 63 == 1 { ordered & !(1 << 63) } else { !ordered })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn listed(first: &[f64], second: &[f64]) -> Vec<f64> {
        let all: Vec<f64> = first.iter().flat_map(|x| second.iter().map(move |y| x - y)).collect();
        describe::sorted(&all)
    }

    #[test]
    fn the_interval_is_that_of_rs_wilcox_test() {
        // R 4: wilcox.test(x, y, conf.int = TRUE, conf.level = 0.95); the ranks are those of qwilcox(0.025, 6, 6) = 6.
        let (x, y) = ([1.1, 2.2, 3.4, 4.5, 5.9, 7.0], [0.5, 1.6, 2.3, 2.9, 3.3, 4.1]);
        let shift = RankShift::new(&x, &y).unwrap();
        let all = listed(&x, &y);
        assert_eq!(shift.interval(0.025), Some((all[5], all[30])));
        assert_eq!(shift.estimate(), f64::midpoint(all[17], all[18]));
    }

    #[test]
    fn three_and_three_values_have_no_interval_at_one_in_a_hundred() {
        let shift = RankShift::new(&[5.0, 6.0, 7.0], &[1.0, 2.0, 3.0]).unwrap();
        assert_eq!(shift.interval(0.01), None);
        // One of twenty arrangements.
        assert_eq!(shift.interval(0.05), Some((2.0, 6.0)));
    }

    proptest! {
        #[test]
        fn the_k_th_difference_is_that_of_the_list(
            first in prop::collection::vec(-1e3..1e3_f64, 1..12),
            second in prop::collection::vec(-1e3..1e3_f64, 1..12),
        ) {
            let shift = RankShift::new(&first, &second).unwrap();
            for (at, expected) in listed(&first, &second).into_iter().enumerate() {
                prop_assert_eq!(shift.smallest(at + 1), expected);
            }
        }

        #[test]
        fn the_interval_excludes_no_shift_exactly_where_the_test_rejects_it(
            first in prop::collection::vec(0.0..10.0_f64, 4..30),
            second in prop::collection::vec(0.0..10.0_f64, 4..30),
            alpha in 0.001..0.2_f64,
        ) {
            let test = super::super::classical::mann_whitney(&first, &second, UMethod::Auto).unwrap();
            let (low, high) = RankShift::new(&first, &second).unwrap().interval(alpha).unwrap_or((f64::MIN, f64::MAX));
            prop_assert_eq!(test.greater <= alpha, low > 0.0, "{} {}", test.greater, low);
            prop_assert_eq!(test.less <= alpha, high < 0.0, "{} {}", test.less, high);
        }
    }
}
