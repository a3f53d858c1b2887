//! How probable each position is, from the p-values of all probes.
//!
//! A p-value becomes a Bayes factor: where the hypothesis holds it is uniform, and where it doesn't its density is
//! taken to be ξ p^(ξ − 1). Over ξ that factor can't exceed 1 / (−e p ln p) (Sellke, Bayarri and Berger 2001, The
//! American Statistician 55:62–71); for one fixed ξ it is also an e-value: its mean is one where the hypothesis holds,
//! whatever the noise is, so that products over probes, chosen one after the other, exceed 1/δ with probability δ at
//! most (Ville's inequality; Vovk and Wang 2021, Annals of Statistics 49:1736–1754). The exactness of the gate's test
//! thus extends to the search.
//!
//! Weighing every position by all answers and asking at the weighted median is the noisy binary search of
//! Horstein (1963), Karp and Kleinberg (SODA 2007) and Ben-Or and Hassidim (FOCS 2008).

use super::evidence::Tested;

/// Small, because probes are measured until they say something: their p-values are tiny or ordinary.
const XI: f64 = 0.2;
/// A p-value below it depends on more than the measurements.
const SMALLEST_P: f64 = 1e-9;

/// ln of the evidence against a hypothesis with this p-value.
pub fn ln_e(p: f64) -> f64 {
    XI.ln() + (XI - 1.0) * p.clamp(SMALLEST_P, 1.0).ln()
}

/// One answer: the positions `(after, upto]` lie between the two that were compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer {
    pub after: usize,
    pub upto: usize,
    pub tested: Tested,
}

impl Answer {
    /// ln of the odds that the change lies between the two rather than outside, from this answer alone.
    pub fn ln_odds(&self) -> f64 {
        ln_e(self.tested.none) - ln_e(self.tested.all)
    }
}

/// Probability of each position of `(low, high]`, if one change makes the whole step. Every position is as
/// probable as the others beforehand.
pub fn posterior(low: usize, high: usize, answers: &[Answer]) -> Vec<f64> {
    let log: Vec<f64> = (low + 1..=high)
        .map(|position| {
            let against = |answer: &Answer| {
                let inside = answer.after < position && position <= answer.upto;
                ln_e(if inside { answer.tested.all } else { answer.tested.none })
            };
            -answers.iter().map(against).sum::<f64>()
        })
        .collect();
    let most = log.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = log.iter().map(|log| (log - most).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

/// The shortest run of positions that holds at least `share` of the probability, as indices into `posterior`.
pub fn credible(posterior: &[f64], share: f64) -> (usize, usize) {
    let mut best = (0, posterior.len().saturating_sub(1));
    let (mut first, mut sum) = (0, 0.0);
    for (last, weight) in posterior.iter().enumerate() {
        sum += weight;
        while first < last && sum - posterior[first] >= share {
            sum -= posterior[first];
            first += 1;
        }
        if sum >= share && last - first < best.1 - best.0 {
            best = (first, last);
        }
    }
    best
}

/// Bits that are missing until one position is left.
pub fn entropy(posterior: &[f64]) -> f64 {
    posterior.iter().filter(|p| **p > 0.0).map(|p| -p * p.log2()).sum()
}
