//! Joins several files of one side (`base-*.json`): each adds a process of the same benchmarks.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use benchgate_core::model::{
    Benchmark, BenchmarkName, LABEL, LABEL_WORDS, LabelWords, Lint, LintCode, Metric, MetricSeries, Outcome,
    Process, Quality, Run, Series, Summary, Verification, VerifyCode, excerpt,
};
use benchgate_stats::describe;

use super::varying::Varying;
use super::{IngestError, build};

/// Joins runs one at a time, so that only samples are kept in memory, and never the bytes of a second file.
#[derive(Debug, Default)]
pub struct Joiner {
    joined: Option<Run>,
    index: HashMap<BenchmarkName, usize>,
    /// The files that contain each benchmark, by its position in the run.
    seen_in: Vec<Seen>,
    /// The names in the first file that contains each benchmark, by its position in the run.
    sets: Vec<NameSet>,
    /// True if two sets of names share a benchmark: a file may have lost the others.
    overlap: bool,
    files: u64,
    labels: Vec<String>,
    /// The program of each benchmark in the first file that has it, by its position in the run.
    programs: Vec<String>,
    /// The load averages of each file.
    loads: Vec<Vec<f64>>,
    /// Numbers that differ among the files, by the position of their benchmark in the run.
    varying: HashMap<usize, Varying>,
}

/// The files that contain a benchmark, which are numbered from 0.
#[derive(Debug, Clone, Copy)]
struct Seen {
    files: u64,
    last: u64,
    /// The first file that doesn't contain it.
    lacking: Option<u64>,
}

impl Seen {
    fn first(file: u64) -> Self {
        Self { files: 1, last: file, lacking: (file > 0).then_some(0) }
    }

    fn again(&mut self, file: u64) {
        self.lacking = self.lacking.or((file > self.last + 1).then_some(self.last + 1));
        (self.files, self.last) = (self.files + 1, file);
    }
}

/// Hash of all names in a file.
type NameSet = u64;

fn name_set(run: &Run) -> NameSet {
    let mut names: Vec<&str> = run.benchmarks.iter().map(|benchmark| benchmark.name.as_str()).collect();
    names.sort_unstable();
    let mut hasher = DefaultHasher::new();
    names.hash(&mut hasher);
    hasher.finish()
}

impl Joiner {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one file as another process (or several, if the file has them).
    ///
    /// # Errors
    /// There are more benchmarks than a result may have.
    pub fn push(&mut self, run: Run) -> Result<(), IngestError> {
        let file = self.files;
        self.files += 1;
        self.loads.push(run.context.load_avg.clone());
        let mut run = run;
        let session = u32::try_from(file).unwrap_or(u32::MAX);
        for series in run.benchmarks.iter_mut().flat_map(|benchmark| &mut benchmark.metrics) {
            of_session(&mut series.series, session);
        }
        let label = run.origin.label.clone();
        self.labels.push(label.clone());
        let set = name_set(&run);
        let Some(joined) = &mut self.joined else {
            let names = run.benchmarks.iter().enumerate();
            self.index = names.map(|(at, benchmark)| (benchmark.name.clone(), at)).collect();
            self.seen_in = vec![Seen::first(file); run.benchmarks.len()];
            self.sets = vec![set; run.benchmarks.len()];
            self.programs = run.benchmarks.iter().map(|benchmark| run.program(&benchmark.name)).collect();
            self.joined = Some(run);
            return Ok(());
        };
        merge_run(joined, &run);
        for mut benchmark in std::mem::take(&mut run.benchmarks) {
            let program = run.program(&benchmark.name);
            match self.index.get(&benchmark.name) {
                Some(&at) => {
                    self.seen_in[at].again(file);
                    self.overlap |= self.sets[at] != set;
                    let kept = &mut joined.benchmarks[at];
                    self.varying.entry(at).or_default().take(kept, &mut benchmark);
                    merge_benchmark(kept, benchmark, &label);
                    if let Some(lint) = other_program(&self.programs[at], &program) {
                        add_lint(&mut kept.lints, lint);
                    }
                }
                None => {
                    build::check(joined.benchmarks.len() + 1, &label)?;
                    self.index.insert(benchmark.name.clone(), joined.benchmarks.len());
                    self.seen_in.push(Seen::first(file));
                    self.sets.push(set);
                    self.programs.push(program);
                    joined.benchmarks.push(benchmark);
                }
            }
        }
        Ok(())
    }

    /// Returns the joined run; `None` if no file was added.
    pub fn finish(self) -> Option<Run> {
        let mut run = self.joined?;
        run.context.load_avg = typical_loads(&self.loads);
        run.origin.loads = self.loads.iter().filter_map(|load| load.first().copied()).collect();
        for (at, varying) in self.varying {
            let benchmark = &mut run.benchmarks[at];
            for (label, values) in varying.finish(benchmark) {
                benchmark.lints.push(Lint::new(LintCode::DuplicateName, format!("{label}: {values}")));
            }
        }
        // Several programs whose files have no name in common, and which ran equally often, lack nothing.
        let programs = self.sets.iter().collect::<HashSet<_>>().len() as u64;
        let most = self.seen_in.iter().map(|seen| seen.files).max().unwrap_or(0);
        let is_whole = !self.overlap && self.files == most * programs;
        for (benchmark, seen_in) in run.benchmarks.iter_mut().zip(self.seen_in) {
            settle(benchmark);
            refuse_gaps(benchmark, seen_in.files);
            // A benchmark that only one file contains belongs to a suite that was split into files.
            if seen_in.files > 1 && seen_in.files < self.files && !is_whole {
                // Files of another program lack it too, and nothing is wrong with them.
                let lacking = seen_in.lacking.unwrap_or(seen_in.last + 1);
                let lacking = self.labels.get(lacking as usize).filter(|_| self.overlap);
                let lacking = lacking.map(|label| format!(", not in {label}")).unwrap_or_default();
                let detail = format!("in {} of {} files{lacking}", seen_in.files, self.files);
                benchmark.lints.push(Lint::new(LintCode::IncompleteJoin, detail));
            }
        }
        Some(run)
    }
}

/// Handles metrics that some of the files with this benchmark lack: a slow or failed session may be the one
/// without a value. The main metric can't be judged then, and others are left out, except those that state how right
/// the result is: a file that lacks one must not hide the others. A metric that only one file contains belongs to a
/// result that was split into files.
fn refuse_gaps(benchmark: &mut Benchmark, files: u64) {
    let is_latency = |series: &MetricSeries| series.metric.name == Metric::LATENCY.name;
    let main = benchmark.metrics.iter().position(is_latency).unwrap_or(0);
    let mut lints = Vec::new();
    let mut at = 0;
    benchmark.metrics.retain(|series| {
        let is_main = at == main;
        at += 1;
        let known = series.series.sessions().map(|known| known as u64);
        let Some(known) = known.filter(|known| (2..files).contains(known)) else { return true };
        let code = if is_main { LintCode::IncompleteJoin } else { LintCode::DroppedMetric };
        lints.push(Lint::new(code, format!("{} in {known} of {files} files", series.metric.name)));
        is_main || Quality::of_name(&series.metric.name).is_some()
    });
    for lint in lints {
        add_lint(&mut benchmark.lints, lint);
    }
}

/// The benchmarks of a file in which names repeat: each repetition is another process.
#[derive(Debug, Default)]
pub(super) struct ByName {
    benchmarks: Vec<Benchmark>,
    index: HashMap<BenchmarkName, usize>,
}

impl ByName {
    /// Adds a benchmark, for tools that append a row to their file at each run.
    pub(super) fn push(&mut self, benchmark: Benchmark) {
        match self.index.get(&benchmark.name) {
            Some(&at) => merge_benchmark(&mut self.benchmarks[at], benchmark, "a later row"),
            None if build::has_room(self.benchmarks.len()) => {
                self.index.insert(benchmark.name.clone(), self.benchmarks.len());
                self.benchmarks.push(benchmark);
            }
            None => {}
        }
    }

    /// Adds a benchmark, for tools that write each benchmark once: a repeated name belongs to another
    /// benchmark or another run.
    pub(super) fn push_once(&mut self, mut benchmark: Benchmark) {
        if self.index.contains_key(&benchmark.name) {
            benchmark
                .lints
                .push(Lint::new(LintCode::DuplicateName, "several results in one file have this name"));
        }
        self.push(benchmark);
    }

    pub(super) fn finish(mut self) -> Vec<Benchmark> {
        self.benchmarks.iter_mut().for_each(settle);
        self.benchmarks
    }
}

/// Joins the files of one side as its processes; `None` if there are no files.
///
/// # Errors
/// There are more benchmarks than a result may have.
pub fn join(runs: impl IntoIterator<Item = Run>) -> Result<Option<Run>, IngestError> {
    let mut joiner = Joiner::new();
    for run in runs {
        joiner.push(run)?;
    }
    Ok(joiner.finish())
}

/// Returns the load that three quarters of the files do not exceed (with up to three files, the largest): an
/// estimate from many sessions allows a quarter of them to be slow.
fn typical_loads(files: &[Vec<f64>]) -> Vec<f64> {
    let windows = files.iter().map(Vec::len).max().unwrap_or(0);
    let typical = |window: usize| {
        let loads: Vec<f64> = files.iter().filter_map(|file| file.get(window).copied()).collect();
        let sorted = describe::sorted(&loads);
        sorted.get((3 * sorted.len()).div_ceil(4).checked_sub(1)?).copied()
    };
    (0..windows).filter_map(typical).collect()
}

/// Returns the finding that two files with one benchmark state different programs.
fn other_program(one: &str, two: &str) -> Option<Lint> {
    const LONGEST: usize = 120;
    let detail =
        || format!("files of one side come from `{}` and `{}`", excerpt(one, LONGEST), excerpt(two, LONGEST));
    // Not every format states it.
    let differ = one != two && ![one, two].iter().any(|program| program.is_empty());
    differ.then(|| Lint::new(LintCode::SeveralPrograms, detail()))
}

/// Sets the facts that depend on the number of processes.
pub(super) fn settle(benchmark: &mut Benchmark) {
    if benchmark.metrics.first().is_some_and(|metric| metric.series.processes() > 1) {
        // One repetition in each of several processes is the best possible design.
        benchmark.lints.retain(|lint| lint.code != LintCode::SingleRepetition);
    }
}

/// Returns whether a host name is the one that Docker gives a container: twelve hexadecimal digits.
fn is_container_name(name: &str) -> bool {
    name.len() == 12 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Keeps the worse of two contexts: a finding about any process is a finding about the run.
pub(super) fn merge_run(joined: &mut Run, next: &Run) {
    let (kept, other) = (&mut joined.context, &next.context);
    // Each container has a random name.
    let names = [&kept.host_name, &other.host_name].map(|name| name.as_deref().unwrap_or_default());
    let is_container = names.into_iter().all(is_container_name)
            // The addresses of network cards of one vendor begin with the same digits.
            && names[0][..6] != names[1][..6]
            && kept.num_cpus.is_some()
            && kept.num_cpus == other.num_cpus;
    if let (Some(one), Some(two)) = (&kept.host_name, &other.host_name)
        && one != two
        && !is_container
    {
        let detail = format!("files of one side come from `{one}` and `{two}`");
        add_lint(&mut joined.lints, Lint::new(LintCode::TestbedMismatch, detail));
    }
    if let (Some(one), Some(two)) = (&joined.testbed, &next.testbed)
        && one.id != two.id
    {
        let detail = format!("files of one side come from the testbeds `{}` and `{}`", one.id, two.id);
        add_lint(&mut joined.lints, Lint::new(LintCode::TestbedMismatch, detail));
    }
    for (place, load) in other.load_avg.iter().enumerate() {
        match kept.load_avg.get_mut(place) {
            Some(known) => *known = known.max(*load),
            None => kept.load_avg.push(*load),
        }
    }
    kept.cpu_scaling_enabled = kept.cpu_scaling_enabled.max(other.cpu_scaling_enabled);
    if let (Some(one), Some(two)) = (kept.num_cpus, other.num_cpus)
        && one != two
    {
        let detail = format!("files of one side come from machines of {one} and {two} processors");
        add_lint(&mut joined.lints, Lint::new(LintCode::TestbedMismatch, detail));
    }
    kept.num_cpus = match (kept.num_cpus, other.num_cpus) {
        (Some(one), Some(two)) => Some(one.min(two)),
        (one, two) => one.or(two),
    };
    if kept.library_build_type.is_none() || other.library_build_type.as_deref() == Some("debug") {
        kept.library_build_type.clone_from(&other.library_build_type);
    }
    for lint in &next.lints {
        add_lint(&mut joined.lints, lint.clone());
    }
}

fn add_lint(lints: &mut Vec<Lint>, lint: Lint) {
    if !lints.contains(&lint) {
        lints.push(lint);
    }
}

/// Joins the labels of two groups of processes.
fn merge_labels(kept: &mut Benchmark, next: &Benchmark) {
    let (Some(mut all), more) = (match (LabelWords::of(kept), LabelWords::of(next)) {
        (None, None) => (None, LabelWords::default()),
        (known, more) => {
            let none = |side: &Benchmark| {
                LabelWords::none(side.metrics.first().map_or(1, |series| series.series.processes()))
            };
            (Some(known.unwrap_or_else(|| none(kept))), more.unwrap_or_else(|| none(next)))
        }
    }) else {
        return;
    };
    all.join(more);
    kept.labels.insert(LABEL_WORDS.to_owned(), all.to_string());
}

pub(super) fn merge_benchmark(kept: &mut Benchmark, next: Benchmark, label: &str) {
    merge_labels(kept, &next);
    if let Some(axis) = kept.differing_axis(&next) {
        add_lint(&mut kept.lints, Lint::new(LintCode::DuplicateName, axis));
    }
    let environment = kept.differing_environment(&next);
    if !environment.is_empty() {
        add_lint(&mut kept.lints, Lint::new(LintCode::SeveralPrograms, environment.join(", ")));
    }
    // The outputs of every call, and the number of calls, are compared.
    kept.printed.extend(next.printed.iter().cloned());
    // A transcript that only verifies outputs has no numbers, so none are missing.
    let is_empty = [&*kept, &next].map(|each| each.metrics.is_empty() && each.verification.is_none());
    for lint in next.lints {
        add_lint(&mut kept.lints, lint);
    }
    let unverified = kept.verification.is_none() != next.verification.is_none();
    if severity(next.verification.as_ref()) > severity(kept.verification.as_ref()) {
        kept.verification = next.verification;
    }
    if unverified && severity(kept.verification.as_ref()) == PASSED {
        let why = "some of the joined processes were not verified".to_owned();
        kept.verification = Some(Verification::bare(VerifyCode::VerifierDidntRun, Some(why)));
    }
    match (&kept.outcome, next.outcome) {
        // If one of several processes fails, the benchmark has failed; the others don't make up for it.
        (Outcome::Failed { .. }, _) => {}
        (_, Outcome::Failed { stage, why }) => {
            kept.metrics.clear();
            kept.outcome = Outcome::Failed { stage, why: format!("{why} (in {label})") };
        }
        (Outcome::Ok, Outcome::Ok) => {
            if is_empty != [false; 2] && is_empty != [true; 2] {
                add_lint(
                    &mut kept.lints,
                    Lint::new(
                        LintCode::IncompleteJoin,
                        "one of the joined files has no value for this benchmark",
                    ),
                );
            }
            for series in next.metrics {
                merge_series(kept, series);
            }
        }
        (_, Outcome::Ok) => {
            kept.outcome = Outcome::Ok;
            kept.metrics = next.metrics;
            add_lint(&mut kept.lints, skipped_process());
        }
        (Outcome::Ok, Outcome::Skipped { .. } | Outcome::Unsupported { .. }) => {
            add_lint(&mut kept.lints, skipped_process());
        }
        (_, Outcome::Skipped { .. } | Outcome::Unsupported { .. }) => {}
    }
}

fn skipped_process() -> Lint {
    Lint::new(LintCode::SkippedRow, "measured in some files and skipped in others")
}

/// Severity of a verification that passed.
const PASSED: u8 = 1;

/// Returns the severity of a verification, so that one wrong process among right ones is not lost; 0 if there
/// is none.
fn severity(verification: Option<&Verification>) -> u8 {
    match verification.map(Verification::supported_code) {
        None => 0,
        Some(VerifyCode::Pass) => PASSED,
        Some(VerifyCode::VerifierSkipped) => 2,
        Some(VerifyCode::NondeterministicEagerRun) => 3,
        Some(VerifyCode::VerifierDidntRun) => 4,
        Some(VerifyCode::EagerFailed) => 5,
        Some(VerifyCode::ExceptionRaised) => 6,
        Some(VerifyCode::Fail) => 7,
    }
}

fn merge_series(kept: &mut Benchmark, next: MetricSeries) {
    let Some(known) = kept.metrics.iter_mut().find(|known| known.metric.name == next.metric.name) else {
        kept.metrics.push(next);
        return;
    };
    if known.metric.unit != next.metric.unit {
        let detail = format!("{}: {} and {}", known.metric.name, known.metric.unit, next.metric.unit);
        add_lint(&mut kept.lints, Lint::new(LintCode::UnitMismatch, detail));
        return;
    }
    match (&mut known.series, next.series) {
        (Series::Processes(all), Series::Processes(more)) => all.extend(more),
        (Series::Summaries(all), Series::Summaries(more)) => all.extend(more),
        (Series::Summaries(all), Series::Processes(more)) => all.extend(more.iter().map(summarise)),
        (Series::Processes(all), Series::Summaries(more)) => {
            let mut summaries: Vec<Summary> = all.iter().map(summarise).collect();
            summaries.extend(more);
            known.series = Series::Summaries(summaries);
        }
        (Series::Exact(one), Series::Exact(two)) if *one == two => {}
        _ => {
            let detail = format!("{}: the files have different values of an exact metric", known.metric.name);
            add_lint(&mut kept.lints, Lint::new(LintCode::UnitMismatch, detail));
        }
    }
}

/// Sets the session, which is the number of its file.
fn of_session(series: &mut Series, session: u32) {
    match series {
        Series::Processes(processes) => processes.iter_mut().for_each(|process| process.session = session),
        Series::Summaries(summaries) => summaries.iter_mut().for_each(|summary| summary.session = session),
        Series::Exact(_) => {}
    }
}

/// Returns the summary of a process, for a series in which other processes have only summaries.
fn summarise(process: &Process) -> Summary {
    let n = process.samples.len();
    let sorted = describe::sorted(&process.samples);
    let mean = sorted.iter().sum::<f64>() / n as f64;
    let squares: f64 = sorted.iter().map(|sample| (sample - mean).powi(2)).sum();
    Summary {
        n: Some(n as u64),
        mean: (n > 0).then_some(mean),
        median: describe::quantile_sorted(&sorted, 0.5),
        stddev: (n > 1).then(|| (squares / (n - 1) as f64).sqrt()),
        q1: describe::quantile_sorted(&sorted, 0.25),
        q3: describe::quantile_sorted(&sorted, 0.75),
        min: sorted.first().copied(),
        max: sorted.last().copied(),
        interval: None,
        session: process.session,
    }
}

/// Stands for different texts of one process, or of the processes of one session.
pub(super) const SEVERAL: &str = "several";

/// Returns the labels of a benchmark that several processes of one session printed: the words of Google Benchmark's label with
/// the number of processes, numbers that vary with their range, and other texts that vary as such.
pub fn labels_of_processes<'a>(
    all: impl IntoIterator<Item = &'a BTreeMap<String, String>>,
) -> BTreeMap<String, String> {
    let of_process = |labels: &BTreeMap<String, String>| {
        let mut process = Benchmark::new("process");
        process.labels.clone_from(labels);
        process
    };
    let mut processes = all.into_iter().map(of_process);
    let Some(mut first) = processes.next() else { return BTreeMap::new() };
    let mut words = LabelWords::of(&first);
    let (mut varying, mut count) = (Varying::default(), 1);
    let mut several: BTreeSet<String> = BTreeSet::new();
    for mut process in processes {
        words = match (words, LabelWords::of(&process)) {
            (None, None) => None,
            (known, more) => {
                let mut known = known.unwrap_or_else(|| LabelWords::none(count));
                known.join(more.unwrap_or_else(|| LabelWords::none(1)));
                Some(known)
            }
        };
        count += 1;
        varying.take(&first, &mut process);
        let differing =
            first.labels.iter().filter(|(label, value)| process.labels.get(*label) != Some(value));
        several.extend(differing.map(|(label, _)| label.clone()));
    }
    several.extend(varying.finish(&mut first).into_iter().map(|(label, _)| label));
    // The first text of Google Benchmark's label is an example for readers.
    several.remove(LABEL);
    for label in several {
        first.labels.insert(label, SEVERAL.to_owned());
    }
    if let Some(words) = words {
        first.labels.insert(LABEL_WORDS.to_owned(), words.to_string());
    }
    first.labels
}
