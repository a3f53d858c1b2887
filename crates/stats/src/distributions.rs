//! The reference distributions. Only this file calls statrs, and only this file decides what a value outside
//! a distribution's domain means.
//!
//! Every function returns a value for every argument, including NaN and infinities, within a bounded number
//! of steps. A value that can't be computed is not evidence: it becomes a tail of 1 and a quantile of
//! infinity, which can neither fail a row nor let it pass.

use std::cell::RefCell;

use statrs::distribution::{
    Binomial, Continuous, ContinuousCDF, DiscreteCDF, Hypergeometric, Normal, StudentsT,
};

/// Degrees of freedom from which Student's t is computed as a normal distribution of a slightly different
/// argument (Wallace 1959, Ann. Math. Statist. 30:1121–1130), to better than 1e-9. Beyond it, statrs needs more
/// and more steps, and its inverse may not terminate.
const NEARLY_NORMAL: f64 = 1e5;
/// Degrees of freedom from which Student's t is the normal distribution of the same argument: the two differ by
/// less than a rounding error.
const NORMAL: f64 = 1e20;
/// Degrees of freedom below which the error is unknown.
const LEAST_DF: f64 = 0.1;
/// Probability below which the quantile is infinite.
const LEAST_ALPHA: f64 = 1e-300;
/// Distance from zero below which the third term of a tail's series is smaller than the rounding error.
const NEAR_ZERO: f64 = 1e-3;
/// Maximum number of steps of an inversion. Newton's method needs six; bisection alone needs sixty.
const STEPS: usize = 100;

/// Returns P(Z > z) of the standard normal distribution.
pub fn normal_tail(z: f64) -> f64 {
    if z.is_nan() { 1.0 } else { Normal::standard().cdf(-z) }
}

/// Returns the value that a standard normal variable exceeds with probability `alpha`.
fn normal_quantile(alpha: f64) -> f64 {
    -Normal::standard().inverse_cdf(alpha)
}

/// Returns P(T > t) of Student's t. The probability is computed in the lower tail of −t, where the
/// distribution function keeps its precision: 1 − cdf(t) would lose everything below 1e-16. Infinite degrees
/// of freedom give the normal distribution.
pub fn student_tail(t: f64, df: f64) -> f64 {
    if t.is_nan() || df.is_nan() || df < LEAST_DF {
        return 1.0;
    }
    if t.is_infinite() {
        return if t > 0.0 { 0.0 } else { 1.0 };
    }
    if df >= NEARLY_NORMAL {
        return normal_tail(as_normal(t, df));
    }
    let Ok(distribution) = StudentsT::new(0.0, 1.0, df) else { return 1.0 };
    if t.abs() < NEAR_ZERO {
        // Two terms of the series about zero: statrs loses precision this close to one half.
        return 0.5 - distribution.pdf(0.0) * t * (1.0 - (df + 1.0) / df * t * t / 6.0);
    }
    distribution.cdf(-t).clamp(0.0, 1.0)
}

/// Returns the normal quantile that has the same tail as Student's t at `t`.
fn as_normal(t: f64, df: f64) -> f64 {
    if df >= NORMAL {
        return t;
    }
    let z = (df * (t * t / df).ln_1p()).sqrt() * (8.0 * df + 1.0) / (8.0 * df + 3.0);
    z.copysign(t)
}

/// Inverse of [`as_normal`].
fn as_student(z: f64, df: f64) -> f64 {
    if df >= NORMAL {
        return z;
    }
    let scaled = z * (8.0 * df + 3.0) / (8.0 * df + 1.0);
    (df * (scaled * scaled / df).exp_m1()).sqrt().copysign(z)
}

/// Returns the value that Student's t exceeds with probability `alpha`.
pub fn student_quantile(alpha: f64, df: f64) -> f64 {
    if alpha.is_nan() || df.is_nan() || df < LEAST_DF || alpha < LEAST_ALPHA {
        return f64::INFINITY;
    }
    if alpha >= 1.0 {
        return f64::NEG_INFINITY;
    }
    FOUND.with_borrow_mut(|found| {
        let place = &mut found[place_of(alpha, df)];
        if (place.alpha, place.df) != (alpha, df) {
            *place = CachedQuantile { alpha, df, quantile: inverted(alpha, df) };
        }
        place.quantile
    })
}

fn inverted(alpha: f64, df: f64) -> f64 {
    if df >= NEARLY_NORMAL {
        return as_student(normal_quantile(alpha), df);
    }
    match alpha {
        0.5 => 0.0,
        upper if upper > 0.5 => -upper_quantile(1.0 - upper, df),
        alpha => upper_quantile(alpha, df),
    }
}

/// Returns the quantile above zero by Newton's method, kept inside a bracket. The method solves for the
/// logarithm of the tail as a function of ln t, where heavy tails are straight lines.
fn upper_quantile(alpha: f64, df: f64) -> f64 {
    let Ok(distribution) = StudentsT::new(0.0, 1.0, df) else { return f64::INFINITY };
    let goal = alpha.ln();
    let (mut low, mut high) = (f64::MIN_POSITIVE.ln(), f64::MAX.ln());
    let mut at = normal_quantile(alpha).max(f64::MIN_POSITIVE).ln();
    for _ in 0..STEPS {
        let t = at.exp();
        let tail = student_tail(t, df);
        let excess = tail.ln() - goal;
        if excess > 0.0 {
            low = at
        } else {
            high = at
        }
        let slope = (at + distribution.ln_pdf(t) - tail.ln()).exp();
        let newton = at + excess / slope;
        let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
        // The iteration has converged to one unit in the last place of t.
        if (next - at).abs() <= f64::EPSILON {
            return next.exp();
        }
        at = next;
    }
    at.exp()
}

/// Returns the chance that `hits` or more of `of` trials succeed, each with probability `p`.
pub fn binomial_tail(hits: u64, of: u64, p: f64) -> f64 {
    let Some(below) = hits.checked_sub(1) else { return 1.0 };
    if hits > of {
        return 0.0;
    }
    Binomial::new(p, of).map_or(1.0, |trials| trials.sf(below).clamp(0.0, 1.0))
}

/// Returns the p of the sign test: the chance that `hits` or more of `of` fair coins fall one way.
pub fn sign_test(hits: usize, of: usize) -> f64 {
    binomial_tail(hits as u64, of as u64, 0.5)
}

/// Returns the two-sided p of Fisher's exact test that `seen` of `drawn` are among the `marked` of `total`; 1
/// if the numbers contradict each other.
pub fn hypergeometric_test(seen: u64, drawn: u64, marked: u64, total: u64) -> f64 {
    let Ok(by_chance) = Hypergeometric::new(total, marked, drawn) else { return 1.0 };
    let at_most = by_chance.cdf(seen);
    (2.0 * at_most.min(hypergeometric_tail(seen, drawn, marked, total))).min(1.0)
}

/// Returns the one-sided p of Fisher's exact test: the chance that `seen` or more of `drawn` are among the
/// `marked` of `total`; 1 if the numbers contradict each other.
pub fn hypergeometric_tail(seen: u64, drawn: u64, marked: u64, total: u64) -> f64 {
    let Ok(by_chance) = Hypergeometric::new(total, marked, drawn) else { return 1.0 };
    seen.checked_sub(1).map_or(1.0, |fewer| by_chance.sf(fewer))
}

/// Returns the logarithmic derivative of the gamma function for positive arguments; NaN elsewhere.
pub fn digamma(x: f64) -> f64 {
    if x > 0.0 { statrs::function::gamma::digamma(x) } else { f64::NAN }
}

#[derive(Clone, Copy)]
struct CachedQuantile {
    alpha: f64,
    df: f64,
    quantile: f64,
}

/// Number of slots for cached quantiles. The rows of a comparison need the same few dozen again and again,
/// and inverting the distribution would be most of the cost of judging thousands of rows.
const PLACES: usize = 256;

thread_local! {
    // NaN equals nothing, so a lookup never matches an empty slot.
    static FOUND: RefCell<[CachedQuantile; PLACES]> =
        const { RefCell::new([CachedQuantile { alpha: f64::NAN, df: f64::NAN, quantile: f64::NAN }; PLACES]) };
}

/// Returns the slot of a quantile. Multiplying by 2^64 over the golden ratio spreads the bits of both
/// arguments; the upper eight bits select the slot.
fn place_of(alpha: f64, df: f64) -> usize {
    let bits = alpha.to_bits() ^ df.to_bits().rotate_left(32);
    (bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    /// Fails if the work doesn't end. The limit is far longer than the work takes even on a busy host.
    fn within_time(work: impl FnOnce() + Send + 'static) {
        let (done, wait) = mpsc::channel();
        let worker = std::thread::spawn(move || {
            work();
            // The receiver is only gone once the time is up.
            let _ = done.send(());
        });
        match wait.recv_timeout(Duration::from_secs(120)) {
            Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => worker.join().unwrap(),
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("the work does not end"),
        }
    }

    #[test]
    fn tails_keep_their_digits_far_out() {
        // Computed by mpmath with 50 digits.
        for (t, df, expected) in [
            (40.0, 11.0, 1.446_270_449_060_285e-13),
            (5.0, 3.0, 7.696_219_036_651_147e-3),
            (10.0, f64::INFINITY, 7.619_853_024_160_47e-24),
            (2.5, 2.5, 0.052_284_981_539_077_69),
            (15.0, 4.0, 5.754_354_216_461_082e-5),
            (15.0, 1e3, 2.505_119_468_497_824_5e-46),
            (2.5, 1e4, 0.006_217_609_775_291_848),
            (6.0, 1e4, 1.020_809_236_461_307_7e-9),
            (1.0, 99_999.0, 0.158_656_463_793_020),
            (1.0, 1e5, 0.158_656_463_782_055),
            (6.0, 1e5, 9.899_647_278_008_813e-10),
            (15.0, 1e6, 3.718_132_383_605_193e-51),
            (1e-4, 4.0, 0.499_962_500_000_078_13),
            (0.01, 3e6, 0.496_010_644_017_836_9),
        ] {
            let tail = student_tail(t, df);
            assert!((tail / expected - 1.0).abs() < 1e-8, "{t} {df}: {tail:e}");
        }
    }

    #[test]
    fn quantiles_keep_their_digits_far_out() {
        // Computed by `scipy.stats.t.isf`.
        for (alpha, df, expected) in [
            (1e-9, 3.0, 1_033.109_674_503_807_8),
            (1e-6, 11.0, 9.043_275_921_273_752),
            (8.3e-4, 5.0, 6.143_843_925_462_081),
            (1e-12, 20.0, 15.151_149_592_103_09),
            (0.25, 1.0, 1.0),
        ] {
            let quantile = student_quantile(alpha, df);
            assert!((quantile / expected - 1.0).abs() < 1e-8, "{alpha} {df}: {quantile}");
        }
    }

    #[test]
    fn nine_heads_of_twelve_are_one_in_fourteen() {
        assert!((sign_test(9, 12) - 299.0 / 4096.0).abs() < 1e-12);
        assert_eq!(sign_test(0, 12), 1.0);
        assert_eq!(sign_test(13, 12), 0.0);
    }

    #[test]
    fn a_quantile_asked_for_again_is_the_same_whatever_was_asked_between() {
        let asked = || (1..2000).map(|i| student_quantile(f64::from(i) / 4001.0, f64::from(i % 7 + 1)));
        let first: Vec<f64> = asked().collect();
        assert_eq!(asked().collect::<Vec<f64>>(), first);
        let alone: Vec<f64> =
            (1..2000).map(|i| inverted(f64::from(i) / 4001.0, f64::from(i % 7 + 1))).collect();
        assert_eq!(first, alone);
    }

    /// With these degrees of freedom, statrs' inverse never terminated.
    #[test]
    fn quantiles_of_all_magnitudes_are_found_and_lie_where_the_tail_says() {
        within_time(|| {
            for exponent in -10..=120 {
                let df = 10_f64.powf(f64::from(exponent) / 10.0);
                for alpha in [1e-299, 1e-100, 1e-30, 1e-9, 1e-4, 0.01, 0.3, 0.499_999, 0.5, 0.7, 0.999] {
                    let quantile = student_quantile(alpha, df);
                    let tail = student_tail(quantile, df);
                    // With few degrees of freedom, quantiles reach numbers whose squares overflow.
                    if quantile.abs() < 1e150 {
                        assert!(
                            (tail / alpha - 1.0).abs() < 1e-6,
                            "alpha {alpha:e}, df {df:e}: {quantile:e}, {tail:e}"
                        );
                    }
                }
            }
        });
    }

    const EXTREME: [f64; 22] = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        0.0,
        -0.0,
        1e-320,
        -1e-320,
        f64::MIN_POSITIVE,
        1e-200,
        1e-30,
        1e-9,
        0.5,
        1.0,
        -1.0,
        2.5,
        1e3,
        1e5,
        1e9,
        1e30,
        1e200,
        f64::MAX,
        f64::MIN,
    ];

    #[test]
    fn every_function_answers_for_extreme_arguments() {
        within_time(|| {
            for a in EXTREME {
                assert!((0.0..=1.0).contains(&normal_tail(a)), "{a:e}");
                assert!(digamma(a).is_nan() || a > 0.0, "{a:e}");
                for b in EXTREME {
                    let tail = student_tail(a, b);
                    assert!((0.0..=1.0).contains(&tail), "student_tail({a:e}, {b:e}) = {tail}");
                    assert!(!student_quantile(a, b).is_nan(), "student_quantile({a:e}, {b:e})");
                }
                for n in [0, 1, 2, 12, 1000, u64::from(u32::MAX)] {
                    for hits in [0, 1, n / 2, n, n + 1] {
                        let tail = binomial_tail(hits, n, a);
                        assert!((0.0..=1.0).contains(&tail), "binomial_tail({hits}, {n}, {a:e}) = {tail}");
                    }
                }
            }
            for numbers in
                [[0, 0, 0, 0], [1, 0, 0, 0], [9, 3, 2, 1], [3, 3, 3, 3], [0, 5, 5, 9], [8, 5, 5, 9]]
            {
                let [seen, drawn, marked, total] = numbers;
                assert!(
                    (0.0..=1.0).contains(&hypergeometric_test(seen, drawn, marked, total)),
                    "{numbers:?}"
                );
            }
        });
    }

    proptest! {
        #[test]
        fn a_tail_never_grows_with_t(df in any::<f64>(), a in any::<f64>(), b in any::<f64>()) {
            let (low, high) = if a <= b { (a, b) } else { (b, a) };
            let (upper, lower) = (student_tail(low, df), student_tail(high, df));
            prop_assert!(low.is_nan() || high.is_nan() || lower <= upper * (1.0 + 1e-9), "{upper:e} {lower:e}");
        }

        #[test]
        fn a_quantile_is_never_nan(df in any::<f64>(), alpha in any::<f64>()) {
            prop_assert!(!student_quantile(alpha, df).is_nan());
        }
    }
}
