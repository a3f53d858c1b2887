//! Tests whether head is slow *more often* than base although its undisturbed speed is the same.
//!
//! A robust location deliberately ignores that some of head's processes are slow. Therefore slow processes
//! are counted by side. If base and head are the same program, a block with more slow processes on one side
//! is equally likely to have them on the other, and base's own count shows how often that happens. The
//! question is then how improbable head's count is given base's, with the uncertainty of the rate integrated
//! out (a Bayesian prediction). Base's counts in neighboring rows stabilize the rate.

use super::classical::{UMethod, mann_whitney};
use super::describe;
use super::distributions::{binomial_tail, hypergeometric_tail};

/// Numbers of blocks, by the side that had more slow processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    pub head_slower: u32,
    pub base_slower: u32,
    pub blocks: u32,
    /// Slow processes of each side, for reports.
    pub slow_head: u32,
    pub slow_base: u32,
}

/// Counts slow processes: those that lie more than `threshold` above the block's undisturbed level. `blocks`
/// holds base's and head's process costs (log scale, larger is worse); `shift` is head's location effect; it
/// is removed, so that a head that is slower as a whole isn't also counted as unstable. If head is faster,
/// its process is slow only if a base process with this time would be slow, so that a program that is twenty
/// times as fast but less stable counts as improved.
pub fn count(blocks: &[(Vec<f64>, Vec<f64>)], shift: f64, threshold: f64) -> Counts {
    let mut counts = Counts { blocks: blocks.len() as u32, ..Counts::default() };
    for block in blocks {
        // The processes of a faster head are compared with base's level, and with head's own level only in
        // favor of base.
        let slow =
            |allowed: f64| slow_distances(block, shift, allowed, threshold).map(|slow| slow.len() as u32);
        let ([slow_base, slow_head], [_, by_own_level]) = (slow(shift.max(0.0)), slow(shift));
        counts.slow_base += slow_base;
        counts.slow_head += slow_head;
        // Base is counted relative to head's own level: otherwise, a faster head would make base look
        // unstable, and instability in neighboring rows look normal.
        counts.base_slower += u32::from(slow_base > by_own_level);
        counts.head_slower += u32::from(slow_head > slow_base);
    }
    counts
}

/// Returns how far the slow processes of base and head lie above the block's undisturbed level. `allowed` is
/// subtracted from head's costs first.
fn slow_distances(
    (base, head): &(Vec<f64>, Vec<f64>),
    shift: f64,
    allowed: f64,
    threshold: f64,
) -> [Vec<f64>; 2] {
    let lowest = |side: &[f64]| side.iter().copied().fold(f64::INFINITY, f64::min);
    let level = lowest(base).min(lowest(head) - shift);
    [(base, 0.0), (head, allowed)].map(|(side, allowed)| {
        side.iter().map(|cost| cost - allowed - level).filter(|distance| *distance > threshold).collect()
    })
}

/// The difference in size between the slow processes of head and base, independent of their numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlowSize {
    /// Mean distance of base's and head's slow processes above the undisturbed level, as a share of that
    /// level.
    pub base: f64,
    pub head: f64,
    /// The amount that the difference adds to the mean of all processes, as a share of the undisturbed level.
    pub excess: f64,
    /// One-sided p of "the slow processes of both sides take equally long", by Mann and Whitney's test.
    pub p: f64,
}

impl SlowSize {
    /// Compares the processes that [`count`] counts as slow.
    pub fn new(blocks: &[(Vec<f64>, Vec<f64>)], shift: f64, threshold: f64) -> Self {
        let (mut base, mut head) = (Vec::new(), Vec::new());
        for block in blocks {
            let [of_base, of_head] = slow_distances(block, shift, shift.max(0.0), threshold);
            base.extend(of_base);
            head.extend(of_head);
        }
        let processes: usize = blocks.iter().map(|(base, head)| base.len() + head.len()).sum();
        let share = (base.len() + head.len()) as f64 / processes.max(1) as f64;
        let size = |slow: &[f64]| {
            let sizes: Vec<f64> = slow.iter().map(|distance| distance.exp_m1()).collect();
            describe::mean(&sizes).unwrap_or_default()
        };
        let p = mann_whitney(&head, &base, UMethod::Auto).map_or(1.0, |test| test.greater);
        let (base, head) = (size(&base), size(&head));
        Self { base, head, excess: share * (head - base), p }
    }
}

/// The prior for the share of blocks in which either side was slow more often: a beta distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatePrior {
    pub a: f64,
    pub b: f64,
}

impl RatePrior {
    /// The prior for a row without neighbors: one block in five, with the weight of five blocks, so that six
    /// of the row's own blocks outweigh it.
    pub const ALONE: Self = Self { a: 1.0, b: 4.0 };

    /// Minimum and maximum weight of neighbors, in blocks. The maximum is the weight of twelve blocks of the
    /// row itself, because a row can be unstable even if all others are calm.
    const WEIGHT: (f64, f64) = (2.0, 12.0);

    /// Computes the prior from base's counts in all rows, by moments of the beta-binomial distribution. Only
    /// base's side is used: otherwise a change that makes many rows unstable would make instability look
    /// normal.
    pub fn pooled(rows: &[Counts]) -> Self {
        let mut rates: Vec<(f64, f64)> = rows
            .iter()
            .filter(|row| row.blocks > 0)
            // Both sides are equally likely, so base's share represents half of the uneven blocks.
            .map(|row| (2.0 * f64::from(row.base_slower) / f64::from(row.blocks), f64::from(row.blocks)))
            .collect();
        if rates.len() < 3 {
            return Self::ALONE;
        }
        rates.sort_by(|x, y| x.0.total_cmp(&y.0).then(x.1.total_cmp(&y.1)));
        let blocks: f64 = rates.iter().map(|(_, n)| n).sum();
        let events: f64 = rates.iter().map(|(rate, n)| rate * n).sum();
        // One event is added, so that the rate is never zero or one, even if none or all of fifty blocks had
        // an event.
        let mean = ((events + 1.0) / (blocks + 2.0)).min(1.0 - 1.0 / (blocks + 2.0));
        let values: Vec<f64> = rates.iter().map(|(rate, _)| *rate).collect();
        let typical = blocks / rates.len() as f64;
        let spread = describe::variance(&values).unwrap_or(0.0);
        // Doubling base's count has doubled its standard deviation: the variance of a rate r is r (2 − r) /
        // n.
        let sampling = mean * (2.0 - mean) / typical;
        let between = (spread - sampling).max(0.0);
        let weight = if between > 0.0 { mean * (1.0 - mean) / between - 1.0 } else { Self::WEIGHT.1 };
        let weight = weight.clamp(Self::WEIGHT.0, Self::WEIGHT.1);
        Self { a: mean * weight, b: (1.0 - mean) * weight }
    }
}

/// Number of quadrature nodes for the rate.
const NODES: u32 = 200;

/// Returns the chance that head is slow more often in `head_slower` blocks or more, given base's count.
///
/// A block is uneven with rate φ, and then towards either side with chance one half. Base's count updates the
/// prior of φ; each remaining block is one of head's with chance (φ/2) / (1 − φ/2).
pub fn p_value(counts: &Counts, prior: RatePrior) -> f64 {
    if counts.head_slower == 0 {
        return 1.0;
    }
    let (n, base) = (u64::from(counts.blocks), u64::from(counts.base_slower));
    let left = n - base;
    let power = (1.0 / prior.a).max(2.0);
    let node = |node: u32| {
        // The substitution φ = x^power removes the density's pole at zero and puts nodes at small rates.
        let x = (f64::from(node) + 0.5) / f64::from(NODES);
        let rate = x.powf(power);
        let half = rate / 2.0;
        let ln_weight = (power * prior.a - 1.0) * x.ln()
            + (prior.b - 1.0) * (-rate).ln_1p()
            + base as f64 * half.max(f64::MIN_POSITIVE).ln()
            + left as f64 * (-half).ln_1p();
        (half / (1.0 - half), ln_weight)
    };
    // Weights are relative to the largest one, so that a sharp posterior doesn't underflow.
    let largest = (0..NODES).map(|at| node(at).1).fold(f64::NEG_INFINITY, f64::max);
    let (mut chance, mut total) = (0.0, 0.0);
    for (toward_head, ln_weight) in (0..NODES).map(node) {
        let weight = (ln_weight - largest).exp();
        let tail = binomial_tail(u64::from(counts.head_slower), left, toward_head);
        total += weight;
        chance += weight * tail;
    }
    if total > 0.0 { (chance / total).min(1.0) } else { 1.0 }
}

/// Units (sessions or processes) of two sides that were measured separately, with the number of slow ones on
/// each side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlowShare {
    pub slow_base: usize,
    pub slow_head: usize,
    /// One-sided p of "the slow units are distributed over the sides by chance", by Fisher's exact test.
    pub p: f64,
}

/// A unit is slow if it lies this many times base's scale above its side's level: four, as for the processes
/// of a block.
pub const SLOW_SCALES: f64 = 4.0;

impl SlowShare {
    /// Counts the units (log scale, larger is worse) that lie above the level of their side by more than
    /// `threshold` and by more than base's own noise.
    pub fn new(base: &[f64], head: &[f64], [base_level, head_level]: [f64; 2], threshold: f64) -> Self {
        let distances: Vec<f64> = base.iter().map(|cost| (cost - base_level).abs()).collect();
        let scale = describe::MEDIAN_DEVIATION * describe::median(&distances).unwrap_or_default();
        let threshold = threshold.max(SLOW_SCALES * scale);
        let slow = |side: &[f64], level: f64| side.iter().filter(|&&cost| cost - level > threshold).count();
        let (slow_base, slow_head) = (slow(base, base_level), slow(head, head_level));
        let p = hypergeometric_tail(
            slow_head as u64,
            head.len() as u64,
            (slow_base + slow_head) as u64,
            (base.len() + head.len()) as u64,
        );
        Self { slow_base, slow_head, p }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_processes_that_take_longer_are_seen_where_equally_many_are_slow() {
        let of = |base: f64, head: f64| {
            // In every block, one process of each side is slow, at slightly different distances.
            let block = |at: i32| {
                let by = f64::from(at) * 1e-3;
                (vec![0.0, base + by], vec![0.0, head + by])
            };
            SlowSize::new(&(0..12).map(block).collect::<Vec<_>>(), 0.0, 0.05)
        };
        let longer = of(0.3, 1.2);
        assert!(longer.p < 1e-4 && longer.excess > 0.9, "{longer:?}");
        let (same, shorter) = (of(0.3, 0.3), of(1.2, 0.3));
        assert!(same.p > 0.4 && same.excess.abs() < 1e-9, "{same:?}");
        assert!(shorter.p > 0.9 && shorter.excess < 0.0, "{shorter:?}");
        let none = SlowSize::new(&[(vec![0.0], vec![0.0])], 0.0, 0.05);
        assert_eq!((none.p, none.excess), (1.0, 0.0));
    }

    #[test]
    fn no_slow_block_is_no_evidence() {
        let counts = Counts { head_slower: 0, base_slower: 2, blocks: 12, ..Counts::default() };
        assert_eq!(p_value(&counts, RatePrior::ALONE), 1.0);
    }

    #[test]
    fn the_prediction_is_the_integral_over_the_rate() {
        // With a uniform prior, base slow in none of four blocks: weight (1 − φ/2)⁴, and four of four for
        // head with chance ((φ/2) / (1 − φ/2))⁴: ∫ (φ/2)⁴ / ∫ (1 − φ/2)⁴ over 0..1 = (1/80) / (31/80).
        let counts = Counts { head_slower: 4, base_slower: 0, blocks: 4, ..Counts::default() };
        let p = p_value(&counts, RatePrior { a: 1.0, b: 1.0 });
        assert!((p * 31.0 - 1.0).abs() < 1e-3, "{p}");
    }

    #[test]
    fn a_firmly_known_rate_makes_it_a_binomial_tail() {
        // φ is one tenth, whatever four blocks of base show: one of four for head has the chance 1 − (1 −
        // .05/.95)⁴.
        let counts = Counts { head_slower: 1, base_slower: 0, blocks: 4, ..Counts::default() };
        for weight in [500.0, 2e3] {
            let p = p_value(&counts, RatePrior { a: 0.1 * weight, b: 0.9 * weight });
            let expected = 1.0 - (1.0 - 0.05_f64 / 0.95).powi(4);
            assert!((p / expected - 1.0).abs() < 0.01, "{p} is not {expected}");
        }
    }

    #[test]
    fn where_every_block_is_lopsided_an_uneven_split_is_a_coin() {
        // An order effect makes the first process of every block slow; which side comes first is random.
        let row = |head_slower| Counts {
            head_slower,
            base_slower: 12 - head_slower,
            blocks: 12,
            ..Counts::default()
        };
        let rows: Vec<Counts> = [6, 5, 7, 8, 4, 6, 6, 9, 3, 6, 7].into_iter().map(row).collect();
        assert!(p_value(&row(10), RatePrior::pooled(&rows)) > 0.01);
    }

    #[test]
    fn a_regime_that_hits_both_sides_counts_for_neither() {
        let blocks = vec![(vec![0.4, 0.0], vec![0.4, 0.0]), (vec![0.4, 0.4], vec![0.4, 0.4])];
        let counts = count(&blocks, 0.0, 0.03);
        assert_eq!((counts.head_slower, counts.base_slower), (0, 0));
    }

    #[test]
    fn a_head_that_is_slower_as_a_whole_is_not_unstable() {
        let blocks = vec![(vec![0.0, 0.001], vec![0.2, 0.201]); 6];
        assert_eq!(count(&blocks, 0.2, 0.03).head_slower, 0);
        assert_eq!(count(&blocks, 0.0, 0.03).head_slower, 6);
    }

    #[test]
    fn a_head_whose_slow_processes_are_faster_than_base_is_not_unstable() {
        let blocks = |slow: f64| vec![(vec![0.0, 0.001], vec![-0.5, slow]); 6];
        assert_eq!(count(&blocks(-0.2), -0.5, 0.03).head_slower, 0);
        assert_eq!(count(&blocks(0.2), -0.5, 0.03).head_slower, 6);
    }

    #[test]
    fn a_lead_does_not_make_base_look_unsteady() {
        let blocks = vec![(vec![0.0, 0.4], vec![-0.5, -0.1]); 6];
        let counts = count(&blocks, -0.5, 0.03);
        assert_eq!((counts.head_slower, counts.base_slower), (0, 0));
    }

    #[test]
    fn calm_neighbors_make_the_same_count_more_surprising() {
        let row = Counts { head_slower: 4, base_slower: 0, blocks: 12, ..Counts::default() };
        let calm = RatePrior::pooled(&[Counts { blocks: 12, ..Counts::default() }; 11]);
        let wild = RatePrior::pooled(&[Counts { base_slower: 4, blocks: 12, ..Counts::default() }; 11]);
        assert!(p_value(&row, calm) < 1e-3 && p_value(&row, wild) > 0.1);
    }

    #[test]
    fn slow_units_of_one_side_are_as_surprising_as_drawing_them() {
        let base = vec![0.0; 21];
        let head: Vec<f64> = (0..21).map(|at| if at < 4 { 0.7 } else { 0.0 }).collect();
        let share = SlowShare::new(&base, &head, [0.0, 0.0], 0.03);
        assert_eq!((share.slow_base, share.slow_head), (0, 4));
        // C(21, 4) of the C(42, 4) ways to choose the slow units.
        assert!((share.p - 5985.0 / 111_930.0).abs() < 1e-9, "{share:?}");
        assert!(SlowShare::new(&head, &base, [0.0, 0.0], 0.03).p > 0.9);
    }

    #[test]
    fn what_base_does_as_well_is_not_slow() {
        let base: Vec<f64> = (0..20).map(|at| f64::from(at % 5) * 0.05).collect();
        let head: Vec<f64> = base.iter().rev().copied().collect();
        assert_eq!(SlowShare::new(&base, &head, [0.05, 0.05], 0.03).slow_head, 0);
    }
}
