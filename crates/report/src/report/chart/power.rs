//! The power curve of a calibration.

use crate::report::percent;
use benchgate_gate::noise::{NoiseReport, PowerPoint};

use super::Theme;
use super::svg::{Svg, TextAnchor, WIDTH, round_step};

const HEIGHT: f64 = 480.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = WIDTH - 24.0;
const TOP: f64 = 72.0;
const FLOOR: f64 = HEIGHT - 60.0;
/// Maximum number of benchmarks with a curve: with more, thin curves can't be distinguished, and only the
/// suite's is drawn.
const MOST_CURVES: usize = 40;

/// Draws how often a slowdown makes a session fail, by its size: one curve for the suite, and a thin line for
/// each benchmark. The value at zero is the measured rate of false positives.
pub fn power_curve(report: &NoiseReport, theme: Theme) -> String {
    let mut svg = Svg::new(HEIGHT, theme);
    let palette = svg.palette;
    let most = report.power.iter().map(|point| point.slowdown).fold(0.01, f64::max) * 1.1;
    let x = |slowdown: f64| LEFT + slowdown / most * (RIGHT - LEFT);
    let y = |share: f64| FLOOR - share * (FLOOR - TOP);
    let place = |points: &[(f64, f64)]| -> Vec<(f64, f64)> {
        points.iter().filter(|(_, share)| share.is_finite()).map(|&(at, share)| (x(at), y(share))).collect()
    };

    let title = "What this machine can detect";
    let subtitle = "Share of sessions that turn red, by the slowdown of one benchmark; at 0: false positives";
    svg.title(24.0, title, subtitle);
    for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
        svg.line((LEFT, y(share)), (RIGHT, y(share)), palette.grid, 1.0);
        svg.text((LEFT - 8.0, y(share) + 4.0), 12.0, TextAnchor::End, palette.muted, &percent(share));
    }
    let step = round_step(most / 8.0);
    let mut slowdown = 0.0;
    while slowdown <= most {
        svg.line((x(slowdown), FLOOR), (x(slowdown), FLOOR + 4.0), palette.muted, 1.0);
        svg.text((x(slowdown), FLOOR + 20.0), 12.0, TextAnchor::Middle, palette.muted, &percent(slowdown));
        slowdown += step;
    }
    svg.text(((LEFT + RIGHT) / 2.0, FLOOR + 42.0), 12.5, TextAnchor::Middle, palette.ink, "slowdown");

    if report.rows.len() <= MOST_CURVES {
        for row in &report.rows {
            let points = place(&curve(&row.power));
            svg.curve(&points, palette.other, 1.0);
            // Curves are labeled at their start, where they are apart; at the end all of them reach the top.
            if let Some((x, y)) = points.first() {
                svg.text((x - 6.0, y + 4.0), 11.0, TextAnchor::End, palette.muted, row.benchmark.as_str());
            }
        }
    }
    let mut whole = vec![(0.0, report.red_suites.value())];
    whole.extend(curve(&report.power));
    svg.curve(&place(&whole), palette.iree, 3.0);
    for &(at, share) in whole.iter().filter(|(_, share)| share.is_finite()) {
        svg.dot((x(at), y(share)), 4.0, palette.iree);
        // The label is to the right of the rising curve, and above the axis.
        let below = if at == 0.0 { -10.0 } else { 14.0 };
        svg.text((x(at) + 8.0, y(share) + below), 13.0, TextAnchor::Start, palette.ink, &percent(share));
    }
    svg.finish(&format!("{title}: {subtitle}"))
}

fn curve(points: &[PowerPoint]) -> Vec<(f64, f64)> {
    points.iter().map(|point| (point.slowdown, point.seen.value())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::samples::noise_report;

    #[test]
    fn the_power_curve_is_labelled_and_names_are_escaped() {
        for theme in Theme::BOTH {
            let svg = power_curve(&noise_report(), theme);
            assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"), "{svg}");
            for label in ["slowdown", "59.5 %", "90.5 %", "vit/cpu/main"] {
                assert!(svg.contains(label), "{label} is missing:\n{svg}");
            }
            assert!(!svg.contains("<b>") && svg.contains("&lt;b&gt;&amp;"), "{svg}");
        }
    }
}
