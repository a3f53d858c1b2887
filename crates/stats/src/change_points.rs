//! Detects changes of level in a history of sessions.
//!
//! Optimal partitioning (Jackson et al. 2005, IEEE Signal Processing Letters 12:105–108) chooses, among all
//! ways to cut the series into stretches of constant level, the one with the smallest squared error plus a
//! penalty for each cut. Benchmark histories differ from textbook series in three ways. Outliers are
//! winsorized about a running median (after the bounded losses of Fearnhead and Rigaill 2019, JASA
//! 114:169–183). The noise is estimated from differences of neighbors, which a change of level does not
//! affect. Autocorrelation (caused by a warm room or a driver, for example) raises the penalty; otherwise
//! every slow wave would count as a step.
//!
//! The constants were tuned on simulated series of 60 and 120 sessions, 60 series of each kind. Without a
//! change, false alarms occur in 0 % (normal), 0 % (Student t, 3 degrees), 0–2 % (autocorrelation 0.4) and
//! 0–2 % (4 % spikes of 8 or 15 standard deviations). Plain squared error with the same penalty yields false
//! alarms in 0, 13, 38 and 95 % of series of 120; recursive rank-sum cuts at 1 % give 2, 0, 20 and 0 %. A
//! step of 2 standard deviations is placed within 3 sessions in 97–100 %, five consecutive steps of 1 are
//! detected in 98–100 %, and a step of 4 that happened five sessions ago is detected in 97 %, by rank sums in
//! 12 %.

use super::describe;

/// Minimum number of sessions between two changes. With two, one outlier would count as a level.
const SHORTEST: usize = 3;
/// Minimum number of values: with fewer, no change can be found.
pub const LEAST_VALUES: usize = 2 * SHORTEST;
/// Penalty for a cut, in units of ln n. The information criterion would use three; five tolerates heavy
/// tails.
const PENALTY: f64 = 5.0;
/// Values farther than this many standard deviations from their neighbors' median are winsorized.
const WINSOR: f64 = 2.0;
/// Number of sessions on each side that form the median with which a value is compared.
const REACH: usize = 3;
/// Autocorrelation below which sessions count as independent: the standard error of its estimate from a
/// hundred sessions.
const INDEPENDENT: f64 = 0.1;
/// Largest autocorrelation that is corrected for: a larger one would prevent every change point.
const MOST_CORRELATION: f64 = 0.8;
/// Mean absolute difference between two normally distributed values, in standard deviations: 2/√π.
const MEAN_DIFFERENCE: f64 = std::f64::consts::FRAC_2_SQRT_PI;
/// A robust estimate below this share of the plain one is degenerate, because spikes alone can't make the two
/// differ so much.
const TOO_ALIKE: f64 = 0.2;
/// Additional squared error, in units of the noise's variance, with which another position of a change is
/// still plausible: twice the logarithm of twenty.
const PLAUSIBLE: f64 = 6.0;
/// Relative noise below which sessions count as equal; only larger steps are searched for.
const LEAST_NOISE: f64 = 1e-6;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// Index of the first session of the new level.
    pub at: usize,
    /// Earliest and latest index that fit the values about as well as `at` does: the change lies in this
    /// range.
    pub earliest: usize,
    pub latest: usize,
    /// Median of the stretch before the change and of the stretch after it, in the values' own scale.
    pub before: f64,
    pub after: f64,
    /// Amount by which two levels fit better here than one: squared error in units of the noise's variance.
    pub evidence: f64,
}

/// Returns the changes of level in a series of logarithms, oldest first. The result is empty if there is no
/// change, if there are too few values, or if a value is not finite.
pub fn change_points(values: &[f64]) -> Vec<ChangePoint> {
    if values.len() < LEAST_VALUES || values.iter().any(|value| !value.is_finite()) {
        return Vec::new();
    }
    let noise = noise(values).max(LEAST_NOISE);
    let scaled: Vec<f64> = winsorised(values, noise).iter().map(|value| value / noise).collect();
    let penalty = PENALTY * (values.len() as f64).ln();
    let mut cuts = partition(&scaled, penalty);
    let correlation = correlation(&scaled, &cuts);
    let mut wander = 1.0;
    if !cuts.is_empty() && correlation > INDEPENDENT {
        // Correlated noise wanders (1 + φ)/(1 − φ) times as much as independent noise of the same variance,
        // and its differences understate the variance by a factor of 1 − φ.
        wander = (1.0 + correlation) / ((1.0 - correlation) * (1.0 - correlation));
        cuts = partition(&scaled, penalty * wander);
    }
    let level = |from: usize, to: usize| describe::median(&values[from..to]).unwrap_or_default();
    let mut bounds = vec![0];
    bounds.extend(&cuts);
    bounds.push(values.len());
    bounds
        .windows(3)
        .map(|three| {
            let (stretch, at) = (&scaled[three[0]..three[2]], three[1] - three[0]);
            let (earliest, latest) = plausible(stretch, at, wander);
            let gain = squared_error(stretch) - squared_error(&stretch[..at]) - squared_error(&stretch[at..]);
            ChangePoint {
                at: three[1],
                earliest: three[0] + earliest,
                latest: three[0] + latest,
                before: level(three[0], three[1]),
                after: level(three[1], three[2]),
                evidence: gain / wander,
            }
        })
        .collect()
}

/// Returns the earliest and latest cut whose squared error is at most [`PLAUSIBLE`] above that of the cut at
/// `at`.
fn plausible(values: &[f64], at: usize, wander: f64) -> (usize, usize) {
    let cost = |cut: usize| squared_error(&values[..cut]) + squared_error(&values[cut..]);
    let most = cost(at) + PLAUSIBLE * wander;
    let earliest = (1..at).rev().take_while(|&cut| cost(cut) <= most).last().unwrap_or(at);
    let latest = (at + 1..values.len()).take_while(|&cut| cost(cut) <= most).last().unwrap_or(at);
    (earliest, latest)
}

fn squared_error(stretch: &[f64]) -> f64 {
    let mean = describe::mean(stretch).unwrap_or_default();
    stretch.iter().map(|value| (value - mean) * (value - mean)).sum()
}

/// Estimates the standard deviation of the noise from the differences of neighbors.
fn noise(values: &[f64]) -> f64 {
    let differences: Vec<f64> = values.windows(2).map(|two| two[1] - two[0]).collect();
    let centre = describe::median(&differences).unwrap_or_default();
    let deviations: Vec<f64> = differences.iter().map(|value| (value - centre).abs()).collect();
    let robust = describe::MEDIAN_DEVIATION * describe::median(&deviations).unwrap_or_default()
        / std::f64::consts::SQRT_2;
    // Coarsely rounded values repeat, so half of their differences may be equal. The mean also depends on the
    // other differences.
    let sizes: Vec<f64> = differences.iter().map(|value| value.abs()).collect();
    let plain = describe::mean(&sizes).unwrap_or_default() / MEAN_DIFFERENCE;
    if robust < TOO_ALIKE * plain { plain } else { robust }
}

fn winsorised(values: &[f64], noise: f64) -> Vec<f64> {
    let near = |at: usize| &values[at.saturating_sub(REACH)..(at + REACH + 1).min(values.len())];
    let pulled = |(at, value): (usize, &f64)| {
        let centre = describe::median(near(at)).unwrap_or(*value);
        value.clamp(centre - WINSOR * noise, centre + WINSOR * noise)
    };
    values.iter().enumerate().map(pulled).collect()
}

/// Returns the first index of every stretch except the first one, for the partition of least cost. The time
/// is quadratic in the number of values; three years of nightly sessions take milliseconds.
fn partition(values: &[f64], penalty: f64) -> Vec<usize> {
    let n = values.len();
    let (mut sums, mut squares) = (vec![0.0], vec![0.0]);
    // Values are taken relative to their median, so that squaring a large common level doesn't cost
    // precision.
    let centre = describe::median(values).unwrap_or_default();
    for value in values.iter().map(|value| value - centre) {
        sums.push(sums[sums.len() - 1] + value);
        squares.push(squares[squares.len() - 1] + value * value);
    }
    let error = |from: usize, to: usize| {
        let sum = sums[to] - sums[from];
        squares[to] - squares[from] - sum * sum / (to - from) as f64
    };
    let mut best = vec![f64::INFINITY; n + 1];
    best[0] = -penalty;
    let mut last = vec![0; n + 1];
    for to in SHORTEST..=n {
        for from in 0..=to - SHORTEST {
            let cost = best[from] + error(from, to) + penalty;
            if cost < best[to] {
                (best[to], last[to]) = (cost, from);
            }
        }
    }
    let mut cuts = Vec::new();
    let mut at = last[n];
    while at > 0 {
        cuts.push(at);
        at = last[at];
    }
    cuts.reverse();
    cuts
}

/// Returns the autocorrelation of consecutive sessions inside the stretches, corrected for its bias (Kendall
/// 1954).
fn correlation(values: &[f64], cuts: &[usize]) -> f64 {
    let mut bounds = vec![0];
    bounds.extend(cuts);
    bounds.push(values.len());
    let (mut products, mut squares) = (0.0, 0.0);
    for stretch in bounds.windows(2).map(|two| &values[two[0]..two[1]]) {
        let level = describe::median(stretch).unwrap_or_default();
        products += stretch.windows(2).map(|two| (two[0] - level) * (two[1] - level)).sum::<f64>();
        squares += stretch.iter().map(|value| (value - level) * (value - level)).sum::<f64>();
    }
    if squares == 0.0 {
        return 0.0;
    }
    (products / squares + 2.0 / values.len() as f64).clamp(0.0, MOST_CORRELATION)
}

/// Assumed ratios between the tested member's chance of an event and any other member's, equally weighted.
const ODDS: [f64; 3] = [2.0, 6.0, 20.0];

/// Returns the e-value of one session in which `hit` of `all` members had the event; `is_hit` says whether
/// the tested one is among them.
///
/// Under the null hypothesis, given the number of events, each member is equally likely to have one, and the
/// mean is exactly one. The e-value is one if all members or none had the event.
pub fn e_value(is_hit: bool, hit: usize, all: usize) -> f64 {
    if all == 0 {
        return 1.0;
    }
    let share = hit as f64 / all as f64;
    let ratio = |odds: &f64| if is_hit { *odds } else { 1.0 } / (1.0 - share + share * odds);
    ODDS.iter().map(ratio).sum::<f64>() / ODDS.len() as f64
}

/// Tests after every session whether an event happens to one member of a group (a benchmark, a machine) more
/// often than to the others.
///
/// An e-value has a mean of at most one under the null hypothesis. The detector multiplies the e-values of
/// the sessions since the most favorable beginning: `M = max(M, 1) · e`. Its mean time until `M ≥ c` by
/// chance is at least `c` sessions, however often it is checked (the CUSUM e-detector of Shin, Ramdas and
/// Rinaldo 2023, The New England Journal of Statistics in Data Science 2:229–260).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct EDetector {
    /// Lower bound for the mean number of sessions after which chance alone gives this much evidence. Zero
    /// before the first session.
    pub evidence: f64,
    /// Index of the session since which evidence has accumulated.
    pub since: usize,
}

impl EDetector {
    /// Adds the session with this index and its e-value. Evidence is capped at `most`, so that an alarm can
    /// end again.
    pub fn with(self, session: usize, e_value: f64, most: f64) -> Self {
        let (evidence, since) =
            if self.evidence > 1.0 { (self.evidence, self.since) } else { (1.0, session) };
        Self { evidence: (evidence * e_value).min(most), since }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::rngs::ChaCha8Rng;
    use rand::{Rng, SeedableRng};

    use super::{change_points, *};

    /// Returns approximately normal noise with a standard deviation of 1 %.
    fn noise(generator: &mut ChaCha8Rng) -> f64 {
        let uniform = |generator: &mut ChaCha8Rng| f64::from(generator.next_u32()) / f64::from(u32::MAX);
        ((0..12).map(|_| uniform(generator)).sum::<f64>() - 6.0) * 0.01
    }

    fn series(seed: u64, n: usize, shift: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        (0..n).map(|at| 10.0 + shift(at) + noise(&mut generator)).collect()
    }

    #[test]
    fn an_unchanged_history_has_no_change() {
        let alarms = (0..100).filter(|&seed| !change_points(&series(seed, 100, |_| 0.0)).is_empty()).count();
        assert!(alarms <= 2, "{alarms} of 100");
    }

    #[test]
    fn a_step_of_three_percent_is_found_where_it_is() {
        for seed in 0..20 {
            let found = change_points(&series(seed, 90, |at| if at < 40 { 0.0 } else { 0.03 }));
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].at.abs_diff(40) <= 3, "{found:?}");
            assert!(found[0].earliest <= found[0].at && found[0].at <= found[0].latest, "{found:?}");
            assert!((found[0].after - found[0].before - 0.03).abs() < 0.01, "{found:?}");
        }
    }

    #[test]
    fn the_range_of_a_change_holds_its_place_and_is_narrow_for_a_clear_step() {
        let at = |at: usize, step: f64| if at < 40 { 0.0 } else { step };
        let held = (0..100).filter(|&seed| {
            let found = change_points(&series(seed, 90, |night| at(night, 0.02)));
            found.first().is_some_and(|found| (found.earliest..=found.latest).contains(&40))
        });
        assert!(held.count() >= 95);
        let clear = change_points(&series(3, 90, |night| at(night, 0.15)));
        assert_eq!((clear[0].earliest, clear[0].latest), (40, 40));
    }

    #[test]
    fn creep_that_no_single_step_shows_is_noticed() {
        let noticed = (0..20).filter(|&seed| {
            let found = change_points(&series(seed, 120, |at| 0.01 * (at / 20) as f64));
            found.last().zip(found.first()).is_some_and(|(last, first)| last.after - first.before > 0.025)
        });
        assert!(noticed.count() >= 19);
    }

    #[test]
    fn wild_single_sessions_are_no_change() {
        let alarms = (0..50).filter(|&seed| {
            !change_points(&series(seed, 100, |at| if at % 17 == 5 { 0.3 } else { 0.0 })).is_empty()
        });
        assert!(alarms.count() <= 2);
    }

    #[test]
    fn too_little_or_broken_data_says_nothing() {
        assert_eq!(change_points(&[1.0, 2.0, 1.0, 2.0, 1.0]), []);
        assert_eq!(change_points(&[1.0; 40]), []);
        // Coarsely rounded values: most differences are equal, and still there is no change.
        let coarse: Vec<f64> = (0..40).map(|at| 10.0 + f64::from(at % 4) * 0.001).collect();
        assert_eq!(change_points(&coarse), []);
        let mut values = series(1, 40, |_| 0.0);
        values[7] = f64::NAN;
        assert_eq!(change_points(&values), []);
    }

    proptest! {
        #[test]
        fn the_mean_of_an_e_value_is_one_where_each_is_as_likely_as_another(all in 1_usize..500, hit in 0_usize..500) {
            let hit = hit.min(all);
            let share = hit as f64 / all as f64;
            let mean = share * e_value(true, hit, all) + (1.0 - share) * e_value(false, hit, all);
            prop_assert!((mean - 1.0).abs() < 1e-12, "{mean}");
        }
    }

    #[test]
    fn nights_that_hit_all_or_nothing_say_nothing() {
        assert_eq!((e_value(true, 9, 9), e_value(false, 0, 9), e_value(false, 0, 0)), (1.0, 1.0, 1.0));
    }

    /// Returns the detector at the first alarm, if there was one.
    fn alarm(seed: u64, sessions: usize, rate: f64, others: f64) -> Option<EDetector> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut draw = |share: f64| f64::from(random.next_u32()) / f64::from(u32::MAX) < share;
        let mut detector = EDetector::default();
        for session in 0..sessions {
            let is_hit = draw(rate);
            let hit = usize::from(is_hit) + (0..19).filter(|_| draw(others)).count();
            detector = detector.with(session, e_value(is_hit, hit, 20), 1e6);
            if detector.evidence >= 1000.0 {
                return Some(detector);
            }
        }
        None
    }

    #[test]
    fn one_like_the_others_alarms_at_most_once_in_as_many_sessions_as_the_threshold() {
        for others in [0.02, 0.1, 0.5] {
            let alarms = (0..200).filter(|seed| alarm(*seed, 365, others, others).is_some()).count();
            // In 200 × 365 sessions with a mean time of at least 1,000, at most 73 alarms are expected.
            assert!(alarms <= 73, "{alarms} at {others}");
        }
    }

    #[test]
    fn one_that_is_hit_half_of_the_time_is_found_within_thirty_sessions() {
        let found = (0..200).filter(|seed| alarm(*seed, 30, 0.5, 0.05).is_some()).count();
        assert!(found >= 190, "{found}");
    }
}
