//! Diagnoses of a set of processes: two modes, drift, and unequal disturbances.

use super::describe;
use super::distributions::hypergeometric_test;

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
    let sorted = describe::sorted(values);
    let least_in_mode = LEAST_IN_MODE.max(sorted.len() / MOST_OUTLIERS);
    if sorted.len() < 2 * least_in_mode {
        return None;
    }
    let gap = |at: usize| sorted[at] - sorted[at - 1];
    let at = (least_in_mode..=sorted.len() - least_in_mode).max_by(|&a, &b| gap(a).total_cmp(&gap(b)))?;
    let (below, above) = sorted.split_at(at);
    let (low, high) = (describe::mean(below)?, describe::mean(above)?);
    let spread = (describe::variance(below)? + describe::variance(above)?).sqrt();
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
    ((f64::abs(score) - 1.0) / deviation > z).then(|| describe::median(&slopes)).flatten()
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
