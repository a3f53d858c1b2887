//! Times the compiler if the policy makes its time gating.
//!
//! A compilation that fills the cache shares the processors with others, and happens only once or, if the
//! result is already in the cache, not at all. So modules whose compile time can fail the gate are compiled
//! again, alone on the host, in pairs of one compilation per side, until the gate has decided. Each
//! compilation is recorded as an additional stage.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use benchgate_config::Config;
use benchgate_core::model::{
    Benchmark, BenchmarkName, BlockSlot, Event, Metric, MetricKind, MetricSeries, Process, Run, Series,
    SideName, Stage, counted,
};
use benchgate_core::record::{StageRecord, StageStatus};
use benchgate_gate::{self, Policy, decides, open_compile_times};
use benchgate_host::process::{Command, Exit};

use super::candidates::PreparedSide;
use super::compile::CompileJob;
use super::host::Host;
use super::journal::entropy;
use super::prepare::compile_job;
use super::stage::{Prepared, ended};
use super::{PipelineError, argv, schedule};

/// Number of compilations of a module that only one side has. Later sessions are compared with them.
const COMPILATIONS: usize = 5;

/// The benchmarks whose compile time can fail the gate.
pub(super) fn judged(sides: &[PreparedSide<'_>], policy: &Policy) -> BTreeSet<BenchmarkName> {
    let compiled = sides.iter().flat_map(|side| &side.benchmarks).filter(|one| one.artifact.is_some());
    let decides = |one: &&Prepared<'_>| decides(policy, &one.planned.judged_as(), &Metric::COMPILE_TIME);
    compiled.filter(decides).map(Prepared::name).collect()
}

/// Times the compilation of every module whose compile time can fail the gate. The caller holds the host
/// lock. `suite_rows` is the number of fatal rows in the whole suite if this run is one of its shards.
pub(super) async fn time(
    host: &Host<'_>,
    sides: &mut [PreparedSide<'_>],
    config: &Config,
    suite_rows: Option<u32>,
) -> Result<(), PipelineError> {
    let is_compiled = |side: &PreparedSide<'_>, name: &BenchmarkName| {
        side.benchmarks.iter().any(|one| one.name() == *name && one.artifact.is_some())
    };
    let judged = judged(sides, &config.policy);
    let (pairs, single): (Vec<_>, Vec<_>) =
        judged.into_iter().partition(|name| sides.iter().filter(|side| is_compiled(side, name)).count() == 2);
    let note = |modules: &[BenchmarkName], how: &str| {
        let text =
            format!("compiling {} again {how}: their compile time decides", counted(modules.len(), "module"));
        host.progress.on(Event::Note(&text));
    };
    if !single.is_empty() {
        note(&single, &counted(COMPILATIONS, "time"));
    }
    for name in &single {
        for side in sides.iter_mut() {
            for _ in 0..COMPILATIONS {
                once(host, side, name, None).await?;
            }
        }
    }
    if pairs.is_empty() {
        return Ok(());
    }
    note(&pairs, "in pairs");
    in_pairs(host, sides, &pairs, config, suite_rows.unwrap_or_else(|| rows(sides, &config.policy))).await
}

/// The number of rows that share the error budget.
fn rows(sides: &[PreparedSide<'_>], policy: &Policy) -> u32 {
    let head =
        sides.iter().filter(|side| side.input.name == SideName::Head).flat_map(|side| &side.benchmarks);
    let of_each = |one: &Prepared<'_>| {
        let noisy = Metric::BUILT_IN.into_iter().filter(|metric| metric.kind == MetricKind::Noisy);
        noisy.filter(|metric| decides(policy, &one.planned.judged_as(), metric)).count()
    };
    u32::try_from(head.map(of_each).sum::<usize>()).unwrap_or(u32::MAX)
}

/// Runs rounds of pairs. At each look, the gate decides which modules need more.
async fn in_pairs(
    host: &Host<'_>,
    sides: &mut [PreparedSide<'_>],
    names: &[BenchmarkName],
    config: &Config,
    suite_rows: u32,
) -> Result<(), PipelineError> {
    let looks = benchgate_gate::looks(&config.policy, &Metric::COMPILE_TIME);
    let seed = config.measure.seed.map_or_else(entropy, Ok)?;
    let mut open: Vec<usize> = (0..names.len()).collect();
    let (mut round, mut until) = (0, looks.first());
    let began = Instant::now();
    while round < until && !open.is_empty() {
        if round > 0 && config.measure.time_budget.is_some_and(|budget| began.elapsed() >= budget) {
            let text = format!(
                "the time budget is spent after {} of base and head",
                counted(round as usize, "compilation")
            );
            host.progress.on(Event::Warning(&text));
            break;
        }
        let steps = schedule::paired_round(&open, names.len(), round, seed);
        // A compilation needs only one pair per block, so the second pair is skipped.
        for step in steps.into_iter().filter(|step| step.slot.slot < 2) {
            let side = sides.iter_mut().find(|side| side.input.name == step.side);
            let Some(side) = side.filter(|_| open.contains(&step.benchmark)) else { continue };
            if !once(host, side, &names[step.benchmark], Some(step.slot)).await? {
                open.retain(|index| *index != step.benchmark);
            }
        }
        round += 1;
        if round == until {
            let of_side =
                |name| sides.iter().find(|side| side.input.name == name).map(timed).unwrap_or_default();
            let [base, head] = SideName::BOTH.map(of_side);
            let answer = open_compile_times(&base, &head, &config.policy, suite_rows);
            open.retain(|index| answer.open.contains(&names[*index]));
            until = looks.after(round).unwrap_or(round);
        }
    }
    Ok(())
}

/// The compile times measured so far on one side, as a run that the gate can judge.
fn timed(side: &PreparedSide<'_>) -> Run {
    let benchmark = |prepared: &Prepared<'_>| {
        let timed = prepared.stages.iter().filter_map(|stage| Some((stage.slot?, stage.seconds.0)));
        let processes: Vec<Process> = timed
            .map(|(slot, seconds)| {
                let nanoseconds = Duration::from_secs_f64(seconds).as_nanos() as f64;
                Process { samples: vec![nanoseconds], slot: Some(slot), ..Process::default() }
            })
            .collect();
        let mut benchmark = Benchmark::new(prepared.name().as_str());
        benchmark.labels = prepared.labels().collect();
        benchmark.outcome = prepared.outcome.clone();
        benchmark.artifact.clone_from(&prepared.artifact);
        benchmark.verification.clone_from(&prepared.verification);
        if !processes.is_empty() {
            let series = Series::Processes(processes);
            benchmark.metrics.push(MetricSeries { metric: Metric::COMPILE_TIME, series });
        }
        benchmark
    };
    let benchmarks = side.benchmarks.iter().map(benchmark).collect();
    Run { session: Some("compilations".to_owned()), benchmarks, ..Run::default() }
}

/// Compiles once and discards the module. Returns whether the compilation was timed; if it failed, the user
/// is warned.
async fn once(
    host: &Host<'_>,
    side: &mut PreparedSide<'_>,
    name: &BenchmarkName,
    slot: Option<BlockSlot>,
) -> Result<bool, PipelineError> {
    let PreparedSide { tools, benchmarks, .. } = side;
    let Some(prepared) = benchmarks.iter_mut().find(|prepared| prepared.name() == *name) else {
        return Ok(false);
    };
    let (Some(source), Some(_), Some(tools)) = (&prepared.source, &prepared.artifact, &*tools) else {
        return Ok(false);
    };
    let job = compile_job(prepared.planned, source, tools);
    let report = compiled(host, &job).await?;
    let is_timed = report.is_some();
    prepared.stages.extend(report.map(|report| StageRecord { slot, ..report }));
    Ok(is_timed)
}

async fn compiled(host: &Host<'_>, job: &CompileJob<'_>) -> Result<Option<StageRecord>, PipelineError> {
    let staged = host.scratch()?;
    let file = |name: &str| staged.path().join(name);
    let command = Command::new(&job.tools.iree_compile, job.timeout)
        .args(argv::compile(&job.spec, job.source, &file("module.vmfb"), &file("statistics.json")))
        .cwd(job.folder)
        .log(file("compile.log"));
    let finished = host.run(&command).await?;
    host.fail_on_full_disk(&finished, staged.path())?;
    if finished.exit != Exit::Success {
        let text = format!("{}: timing its compilation failed: {}", job.source.display(), finished.exit);
        host.progress.on(Event::Warning(&text));
        return Ok(None);
    }
    let report = ended(Stage::Compile, StageStatus::Ok, finished.wall.as_secs_f64());
    Ok(Some(StageRecord { peak_memory_bytes: finished.peak_memory_bytes, ..report }))
}
