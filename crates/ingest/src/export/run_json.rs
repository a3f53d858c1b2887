//! Writes run.json with the writer of [`benchgate_core::record`]. Facts that a foreign file lacks are stored
//! as unknown.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use benchgate_core::model::{
    Benchmark, BlockSlot, Lint, LintCode, Metric, MetricKind, Process, Run, Series, SideName, Testbed, hex,
};
use benchgate_core::record::{
    ArtifactRecord, BenchmarkRecord, CalibrationRecord, Design, MeasureRecord, Number, OutcomeRecord,
    ProcessRecord, RunFile, RunSchema, SideRecord, ValueRecord,
};

use super::{ExportedRun, affected_benchmarks, deciding, has_summaries, spread_of_summaries};

pub(super) fn write(run: &Run, now: &str) -> ExportedRun {
    let created = measured_at(run, now);
    let mut metrics: Vec<Metric> = Vec::new();
    let mut order = 0;
    let benchmarks: Vec<BenchmarkRecord> = run
        .benchmarks
        .iter()
        .map(|benchmark| {
            for series in &benchmark.metrics {
                if metrics.iter().all(|known| known.name != series.metric.name) {
                    metrics.push(series.metric.clone());
                }
            }
            record(benchmark, &created, &mut order)
        })
        .collect();
    let repetitions =
        benchmarks.iter().flat_map(|benchmark| &benchmark.processes).flat_map(|p| p.samples.iter());
    let repetitions = repetitions.map(|(_, samples)| samples.len()).max().unwrap_or(0);
    let mut file = RunFile {
        schema: RunSchema,
        benchgate: benchgate_core::VERSION.to_owned(),
        suite: run.suite.clone().unwrap_or_else(|| "converted".to_owned()),
        session: run.session.clone().unwrap_or_default(),
        created: created.clone(),
        complete: run.lints.iter().all(|lint| lint.code != LintCode::TruncatedInput),
        design: Design::Single,
        seed: 0,
        measure: MeasureRecord {
            repetitions: Some(u32::try_from(repetitions).unwrap_or(u32::MAX)),
            ..MeasureRecord::default()
        },
        testbed: testbed(run),
        metrics,
        sides: vec![SideRecord {
            name: SideName::Head,
            anchor: false,
            commit: run.commit.clone(),
            dirty: None,
            toolchain: run.toolchain.clone(),
            flags: Vec::new(),
            run_flags: Vec::new(),
            commands: Vec::new(),
            context: Some(run.context.clone()),
            benchmarks,
        }],
        backends: Vec::new(),
        bundle: None,
        shard: None,
        shards: Vec::new(),
        gate: None,
        calibration: run.calibration.as_ref().map(CalibrationRecord::from),
        lints: run.lints.to_vec(),
    };
    if run.session.is_none() {
        // The content is part of the session's name, because files with equal names may come from different
        // sessions, but the sides of one session count as measured together.
        let content = hex(&Sha256::digest(file.to_json())[..8]);
        file.session = format!("converted from {} ({content})", run.origin.label);
    }
    let mut lost = Vec::new();
    if let Some(which) = affected_benchmarks(run, has_summaries) {
        lost.push(format!(
            "run.json stores repetitions, so only the mean of each summary is kept in {which}"
        ));
    }
    let evidence_lost = spread_of_summaries(run).into_iter().collect();
    ExportedRun { bytes: file.to_json(), lost, evidence_lost }
}

/// Returns the time at which the tool measured, if run.json can store it.
fn measured_at(run: &Run, now: &str) -> String {
    let stated = run.context.date.as_deref().filter(|date| date.parse::<jiff::Timestamp>().is_ok());
    stated.unwrap_or(now).to_owned()
}

/// Returns a testbed with only the host's name, because most tools record no other fact.
fn testbed(run: &Run) -> Testbed {
    if let Some(testbed) = &run.testbed {
        return testbed.clone();
    }
    let id = run.context.host_name.clone().unwrap_or_else(|| "unknown".to_owned());
    let mut facts = BTreeMap::new();
    if let Some(host) = &run.context.host_name {
        facts.insert("host-name".to_owned(), host.clone());
    }
    Testbed { id, facts, notes: BTreeMap::new() }
}

fn record(benchmark: &Benchmark, created: &str, order: &mut u32) -> BenchmarkRecord {
    let mut processes: Vec<ProcessRecord> = Vec::new();
    let mut values = Vec::new();
    for series in &benchmark.metrics {
        let name = series.metric.name.to_string();
        let taken: Vec<Process> = match &series.series {
            Series::Exact(value) => {
                values.push(ValueRecord { metric: name, value: Number(*value) });
                continue;
            }
            Series::Summaries(summaries) => summaries
                .iter()
                .filter_map(|summary| {
                    Some(Process { samples: vec![summary.mean.or(summary.median)?], ..Process::default() })
                })
                .collect(),
            Series::Processes(all) => all.clone(),
        };
        for (at, taken) in taken.into_iter().enumerate() {
            if processes.len() == at {
                processes.push(process(*order, taken.started.as_deref().unwrap_or(created), taken.slot));
                *order += 1;
            }
            let stated = taken.stated_stddev.map(|stated| (name.clone(), Number(stated)));
            processes[at].stated_stddev.extend(stated);
            processes[at].samples.insert(name.clone(), taken.samples);
        }
    }
    let mut lints: Vec<Lint> = benchmark.lints.to_vec();
    let noisy_summary = deciding(benchmark).any(|series| {
        series.metric.kind == MetricKind::Noisy
            && matches!(&series.series, Series::Summaries(s) if s.len() == 1)
    });
    // A mean of many repetitions must not look like a single precise measurement.
    if noisy_summary && benchmark.lints.iter().all(|lint| lint.code != LintCode::SingleRepetition) {
        let detail = "only the mean of all repetitions was kept".to_owned();
        lints.push(Lint { code: LintCode::SingleRepetition, detail });
    }
    BenchmarkRecord {
        name: benchmark.name.to_string(),
        labels: benchmark.labels.clone(),
        outcome: OutcomeRecord::from(&benchmark.outcome),
        artifact: benchmark.artifact.as_ref().map(|artifact| ArtifactRecord {
            vmfb_sha256: artifact.vmfb_sha256.clone(),
            vmfb_bytes: exact(benchmark, "vmfb-size").unwrap_or(0),
            execution_sha256: artifact.execution_sha256.clone(),
            dispatch_count: exact(benchmark, "dispatch-count"),
            workload: artifact.workload.clone(),
        }),
        stages: Vec::new(),
        verification: benchmark.verification.clone(),
        processes,
        values,
        profile: None,
        code: None,
        timing: None,
        compiler: benchmark.compiler.clone(),
        lints,
    }
}

fn exact(benchmark: &Benchmark, metric: &str) -> Option<u64> {
    match benchmark.metric(metric)?.series {
        Series::Exact(value) if (0.0..9e15).contains(&value) => Some(value as u64),
        _ => None,
    }
}

fn process(order: u32, started: &str, slot: Option<BlockSlot>) -> ProcessRecord {
    ProcessRecord { slot, order, started: started.to_owned(), ..ProcessRecord::default() }
}
