//! Densities of the two sides of a row, before and after head is moved back by the estimated change. People
//! use them to check a verdict.

use benchgate_stats::density::{bandwidth, density};
use benchgate_stats::describe;

/// Number of points of a curve: a change of 1 % is visible if the values span a factor of two.
const POINTS: usize = 160;
/// Share of the values at either end that is not drawn: one disturbed repetition would flatten the rest of
/// the curve.
const TAIL: f64 = 0.005;
/// Space around the outermost values, in bandwidths or in points of a curve, whichever is wider.
const AROUND: f64 = 3.0;

/// Densities of all repetitions on a log scale, at the same equidistant points.
#[derive(Debug, Clone, PartialEq)]
pub struct Alignment {
    /// The first and the last point, as logarithms relative to the reference.
    pub range: (f64, f64),
    /// Base's median in the metric's unit, which is the zero of the scale; `None` if absolute values are
    /// withheld.
    pub reference: Option<f64>,
    /// The estimated ratio head/base, by which `aligned` was moved back.
    pub ratio: f64,
    pub base: Vec<f64>,
    pub head: Vec<f64>,
    pub aligned: Vec<f64>,
}

impl Alignment {
    /// Computes the densities from the logarithms of each process's repetitions.
    pub fn of_processes(base: &[Vec<f64>], head: &[Vec<f64>], ratio: f64) -> Option<Self> {
        let (all_base, all_head) = (base.concat(), head.concat());
        let reference = describe::median(&all_base)?;
        describe::median(&all_head)?;
        let relative = |values: Vec<f64>, by: f64| -> Vec<f64> {
            values.into_iter().map(|value| value - reference - by).collect()
        };
        let aligned = relative(all_head.clone(), ratio.ln());
        let (all_base, all_head) = (relative(all_base, 0.0), relative(all_head, 0.0));
        let width = bandwidth(base.iter().chain(head).map(Vec::as_slice));
        let mut sorted = [all_base.as_slice(), &all_head, &aligned].concat();
        sorted.sort_by(f64::total_cmp);
        let end = |share: f64| describe::quantile_sorted(&sorted, share).filter(|end| end.is_finite());
        let (low, high) = (end(TAIL)?, end(1.0 - TAIL)?);
        let around = AROUND * width.max((high - low) / POINTS as f64);
        let range = (low - around, high + around);
        let curve = |values: &[f64]| density(values, width, range, POINTS);
        Some(Self {
            range,
            reference: Some(reference.exp()),
            ratio,
            base: curve(&all_base),
            head: curve(&all_head),
            aligned: curve(&aligned),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlap(one: &[f64], other: &[f64]) -> f64 {
        let shared: f64 = one.iter().zip(other).map(|(one, other)| one.min(*other)).sum();
        shared / one.iter().sum::<f64>()
    }

    #[test]
    fn head_lies_over_base_after_it_is_moved_back() {
        // The host has two speeds; head takes 5 % longer at both.
        let side = |slower: f64| -> Vec<Vec<f64>> {
            (0..24)
                .map(|process| {
                    let speed: f64 = if process % 3 == 0 { 19.2e6 } else { 11.3e6 };
                    (0..8).map(|at| (speed * slower).ln() + f64::from(at) * 0.001).collect()
                })
                .collect()
        };
        let seen = Alignment::of_processes(&side(1.0), &side(1.05), 1.05).unwrap();
        assert!(overlap(&seen.base, &seen.head) < 0.2, "{}", overlap(&seen.base, &seen.head));
        assert!(overlap(&seen.base, &seen.aligned) > 0.95, "{}", overlap(&seen.base, &seen.aligned));
        assert!((seen.reference.unwrap() - 11.3e6).abs() < 0.2e6);
        let mirrored = Alignment::of_processes(&side(1.05), &side(1.0), 1.0 / 1.05).unwrap();
        assert!(overlap(&mirrored.base, &mirrored.aligned) > 0.95);
    }

    #[test]
    fn a_side_without_repetitions_has_no_alignment() {
        assert_eq!(Alignment::of_processes(&[vec![]], &[vec![1.0]], 1.1), None);
        assert_eq!(Alignment::of_processes(&[vec![1.0]], &[], 1.1), None);
    }
}
