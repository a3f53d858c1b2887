//! Order statistics of a list of numbers. None of these functions reorders its argument.

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
