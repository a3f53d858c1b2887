//! Round numbers for axes.

/// 1, 2 or 5 times a power of ten: the first that is at least `least`. Zero if there is none, so that a caller draws
/// no ticks.
pub fn round_step(least: f64) -> f64 {
    if !least.is_finite() || least <= 0.0 {
        return 0.0;
    }
    let power = 10_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|step| step * power).into_iter().find(|step| *step >= least).unwrap_or(least)
}

#[cfg(test)]
mod tests {
    use super::round_step;

    #[test]
    fn a_step_is_round_and_not_below_what_is_asked_for() {
        assert_eq!([0.3, 1.0, 1.1, 20.0, 51.0].map(round_step), [0.5, 1.0, 2.0, 20.0, 100.0]);
        assert_eq!([0.0, -1.0, f64::NAN, f64::INFINITY].map(round_step), [0.0; 4]);
    }
}
