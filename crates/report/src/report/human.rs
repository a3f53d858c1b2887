//! Formats numbers for people, and draws a history in the height of one line.

use std::time::Duration;

use benchgate_core::model::{Better, Unit, rounded, significant};

/// Formats a value in the unit that a person would choose: `22.15 ms`, `51.2 KiB`, `1,204`.
pub fn quantity(value: f64, unit: &Unit) -> String {
    let scale = UnitScale::for_value(value, unit);
    join(&scale.number(value), &scale.suffix)
}

/// Formats two values in one unit, `22.15 → 31.92 ms`; if they differ by orders of magnitude, each in its own
/// unit.
pub(super) fn change_of(base: Option<f64>, head: Option<f64>, unit: &Unit) -> String {
    match (base, head) {
        (Some(base), Some(head)) => {
            let smaller = UnitScale::for_value(if base.abs() < head.abs() { base } else { head }, unit);
            let larger = base.abs().max(head.abs());
            // Ratio beyond which a common unit would need more digits for the larger value than anyone reads.
            const READABLE: f64 = 10_000.0;
            let is_readable = larger / smaller.divisor < READABLE;
            if is_readable || UnitScale::for_value(larger, unit).divisor == smaller.divisor {
                join(&format!("{} → {}", smaller.number(base), smaller.number(head)), &smaller.suffix)
            } else {
                format!("{} → {}", quantity(base, unit), quantity(head, unit))
            }
        }
        (Some(base), None) => format!("{} → ?", quantity(base, unit)),
        (None, Some(head)) => format!("? → {}", quantity(head, unit)),
        (None, None) => "?".to_owned(),
    }
}

/// Formats a duration: `41 ms`, `3.2 s`, `4 min 10 s`.
pub fn duration(duration: Duration) -> String {
    if duration.is_zero() {
        return "0 s".to_owned();
    }
    let seconds = duration.as_secs_f64();
    const MINUTE: u64 = 60;
    if duration.as_secs() < MINUTE {
        return quantity(seconds * 1e9, &Unit::Nanoseconds);
    }
    let minutes = duration.as_secs() / MINUTE;
    if minutes < MINUTE {
        format!("{minutes} min {} s", duration.as_secs() % MINUTE)
    } else {
        format!("{} h {} min", minutes / MINUTE, minutes % MINUTE)
    }
}

/// Formats a fraction as a percentage: 0.0144 is `1.4 %`, 0.01 is `1 %`.
pub fn percent(fraction: f64) -> String {
    let value = fraction * 100.0;
    if value.is_nan() {
        return "?".to_owned();
    }
    if value > WIDEST {
        return format!("> {WIDEST:.0} %");
    }
    format!("{} %", trim(&decimals(value)))
}

/// Formats a level of confidence with four digits. It is never rounded to 100 %, because nothing is certain.
pub(super) fn confidence(level: f64) -> String {
    const HIGHEST: f64 = 99.99;
    let percents = level * 100.0;
    // The space keeps a number and its unit on one line.
    let more = if percents > HIGHEST { "> " } else { "" };
    format!("{more}{}\u{a0}%", significant(percents.min(HIGHEST), 4))
}

/// Formats a percentage with as many decimals as its size needs.
fn decimals(value: f64) -> String {
    if value == 0.0 {
        "0".to_owned()
    } else if value.abs() < 0.095 {
        format!("{value:.2}")
    } else {
        format!("{value:.1}")
    }
}

fn trim(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

/// The wording of a ratio: a signed percentage near 1, a factor otherwise, because "8.8× faster" is easier to
/// read than "−88.6 %".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Percent,
    /// Head is this many times base.
    TimesMore,
    /// Base is this many times head.
    TimesLess,
}

impl Style {
    pub(super) fn for_ratio(ratio: f64) -> Self {
        if ratio >= 2.0 {
            Self::TimesMore
        } else if ratio <= 0.5 && ratio > 0.0 {
            Self::TimesLess
        } else {
            Self::Percent
        }
    }

    /// Formats the number without its unit.
    fn number(self, ratio: f64) -> String {
        if ratio.is_nan() {
            return "?".to_owned();
        }
        match self {
            Self::Percent => signed((ratio - 1.0) * 100.0),
            Self::TimesMore => factor(ratio),
            Self::TimesLess => factor(1.0 / ratio),
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::Percent => " %",
            Self::TimesMore | Self::TimesLess => "×",
        }
    }
}

/// Largest percentage or factor that is printed exactly. Beyond it, digits are meaningless and take
/// space away from names.
const WIDEST: f64 = 1_000.0;

/// Formats the range from the smallest to the largest fraction.
pub(super) fn range(fractions: impl Iterator<Item = f64>) -> Option<String> {
    let (low, high) =
        fractions.fold((f64::INFINITY, 0.0_f64), |(low, high), one| (low.min(one), high.max(one)));
    let (low, high) = (low <= high).then(|| (percent(low), percent(high)))?;
    Some(if low == high { low } else { format!("{low} to {high}") })
}

/// Formats a change that is given as a fraction: `+12 %`.
pub(super) fn signed_percent(fraction: f64) -> String {
    format!("{} %", signed(fraction * 100.0))
}

fn signed(percents: f64) -> String {
    if percents > WIDEST {
        return format!(">+{WIDEST:.0}");
    }
    // Only a value that became zero has decreased by 100 %.
    if percents > -100.0 && percents < -99.9 {
        return "<−99.9".to_owned();
    }
    let digits = decimals(percents.abs());
    if digits.bytes().all(|byte| matches!(byte, b'0' | b'.')) {
        "±0".to_owned()
    } else if percents > 0.0 {
        format!("+{digits}")
    } else {
        format!("−{digits}")
    }
}

fn factor(value: f64) -> String {
    if value > WIDEST {
        format!(">{WIDEST:.0}")
    } else if value < 1.0 / WIDEST {
        format!("<{}", 1.0 / WIDEST)
    } else {
        significant(value, 3)
    }
}

/// Formats a ratio head/base as a change: `+44.1 %`, `8.76×`.
pub fn change(ratio: f64) -> String {
    changed_by(ratio, Style::for_ratio(ratio))
}

pub(super) fn changed_by(ratio: f64, style: Style) -> String {
    format!("{}{}", style.number(ratio), style.unit())
}

/// Formats the interval of a ratio in the style of its estimate, smaller number first: `+43.2 … +45.1 %`. An
/// interval that reaches from faster to slower is a percentage, because a factor has no sign.
pub fn interval(low: f64, high: f64, ratio: f64) -> String {
    let style = if low < 1.0 && high > 1.0 { Style::Percent } else { Style::for_ratio(ratio) };
    let (first, last) = if style == Style::TimesLess { (high, low) } else { (low, high) };
    let (first, last) = (style.number(first), style.number(last));
    if first == last && first.starts_with(['<', '>']) {
        return format!("{first}{}", style.unit());
    }
    format!("{first} … {last}{}", style.unit())
}

/// Returns the word for head/base = `ratio` of a quantity in this unit.
pub(super) fn direction(ratio: f64, unit: &Unit, better: Better) -> &'static str {
    match (unit, better, ratio > 1.0) {
        (Unit::Nanoseconds, _, true) | (Unit::PerSecond, Better::Higher, false) => "slower",
        (Unit::Nanoseconds, _, false) | (Unit::PerSecond, Better::Higher, true) => "faster",
        (Unit::Bytes, _, true) => "larger",
        (Unit::Bytes, _, false) => "smaller",
        (Unit::Count, _, true) => "more",
        (Unit::Count, _, false) => "fewer",
        (_, _, true) => "higher",
        (_, _, false) => "lower",
    }
}

/// Formats a change as all tables show it, whatever the verdict: below 2× as a signed percentage, and from there on
/// as a factor, which has no sign and therefore a word for its direction: `+44.1 %`, `8.76× slower`.
pub(super) fn effect(ratio: f64, unit: &Unit, better: Better) -> String {
    match Style::for_ratio(ratio) {
        Style::Percent => change(ratio),
        _ => format!("{} {}", change(ratio), direction(ratio, unit, better)),
    }
}

struct UnitScale {
    divisor: f64,
    suffix: String,
    /// True if values are whole numbers, which are exact and printed in full.
    whole: bool,
}

impl UnitScale {
    fn for_value(value: f64, unit: &Unit) -> Self {
        const TIMES: &[(f64, &str)] = &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
        let (steps, per): (&[(f64, &str)], &str) = match unit {
            Unit::Nanoseconds => (TIMES, ""),
            Unit::Bytes => {
                (&[(1_073_741_824.0, "GiB"), (1_048_576.0, "MiB"), (1024.0, "KiB"), (1.0, "B")], "")
            }
            Unit::PerSecond => (&[(1e9, "G/s"), (1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")], ""),
            Unit::Fraction => (&[(0.01, "%")], ""),
            Unit::Count => (&[(1.0, "")], ""),
            Unit::Other(name) => match name.strip_prefix("ns") {
                Some(per) if per.starts_with('/') => (TIMES, per),
                // Readers use these names if the file does not state a unit.
                _ if matches!(name.as_ref(), "asv" | "counter") => (&[(1.0, "")], ""),
                _ => (&[(1.0, "")], name.as_ref()),
            },
        };
        // The value is rounded first, so that 999.996 ms is printed as 1.000 s.
        let rounded = rounded(value, 4).abs();
        let step = steps.iter().find(|(divisor, _)| rounded >= *divisor).or(steps.last());
        let (divisor, suffix) = step.copied().unwrap_or((1.0, ""));
        let whole = matches!(unit, Unit::Count) || (matches!(unit, Unit::Bytes) && divisor == 1.0);
        Self { divisor, suffix: format!("{suffix}{per}"), whole }
    }

    fn number(&self, value: f64) -> String {
        let scaled = value / self.divisor;
        let number = significant(scaled, 4);
        // Numbers of five digits and more are printed in groups.
        let is_long = number.len() > 4 && number.bytes().all(|byte| byte.is_ascii_digit());
        if is_long || self.whole && scaled.fract() == 0.0 && scaled.is_finite() {
            grouped(scaled)
        } else {
            number
        }
    }
}

fn join(number: &str, suffix: &str) -> String {
    if suffix.is_empty() { number.to_owned() } else { format!("{number} {suffix}") }
}

/// Formats a number with groups of three digits: `1,204`.
fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 { format!("−{text}") } else { text }
}

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Placeholder for a missing value.
const GAP: char = '·';
/// Relative range below which values look flat: noise must not fill the whole height.
const LEAST_SPAN: f64 = 0.05;

/// Draws the newest `width` values, oldest first. `None` stands for a value that is missing or not above
/// zero.
pub fn sparkline(values: &[Option<f64>], width: usize) -> String {
    let shown = &values[values.len().saturating_sub(width)..];
    let logs: Vec<Option<f64>> =
        shown.iter().map(|value| value.map(f64::ln).filter(|log| log.is_finite())).collect();
    let known = || logs.iter().flatten().copied();
    let (low, high) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
    let span = (high - low).max(LEAST_SPAN);
    // A flat line is drawn in the middle, not at the bottom.
    let bottom = (low + high - span) / 2.0;
    let level = |log: f64| {
        let share = ((log - bottom) / span).clamp(0.0, 1.0);
        LEVELS[(share * (LEVELS.len() - 1) as f64).round() as usize]
    };
    logs.into_iter().map(|log| log.map_or(GAP, level)).collect()
}

/// Draws a curve from zero up in `width` characters, each as high as the curve's highest point within it.
pub fn silhouette(curve: &[f64], highest: f64, width: usize) -> String {
    let part = curve.len().div_ceil(width.max(1)).max(1);
    let level = |part: &[f64]| {
        let share = (part.iter().copied().fold(0.0, f64::max) / highest).clamp(0.0, 1.0);
        LEVELS[(share * (LEVELS.len() - 1) as f64).round() as usize]
    };
    curve.chunks(part).map(level).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_boundless_interval_is_short() {
        assert_eq!(interval(1e-7, 1.84e9, 1.1), "<−99.9 … >+1000 %");
        assert_eq!(interval(1e-7, 3e7, 4.0), "<−99.9 … >+1000 %");
        assert_eq!(interval(0.99, f64::INFINITY, 1.2), "−1.0 … >+1000 %");
        assert_eq!(interval(2e3, 3e7, 1e4), ">1000×");
        assert_eq!([4.6e57, f64::INFINITY].map(percent), ["> 1000 %", "> 1000 %"]);
    }

    #[test]
    fn no_interval_is_of_100_percent_confidence() {
        assert_eq!(
            [0.99, 0.9975, 0.9999, 0.999_96, 1.0 - 1e-9].map(confidence),
            ["99.00\u{a0}%", "99.75\u{a0}%", "99.99\u{a0}%", "> 99.99\u{a0}%", "> 99.99\u{a0}%"]
        );
    }

    #[test]
    fn durations_choose_their_unit() {
        let ns = |value| quantity(value, &Unit::Nanoseconds);
        assert_eq!(
            [ns(12.0), ns(1234.5), ns(22_150_000.0), ns(4.25e9)],
            ["12.00 ns", "1.234 µs", "22.15 ms", "4.250 s"]
        );
        assert_eq!([ns(999_999_999.0), ns(999.96), ns(99.996)], ["1.000 s", "1.000 µs", "100.0 ns"]);
    }

    #[test]
    fn sizes_and_counts_are_exact_where_they_are_whole() {
        assert_eq!(quantity(51_234.0, &Unit::Bytes), "50.03 KiB");
        assert_eq!(quantity(1204.0, &Unit::Count), "1,204");
        assert_eq!(quantity(17.0, &Unit::Bytes), "17 B");
    }

    #[test]
    fn two_values_share_a_unit_unless_they_are_worlds_apart() {
        let pair = |base, head| change_of(Some(base), Some(head), &Unit::Nanoseconds);
        assert_eq!(pair(22_150_000.0, 31_920_000.0), "22.15 → 31.92 ms");
        assert_eq!(pair(425e6, 27e6), "425.0 → 27.00 ms");
        assert_eq!(pair(900.0, 9e9), "900.0 ns → 9.000 s");
        assert_eq!(change_of(None, Some(1e6), &Unit::Nanoseconds), "? → 1.000 ms");
    }

    #[test]
    fn a_change_is_a_percentage_near_one_and_a_factor_far_from_it() {
        assert_eq!(
            [1.441, 0.97, 1.0004, 1.0, 3.5, 1.0 / 8.76].map(change),
            ["+44.1 %", "−3.0 %", "+0.04 %", "±0 %", "3.50×", "8.76×"]
        );
        assert_eq!(interval(1.432, 1.451, 1.441), "+43.2 … +45.1 %");
        assert_eq!(interval(0.1, 0.125, 0.114), "8.00 … 10.0×");
        assert_eq!(interval(0.192, 1.05, 0.45), "−80.8 … +5.0 %");
    }

    #[test]
    fn a_percentage_has_a_sign_and_a_factor_has_a_word() {
        let effects = |ratio| effect(ratio, &Unit::Nanoseconds, Better::Lower);
        assert_eq!([0.622, 1.101, 1.0, 3.5].map(effects), ["−37.8 %", "+10.1 %", "±0 %", "3.50× slower"]);
        assert_eq!(effect(0.4, &Unit::PerSecond, Better::Higher), "2.50× slower");
        assert_eq!(effect(0.0, &Unit::Bytes, Better::Lower), "−100.0 %");
    }

    #[test]
    fn a_tools_own_unit_is_written_once_and_its_times_and_large_numbers_are_readable() {
        let pair = |base, head, unit: &str| change_of(Some(base), Some(head), &Unit::parse(unit));
        assert_eq!(pair(3e5, 1.5e6, "tokens/s"), "300,000 → 1,500,000 tokens/s");
        assert_eq!(pair(1024.0, 1024.0, "B/op"), "1024 → 1024 B/op");
        assert_eq!(pair(12.05e6, 9e5, "ns/step"), "12.05 ms/step → 900.0 µs/step");
        assert_eq!(pair(3.5, 5.0, "asv"), "3.500 → 5.000");
    }

    #[test]
    fn a_higher_throughput_is_faster() {
        assert_eq!(direction(1.2, &Unit::PerSecond, Better::Higher), "faster");
        assert_eq!(direction(1.2, &Unit::Nanoseconds, Better::Lower), "slower");
        assert_eq!(direction(0.9, &Unit::Bytes, Better::Lower), "smaller");
    }

    #[test]
    fn percentages_drop_zeros_that_say_nothing() {
        assert_eq!([0.01, 0.0144, 0.0004, 0.0, 0.3].map(percent), ["1 %", "1.4 %", "0.04 %", "0 %", "30 %"]);
    }

    #[test]
    fn a_step_is_seen_and_noise_is_flat() {
        let all = |values: &[f64]| sparkline(&values.iter().map(|&v| Some(v)).collect::<Vec<_>>(), 40);
        assert_eq!(all(&[1.0, 1.0, 2.0, 2.0]), "▁▁██");
        assert_eq!(all(&[1.0, 1.004, 0.999]), "▄▅▄");
        assert_eq!(all(&[5.0]), "▄");
        assert_eq!(all(&[]), "");
    }

    #[test]
    fn a_silhouette_keeps_the_highest_points() {
        assert_eq!(silhouette(&[0.0, 0.0, 4.0, 8.0, 2.0, 0.0, 0.0, 0.0], 8.0, 4), "▁█▃▁");
        assert_eq!(silhouette(&[], 1.0, 4), "");
    }

    #[test]
    fn what_is_missing_is_a_gap_and_only_the_newest_are_shown() {
        assert_eq!(sparkline(&[Some(9.0), Some(1.0), None, Some(0.0), Some(2.0)], 4), "▁··█");
    }
}
