//! The memory of each process over time, as far as the run recorded it.

use benchgate_core::record::RunFile;

use super::super::backends::IREE;

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
pub(super) fn model_of(benchmark: &str) -> &str {
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
pub(super) fn envelopes(hills: &[Hill], end: f64) -> Vec<Hill> {
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

pub(super) fn hills_of(run: &RunFile, offset: f64, by_model: bool) -> Vec<Hill> {
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
