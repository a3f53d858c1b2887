//! Draws a trend as SVG. The drawing is complete without a script; the script only moves the window (the
//! inner `viewBox`) and updates the labels of the axes. Screen readers can read it. A library that draws on a
//! canvas would draw everything a second time, invisibly to screen readers.

use std::fmt::Write;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use maud::{Markup, html};

use super::causes::Move;
use super::history::{Point, Session, Timeline, Track};
use crate::report::{change, quantity, round_step};
use benchgate_core::model::Unit;

const WIDTH: f64 = 900.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 10.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 24.0;
const INNER: f64 = WIDTH - LEFT - RIGHT;
const TALL: f64 = 260.0;
const SMALL: f64 = 64.0;

/// An event at a session, drawn as a vertical line.
pub struct Mark {
    pub session: usize,
    pub class: &'static str,
    /// Address of its entry in the list.
    pub target: String,
    pub label: String,
}

/// Converts values to pixels.
struct PlotScale {
    from: f64,
    span: f64,
    low: f64,
    high: f64,
    height: f64,
}

impl PlotScale {
    fn new(timeline: &Timeline, values: impl Iterator<Item = f64>, height: f64) -> Self {
        let second = |at: Option<&Session>| at.map_or(0.0, |at| at.began.as_second() as f64);
        let (from, to) = (second(timeline.sessions.first()), second(timeline.sessions.last()));
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        // A flat line is drawn in the middle, and noise does not fill the whole height.
        let pad = ((high - low) * 0.08).max(high.abs() * 0.01).max(f64::MIN_POSITIVE);
        Self { from, span: (to - from).max(1.0), low: low - pad, high: high + pad, height }
    }

    fn x(&self, began: Timestamp) -> f64 {
        // Half a percent is left free at both ends, so that the newest point is not cut off.
        (began.as_second() as f64 - self.from) / self.span * INNER * 0.99 + INNER * 0.005
    }

    fn y(&self, value: f64) -> f64 {
        (self.high - value) / (self.high - self.low) * self.height
    }
}

/// Number of points below which they are drawn large enough to be seen one by one.
const FEW: usize = 100;

pub fn chart(timeline: &Timeline, name: &str, track: &Track, moves: &[Move], marks: &[Mark]) -> Markup {
    let scale = PlotScale::new(timeline, shown(&track.points).map(|point| point.value), TALL);
    let began = |session: usize| timeline.sessions[session].began;
    let (mut dots, mut held, mut bars) = (String::new(), String::new(), String::new());
    let mut outside = String::new();
    for point in &track.points {
        let x = scale.x(began(point.session));
        let to = if point.held { &mut held } else { &mut dots };
        let y = scale.y(point.value);
        // Writing to a `String` can't fail.
        let _ = write!(to, "M{x:.1} {y:.1}h0");
        if !(0.0..=scale.height).contains(&y) {
            let _ = write!(outside, "M{x:.1} {:.1}v7", if y < 0.0 { 1.0 } else { scale.height - 8.0 });
        }
        if point.low < point.high {
            let _ = write!(bars, "M{x:.1} {:.1}V{:.1}", scale.y(point.low), scale.y(point.high));
        }
    }
    let height = TALL + TOP + BOTTOM;
    let count = track.points.len();
    let newest = track.points.last().map(|point| quantity(point.value, &track.unit)).unwrap_or_default();
    let label = format!("{name} over {count} sessions, newest {newest}, {} changes of level", moves.len());
    html! {
        svg.chart viewBox=(format!("0 0 {WIDTH} {height}")) role="group" aria-label=(label)
            data-from=(scale.from) data-span=(scale.span) data-low=(scale.low) data-high=(scale.high)
            data-unit=(track.unit.as_str()) {
            g.y { @for (value, y) in levels(&scale) {
                line.grid x1=(LEFT) x2=(WIDTH - RIGHT) y1=(y) y2=(y) {}
                text x=(LEFT - 6.0) y=(y + 4.0) text-anchor="end" { (quantity(value, &track.unit)) }
            } }
            g.x { @for (text, x) in dates(&scale) {
                text x=(x) y=(height - 6.0) text-anchor="middle" { (text) }
            } }
            svg.window x=(LEFT) y=(TOP) width=(INNER) height=(TALL) viewBox=(format!("0 0 {INNER} {TALL}"))
                preserveAspectRatio="none" {
                @for mark in marks {
                    @let x = px(scale.x(began(mark.session)));
                    a href=(mark.target) aria-label=(mark.label) {
                        line class=(mark.class) x1=(x) x2=(x) y1="0" y2=(TALL) { title { (mark.label) } }
                    }
                }
                path.bars d=(bars) {}
                path.dots.few[count < FEW] d=(dots) {}
                path.held.few[count < FEW] d=(held) {}
                path.outside d=(outside) {}
                path.level d=(staircase(timeline, track, moves, &scale)) {}
                @for (at, moved) in moves.iter().enumerate() {
                    @let (old, new) = (scale.x(began(moved.before)), scale.x(began(moved.latest)));
                    @let said = described(timeline, moved, &track.unit);
                    a.change.worse[moved.is_worse()].better[!moved.is_worse()]
                        href=(format!("#{name}-change-{at}")) aria-label=(said) data-session=(moved.at) {
                        rect x=(px(old)) width=(px((new - old).max(1.0))) y="0" height=(TALL) { title { (said) } }
                        path d=(format!("M{} {}h0", px(scale.x(began(moved.at))), px(scale.y(moved.to)))) {}
                    }
                }
            }
        }
    }
}

/// Returns the points that belong to the baseline, or all points if none does.
fn usual(points: &[Point]) -> impl Iterator<Item = &Point> {
    let none = points.iter().all(|point| point.held);
    points.iter().filter(move |point| none || !point.held)
}

/// Returns the points that the chart must show: those of the baseline, those excluded since the last of them,
/// and others nearby. A disturbed session that is ten times as slow must not compress the rest of the chart.
fn shown(points: &[Point]) -> impl Iterator<Item = &Point> {
    const FAR: f64 = 2.0;
    let newest = points.iter().rposition(|point| !point.held).unwrap_or(0);
    let (low, high) = usual(points)
        .fold((f64::INFINITY, 0.0_f64), |(low, high), point| (low.min(point.value), high.max(point.value)));
    let near = move |value: f64| value <= high * FAR && value * FAR >= low;
    points
        .iter()
        .enumerate()
        .filter(move |(at, point)| *at >= newest || near(point.value))
        .map(|(_, point)| point)
}

/// Describes a change in words.
pub fn described(timeline: &Timeline, moved: &Move, unit: &Unit) -> String {
    let date = day(timeline.sessions[moved.at].began);
    let word = if moved.is_worse() { "worse" } else { "better" };
    let (from, to) = (quantity(moved.from, unit), quantity(moved.to, unit));
    format!("{date}: {word}, {from} → {to} ({})", change(moved.to / moved.from))
}

/// Returns the chart of one of the machine's quantities over the sessions.
pub fn strip(timeline: &Timeline, name: &str) -> Markup {
    let known: Vec<(Timestamp, f64)> = timeline
        .sessions
        .iter()
        .filter_map(|session| Some((session.began, *session.state.get(name)?)))
        .collect();
    let scale = PlotScale::new(timeline, known.iter().map(|(_, value)| *value), SMALL);
    let mut line = String::new();
    for (began, value) in &known {
        let _ = write!(line, "M{:.1} {:.1}h0", scale.x(*began), scale.y(*value));
    }
    let height = SMALL + TOP;
    let newest = known.last().map(|(_, value)| number(*value)).unwrap_or_default();
    html! {
        svg.chart.strip viewBox=(format!("0 0 {WIDTH} {height}")) role="img"
            aria-label=(format!("{name} over {} sessions, newest {newest}", known.len())) {
            @for (value, y) in [(scale.high, TOP + 8.0), (scale.low, TOP + SMALL)] {
                text x=(LEFT - 6.0) y=(y) text-anchor="end" { (number(value)) }
            }
            svg.window x=(LEFT) y=(TOP) width=(INNER) height=(SMALL) viewBox=(format!("0 0 {INNER} {SMALL}"))
                preserveAspectRatio="none" { path.dots d=(line) {} }
        }
    }
}

/// Formats a number without a unit.
pub fn number(value: f64) -> String {
    if value.abs() >= 100.0 || value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

/// Draws the levels, one step after the other.
fn staircase(timeline: &Timeline, track: &Track, moves: &[Move], scale: &PlotScale) -> String {
    let Some((first, last)) = track.points.first().zip(track.points.last()) else { return String::new() };
    let mut path = String::new();
    let mut from = first.session;
    let mut level = moves.first().map(|moved| moved.from);
    let ends = moves.iter().map(|moved| (moved.at, Some(moved.to))).chain([(last.session, None)]);
    for (to, next) in ends {
        if let Some(level) = level {
            let (x0, x1) = (scale.x(timeline.sessions[from].began), scale.x(timeline.sessions[to].began));
            let _ = write!(path, "M{x0:.1} {:.1}H{x1:.1}", scale.y(level));
        }
        (from, level) = (to, next);
    }
    path
}

/// Returns round values with their heights.
fn levels(scale: &PlotScale) -> Vec<(f64, f64)> {
    let step = round_step((scale.high - scale.low) / 4.0);
    let first = (scale.low / step).ceil();
    (0..8)
        .map(|at| (first + f64::from(at)) * step)
        .take_while(|value| *value <= scale.high)
        .map(|value| (value, (TOP + scale.y(value)).round()))
        .collect()
}

/// Returns dates along the axis, each once.
fn dates(scale: &PlotScale) -> Vec<(String, f64)> {
    const COUNT: u32 = 6;
    let mut dates: Vec<(String, f64)> = (0..COUNT)
        .filter_map(|at| {
            let share = (f64::from(at) + 0.5) / f64::from(COUNT);
            let began = Timestamp::from_second((scale.from + share * scale.span) as i64).ok()?;
            Some((day(began), (LEFT + scale.x(began)).round()))
        })
        .collect();
    dates.dedup_by(|next, known| next.0 == known.0);
    dates
}

/// Formats a day in UTC: `2026-11-20`.
pub fn day(at: Timestamp) -> String {
    at.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d").to_string()
}

fn px(value: f64) -> String {
    format!("{value:.1}")
}

/// Draws the newest values in the size of a word.
pub fn spark(track: &Track, newest: usize) -> Markup {
    const POINTS: usize = 60;
    let points: Vec<&Point> = shown(&track.points).collect();
    let points = &points[points.len().saturating_sub(newest)..];
    let chunk = points.len().div_ceil(POINTS).max(1);
    let values: Vec<f64> = points
        .chunks(chunk)
        .filter_map(|few| {
            benchgate_stats::describe::median(&few.iter().map(|point| point.value).collect::<Vec<_>>())
        })
        .collect();
    let (low, high) = values.iter().fold((f64::INFINITY, 0.0_f64), |(l, h), v| (l.min(*v), h.max(*v)));
    // Noise looks flat: the height is at least five percent of the value.
    let span = (high - low).max(high.abs() * 0.05).max(f64::MIN_POSITIVE);
    let bottom = f64::midpoint(low, high) - span / 2.0;
    let mut path = String::new();
    for (at, value) in values.iter().enumerate() {
        let x = 120.0 * at as f64 / (values.len().max(2) - 1) as f64;
        let _ = write!(
            path,
            "{}{x:.0} {:.1}",
            if at == 0 { 'M' } else { 'L' },
            21.0 - (value - bottom) / span * 18.0
        );
    }
    html! { svg.spark viewBox="0 0 120 24" aria-hidden="true" { path d=(path) {} } }
}
