//! The result of a search.

use super::evidence::{Observed, Pair};

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
    /// Between two candidates that the gate compared directly. `after + 1 == upto` where one change is named;
    /// otherwise those between them couldn't be measured.
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
