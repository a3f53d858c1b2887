//! An estimated shift on the log scale, and what may be concluded from it.

use std::cell::RefCell;

use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, Normal, StudentsT};

/// An estimate with its standard error and the degrees of freedom of that error.
///
/// The scale is the natural logarithm of head/base, so that "5 % slower" and "5 % faster" are mirror
/// images and units cancel. Infinite degrees of freedom mean the error is known, not estimated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effect {
    pub center: f64,
    pub se: f64,
    pub df: f64,
}

impl Effect {
    /// One-sided p of "the true shift is `limit` or less".
    pub fn p_above(&self, limit: f64) -> f64 {
        self.tail((self.center - limit) / self.se)
    }

    /// One-sided p of "the true shift is `limit` or more".
    pub fn p_below(&self, limit: f64) -> f64 {
        self.tail((limit - self.center) / self.se)
    }

    /// The bound that the true shift exceeds with confidence 1 − `alpha`.
    pub fn lower(&self, alpha: f64) -> f64 {
        self.center - self.quantile(alpha) * self.se
    }

    /// The bound that the true shift stays below with confidence 1 − `alpha`.
    pub fn upper(&self, alpha: f64) -> f64 {
        self.center + self.quantile(alpha) * self.se
    }

    /// How far above a limit the true shift must lie to be seen with `power` at `alpha`.
    pub fn detectable(&self, alpha: f64, power: f64) -> f64 {
        (self.quantile(alpha) + self.quantile(1.0 - power)) * self.se
    }

    /// The same effect seen from the other side.
    pub fn swapped(&self) -> Self {
        Self { center: -self.center, ..*self }
    }

    /// Upper tail of the reference distribution.
    fn tail(&self, t: f64) -> f64 {
        // 0/0: no difference and no spread, so no evidence either way.
        if t.is_nan() {
            return 1.0;
        }
        student_tail(t, self.df)
    }

    /// The value that the reference distribution exceeds with probability `alpha`.
    fn quantile(&self, alpha: f64) -> f64 {
        student_quantile(alpha, self.df)
    }
}

/// P(T > t) for Student's t. Computed in the lower tail of −t, where the distribution function keeps
/// its digits: 1 − cdf(t) would lose everything below 1e-16.
pub fn student_tail(t: f64, df: f64) -> f64 {
    if t.is_infinite() {
        return if t > 0.0 { 0.0 } else { 1.0 };
    }
    if df.is_finite()
        && let Ok(distribution) = StudentsT::new(0.0, 1.0, df)
    {
        return distribution.cdf(-t);
    }
    Normal::standard().cdf(-t)
}

/// The value that Student's t exceeds with probability `alpha`.
pub fn student_quantile(alpha: f64, df: f64) -> f64 {
    if alpha <= 0.0 {
        return f64::INFINITY;
    }
    if alpha >= 1.0 {
        return f64::NEG_INFINITY;
    }
    FOUND.with_borrow_mut(|found| {
        let place = &mut found[place_of(alpha, df)];
        if (place.alpha, place.df) != (alpha, df) {
            *place = Found { alpha, df, quantile: inverted(alpha, df) };
        }
        place.quantile
    })
}

fn inverted(alpha: f64, df: f64) -> f64 {
    if df.is_finite()
        && let Ok(distribution) = StudentsT::new(0.0, 1.0, df)
    {
        return -distribution.inverse_cdf(alpha);
    }
    -Normal::standard().inverse_cdf(alpha)
}

/// The sign test: the chance that `hits` or more of `of` fair coins fall one way.
pub fn sign_test(hits: usize, of: usize) -> f64 {
    match (hits as u64).checked_sub(1) {
        None => 1.0,
        Some(below) => Binomial::new(0.5, of as u64).map_or(1.0, |coins| coins.sf(below)),
    }
}

/// A quantile that was asked for before.
#[derive(Clone, Copy)]
struct Found {
    alpha: f64,
    df: f64,
    quantile: f64,
}

/// Places for quantiles. The rows of a comparison ask for a few dozen again and again, and inverting
/// the distribution is most of what judging thousands of rows would cost.
const PLACES: usize = 256;

thread_local! {
    // NaN equals nothing, so an empty place answers nothing.
    static FOUND: RefCell<[Found; PLACES]> =
        const { RefCell::new([Found { alpha: f64::NAN, df: f64::NAN, quantile: f64::NAN }; PLACES]) };
}

/// Multiplying by 2^64 over the golden ratio spreads the bits of both; the upper eight are the place.
fn place_of(alpha: f64, df: f64) -> usize {
    let bits = alpha.to_bits() ^ df.to_bits().rotate_left(32);
    (bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const EFFECT: Effect = Effect { center: 0.05, se: 0.01, df: 11.0 };

    #[test]
    fn a_bound_and_its_p_value_say_the_same() {
        let alpha = EFFECT.p_above(0.01);
        assert!((EFFECT.lower(alpha) - 0.01).abs() < 1e-9);
        let alpha = EFFECT.p_below(0.09);
        assert!((EFFECT.upper(alpha) - 0.09).abs() < 1e-9);
    }

    #[test]
    fn tails_keep_their_digits_far_out() {
        // scipy.stats.t.sf and scipy.stats.norm.sf
        assert!((student_tail(40.0, 11.0) / 1.446_270_449_060_285e-13 - 1.0).abs() < 1e-9);
        assert!((student_tail(5.0, 3.0) / 7.696_219_036_651_147e-3 - 1.0).abs() < 1e-12);
        assert!((student_tail(10.0, f64::INFINITY) / 7.619_853_024_160_47e-24 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn quantiles_keep_their_digits_far_out() {
        // scipy.stats.t.isf
        for (alpha, df, expected) in [
            (1e-9, 3.0, 1_033.109_674_503_807_8),
            (1e-6, 11.0, 9.043_275_921_273_752),
            (8.3e-4, 5.0, 6.143_843_925_462_081),
            (1e-12, 20.0, 15.151_149_592_103_09),
        ] {
            let quantile = student_quantile(alpha, df);
            assert!((quantile / expected - 1.0).abs() < 1e-8, "{alpha} {df}: {quantile}");
        }
    }

    #[test]
    fn nine_heads_of_twelve_are_one_in_fourteen() {
        assert!((sign_test(9, 12) - 299.0 / 4096.0).abs() < 1e-12);
        assert_eq!(sign_test(0, 12), 1.0);
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

    #[test]
    fn no_difference_without_spread_is_no_evidence() {
        let nothing = Effect { center: 0.01, se: 0.0, df: 3.0 };
        assert_eq!(nothing.p_above(0.01), 1.0);
        assert_eq!(nothing.p_above(0.0), 0.0);
    }
}
