//! Measures the time per kernel with the runtime's profiler, after everything else is measured.
//!
//! Profiling slows processes down, so profiled processes are separate from measured ones, and their times are
//! not judged.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use benchgate_config::{Measure, Profiling};
use benchgate_core::model::{BenchmarkName, Event, Kernel, Metric, Profile, Run, SideName, Verdict, counted};
use benchgate_core::record::RunFile;
use benchgate_gate::{self, CompareOptions, Policy};
use benchgate_host::process::{Command, Exit};

use super::PipelineError;
use super::candidates::{BenchmarkCandidate, Measurable, TimedProgram};
use super::compile::failure;
use super::host::Host;
use super::stage::{StageError, StageFailure, Staged};

/// Time that a profiled process works, long enough that the first, cold iteration has little weight.
const WORK: Duration = Duration::from_millis(500);
const FEWEST: u32 = 5;
const MOST: u32 = 100;

/// The input of profiling.
pub(super) struct Profiler<'a, 'b> {
    pub(super) host: &'a Host<'b>,
    pub(super) settings: &'a Measure,
    pub(super) policy: &'a Policy,
    pub(super) candidates: &'a [BenchmarkCandidate<'a>],
    /// Folder for the profiles that `iree-profile` reads.
    pub(super) folder: PathBuf,
}

impl Profiler<'_, '_> {
    /// Profiles the requested benchmarks of a measured run, and adds the profiles to its record.
    pub(super) async fn run(&self, file: &mut RunFile, base: &Run, head: &Run) -> Result<(), PipelineError> {
        let wanted = self.wanted(base, head);
        if wanted.is_empty() {
            return Ok(());
        }
        let lacking = without_profiler(&wanted);
        let benchmarks = counted(wanted.len(), "benchmark");
        let not_of: String = lacking
            .iter()
            .map(|(problem, sides)| format!("; not available for {}: {problem}", sides.join(" and ")))
            .collect();
        let text = format!("measuring time per kernel of {benchmarks}, in separate processes{not_of}");
        self.host.progress.on(Event::Note(&text));
        let mut problems: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for candidate in wanted {
            let iterations = iterations(base, head, &candidate.name);
            for (side, result) in self.benchmark(candidate, iterations).await? {
                if let Some(problem) =
                    result.problem.as_ref().filter(|problem| !lacking.contains_key(*problem))
                {
                    problems.entry(problem.clone()).or_default().push(format!("{} {side}", candidate.name));
                }
                let sides = file.sides.iter_mut().filter(|record| record.name == side);
                let mut benchmarks = sides.flat_map(|record| &mut record.benchmarks);
                if let Some(record) = benchmarks.find(|record| record.name == candidate.name.as_str()) {
                    record.profile = Some(result);
                }
            }
        }
        for (problem, sides) in problems {
            const NAMED: usize = 2;
            let more = sides.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let of = sides.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ") + &more;
            self.host.progress.on(Event::Note(&format!("no time per kernel for {of}: {problem}")));
        }
        Ok(())
    }

    fn wanted(&self, base: &Run, head: &Run) -> Vec<&BenchmarkCandidate<'_>> {
        let measured = |candidate: &&BenchmarkCandidate<'_>| {
            let worked = |run: &Run| {
                let found = run.benchmarks.iter().find(|benchmark| benchmark.name == candidate.name);
                found.is_none_or(|benchmark| benchmark.outcome.is_ok())
            };
            let is_module = candidate.sides.values().all(|side| matches!(side, TimedProgram::Module(_)));
            is_module && !candidate.sides.is_empty() && worked(base) && worked(head)
        };
        let candidates = self.candidates.iter().filter(measured);
        match self.settings.profile {
            Profiling::Never => Vec::new(),
            Profiling::Always => candidates.collect(),
            Profiling::Changed => {
                let comparison = benchgate_gate::compare(base, head, self.policy, &CompareOptions::default());
                let moved = |candidate: &&BenchmarkCandidate<'_>| {
                    comparison.rows.iter().any(|row| {
                        let latency = row.metric.as_ref().is_some_and(|it| it.name == Metric::LATENCY.name);
                        let changed = matches!(row.verdict, Verdict::Regressed | Verdict::Improved);
                        latency && changed && row.benchmark == candidate.name
                    })
                };
                candidates
                    .filter(|candidate| candidate.sides.len() == 2 && !candidate.identical)
                    .filter(moved)
                    .collect()
            }
        }
    }

    /// Profiles one block in the order base, head, head, base; with one side only, that side twice. The
    /// shorter of each kernel's two times is kept.
    async fn benchmark(
        &self,
        candidate: &BenchmarkCandidate<'_>,
        iterations: u32,
    ) -> Result<Vec<(SideName, Profile)>, PipelineError> {
        let order = candidate.sides.iter().chain(candidate.sides.iter().rev());
        let mut results: Vec<(SideName, Profile)> = Vec::new();
        for (side, program) in order {
            let TimedProgram::Module(ready) = program else { continue };
            let folder = self.folder.join(side.as_str()).join(candidate.name.as_str());
            let known = results.iter().position(|(known, _)| known == side);
            let file = folder.join(format!("{}.ireeprof", if known.is_some() { "b" } else { "a" }));
            let answer = self.process(ready, iterations, &file).await;
            let record = match known {
                Some(at) => &mut results[at].1,
                None => {
                    results.push((*side, Profile { iterations, ..Profile::default() }));
                    let Some((_, last)) = results.last_mut() else { continue };
                    last
                }
            };
            match answer {
                Ok(kernels) => add(record, &kernels),
                Err(StageError::Benchmark(failure)) => record.problem = Some(failure.why),
                Err(StageError::Run(error)) => return Err(error),
            }
        }
        for (_, record) in &mut results {
            // An incomplete profile is not used.
            if record.problem.is_some() {
                record.kernels.clear();
            }
        }
        Ok(results)
    }

    /// Starts the benchmark tool once under the profiler, and reads its profile.
    async fn process(&self, ready: &Measurable<'_>, iterations: u32, file: &Path) -> Staged<Vec<Kernel>> {
        let Some(iree_profile) = ready.tools.iree_profile() else {
            return Err(StageFailure::new(no_profiler(ready)).into());
        };
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).map_err(PipelineError::io("create", folder))?;
        }
        let command = |program: &Path| {
            Command::new(program, self.settings.timeout)
                .cwd(ready.folder)
                .envs(ready.env)
                .cpus(self.host.cpus_for(&ready.execution.device))
        };
        let profiled =
            command(&ready.tools.iree_benchmark_module).args(ready.execution.profile(iterations, file));
        let finished = self.host.run(&profiled).await?;
        self.host.fail_on_full_disk(&finished, file)?;
        if finished.exit != Exit::Success {
            return Err(failure(&finished, None).into());
        }
        let reader = command(&iree_profile).args(["dispatch", "--format=jsonl"]).arg(file).capture_stdout();
        let finished = self.host.run(&reader).await?;
        if finished.exit != Exit::Success {
            let why = failure(&finished, None).why;
            return Err(StageFailure::new(format!("iree-profile {why}")).into());
        }
        // In each iteration, every dispatch of the module is repeated this often.
        let iterations = iterations * ready.execution.dispatch_repeats.max(1);
        Ok(benchgate_ingest::kernels(&finished.stdout, iterations).map_err(StageFailure::new)?)
    }
}

/// The sides whose tools have no profiler, grouped by the message about it.
fn without_profiler(wanted: &[&BenchmarkCandidate<'_>]) -> BTreeMap<String, Vec<&'static str>> {
    let mut lacking: BTreeMap<String, Vec<&'static str>> = BTreeMap::new();
    for (side, program) in wanted.iter().flat_map(|candidate| &candidate.sides) {
        if let TimedProgram::Module(ready) = program
            && ready.tools.iree_profile().is_none()
        {
            let sides = lacking.entry(no_profiler(ready)).or_default();
            if !sides.contains(&side.as_str()) {
                sides.push(side.as_str());
            }
        }
    }
    lacking
}

fn no_profiler(ready: &Measurable<'_>) -> String {
    format!("IREE {} does not include iree-profile", ready.tools.identity.version)
}

/// Adds the times of a process. The shorter time of each kernel is kept, because interference only adds time.
fn add(record: &mut Profile, kernels: &[Kernel]) {
    record.processes += 1;
    for kernel in kernels {
        match record.kernels.iter_mut().find(|known| known.name == kernel.name) {
            Some(known) => known.nanoseconds = known.nanoseconds.min(kernel.nanoseconds),
            None => record.kernels.push(kernel.clone()),
        }
    }
}

/// The number of iterations for both sides, determined by the slower side.
fn iterations(base: &Run, head: &Run, name: &BenchmarkName) -> u32 {
    let latency = |run: &Run| {
        let benchmark = run.benchmarks.iter().find(|benchmark| benchmark.name == *name)?;
        Some(benchgate_gate::described(benchmark.metric(&Metric::LATENCY.name)?)?.location)
    };
    let slowest = [latency(base), latency(head)].into_iter().flatten().fold(1.0, f64::max);
    (WORK.as_secs_f64() * 1e9 / slowest).clamp(f64::from(FEWEST), f64::from(MOST)) as u32
}
