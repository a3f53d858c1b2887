//! A chart of a bisection: the effect at each probe and, below it, the probability of each candidate.

use crate::report::percent;
use benchgate_core::record::{BisectionFile, PartKind, ProbeRecord};

use super::Theme;
use super::svg::{Svg, TextAnchor, WIDTH, fitted};

const LEFT: f64 = 74.0;
const RIGHT: f64 = WIDTH - 24.0;
const TOP: f64 = 56.0;
const EFFECTS: f64 = 200.0;
const GAP: f64 = 46.0;
const WEIGHTS: f64 = 90.0;
const FOOT: f64 = 54.0;
const SMALL: f64 = 12.0;

/// A candidate's level relative to the good end: value and interval.
struct CandidateLevel {
    candidate: u32,
    change: f64,
    interval: Option<(f64, f64)>,
}

pub fn bisection_svg(file: &BisectionFile, theme: Theme) -> String {
    let mut svg = Svg::new(TOP + EFFECTS + GAP + WEIGHTS + FOOT, theme);
    let palette = svg.palette;
    svg.text((LEFT, 24.0), 16.0, TextAnchor::Start, palette.ink, &fitted(&file.headline, 16.0, RIGHT - LEFT));
    let last = file.candidates.len().saturating_sub(1).max(1) as f64;
    let x = |candidate: u32| LEFT + (RIGHT - LEFT) * f64::from(candidate) / last;
    effects(file, &mut svg, &x);
    weights(file, &mut svg, &x);
    let foot = TOP + EFFECTS + GAP + WEIGHTS + 20.0;
    let ends = [(0, TextAnchor::Start), (file.candidates.len().saturating_sub(1), TextAnchor::End)];
    for (at, anchor) in ends {
        let Some(candidate) = file.candidates.get(at) else { continue };
        let place = if at == 0 { LEFT } else { RIGHT };
        svg.text((place, foot + 18.0), SMALL, anchor, palette.muted, &fitted(&candidate.name, SMALL, 240.0));
    }
    for part in file.parts.iter().filter(|part| part.kind == PartKind::Culprit) {
        let Some(candidate) = file.candidates.get(part.upto as usize) else { continue };
        let middle = x(part.upto).clamp(LEFT + 60.0, RIGHT - 60.0);
        svg.text(
            (middle, foot),
            SMALL,
            TextAnchor::Middle,
            palette.slower,
            &fitted(&candidate.name, SMALL, 240.0),
        );
    }
    svg.finish(&file.headline)
}

/// Returns levels relative to the good end, measured directly or by way of the bad end.
fn levels(file: &BisectionFile) -> Vec<CandidateLevel> {
    let last = u32::try_from(file.candidates.len().saturating_sub(1)).unwrap_or(u32::MAX);
    let whole = file.ends.as_ref().map(|ends| ends.change.0);
    let level = |probe: &ProbeRecord| {
        let seen = &probe.observation;
        let relative = if seen.exact { 0.0 } else { 1.0 };
        let interval = seen.low.zip(seen.high).map(|(low, high)| (low.0 - relative, high.0 - relative));
        if probe.base == 0 {
            return Some(CandidateLevel {
                candidate: probe.head,
                change: seen.change.0 - relative,
                interval,
            });
        }
        let whole = whole.filter(|_| probe.head == last)?;
        let change = if seen.exact { whole - seen.change.0 } else { whole / seen.change.0 - 1.0 };
        Some(CandidateLevel { candidate: probe.base, change, interval: None })
    };
    file.probes.iter().filter_map(level).collect()
}

fn effects(file: &BisectionFile, svg: &mut Svg, x: &dyn Fn(u32) -> f64) {
    let palette = svg.palette;
    let levels = levels(file);
    let exact = file.ends.as_ref().is_some_and(|ends| ends.exact);
    let values = || levels.iter().map(|level| level.change).chain([0.0]).filter(|value| value.is_finite());
    let (low, high) = (values().fold(0.0, f64::min), values().fold(0.0, f64::max));
    let margin = ((high - low) * 0.25).max(1e-3);
    let (low, high) = (low - margin, high + margin);
    let y = |value: f64| TOP + EFFECTS * (1.0 - (value.clamp(low, high) - low) / (high - low));
    svg.text((LEFT, TOP - 8.0), SMALL, TextAnchor::Start, palette.muted, "change against the good end");
    for tick in [0.0, file.ends.as_ref().map_or(0.0, |ends| ends.change.0 - f64::from(u8::from(!exact)))] {
        svg.line((LEFT, y(tick)), (RIGHT, y(tick)), palette.grid, 1.0);
        let label = if exact {
            format!("{tick:+}")
        } else {
            format!("{}{}", if tick < 0.0 { "-" } else { "+" }, percent(tick.abs()))
        };
        svg.text((LEFT - 8.0, y(tick) + 4.0), SMALL, TextAnchor::End, palette.muted, &label);
    }
    for part in file.parts.iter().filter(|part| part.kind == PartKind::Culprit) {
        svg.line((x(part.upto), TOP), (x(part.upto), TOP + EFFECTS + GAP + WEIGHTS), palette.slower, 1.0);
    }
    for level in &levels {
        let at = x(level.candidate);
        if let Some((low, high)) = level.interval {
            svg.line((at, y(low)), (at, y(high)), palette.iree, 1.5);
        }
        svg.rect(at - 3.0, y(level.change) - 3.0, 6.0, 6.0, palette.iree);
    }
}

fn weights(file: &BisectionFile, svg: &mut Svg, x: &dyn Fn(u32) -> f64) {
    let palette = svg.palette;
    let floor = TOP + EFFECTS + GAP + WEIGHTS;
    svg.text(
        (LEFT, floor - WEIGHTS - 8.0),
        SMALL,
        TextAnchor::Start,
        palette.muted,
        "probability that this candidate caused the whole step",
    );
    svg.line((LEFT, floor), (RIGHT, floor), palette.grid, 1.0);
    let width = ((RIGHT - LEFT) / file.candidates.len().max(1) as f64 * 0.8).clamp(1.5, 24.0);
    for (at, candidate) in (0_u32..).zip(&file.candidates) {
        let Some(probability) = candidate.probability.map(|p| p.0).filter(|p| *p > 0.001) else { continue };
        let height = WEIGHTS * probability.min(1.0);
        svg.rect(x(at) - width / 2.0, floor - height, width, height, palette.other);
    }
}
