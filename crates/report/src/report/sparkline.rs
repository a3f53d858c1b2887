//! A history in the height of one line.

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Placeholder for a missing value.
const GAP: char = '·';
/// Values that lie within this share of each other look flat: noise must not fill the whole height.
const LEAST_SPAN: f64 = 0.05;

/// The newest `width` values, oldest first. `None` if a value is missing or not above zero.
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

/// A curve from zero up in `width` characters, each as high as the curve's highest point there.
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
