//! Memory over the run: each process as a curve at its position in time.
//!
//! A process that recorded its memory for each stage is drawn in steps. For other processes only the peak is
//! known, which is drawn as a plateau over their duration. Colors distinguish backends or, if there is only
//! one, a few models; models whose processes are consecutive are also named below the axis.

use std::collections::{BTreeMap, BTreeSet};

use crate::report::DrawnRun;

use super::super::backends::IREE;
use super::super::human::quantity;
use super::Theme;
use super::svg::{Palette, Svg, TextAnchor, WIDTH, fitted, round_step, width_of};
use benchgate_core::model::Unit;
use benchgate_core::record::RunFile;

const HEIGHT: f64 = 380.0;
const MARGIN: f64 = 20.0;
const LEFT: f64 = 84.0;
const TOP: f64 = 96.0;
const BOTTOM: f64 = 46.0;
/// Maximum number of processes that are drawn individually; more are drawn as an outline.
const MOST_HILLS: usize = 400;
/// Number of processes above which lines are thin.
const MANY: usize = 40;

/// The curves of all runs.
pub(super) struct MemoryChart {
    hills: Vec<Hill>,
    spans: Vec<Span>,
    /// Seconds from the start of the first process to the end of the last.
    end: f64,
    /// The highest value.
    most: f64,
}

impl MemoryChart {
    /// Returns `None` if there is nothing to draw.
    pub(super) fn new(runs: &[DrawnRun]) -> Option<Self> {
        const COLORS: usize = Palette::for_theme(Theme::Light).lines.len();
        let mut hills: Vec<Hill> = Vec::new();
        let benchmarks = runs.iter().flat_map(|run| &run.file.sides).flat_map(|side| &side.benchmarks);
        let models: BTreeSet<&str> = benchmarks.map(|benchmark| model_of(&benchmark.name)).collect();
        let has_backends = runs.iter().any(|run| !run.file.backends.is_empty());
        let by_model = !has_backends && models.len() <= COLORS;
        // Runs from other times are drawn one after another, without the time between them.
        let mut end = 0.0;
        for run in runs {
            let of_run = hills_of(&run.file, end, by_model);
            let points = of_run.iter().flat_map(|hill| hill.host.iter().chain(&hill.device));
            end = points.map(|(at, _)| *at).fold(end, f64::max);
            hills.extend(of_run);
        }
        let spans = spans(&hills);
        if hills.len() > MOST_HILLS {
            hills = envelopes(&hills, end);
        }
        let points = hills.iter().flat_map(|hill| hill.host.iter().chain(&hill.device));
        let most = points.map(|(_, y)| *y).fold(0.0, f64::max);
        let is_drawn = most > 0.0 && most.is_finite() && end.is_finite() && round_seconds(end / 6.0) > 0.0;
        is_drawn.then_some(Self { hills, spans, end, most })
    }
}

pub(super) fn draw(chart: &MemoryChart, theme: Theme) -> String {
    let MemoryChart { hills, spans, end: offset, most } = chart;
    let palette = Palette::for_theme(theme);
    let step_seconds = round_seconds(offset / 6.0);
    let mut svg = Svg::new(HEIGHT, theme);
    let title = "Memory over the run";
    let subtitle = "processes one after another: memory after each stage if stages were measured, otherwise \
        the peak";
    svg.title(MARGIN, title, subtitle);
    let step = round_bytes(most / 4.0);
    let top = (most / step).ceil() * step;
    let floor = HEIGHT - BOTTOM;
    let x = |seconds: f64| LEFT + seconds / offset * (WIDTH - LEFT - MARGIN);
    let y = |bytes: f64| floor - bytes / top * (floor - TOP);
    let mut level = 0.0;
    while level <= top * 1.001 {
        svg.line((LEFT, y(level)), (WIDTH - MARGIN, y(level)), palette.grid, 1.0);
        let text = tick(level, &Unit::Bytes);
        svg.text((LEFT - 8.0, y(level) + 4.0), 12.0, TextAnchor::End, palette.muted, &text);
        level += step;
    }
    let step = step_seconds;
    let mut second = 0.0;
    while second <= *offset {
        let text = match step {
            _ if second == 0.0 => "0".to_owned(),
            3600.0.. => format!("{} h", second / 3600.0),
            60.0.. => format!("{} min", second / 60.0),
            _ => tick(second * 1e9, &Unit::Nanoseconds),
        };
        svg.line((x(second), floor), (x(second), floor + 4.0), palette.muted, 1.0);
        svg.text((x(second), floor + 20.0), 12.0, TextAnchor::Middle, palette.muted, &text);
        second += step;
    }
    svg.line((LEFT, floor), (WIDTH - MARGIN, floor), palette.muted, 1.0);
    for Span { model, from, to } in spans {
        let room = x(*to) - x(*from);
        let text = fitted(model, 11.0, room);
        // A label of only a few letters is useless.
        if room >= width_of("mmm…", 11.0) {
            svg.text(
                ((x(*from) + x(*to)) / 2.0, floor + 38.0),
                11.0,
                TextAnchor::Middle,
                palette.muted,
                &text,
            );
        }
    }
    // Among a hundred others, a process is a few pixels wide, and a thick line would cover it.
    let stroke = if hills.len() > MANY { 1.0 } else { 2.0 };
    let mut colors: BTreeMap<&str, &str> = BTreeMap::new();
    let mut legend = Vec::new();
    for hill in hills.iter().filter(|hill| !hill.host.is_empty()) {
        if !colors.contains_key(hill.who.as_str()) {
            let color = palette.lines[colors.len() % palette.lines.len()];
            colors.insert(&hill.who, color);
            legend.push((hill.who.as_str(), color));
        }
        let color = colors.get(hill.who.as_str()).copied().unwrap_or(palette.other);
        let points: Vec<(f64, f64)> = hill.host.iter().map(|(at, bytes)| (x(*at), y(*bytes))).collect();
        svg.area(&points, floor, color, stroke);
    }
    if hills.iter().any(|hill| !hill.device.is_empty()) {
        for hill in hills.iter().filter(|hill| !hill.device.is_empty()) {
            let points: Vec<(f64, f64)> = hill.device.iter().map(|(at, bytes)| (x(*at), y(*bytes))).collect();
            svg.area(&points, floor, palette.ink, stroke);
        }
        legend.push(("device memory", palette.ink));
    }
    // The legend starts at the margin and not at the axis, because the names of all backends need
    // the whole width.
    let mut at = MARGIN;
    for (who, color) in legend {
        let text = fitted(who, 12.0, 160.0);
        svg.rect(at, 66.0, 11.0, 11.0, color);
        svg.text((at + 16.0, 76.0), 12.0, TextAnchor::Start, palette.ink, &text);
        at += 16.0 + width_of(&text, 12.0) + 18.0;
    }
    svg.finish(&format!("{title}: {subtitle}"))
}

/// Formats a round number without the trailing zeros of a measured one: `256 MiB`, not `256.0 MiB`.
pub(super) fn tick(value: f64, unit: &Unit) -> String {
    let text = quantity(value, unit);
    match text.split_once(' ') {
        _ if value == 0.0 => "0".to_owned(),
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

/// Returns a power of two of bytes near `least`, so that labels are whole numbers.
fn round_bytes(least: f64) -> f64 {
    least.max(1.0).log2().ceil().exp2()
}

/// Returns the step of a time axis, at least `least`.
fn round_seconds(least: f64) -> f64 {
    let clock = [20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_200.0, 1_800.0, 3_600.0];
    match least {
        ..=10.0 => round_step(least),
        3_600.0.. => 3_600.0 * round_step(least / 3_600.0),
        _ => clock.into_iter().find(|step| *step >= least).unwrap_or(least),
    }
}

/// Longest gap between processes, in seconds, that is drawn in full.
const LONGEST_GAP: f64 = 10.0;
/// Number of columns of an outline: about one for every two pixels.
const COLUMNS: usize = 400;

/// One process over time: seconds since the first process began, and bytes.
pub(super) struct Hill {
    pub(super) who: String,
    pub(super) model: String,
    pub(super) host: Vec<(f64, f64)>,
    pub(super) device: Vec<(f64, f64)>,
}

/// Returns the first part of `model/target/function`.
fn model_of(benchmark: &str) -> &str {
    benchmark.split('/').next().unwrap_or(benchmark)
}

/// Consecutive processes of one model.
pub(super) struct Span {
    pub(super) model: String,
    pub(super) from: f64,
    pub(super) to: f64,
}

/// Returns the time ranges of each model's processes; the curves must be in the order of time.
pub(super) fn spans(hills: &[Hill]) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for hill in hills {
        let points = || hill.host.iter().chain(&hill.device).map(|(at, _)| *at);
        let (from, to) = (points().fold(f64::INFINITY, f64::min), points().fold(0.0, f64::max));
        match spans.last_mut() {
            Some(last) if last.model == hill.model => last.to = last.to.max(to),
            _ => spans.push(Span { model: hill.model.clone(), from, to }),
        }
    }
    spans
}

/// Returns, for each kind, the highest curve in every column of the chart. If there are more
/// processes than columns, single processes can't be seen.
fn envelopes(hills: &[Hill], end: f64) -> Vec<Hill> {
    let mut kinds: Vec<(&str, Vec<f64>, Vec<f64>)> = Vec::new();
    let width = end / COLUMNS as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "seconds since the first process, over those of a column"
    )]
    let column = |second: f64| ((second / width) as usize).min(COLUMNS - 1);
    let raise = |levels: &mut Vec<f64>, points: &[(f64, f64)]| {
        for pair in points.windows(2) {
            for level in &mut levels[column(pair[0].0)..=column(pair[1].0)] {
                *level = level.max(pair[0].1).max(pair[1].1);
            }
        }
    };
    for hill in hills {
        let at = kinds.iter().position(|(who, ..)| *who == hill.who).unwrap_or_else(|| {
            kinds.push((&hill.who, vec![0.0; COLUMNS], vec![0.0; COLUMNS]));
            kinds.len() - 1
        });
        raise(&mut kinds[at].1, &hill.host);
        raise(&mut kinds[at].2, &hill.device);
    }
    let outline = |levels: Vec<f64>| -> Vec<(f64, f64)> {
        if levels.iter().all(|level| *level <= 0.0) {
            return Vec::new();
        }
        let steps = levels.into_iter().enumerate();
        steps.flat_map(|(at, level)| [at, at + 1].map(|edge| (edge as f64 * width, level))).collect()
    };
    let hill = |(who, host, device): (&str, Vec<f64>, Vec<f64>)| Hill {
        who: who.to_owned(),
        model: String::new(),
        host: outline(host),
        device: outline(device),
    };
    kinds.into_iter().map(hill).collect()
}

fn hills_of(run: &RunFile, offset: f64, by_model: bool) -> Vec<Hill> {
    let seconds = |text: &str| {
        text.parse::<jiff::Timestamp>()
            .ok()
            .map(|at| at.duration_since(jiff::Timestamp::UNIX_EPOCH).as_secs_f64())
    };
    let mut found: Vec<ProcessMemory> = Vec::new();
    let float = |bytes: u64| bytes as f64;
    for side in &run.sides {
        let processes = side
            .benchmarks
            .iter()
            .flat_map(|benchmark| benchmark.processes.iter().map(move |p| (benchmark, p)));
        for (benchmark, process) in processes {
            let Some(began) = seconds(&process.started) else { continue };
            let model = model_of(&benchmark.name);
            let gpus = process.telemetry.iter().flat_map(|telemetry| &telemetry.gpus);
            found.push(ProcessMemory {
                began,
                lasted: process.seconds.0,
                who: if by_model { model } else { IREE },
                model,
                host_peak: process.peak_memory_bytes.map(float),
                device_peak: gpus.filter_map(|gpu| gpu.memory_used_bytes).max().map(float),
                noted: Vec::new(),
            });
        }
    }
    for record in &run.backends {
        for process in &record.processes {
            let Some(began) = seconds(&process.started) else { continue };
            let noted = process
                .memory
                .iter()
                .map(|point| (point.seconds.0, float(point.host_bytes), point.device_bytes.map(float)));
            found.push(ProcessMemory {
                began,
                lasted: process.seconds.0,
                who: &record.backend,
                model: &record.model,
                host_peak: process.peak_memory_bytes.map(float),
                device_peak: None,
                noted: noted.collect(),
            });
        }
    }
    found.sort_by(|a, b| a.began.total_cmp(&b.began));
    let Some(first) = found.first().map(|found| found.began) else { return Vec::new() };
    // A longer gap means that the run was interrupted and resumed later, or waited for the host.
    let (mut skipped, mut ended) = (0.0, first);
    let hills = found.into_iter().map(|found| {
        if found.began - ended > LONGEST_GAP {
            skipped += found.began - ended - LONGEST_GAP;
        }
        ended = f64::max(ended, found.began + found.lasted);
        found.hill(offset + found.began - first - skipped)
    });
    hills.filter(|hill| !hill.host.is_empty() || !hill.device.is_empty()).collect()
}

/// Memory of a process over a run; times are in seconds, amounts in bytes.
struct ProcessMemory<'a> {
    began: f64,
    lasted: f64,
    who: &'a str,
    model: &'a str,
    host_peak: Option<f64>,
    device_peak: Option<f64>,
    /// The process's own records: the time, host memory and device memory.
    noted: Vec<(f64, f64, Option<f64>)>,
}

impl ProcessMemory<'_> {
    /// Returns the curve of the process, which begins at `at` on the time axis.
    fn hill(&self, at: f64) -> Hill {
        let end = at + self.lasted;
        let plateau = |peak: Option<f64>| {
            peak.map_or_else(Vec::new, |peak| vec![(at, 0.0), (at, peak), (end, peak), (end, 0.0)])
        };
        let (mut host, mut device) = (plateau(self.host_peak), plateau(self.device_peak));
        if !self.noted.is_empty() {
            let noted = || self.noted.iter().map(|(seconds, host, device)| (at + seconds, *host, *device));
            host = stepped(at, noted().map(|(when, bytes, _)| (when, bytes)), end);
            device = stepped(at, noted().filter_map(|(when, _, bytes)| Some((when, bytes?))), end);
        }
        Hill { who: self.who.to_owned(), model: self.model.to_owned(), host, device }
    }
}

/// Returns a stepped curve, which is constant from one sample to the next. The values in between
/// are not known, and a slope would suggest otherwise.
fn stepped(began: f64, samples: impl Iterator<Item = (f64, f64)>, end: f64) -> Vec<(f64, f64)> {
    let mut points = vec![(began, 0.0)];
    let mut level = 0.0;
    for (when, bytes) in samples {
        let when = when.min(end);
        points.extend([(when, level), (when, bytes)]);
        level = bytes;
    }
    if points.len() == 1 {
        return Vec::new();
    }
    points.extend([(end, level), (end, 0.0)]);
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use benchgate_core::record::{GpuTelemetryRecord, Number, RunFile, TelemetryRecord};

    fn drawn(run: &RunFile) -> Option<String> {
        let chart = MemoryChart::new(&[DrawnRun::new("run", run.clone(), None)])?;
        Some(draw(&chart, Theme::Light))
    }

    #[test]
    fn a_gpus_memory_is_drawn_of_irees_processes_too() {
        let text = include_str!("../../../../../tests/fixtures/record/backends-v1.json");
        let mut run = RunFile::from_slice(text.as_bytes()).unwrap();
        assert!(!drawn(&run).unwrap().contains("device memory"));
        let gpu = GpuTelemetryRecord {
            id: "GPU-1".to_owned(),
            readings: 2,
            memory_used_bytes: Some(3 << 30),
            ..GpuTelemetryRecord::default()
        };
        let process = &mut run.sides[0].benchmarks[0].processes[0];
        process.telemetry = Some(TelemetryRecord { cpu: None, gpus: vec![gpu] });
        let svg = drawn(&run).unwrap();
        assert!(svg.contains("device memory") && svg.contains("3 GiB"), "{svg}");
    }

    #[test]
    fn times_without_a_scale_are_not_drawn_and_end() {
        let text = include_str!("../../../../../tests/fixtures/record/backends-v1.json");
        for seconds in [0.0, 5e-324, f64::INFINITY] {
            let mut run = RunFile::from_slice(text.as_bytes()).unwrap();
            run.backends.clear();
            run.sides.truncate(1);
            run.sides[0].benchmarks.truncate(1);
            let processes = &mut run.sides[0].benchmarks[0].processes;
            processes.truncate(1);
            (processes[0].seconds, processes[0].peak_memory_bytes) = (Number(seconds), Some(1 << 30));
            assert_eq!(drawn(&run), None, "{seconds}");
        }
    }

    #[test]
    fn a_sample_holds_until_the_next() {
        let text = include_str!("../../../../../tests/fixtures/record/backends-v1.json");
        let run = RunFile::from_slice(text.as_bytes()).unwrap();
        let svg = drawn(&run).unwrap();
        let lines =
            svg.lines().filter_map(|line| line.strip_prefix("<polyline points=\"")?.split('"').next());
        let mut longest = 0;
        for line in lines {
            let points: Vec<(&str, &str)> =
                line.split(' ').filter_map(|point| point.split_once(',')).collect();
            longest = longest.max(points.len());
            for pair in points.windows(2) {
                let ((x, y), (next_x, next_y)) = (pair[0], pair[1]);
                assert!(x == next_x || y == next_y, "a slope from {x},{y} to {next_x},{next_y}");
            }
        }
        assert!(longest > 6, "no process with several samples is drawn: {longest}");
    }

    #[test]
    fn the_models_are_named() {
        let text = include_str!("../../../../../tests/fixtures/record/backends-v1.json");
        let mut run = RunFile::from_slice(text.as_bytes()).unwrap();
        let model = run.backends[0].model.clone();
        let label = format!(">{model}</text>");
        assert!(drawn(&run).unwrap().contains(&label), "next to other backends");
        run.backends.clear();
        let alone = drawn(&run).unwrap();
        assert!(alone.contains(&label) && !alone.contains(">iree</text>"), "{alone}");
    }

    #[test]
    fn time_is_divided_as_clocks_are() {
        let steps = [0.7, 8.0, 11.0, 59.0, 250.0, 3_000.0, 9_000.0].map(round_seconds);
        assert_eq!(steps, [1.0, 10.0, 20.0, 60.0, 300.0, 3_600.0, 18_000.0]);
    }

    #[test]
    fn what_stands_on_an_axis_has_no_zeros_at_its_end() {
        let bytes = |value| tick(value, &Unit::Bytes);
        assert_eq!([bytes(0.0), bytes(268_435_456.0), bytes(1_610_612_736.0)], ["0", "256 MiB", "1.5 GiB"]);
        assert_eq!(tick(2e10, &Unit::Nanoseconds), "20 s");
    }
}
