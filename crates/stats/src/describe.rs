//! Descriptive statistics of a list of numbers, and diagnoses of a set of processes: two modes, drift, and unequal
//! disturbances. Every function returns `None` if the list is too short, and none reorders its argument.

use super::distributions::{hypergeometric_test, sign_test};

/// Factor from a median absolute deviation to the standard deviation of normal values: 1 / 0.6745.
pub const MEDIAN_DEVIATION: f64 = 1.4826;
/// Factor from the median difference of two normal values to their standard deviation: 1 / (0.6745 √2).
pub const MEDIAN_DIFFERENCE: f64 = 1.0484;

pub fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    Some(values.iter().sum::<f64>() / values.len() as f64)
}

/// Returns the sample variance (n − 1), from deviations about the mean.
pub fn variance(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let centre = mean(values)?;
    let squares: f64 = values.iter().map(|v| (v - centre) * (v - centre)).sum();
    Some(squares / (values.len() - 1) as f64)
}

/// Returns the sample standard deviation (n − 1).
pub fn stddev(values: &[f64]) -> Option<f64> {
    variance(values).map(f64::sqrt)
}

/// Quantile of the normal distribution for a two-sided 95 % interval.
const NORMAL: f64 = 1.959_964;

/// Returns the median, and two values that bound it with at least 95 % confidence, whatever the distribution:
/// their ranks come from the sign test. With fewer than six values no pair does, and the interval is the
/// whole range.
pub fn median_with_interval(values: &[f64]) -> Option<(f64, f64, f64)> {
    let sorted = sorted(values);
    let median = quantile_sorted(&sorted, 0.5)?;
    let skipped = skipped(sorted.len());
    Some((median, sorted[skipped], sorted[sorted.len() - 1 - skipped]))
}

/// Returns the number of values at each end that lie outside the interval.
fn skipped(n: usize) -> usize {
    // Up to this many values, the rank is the largest one that the sign test rejects at 5 %.
    const EXACT: usize = 200;
    if n > EXACT {
        return (n as f64 / 2.0 - NORMAL * (n as f64).sqrt() / 2.0 - 1.0).max(0.0) as usize;
    }
    (0..n / 2).take_while(|&rank| 2.0 * sign_test(n - rank, n) <= 0.05).last().unwrap_or(0)
}

/// Returns a sorted copy. NaN sorts last, so that it stays visible.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut copy = values.to_vec();
    copy.sort_by(f64::total_cmp);
    copy
}

/// Returns the median; `None` for an empty list.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile_sorted(&sorted(values), 0.5)
}

/// Returns a quantile of a sorted list by linear interpolation between order statistics (Hyndman and Fan's
/// type 7, the default of R and NumPy).
pub fn quantile_sorted(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let position = q.clamp(0.0, 1.0) * last as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(last);
    let fraction = position - below as f64;
    Some(sorted[below] + fraction * (sorted[above] - sorted[below]))
}

/// Two groups of values, with their distance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Modes {
    pub low: f64,
    pub high: f64,
    /// Share of the values that is in the upper group.
    pub upper: f64,
}

/// Minimum number of values in a mode: two could be a pair of outliers.
const LEAST_IN_MODE: usize = 3;
/// A group that has less than one in this many of the values consists of outliers and is not a mode: 3 stalls
/// in 5,000 repetitions.
const MOST_OUTLIERS: usize = 50;
/// Smallest value of Ashman's D (Ashman, Bird and Zepf 1994, AJ 108:2348) at which two groups count as
/// separate. The authors propose 2 for a known split; the best of all splits of one normal sample reaches
/// about 4.
const SEPARATION: f64 = 5.0;

/// Returns the best split of the values into two groups, if it separates them by more than `least`.
pub fn bimodal(values: &[f64], least: f64) -> Option<Modes> {
    let sorted = sorted(values);
    let least_in_mode = LEAST_IN_MODE.max(sorted.len() / MOST_OUTLIERS);
    if sorted.len() < 2 * least_in_mode {
        return None;
    }
    let gap = |at: usize| sorted[at] - sorted[at - 1];
    let at = (least_in_mode..=sorted.len() - least_in_mode).max_by(|&a, &b| gap(a).total_cmp(&gap(b)))?;
    let (below, above) = sorted.split_at(at);
    let (low, high) = (mean(below)?, mean(above)?);
    let spread = (variance(below)? + variance(above)?).sqrt();
    let apart = high - low > least && (high - low) * std::f64::consts::SQRT_2 > SEPARATION * spread;
    apart.then(|| Modes { low, high, upper: above.len() as f64 / sorted.len() as f64 })
}

/// Returns the trend of a sequence: Theil and Sen's slope per step, if Kendall's S is significant at
/// two-sided `z`.
pub fn drift(values: &[f64], z: f64) -> Option<f64> {
    let n = values.len();
    if n < 6 {
        return None;
    }
    let mut slopes = Vec::with_capacity(n * (n - 1) / 2);
    let mut score = 0.0;
    for (i, &earlier) in values.iter().enumerate() {
        for (j, &later) in values.iter().enumerate().skip(i + 1) {
            slopes.push((later - earlier) / (j - i) as f64);
            score += (later - earlier).partial_cmp(&0.0).map_or(0.0, |order| f64::from(order as i8));
        }
    }
    let n = n as f64;
    let deviation = (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    ((f64::abs(score) - 1.0) / deviation > z).then(|| median(&slopes)).flatten()
}

/// Returns the two-sided p of Fisher's exact test that disturbances affect both sides alike: `disturbed` of
/// `all` processes of each side were disturbed.
pub fn lopsided(disturbed: (usize, usize), all: (usize, usize)) -> f64 {
    let count = |number: usize| number as u64;
    let (total, hit) = (count(all.0 + all.1), count(disturbed.0 + disturbed.1));
    hypergeometric_test(count(disturbed.0), count(all.0), hit, total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_has_no_spread() {
        assert_eq!(stddev(&[3.0]), None);
        assert_eq!(stddev(&[1.0, 3.0]), Some(2.0_f64.sqrt()));
    }

    #[test]
    fn ranks_are_those_of_the_table_of_the_sign_test() {
        // Conover 1999, table of confidence limits for the median, which counts ranks from one.
        for (n, lower) in [(6, 1), (8, 1), (9, 2), (12, 3), (15, 4), (20, 6), (25, 8), (50, 18)] {
            assert_eq!(skipped(n) + 1, lower, "{n}");
        }
        assert!(skipped(201).abs_diff(skipped(200)) <= 1);
    }

    #[test]
    fn few_values_give_their_range() {
        assert_eq!(median_with_interval(&[3.0, 1.0, 2.0]), Some((2.0, 1.0, 3.0)));
        assert_eq!(median_with_interval(&[5.0]), Some((5.0, 5.0, 5.0)));
        assert_eq!(median_with_interval(&[]), None);
    }

    #[test]
    fn the_median_of_an_even_list_is_the_mean_of_the_middle_two() {
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn quantiles_interpolate_as_numpy_does() {
        let values = [1.0, 2.0, 4.0, 8.0];
        assert_eq!(quantile_sorted(&values, 0.25), Some(1.75));
        assert_eq!(quantile_sorted(&values, 1.0), Some(8.0));
    }

    /// The expected values are doubled one-sided sums of the hypergeometric distribution, computed by hand
    /// from binomial coefficients.
    #[test]
    fn disturbances_on_one_side_surprise_and_those_on_both_do_not() {
        let p = |disturbed, all| lopsided(disturbed, all);
        assert!((p((0, 8), (8, 8)) - 0.000_155_400_155).abs() < 1e-12);
        assert!((p((0, 6), (8, 8)) - 0.006_993_006_993).abs() < 1e-12);
        assert!((p((2, 5), (8, 8)) - 0.314_685_314_685).abs() < 1e-12);
        assert_eq!(p((3, 3), (8, 8)), 1.0);
        assert!((p((12, 0), (24, 24)) / 7.762_919_144_63e-5 - 1.0).abs() < 1e-9);
        assert_eq!(p((0, 0), (0, 0)), 1.0);
    }

    #[test]
    fn two_groups_of_processes_are_seen_and_one_outlier_is_not() {
        let two = [0.0, 0.01, 0.02, 0.01, 0.30, 0.31, 0.29, 0.30];
        assert!(bimodal(&two, 0.03).is_some_and(|modes| modes.upper == 0.5));
        assert_eq!(bimodal(&[0.0, 0.01, 0.02, 0.01, 0.0, 0.01, 0.02, 0.9], 0.03), None);
        assert_eq!(bimodal(&[0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07], 0.03), None);
        let stalls: Vec<f64> =
            (0..1000).map(|at| if at < 4 { 0.9 } else { f64::from(at % 10) * 0.001 }).collect();
        assert_eq!(bimodal(&stalls, 0.03), None);
    }

    #[test]
    fn a_steady_climb_is_drift_and_a_zigzag_is_not() {
        let climb: Vec<f64> = (0..10).map(|i| f64::from(i) * 0.01).collect();
        assert!((drift(&climb, 2.58).unwrap() - 0.01).abs() < 1e-12);
        let zigzag: Vec<f64> = (0..10).map(|i| f64::from(i % 2)).collect();
        assert_eq!(drift(&zigzag, 2.58), None);
    }
}
