//! Times the compiler if the policy makes its time gating.
//!
//! A compilation that fills the cache shares the processors with others and happens once, or not at all where the
//! cache is warm. Modules whose compile time can fail the gate are compiled again, alone on the host, with the sides
//! in turn. Each compilation is one more stage in the record.

use std::collections::BTreeSet;

use crate::gate::{Policy, decides};
use crate::model::{BenchmarkName, Event, Metric, Stage, counted};
use crate::process::{Command, Exit};
use crate::record::StageStatus;

use super::PipelineError;
use super::argv;
use super::compile::CompileJob;
use super::host::Host;
use super::prepare::compile_job;
use super::prepared_side::PreparedSide;
use super::stage::{Prepared, StageReport};

/// Compilations of each side: five outweigh the assumed spread.
const COMPILATIONS: usize = 5;

/// The benchmarks whose compile time decides.
pub(super) fn judged(sides: &[PreparedSide<'_>], policy: &Policy) -> BTreeSet<BenchmarkName> {
    let compiled = sides.iter().flat_map(|side| &side.benchmarks).filter(|one| one.artifact.is_some());
    let decides = |one: &&Prepared<'_>| decides(policy, &one.planned.judged_as(), &Metric::COMPILE_TIME);
    compiled.filter(decides).map(Prepared::name).collect()
}

/// Compiles every module whose compile time decides. The caller holds the host lock.
pub(super) async fn time(
    host: &Host<'_>,
    sides: &mut [PreparedSide<'_>],
    policy: &Policy,
) -> Result<(), PipelineError> {
    let judged = judged(sides, policy);
    if judged.is_empty() {
        return Ok(());
    }
    let times = format!("{COMPILATIONS} times a side, because the policy makes their compile time decide");
    host.progress.on(Event::Note(&format!("compiling {} {times}", counted(judged.len(), "module"))));
    for name in &judged {
        for round in 0..COMPILATIONS {
            // Each side is first equally often, so that a drift of the machine favors neither.
            let mut turns: Vec<&mut PreparedSide<'_>> = sides.iter_mut().collect();
            if round % 2 == 1 {
                turns.reverse();
            }
            for PreparedSide { tools, benchmarks, .. } in turns {
                let Some(prepared) = benchmarks.iter_mut().find(|prepared| prepared.name() == *name) else {
                    continue;
                };
                if let (Some(source), Some(_), Some(tools)) = (&prepared.source, &prepared.artifact, &*tools)
                {
                    let job = compile_job(prepared.planned, source, tools);
                    let report = once(host, &job).await?;
                    prepared.stages.extend(report);
                }
            }
        }
    }
    Ok(())
}

/// One compilation whose module is thrown away. One that fails has no time, and the row says that time is missing.
async fn once(host: &Host<'_>, job: &CompileJob<'_>) -> Result<Option<StageReport>, PipelineError> {
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
    let report = StageReport::new(Stage::Compile, StageStatus::Ok, finished.wall.as_secs_f64());
    Ok(Some(StageReport { peak_memory_bytes: finished.peak_memory_bytes, ..report }))
}
