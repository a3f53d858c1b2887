//! The options of a search, how probable each position is, and the result.

use crate::{MetricPolicy, Policy, looks};
use benchgate_core::model::Metric;
use benchgate_stats::spending::Looks;

use super::evidence::{Observed, Pair, Tested};

/// The gate's verdict about the two ends.
#[derive(Debug, Clone)]
pub enum Ends {
    Unknown,
    /// The bad end is worse.
    Worse(Observed),
    /// Shown to be not worse, or better.
    NotWorse(Observed),
    /// Neither could be shown with all blocks that were allowed.
    Open(Observed),
}

/// One piece of the whole.
#[derive(Debug, Clone)]
pub enum Part {
    /// A change between two candidates that the gate compared directly. If `after + 1 == upto`, one change is named;
    /// otherwise the candidates between the two couldn't be measured.
    Culprit { after: usize, upto: usize, observed: Observed, probability: f64 },
    /// Worse from end to end, and no pair of neighbors inside shows it. `likely` holds most of the probability.
    Unexplained { after: usize, upto: usize, likely: (usize, usize), observed: Observed },
    /// Not shown to be unchanged within the blocks that were allowed.
    Open { after: usize, upto: usize, observed: Observed },
    /// Judged and not worse.
    Quiet { after: usize, upto: usize, observed: Observed },
}

/// A pair that was compared.
#[derive(Debug, Clone)]
pub struct Probe {
    pub pair: Pair,
    pub observed: Observed,
}

/// The range that is searched now.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchProgress {
    pub after: usize,
    pub upto: usize,
    /// By position, from `after + 1`.
    pub posterior: Vec<f64>,
    /// The shortest range with most of the probability.
    pub likely: (usize, usize),
    /// Bits until one position is left: about the number of probes still to come.
    pub bits: f64,
}

/// The answer so far; complete once [`Next::Done`](super::Next::Done) was returned.
#[derive(Debug, Clone)]
pub struct Found {
    pub ends: Ends,
    /// In order of place.
    pub parts: Vec<Part>,
    pub probes: Vec<Probe>,
    pub skipped: Vec<(usize, String)>,
    /// Probability of each position of the whole range, if one change made the whole step.
    pub posterior: Vec<f64>,
    pub progress: Option<SearchProgress>,
    /// Sum of the partial changes (log scale, least and most) if it differs from the change between the ends.
    pub mismatch: Option<(f64, f64)>,
}

impl Part {
    pub fn observed(&self) -> &Observed {
        match self {
            Self::Culprit { observed, .. }
            | Self::Unexplained { observed, .. }
            | Self::Open { observed, .. }
            | Self::Quiet { observed, .. } => observed,
        }
    }

    pub fn after(&self) -> usize {
        match self {
            Self::Culprit { after, .. }
            | Self::Unexplained { after, .. }
            | Self::Open { after, .. }
            | Self::Quiet { after, .. } => *after,
        }
    }
}

impl Found {
    pub fn culprits(&self) -> impl Iterator<Item = (usize, usize)> {
        self.parts.iter().filter_map(|part| match part {
            Part::Culprit { after, upto, .. } => Some((*after, *upto)),
            _ => None,
        })
    }

    /// Blocks of all pairs.
    pub fn blocks(&self) -> u32 {
        self.probes.iter().map(|probe| probe.observed.blocks).sum()
    }
}

// How probable each position is, from the p-values of all probes.
//
// A p-value becomes a Bayes factor: where the hypothesis holds it is uniform, and where it doesn't its density is
// taken to be ξ p^(ξ − 1). Over ξ that factor can't exceed 1 / (−e p ln p) (Sellke, Bayarri and Berger 2001, The
// American Statistician 55:62–71); for one fixed ξ it is also an e-value: its mean is one where the hypothesis holds,
// whatever the noise is, so that products over probes, chosen one after the other, exceed 1/δ with probability δ at
// most (Ville's inequality; Vovk and Wang 2021, Annals of Statistics 49:1736–1754). The exactness of the gate's test
// thus extends to the search.
//
// Weighing every position by all answers and asking at the weighted median is the noisy binary search of
// Horstein (1963), Karp and Kleinberg (SODA 2007) and Ben-Or and Hassidim (FOCS 2008).

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

/// Blocks of a probe's first look.
const FIRST_LOOK: u32 = 8;

/// How a search is run.
#[derive(Debug, Clone)]
pub struct BisectOptions {
    pub policy: Policy,
    /// The observed metric.
    pub metric: Metric,
}

impl BisectOptions {
    /// The policy judges `metric` alone, and only up to `max_blocks` blocks a pair.
    pub fn new(policy: &Policy, metric: Metric, max_blocks: u32) -> Self {
        let mut policy = policy.clone();
        // A value beyond an absolute limit can be so at both ends of the range: a limit locates no change.
        policy.limits.clear();
        let rule = policy.metrics.iter().find(|(name, _)| *name == metric.name).map(|(_, rule)| rule.clone());
        let latency = || Policy::default().metrics.into_iter().next().map(|(_, rule)| rule);
        let rule = rule.or_else(latency).map(|rule| MetricPolicy { fatal: true, ..rule });
        policy.metrics = rule.map(|rule| (metric.name.to_string(), rule)).into_iter().collect();
        policy.sequential.max_blocks = max_blocks.max(policy.sequential.min_blocks);
        Self { policy, metric }
    }

    /// When the gate judges a pair.
    pub(super) fn looks(&self) -> Looks {
        looks(&self.policy, &self.metric)
    }

    /// When a probe is looked at.
    pub(super) fn probe_looks(&self) -> Looks {
        let blocks = self.policy.sequential;
        Looks::new(FIRST_LOOK.min(blocks.min_blocks), blocks.max_blocks)
    }
}
