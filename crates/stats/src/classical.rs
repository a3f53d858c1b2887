//! The classical two-sample tests, for `--test` and for comparison with other tools. Both agree with scipy to
//! 1e-9 (`tests/fixtures/scipy/`), also for ties and small samples.

use super::distributions::{normal_tail, student_tail};
use super::{describe, student_quantile};

/// The p-values of one test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TestResult {
    /// The statistic: t, or U of the first sample.
    pub statistic: f64,
    /// p-value for the alternative that the first sample is smaller.
    pub less: f64,
    /// p-value for the alternative that the first sample is larger.
    pub greater: f64,
    pub two_sided: f64,
}

/// Mean, variance and count, which are all that Welch's test needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    pub n: f64,
    pub mean: f64,
    pub variance: f64,
}

impl Moments {
    /// Returns `None` for fewer than two values.
    pub fn from_values(values: &[f64]) -> Option<Self> {
        Some(Self {
            n: values.len() as f64,
            mean: describe::mean(values)?,
            variance: describe::variance(values)?,
        })
    }
}

/// Returns the standard error of a difference of two means, and its degrees of freedom (Welch 1947).
pub fn welch_error(x: Moments, y: Moments) -> (f64, f64) {
    let (vx, vy) = (x.variance / x.n, y.variance / y.n);
    let total = vx + vy;
    let df = total * total / (vx * vx / (x.n - 1.0) + vy * vy / (y.n - 1.0));
    // If neither sample varies, a difference is certain, whatever the degrees of freedom; scipy does the
    // same.
    (total.sqrt(), if total > 0.0 { df } else { 1.0 })
}

/// Performs Welch's t test, like `scipy.stats.ttest_ind(x, y, equal_var=False)`.
pub fn welch(x: Moments, y: Moments) -> TestResult {
    let (se, df) = welch_error(x, y);
    let t = (x.mean - y.mean) / se;
    let (less, greater) = (student_tail(-t, df), student_tail(t, df));
    TestResult { statistic: t, less, greater, two_sided: (2.0 * less.min(greater)).min(1.0) }
}

/// Method for computing the distribution of U.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UMethod {
    /// Counts all arrangements. If there are ties, the distribution without ties is used, as in scipy.
    Exact,
    /// Normal approximation with tie correction.
    Asymptotic { continuity: bool },
    /// Chooses as scipy does: exact if one side has at most eight values and there are no ties, otherwise
    /// asymptotic with continuity correction.
    Auto,
}

/// Returns how many values that are unlike all others must belong to one sample, of `own` values, so that they do so by chance
/// with a probability of at most `limit`: four of samples of 24 for 1/16. The result is larger than `own` if no
/// number is enough.
pub fn fewest_of_one_side(own: usize, others: usize, limit: f64) -> usize {
    let (mut count, mut chance) = (0, 1.0);
    while chance > limit && count < own {
        chance *= (own - count) as f64 / (own + others - count) as f64;
        count += 1;
    }
    if chance > limit { own + 1 } else { count }
}

/// Performs Mann and Whitney's U test, like `scipy.stats.mannwhitneyu(x, y)`. Returns `None` if a side is
/// empty.
pub fn mann_whitney(x: &[f64], y: &[f64], method: UMethod) -> Option<TestResult> {
    if x.is_empty() || y.is_empty() {
        return None;
    }
    let RankTest { u, tail, deviation } = rank_test(x, y, method);
    let pairs = x.len() as f64 * y.len() as f64;
    let shift = if method == (UMethod::Asymptotic { continuity: false }) { 0.0 } else { 0.5 };
    let upper_tail = |u: f64| match &tail {
        // U is rounded up to the next whole number; scipy truncates the mirrored statistic, which is
        // equivalent.
        Some(tail) => tail.get(u.ceil().max(0.0) as usize).copied().unwrap_or(0.0),
        // If the values don't vary, this is NaN: no evidence.
        None => normal_tail((u - pairs / 2.0 - shift) / deviation),
    };
    let (greater, less) = (upper_tail(u).min(1.0), upper_tail(pairs - u).min(1.0));
    Some(TestResult { statistic: u, less, greater, two_sided: (2.0 * less.min(greater)).min(1.0) })
}

/// The statistic of a rank test, and its distribution under the hypothesis that the samples don't differ.
pub(super) struct RankTest {
    /// U of the first sample.
    u: f64,
    /// P(U ≥ u), indexed by u, if computed exactly.
    pub(super) tail: Option<Vec<f64>>,
    /// Standard deviation of U, corrected for ties.
    pub(super) deviation: f64,
}

/// Ranks two samples, neither of which may be empty.
fn rank_test(x: &[f64], y: &[f64], method: UMethod) -> RankTest {
    let (rank_sum, tie_term) = ranks(x, y);
    let (n, m) = (x.len() as f64, y.len() as f64);
    let exact = match method {
        UMethod::Exact => true,
        UMethod::Asymptotic { .. } => false,
        UMethod::Auto => x.len().min(y.len()) <= 8 && tie_term == 0.0,
    };
    let total = n + m;
    let variance = n * m / 12.0 * ((total + 1.0) - tie_term / (total * (total - 1.0)));
    RankTest {
        u: rank_sum - n * (n + 1.0) / 2.0,
        tail: exact.then(|| exact_tail(x.len(), y.len())),
        deviation: variance.sqrt(),
    }
}

/// Returns the sum of the first sample's midranks among all values, and Σ (t³ − t) over the groups of ties.
fn ranks(x: &[f64], y: &[f64]) -> (f64, f64) {
    let mut all: Vec<(f64, bool)> =
        x.iter().map(|&v| (v, true)).chain(y.iter().map(|&v| (v, false))).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut sum, mut ties, mut start) = (0.0, 0.0, 0);
    while start < all.len() {
        let length = all[start..].iter().take_while(|(value, _)| *value == all[start].0).count().max(1);
        let midrank = start as f64 + (length as f64 + 1.0) / 2.0;
        sum += midrank * all[start..start + length].iter().filter(|(_, first)| *first).count() as f64;
        let t = length as f64;
        ties += t * t * t - t;
        start += length;
    }
    (sum, ties)
}

/// Returns P(U ≥ u) for every whole u, assuming no ties. The numbers of arrangements are the coefficients of
/// the Gaussian binomial ∏ (1 − q^(m+i)) / (1 − q^i), i = 1 … n, with n the smaller sample: n passes over n·m
/// numbers. The numbers are symmetric, so only the lower half is computed, which keeps the tails free of
/// cancellation.
fn exact_tail(first: usize, second: usize) -> Vec<f64> {
    let (n, m) = (first.min(second), first.max(second));
    let last = n * m;
    let mut counts = vec![0.0_f64; last / 2 + 1];
    counts[0] = 1.0;
    for i in 1..=n {
        // Multiplying reads each number before it changes, so the loop counts down; dividing reads it
        // afterwards, so its loop counts up.
        for u in (m + i..counts.len()).rev() {
            counts[u] -= counts[u - m - i];
        }
        for u in i..counts.len() {
            counts[u] += counts[u - i];
        }
    }
    let count = |u: usize| counts[u.min(last - u)];
    let total: f64 = (0..=last).map(count).sum();
    let mut tail = vec![0.0; last + 1];
    let mut sum = 0.0;
    for u in (0..=last).rev() {
        sum += count(u);
        tail[u] = sum / total;
    }
    tail
}

/// The shift between two samples that corresponds to Mann and Whitney's test (Hodges and Lehmann 1963, Ann.
/// Math. Statist. 34:598–611): the median of all pairwise differences, and the interval of the shifts that
/// the test would not reject (Bauer 1972, J. Amer. Statist. Assoc. 67:687–690). There are n·m differences, too many
/// to list; the k-th smallest is found by bisection, counting in the sorted samples.
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

    #[test]
    fn four_above_four_is_one_arrangement_in_seventy() {
        let test = mann_whitney(&[5.0, 6.0, 7.0, 8.0], &[1.0, 2.0, 3.0, 4.0], UMethod::Auto).unwrap();
        assert_eq!(test.statistic, 16.0);
        assert!((test.greater - 1.0 / 70.0).abs() < 1e-15);
        assert_eq!(test.less, 1.0);
    }

    #[test]
    fn a_difference_without_any_variance_is_certain_to_welch_as_to_scipy() {
        let constant = |value: f64| Moments::from_values(&[value; 5]).unwrap();
        let test = welch(constant(51.0), constant(50.0));
        assert_eq!((test.greater, test.less, test.two_sided), (0.0, 1.0, 0.0));
        assert_eq!(welch(constant(50.0), constant(50.0)).two_sided, 1.0);
    }

    #[test]
    fn three_repetitions_can_never_be_significant() {
        let test = mann_whitney(&[5.0, 6.0, 7.0], &[1.0, 2.0, 3.0], UMethod::Auto).unwrap();
        assert!(test.two_sided > 0.05);
    }

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
            let test = mann_whitney(&first, &second, UMethod::Auto).unwrap();
            let (low, high) = RankShift::new(&first, &second).unwrap().interval(alpha).unwrap_or((f64::MIN, f64::MAX));
            prop_assert_eq!(test.greater <= alpha, low > 0.0, "{} {}", test.greater, low);
            prop_assert_eq!(test.less <= alpha, high < 0.0, "{} {}", test.less, high);
        }
    }
}
