//! Descriptive statistics of a list of numbers. Every function returns `None` if the list is too short, and
//! none reorders its argument.

pub use crate::quantile::{median, quantile_sorted, sorted};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_has_no_spread() {
        assert_eq!(stddev(&[3.0]), None);
        assert_eq!(stddev(&[1.0, 3.0]), Some(2.0_f64.sqrt()));
    }
}
