//! An interval for the median that assumes no distribution.

use super::describe;

/// Number of values from which two of them can bound the median with 95 % confidence.
const ENOUGH: usize = 6;
/// Quantile of the normal distribution for a two-sided 95 % interval.
const NORMAL: f64 = 1.959_964;

/// Returns the median, and two values that bound it with at least 95 % confidence, whatever the distribution:
/// their ranks come from the sign test. With fewer than six values no pair does, and the interval is the
/// whole range.
pub fn median_with_interval(values: &[f64]) -> Option<(f64, f64, f64)> {
    let sorted = describe::sorted(values);
    let median = describe::quantile_sorted(&sorted, 0.5)?;
    let skipped = skipped(sorted.len());
    Some((median, sorted[skipped], sorted[sorted.len() - 1 - skipped]))
}

/// Returns the number of values at each end that lie outside the interval.
fn skipped(n: usize) -> usize {
    if n < ENOUGH {
        return 0;
    }
    // Up to this many values, the rank is computed exactly: the largest one for which both tails of the
    // binomial distribution together hold at most 5 %.
    const EXACT: usize = 200;
    if n > EXACT {
        return (n as f64 / 2.0 - NORMAL * (n as f64).sqrt() / 2.0 - 1.0).max(0.0) as usize;
    }
    let (mut ways, mut tail, mut skipped) = (0.5_f64.powi(n as i32), 0.0, 0);
    for rank in 0..n / 2 {
        tail += ways;
        if 2.0 * tail > 0.05 {
            break;
        }
        skipped = rank;
        ways *= (n - rank) as f64 / (rank + 1) as f64;
    }
    skipped
}

#[cfg(test)]
mod tests {
    use super::{median_with_interval, skipped};

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
}
