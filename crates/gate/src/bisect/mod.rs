//! Bisection under noise: finds the candidate that made a benchmark worse.
//!
//! [`Search`] does no IO. The next comparison is a pure function of what was measured so far, so an
//! interrupted search resumes with the same question. Three rules make its result reliable:
//!
//! - The ends are judged first, by the gate itself. If the bad end isn't worse, no candidate is blamed.
//! - Probes only guide the search. A probe compares a candidate with an end of its range. Its exact p-values
//!   (for "no part of the step lies between the two" and "all of it does") become e-values, and all e-values
//!   together weight every position ([`weights`](self)). Later probes outweigh a misleading one.
//! - A candidate is named only after the gate calls it worse than its direct predecessor. The ranges before
//!   and after it are then judged again, so that all culprits are found if there are several.

mod evidence;
mod search;

#[cfg(test)]
mod tests;

use benchgate_core::model::Metric;
use benchgate_core::record::PartKind;
use benchgate_stats::multiplicity::Looks;

use crate::{MetricPolicy, Policy, looks};

use evidence::Tested;

pub use evidence::{Observed, Pair};
pub use search::{Next, Search};

/// The gate's verdict about the two ends of the range.
#[derive(Debug, Clone)]
pub enum Ends {
    Unknown,
    /// The bad end is worse than the good end.
    Worse(Observed),
    /// The bad end is shown to be better than the good end, or not worse.
    NotWorse(Observed),
    /// All allowed blocks showed neither "worse" nor "not worse".
    Open(Observed),
}

/// One part of the whole range.
#[derive(Debug, Clone)]
pub struct Part {
    pub kind: PartKind,
    /// If `after + 1 == upto`, a single candidate made a culprit's change; otherwise the candidates between the
    /// two couldn't be measured.
    pub after: usize,
    pub upto: usize,
    /// `upto` compared with `after`.
    pub observed: Observed,
    /// Probability of a culprit.
    pub probability: Option<f64>,
    /// The range that holds most of the probability of an unexplained change.
    pub likely: Option<(usize, usize)>,
}

/// A pair that was compared.
#[derive(Debug, Clone)]
pub struct Probe {
    pub pair: Pair,
    pub observed: Observed,
}

/// The range that is being searched.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchProgress {
    pub after: usize,
    pub upto: usize,
    /// Probability of each position, from `after + 1` on.
    pub posterior: Vec<f64>,
    /// The shortest range with most of the probability.
    pub likely: (usize, usize),
    /// Remaining uncertainty in bits: about the number of probes still to come.
    pub bits: f64,
}

/// The result so far; complete once the search has returned [`Next::Done`](Next::Done).
#[derive(Debug, Clone)]
pub struct Found {
    pub ends: Ends,
    /// The parts in the order of the candidates.
    pub parts: Vec<Part>,
    pub probes: Vec<Probe>,
    pub skipped: Vec<(usize, String)>,
    /// Probability of each position in the whole range, assuming that one change causes the whole step.
    pub posterior: Vec<f64>,
    pub progress: Option<SearchProgress>,
    /// Least and greatest sum of the partial changes (log scale), if it differs from the change between the
    /// ends.
    pub mismatch: Option<(f64, f64)>,
}

impl Part {
    fn new(kind: PartKind, after: usize, upto: usize, observed: Observed) -> Self {
        Self { kind, after, upto, observed, probability: None, likely: None }
    }
}

impl Found {
    pub fn culprits(&self) -> impl Iterator<Item = (usize, usize)> {
        let culprits = self.parts.iter().filter(|part| part.kind == PartKind::Culprit);
        culprits.map(|part| (part.after, part.upto))
    }

    /// Returns the number of blocks of all pairs.
    pub fn blocks(&self) -> u32 {
        self.probes.iter().map(|probe| probe.observed.blocks).sum()
    }
}

// The probability of each position, from the p-values of all probes.
//
// A p-value becomes a Bayes factor: if the hypothesis holds, the p-value is uniform; otherwise its density is
// assumed to be ξ p^(ξ − 1). Whatever ξ is, that factor can't exceed 1 / (−e p ln p) (Sellke, Bayarri and
// Berger 2001, The American Statistician 55:62–71); for one fixed ξ it is also an e-value: its mean is one if
// the hypothesis holds, whatever the noise is, so that products over probes that are chosen one after the
// other exceed 1/δ with probability δ at most (Ville's inequality; Vovk and Wang 2021, Annals of Statistics
// 49:1736–1754). Thus the search's error bound is as exact as the gate's test.
//
// Weighing every position by all answers and asking at the weighted median is the noisy binary search of
// Horstein (1963), Karp and Kleinberg (SODA 2007) and Ben-Or and Hassidim (FOCS 2008).

/// Exponent of the assumed density. The exponent is small, because probes are measured until they are
/// conclusive: their p-values are either tiny or ordinary.
const XI: f64 = 0.2;
/// Smallest p-value that is used: smaller ones depend on assumptions and not only on the measurements.
const SMALLEST_P: f64 = 1e-9;

/// Returns the natural logarithm of the evidence against a hypothesis with this p-value.
fn ln_e(p: f64) -> f64 {
    XI.ln() + (XI - 1.0) * p.clamp(SMALLEST_P, 1.0).ln()
}

/// The result of one comparison; the positions `(after, upto]` lie between the two candidates.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Answer {
    pub after: usize,
    pub upto: usize,
    pub tested: Tested,
}

impl Answer {
    /// Returns the log odds that the change lies between the two candidates rather than outside, from this
    /// result alone.
    pub fn ln_odds(&self) -> f64 {
        ln_e(self.tested.none) - ln_e(self.tested.all)
    }
}

/// Returns the probability of each position of `(low, high]`, assuming that one change causes the whole step.
/// All positions have equal prior probabilities.
fn posterior(low: usize, high: usize, answers: &[Answer]) -> Vec<f64> {
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

/// Returns the shortest run of positions that holds at least `share` of the probability, as indices into
/// `posterior`.
fn credible(posterior: &[f64], share: f64) -> (usize, usize) {
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

/// Returns the remaining uncertainty in bits, which is zero when one position is left.
fn entropy(posterior: &[f64]) -> f64 {
    posterior.iter().filter(|p| **p > 0.0).map(|p| -p * p.log2()).sum()
}

/// Number of blocks at a probe's first look.
const FIRST_LOOK: u32 = 8;

#[derive(Debug, Clone)]
pub struct BisectOptions {
    pub policy: Policy,
    /// The metric in which the step was observed.
    pub metric: Metric,
}

impl BisectOptions {
    /// Restricts the policy to `metric`, and to at most `max_blocks` blocks for each pair.
    pub fn new(policy: &Policy, metric: Metric, max_blocks: u32) -> Self {
        let mut policy = policy.clone();
        // Absolute limits are ignored: a value may exceed a limit at both ends of the range, so a limit can't
        // locate a change.
        policy.limits.clear();
        let rule = policy.metrics.iter().find(|(name, _)| *name == metric.name).map(|(_, rule)| rule.clone());
        let latency = || Policy::default().metrics.into_iter().next().map(|(_, rule)| rule);
        let rule = rule.or_else(latency).map(|rule| MetricPolicy { fatal: true, ..rule });
        policy.metrics = rule.map(|rule| (metric.name.to_string(), rule)).into_iter().collect();
        policy.sequential.max_blocks = max_blocks.max(policy.sequential.min_blocks);
        Self { policy, metric }
    }

    /// Returns the looks at which the gate judges a pair.
    fn looks(&self) -> Looks {
        looks(&self.policy, &self.metric)
    }

    /// Returns the looks at which a probe is examined.
    fn probe_looks(&self) -> Looks {
        let blocks = self.policy.sequential;
        Looks::new(FIRST_LOOK.min(blocks.min_blocks), blocks.max_blocks)
    }
}
