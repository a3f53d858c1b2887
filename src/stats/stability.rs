//! Whether head is slow *more often* than base, where its undisturbed speed is the same.
//!
//! A robust location ignores a head that is slow in some of its processes: that is its job. So slow
//! processes are counted by side. In an A/A session a block with more slow processes on one side is as
//! likely to have them on the other, and base's own count says how often it happens. The question is
//! then how surprising head's count is after base's, with the rate's uncertainty integrated out
//! (beta-binomial prediction), steadied by what base did in neighbouring rows.

use statrs::function::beta::ln_beta;
use statrs::function::factorial::ln_binomial;

use super::describe;

/// Blocks by which side had more slow processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    pub head_slower: u32,
    pub base_slower: u32,
    pub blocks: u32,
    /// Slow processes of each side, for people.
    pub slow_head: u32,
    pub slow_base: u32,
}

/// Counts slow processes: those more than `threshold` above the block's undisturbed level. `blocks`
/// holds base's and head's process costs (log scale, larger is worse); `shift` is head's location
/// effect, taken out so that a head that is slower as a whole isn't also counted as unstable.
pub fn count(blocks: &[(Vec<f64>, Vec<f64>)], shift: f64, threshold: f64) -> Counts {
    let mut counts = Counts { blocks: blocks.len() as u32, ..Counts::default() };
    for (base, head) in blocks {
        let lowest = |side: &[f64]| side.iter().copied().fold(f64::INFINITY, f64::min);
        let level = lowest(base).min(lowest(head) - shift);
        let slow = |side: &[f64], shift: f64| {
            side.iter().filter(|&&cost| cost - shift - level > threshold).count() as u32
        };
        let (slow_base, slow_head) = (slow(base, 0.0), slow(head, shift));
        counts.slow_base += slow_base;
        counts.slow_head += slow_head;
        counts.base_slower += u32::from(slow_base > slow_head);
        counts.head_slower += u32::from(slow_head > slow_base);
    }
    counts
}

/// What is known beforehand about the share of blocks in which one given side is slow more often.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatePrior {
    pub a: f64,
    pub b: f64,
}

impl RatePrior {
    /// For a row without neighbours: one block in ten, worth five blocks, so that six blocks of its own
    /// base outvote it.
    pub const ALONE: Self = Self { a: 0.5, b: 4.5 };

    /// Weight of neighbours in blocks, at most and at least: as much as three rows of twelve blocks when
    /// rows behave alike, one block when they don't.
    const WEIGHT: (f64, f64) = (1.0, 36.0);

    /// From base's counts in all rows, by moments of the beta-binomial. Only base's side is used: a
    /// change that makes many rows unstable must not become its own excuse.
    pub fn pooled(rows: &[Counts]) -> Self {
        let mut rates: Vec<(f64, f64)> = rows
            .iter()
            .filter(|row| row.blocks > 0)
            .map(|row| (f64::from(row.base_slower) / f64::from(row.blocks), f64::from(row.blocks)))
            .collect();
        if rates.len() < 3 {
            return Self::ALONE;
        }
        rates.sort_by(|x, y| x.0.total_cmp(&y.0).then(x.1.total_cmp(&y.1)));
        let blocks: f64 = rates.iter().map(|(_, n)| n).sum();
        let events: f64 = rates.iter().map(|(rate, n)| rate * n).sum();
        // Half an event more: no event in fifty blocks doesn't make the rate zero.
        let mean = (events + 0.5) / (blocks + 1.0);
        let values: Vec<f64> = rates.iter().map(|(rate, _)| *rate).collect();
        let typical = blocks / rates.len() as f64;
        let spread = describe::variance(&values).unwrap_or(0.0);
        let overdispersion = (spread * typical / (mean * (1.0 - mean)) - 1.0) / (typical - 1.0).max(1.0);
        let weight = if overdispersion > 0.0 { 1.0 / overdispersion - 1.0 } else { Self::WEIGHT.1 };
        let weight = weight.clamp(Self::WEIGHT.0, Self::WEIGHT.1);
        Self { a: mean * weight, b: (1.0 - mean) * weight }
    }
}

/// The chance of `head_slower` blocks or more, given base's count and the prior.
pub fn p_value(counts: &Counts, prior: RatePrior) -> f64 {
    let (n, base) = (f64::from(counts.blocks), f64::from(counts.base_slower));
    let (a, b) = (prior.a + base, prior.b + n - base);
    let normal = ln_beta(a, b);
    let terms = (counts.head_slower..=counts.blocks).map(|k| {
        let k64 = f64::from(k);
        (ln_binomial(u64::from(counts.blocks), u64::from(k)) + ln_beta(a + k64, b + n - k64) - normal).exp()
    });
    terms.sum::<f64>().min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chance_of_any_count_is_one() {
        let counts = Counts { head_slower: 0, base_slower: 2, blocks: 12, ..Counts::default() };
        assert!((p_value(&counts, RatePrior::ALONE) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_flat_prior_without_data_makes_every_count_equally_likely() {
        // Beta(1, 1) updated by no blocks would be uniform over 0..=n; four blocks of base without an
        // event make it Beta(1, 5): P(K = 4 of 4) = B(5, 5) / B(1, 5) = 5 · 4!4!/9!.
        let counts = Counts { head_slower: 4, base_slower: 0, blocks: 4, ..Counts::default() };
        let expected = 5.0 * 24.0 * 24.0 / 362_880.0;
        assert!((p_value(&counts, RatePrior { a: 1.0, b: 1.0 }) / expected - 1.0).abs() < 1e-9);
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
    fn calm_neighbours_make_the_same_count_more_surprising() {
        let row = Counts { head_slower: 4, base_slower: 0, blocks: 12, ..Counts::default() };
        let calm = RatePrior::pooled(&[Counts { blocks: 12, ..Counts::default() }; 11]);
        let wild = RatePrior::pooled(&[Counts { base_slower: 4, blocks: 12, ..Counts::default() }; 11]);
        assert!(p_value(&row, calm) < 1e-3 && p_value(&row, wild) > 0.1);
    }
}
