//! Corrections for judging many rows at once.

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
}
