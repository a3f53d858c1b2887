//! Descriptive statistics of a list of numbers. Every function returns `None` if the list is too short, and
//! none reorders its argument.

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

/// Number of values from which two of them can bound the median with 95 % confidence.
const ENOUGH: usize = 6;
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
}
