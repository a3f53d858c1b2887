//! The search, which chooses the next comparison.

use std::collections::BTreeMap;

use benchgate_core::model::Verdict;
use benchgate_core::record::PartKind;

use super::evidence::{MINOR, Observed, Pair, Step};
use super::{
    Answer, BisectOptions, Ends, Found, Part, Probe, SearchProgress, credible, entropy, ln_e, posterior,
};

/// Odds up to which a probe is measured.
const CLEAR_ODDS: f64 = 20.0;
/// Evidence against both hypotheses above which the step is assumed to lie partly on each side of a
/// candidate.
const PARTLY: f64 = 20.0;
/// Probability above which a position is compared with its predecessor.
const SURE: f64 = 0.95;
/// Minimum share of the probability that a probe must be able to rule out to be worth measuring.
const WORTH: f64 = 0.02;

/// The next comparison that the search needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Measures this pair up to a total of `blocks` blocks, including those that it has.
    Measure {
        pair: Pair,
        blocks: u32,
    },
    Done,
}

/// All results so far. Candidate 0 is the good end, the last candidate is the bad end.
#[derive(Debug, Clone)]
pub struct Search {
    last: usize,
    options: BisectOptions,
    skipped: BTreeMap<usize, String>,
    /// Candidates that are the same program as an earlier one.
    same: BTreeMap<usize, usize>,
    observed: BTreeMap<Pair, Observed>,
}

/// A range of candidates: those after `low`, up to and including `high`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    low: usize,
    high: usize,
}

/// The state of a segment.
enum Examined {
    NotWorse(Observed),
    Open(Observed),
    /// A single change was found; the parts before and after it are examined further.
    Culprit {
        after: usize,
        upto: usize,
        observed: Observed,
        probability: f64,
    },
    /// No single change causes the step. If a candidate was measured to lie in between, the segment is split
    /// there.
    Split {
        at: Option<usize>,
        likely: (usize, usize),
        observed: Observed,
    },
}

/// The comparison that a segment needs before it can be examined further.
struct PendingSegment {
    segment: Segment,
    next: Next,
}

impl Search {
    /// Starts a search over `candidates` candidates in order, including both ends.
    pub fn new(candidates: usize, options: BisectOptions) -> Self {
        Self {
            last: candidates.saturating_sub(1),
            options,
            skipped: BTreeMap::new(),
            same: BTreeMap::new(),
            observed: BTreeMap::new(),
        }
    }

    /// Returns the candidates that are the same program as an earlier one, each with the first such
    /// candidate.
    pub fn duplicates(&self) -> impl Iterator<Item = (usize, usize)> {
        self.same.keys().map(|&later| (later, self.program(later)))
    }

    /// Returns the number of blocks of a pair so far.
    pub fn blocks(&self, pair: Pair) -> u32 {
        self.observed.get(&self.programs(pair)).map_or(0, |observed| observed.blocks)
    }

    /// Records that a candidate can't be measured.
    pub fn skip(&mut self, candidate: usize, why: impl Into<String>) {
        self.skipped.insert(candidate, why.into());
    }

    /// Records that two candidates are the same program.
    pub fn same(&mut self, one: usize, other: usize) {
        let (one, other) = (self.program(one), self.program(other));
        if one == other {
            return;
        }
        self.same.insert(one.max(other), one.min(other));
        // Results of the two candidates now belong to one; if both were compared with the same candidate, the
        // result with more blocks is kept.
        for (pair, observed) in std::mem::take(&mut self.observed) {
            let pair = self.programs(pair);
            let known = self.observed.entry(pair).or_insert_with(|| observed.clone());
            if known.blocks < observed.blocks {
                *known = observed;
            }
        }
    }

    /// Records the result of a pair, with all of its blocks.
    pub fn observe(&mut self, pair: Pair, observed: Observed) {
        let pair = self.programs(pair);
        self.observed.insert(pair, observed);
    }

    pub fn options(&self) -> &BisectOptions {
        &self.options
    }

    /// Returns the next pair to measure.
    pub fn next(&self) -> Next {
        self.walk().0
    }

    /// Returns the result so far.
    pub fn found(&self) -> Found {
        self.walk().1
    }

    /// Returns the first candidate that is the same program.
    pub fn program(&self, candidate: usize) -> usize {
        let mut at = candidate;
        while let Some(earlier) = self.same.get(&at) {
            at = *earlier;
        }
        at
    }

    fn programs(&self, pair: Pair) -> Pair {
        Pair { base: self.program(pair.base), head: self.program(pair.head) }
    }

    fn seen(&self, base: usize, head: usize) -> Option<Observed> {
        let pair = self.programs(Pair { base, head });
        if pair.base == pair.head {
            return Some(Observed::identical());
        }
        self.observed.get(&pair).cloned()
    }

    fn walk(&self) -> (Next, Found) {
        let whole = Segment { low: 0, high: self.last };
        let mut found = Found {
            ends: Ends::Unknown,
            parts: Vec::new(),
            probes: self
                .observed
                .iter()
                .map(|(&pair, observed)| Probe { pair, observed: observed.clone() })
                .collect(),
            skipped: self.skipped.iter().map(|(&at, why)| (at, why.clone())).collect(),
            posterior: Vec::new(),
            progress: None,
            mismatch: None,
        };
        if let Some(observed) = self.seen(0, self.last)
            && let Some(step) = observed.step()
        {
            found.posterior = posterior(0, self.last, &self.answers(whole, step));
            found.ends = Ends::Worse(observed);
        }
        let next = match self.solve(whole, &mut found) {
            Ok(_) => {
                found.mismatch = self.mismatch(&found);
                Next::Done
            }
            Err(PendingSegment { segment, next }) => {
                found.progress = self.progress(segment);
                next
            }
        };
        found.parts.sort_by_key(|part| part.after);
        (next, found)
    }

    /// Examines a segment and its parts. Returns whether the segment contains a candidate that is worse than
    /// its predecessor.
    fn solve(&self, segment: Segment, found: &mut Found) -> Result<bool, PendingSegment> {
        let Segment { low, high } = segment;
        let part = |low, high| Segment { low, high };
        if low >= high {
            return Ok(false);
        }
        let is_whole = segment == part(0, self.last);
        let examined = self.examine(segment).map_err(|next| PendingSegment { segment, next })?;
        match examined {
            Examined::NotWorse(observed) if is_whole => found.ends = Ends::NotWorse(observed),
            Examined::Open(observed) if is_whole => found.ends = Ends::Open(observed),
            Examined::NotWorse(observed) => {
                found.parts.push(Part::new(PartKind::NotWorse, low, high, observed))
            }
            Examined::Open(observed) => found.parts.push(Part::new(PartKind::Open, low, high, observed)),
            Examined::Culprit { after, upto, observed, probability } => {
                let culprit = Part::new(PartKind::Culprit, after, upto, observed);
                found.parts.push(Part { probability: Some(probability), ..culprit });
                self.solve(part(low, after), found)?;
                self.solve(part(upto, high), found)?;
                return Ok(true);
            }
            Examined::Split { at, likely, observed } => {
                let known = found.parts.len();
                let inside = match at {
                    Some(at) => self.solve(part(low, at), found)? | self.solve(part(at, high), found)?,
                    None => false,
                };
                if !inside {
                    // The segment's end is worse than its start, although neither half shows this.
                    found.parts.truncate(known);
                    let unexplained = Part::new(PartKind::Unexplained, low, high, observed);
                    found.parts.push(Part { likely: Some(likely), ..unexplained });
                }
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn progress(&self, Segment { low, high }: Segment) -> Option<SearchProgress> {
        let step = self.seen(low, high)?.step()?;
        let posterior = posterior(low, high, &self.answers(Segment { low, high }, step));
        let (first, last) = credible(&posterior, SURE);
        let likely = (low + first, low + last + 1);
        Some(SearchProgress { after: low, upto: high, bits: entropy(&posterior), posterior, likely })
    }

    /// Returns by how much the bad end is worse, once that is known.
    fn whole_step(&self) -> Option<Step> {
        self.seen(0, self.last)?.step()
    }

    /// Returns the part of the step that a pair contributes, if the gate finds the pair worse. In a range
    /// that got slower, a pair that is only less stable contributes nothing.
    fn step_of(&self, observed: &Observed) -> Option<Step> {
        let step = observed.step()?;
        let slower = matches!(self.whole_step(), Some(Step::Shift(_)));
        (!slower || step != Step::Stability).then_some(step)
    }

    /// Judges a pair as the gate would, or requests the blocks that the gate would request.
    fn judged(&self, base: usize, head: usize) -> Result<Observed, Next> {
        let looks = self.options.looks();
        let pair = self.programs(Pair { base, head });
        let measure = |blocks| Err(Next::Measure { pair, blocks });
        let Some(observed) = self.seen(base, head) else {
            return measure(looks.points().first().copied().unwrap_or(1));
        };
        // A probe may have stopped before the gate's first look, or between two looks.
        let at_look = looks.points().contains(&observed.blocks);
        let decided =
            at_look && (observed.verdict == Verdict::Regressed || self.not_worse(&observed).is_some());
        match looks.after(observed.blocks) {
            Some(blocks) if !decided && !observed.is_final() => measure(blocks),
            _ => Ok(observed),
        }
    }

    /// Returns the pair if it is shown to be not worse, by the gate or because its part of the step is
    /// negligible.
    fn not_worse(&self, observed: &Observed) -> Option<Observed> {
        if observed.is_not_worse() {
            return Some(observed.clone());
        }
        let Some(Step::Shift(size)) = self.whole_step() else { return None };
        observed.minor(size, self.options.policy.alpha * self.options.looks().share(observed.blocks, 1.0))
    }

    /// Returns the sum of the partial changes if it differs from the change between the ends. In that case
    /// the machine changed between measurements, and the named changes don't explain the whole.
    fn mismatch(&self, found: &Found) -> Option<(f64, f64)> {
        let Ends::Worse(whole) = &found.ends else { return None };
        let Some(Step::Shift(size)) = whole.step().filter(|_| !whole.is_settled()) else { return None };
        let parts: Option<Vec<_>> = found.parts.iter().map(|part| part.observed.bounds()).collect();
        let (low, high) = parts?.into_iter().fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
        let (whole_low, whole_high) = whole.interval?;
        let allowed = whole.floor.max(MINOR * size);
        (high + allowed < whole_low || whole_high + allowed < low).then_some((low, high))
    }

    /// Returns the candidates of a segment that can be measured, including both ends. Of several candidates
    /// that are the same program, the first is measured.
    fn usable(&self, Segment { low, high }: Segment) -> Vec<usize> {
        let is_skipped = |at: usize| [at, self.program(at)].iter().any(|at| self.skipped.contains_key(at));
        (low..=high).filter(|at| *at == low || *at == high || !is_skipped(*at)).collect()
    }

    fn examine(&self, segment: Segment) -> Result<Examined, Next> {
        let whole = self.judged(segment.low, segment.high)?;
        let Some(step) = self.step_of(&whole) else {
            return Ok(match self.not_worse(&whole) {
                Some(shown) => Examined::NotWorse(shown),
                None => Examined::Open(whole),
            });
        };
        let usable = self.usable(segment);
        let answers = self.answers(segment, step);
        let weights = posterior(segment.low, segment.high, &answers);
        let (first, last) = credible(&weights, SURE);
        let likely = (segment.low + first, segment.low + last + 1);
        let partly = most_partly(segment, &answers, &usable);
        if let Some((evidence, at)) = partly
            && evidence >= PARTLY.ln()
        {
            return Ok(Examined::Split { at: Some(at), likely, observed: whole });
        }
        // Probability of all positions between two measurable neighbors.
        let gap = |two: &[usize]| weights[two[0] - segment.low..two[1] - segment.low].iter().sum();
        let gaps: Vec<f64> = usable.windows(2).map(gap).collect();
        let (at, probability) =
            gaps.iter().copied().enumerate().max_by(|x, y| x.1.total_cmp(&y.1)).unwrap_or((0, 1.0));
        if probability >= SURE {
            let (after, upto) = (usable[at], usable[at + 1]);
            let observed = self.judged(after, upto)?;
            if self.step_of(&observed).is_some() {
                return Ok(Examined::Culprit { after, upto, observed, probability });
            }
        } else if let Some(next) = self.probe(segment, step, &usable, &gaps) {
            return Err(next);
        }
        Ok(Examined::Split { at: partly.map(|(_, at)| at), likely, observed: whole })
    }

    /// Returns the candidate whose result would divide the probability best, among those that can still add
    /// information.
    fn probe(&self, segment: Segment, step: Step, usable: &[usize], gaps: &[f64]) -> Option<Next> {
        let mut before = 0.0;
        let mut inner: Vec<(f64, usize)> = Vec::new();
        for (gap, candidate) in gaps.iter().zip(&usable[1..usable.len() - 1]) {
            before += gap;
            inner.push(((before - 0.5_f64).abs(), *candidate));
        }
        inner.sort_by(|x, y| x.0.total_cmp(&y.0).then(x.1.cmp(&y.1)));
        let worth = inner.into_iter().take_while(|(off, _)| *off < 0.5 - WORTH);
        worth.into_iter().find_map(|(_, candidate)| {
            let mut pairs = [(segment.low, candidate), (candidate, segment.high)];
            if step == Step::Stability {
                // For stability, the absence of evidence means little, so both ends are compared in turn.
                pairs
                    .sort_by_key(|&(base, head)| self.seen(base, head).map_or(0, |observed| observed.blocks));
            }
            pairs.into_iter().find_map(|(base, head)| self.more(base, head, step))
        })
    }

    /// Returns the blocks after which a pair is examined again, unless it has reached the maximum.
    fn more(&self, base: usize, head: usize, step: Step) -> Option<Next> {
        let pair = self.programs(Pair { base, head });
        let blocks = match self.seen(base, head) {
            None => self.options.probe_looks().points().first().copied()?,
            Some(observed) => {
                let odds = self.answer(base, head, &observed, step).ln_odds();
                if observed.is_final() || odds.abs() >= CLEAR_ODDS.ln() {
                    return None;
                }
                self.options.probe_looks().after(observed.blocks)?
            }
        };
        Some(Next::Measure { pair, blocks })
    }

    /// Returns the evidence from a pair, corrected for the looks that it may get.
    fn answer(&self, after: usize, upto: usize, observed: &Observed, step: Step) -> Answer {
        let mut tested = observed.tested(step);
        if !observed.is_settled() {
            let share = self.options.probe_looks().share(observed.blocks, 1.0);
            tested.none = (tested.none / share).min(1.0);
            tested.all = (tested.all / share).min(1.0);
        }
        Answer { after, upto, tested }
    }

    /// Returns the results of all pairs inside a segment, except for the pair of its own ends.
    fn answers(&self, segment: Segment, step: Step) -> Vec<Answer> {
        let inside = |candidate: usize| {
            let here = |at: &usize| self.program(*at) == candidate;
            let ends = [segment.low, segment.high];
            ends.into_iter().find(here).or_else(|| (segment.low..=segment.high).find(here))
        };
        let measured = self.observed.iter().filter_map(|(pair, observed)| {
            let (after, upto) = (inside(pair.base)?, inside(pair.head)?);
            let own = after == segment.low && upto == segment.high;
            (after < upto && !own).then(|| self.answer(after, upto, observed, step))
        });
        let identical = self.same.iter().filter_map(|(&later, _)| {
            let earlier = (segment.low..later).find(|at| self.program(*at) == self.program(later))?;
            (later <= segment.high).then(|| self.answer(earlier, later, &Observed::identical(), step))
        });
        measured.chain(identical).collect()
    }
}

/// Returns the candidate inside a segment that is most clearly neither as good as its start nor as bad as its
/// end, with the evidence for it.
fn most_partly(segment: Segment, answers: &[Answer], usable: &[usize]) -> Option<(f64, usize)> {
    let inner = |answer: &Answer| match (answer.after == segment.low, answer.upto == segment.high) {
        (true, false) => Some(answer.upto),
        (false, true) => Some(answer.after),
        _ => None,
    };
    let evidence = |answer: &Answer| ln_e(answer.tested.none).min(ln_e(answer.tested.all));
    answers
        .iter()
        .filter_map(|answer| Some((evidence(answer), inner(answer)?)))
        .filter(|(_, at)| usable.contains(at))
        .max_by(|x, y| x.0.total_cmp(&y.0))
}
