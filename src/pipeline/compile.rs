//! Source → module, through the cache.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::process::{Command, Exit, Finished};
use crate::toolchain::Installed;

use super::PipelineError;
use super::argv::{self, CompileSpec};
use super::cache::{Entry, KeyBuilder, Lookup};
use super::diagnostics;
use super::flags::Named;
use super::prepare::{Context, StageFailure};
use super::slots::Urgency;

const KIND: &str = "compile";
const MODULE: &str = "module.vmfb";
const LOG: &str = "compile.log";
const STATISTICS: &str = "statistics.json";

/// What the compiler's run left to remember.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Meta {
    seconds: f64,
    peak_memory_bytes: Option<u64>,
    vmfb_bytes: u64,
    dispatch_count: Option<u64>,
}

/// A compiled module.
#[derive(Debug, Clone)]
pub(super) struct Compiled {
    pub(super) module: PathBuf,
    pub(super) vmfb_sha256: String,
    pub(super) vmfb_bytes: u64,
    pub(super) dispatch_count: Option<u64>,
    /// What the compiler counted, by its own names.
    pub(super) statistics: BTreeMap<String, u64>,
    /// How long the compiler took; for a cached module, whose compiler ran another day, finding it.
    pub(super) seconds: f64,
    pub(super) peak_memory_bytes: Option<u64>,
    pub(super) cached: bool,
    /// Why an older cache entry could not be used.
    pub(super) damaged: Option<String>,
    pub(super) log: PathBuf,
}

/// One compilation.
#[derive(Debug)]
pub(super) struct Job<'a> {
    pub(super) tools: &'a Installed,
    pub(super) source: &'a Path,
    pub(super) source_sha256: &'a str,
    pub(super) spec: CompileSpec,
    /// Flags may name files relative to this folder.
    pub(super) folder: &'a Path,
    pub(super) timeout: Duration,
}

/// The digest of everything that decides the module: compiler, source, flags, the content of files
/// that flags and the source name, and the processor where a flag says `host`. The inner error is a flag that
/// names a file that is not there.
async fn key(context: &Context<'_>, job: &Job<'_>) -> Result<Result<String, String>, PipelineError> {
    let named = match Named::find(&job.spec.flags, job.folder) {
        Ok(named) => named,
        Err(why) => return Ok(Err(why)),
    };
    let mut key = KeyBuilder::new("compile/2")
        .text("tools", &job.tools.digest)
        .text("source", job.source_sha256)
        .list("flag", job.spec.flags());
    if named.asks_for_host() {
        key = key.text("testbed", &context.testbed.id);
    }
    key = named.add_to(key, &context.digests).await?;
    key = Named::in_source(job.source, job.folder)?.add_to(key, &context.digests).await?;
    Ok(Ok(key.finish()))
}

/// Whether a module is for the very processor that it is compiled on. Flags that name a missing file compile
/// nothing.
pub(super) fn is_host_specific(spec: &CompileSpec, folder: &Path) -> bool {
    Named::find(&spec.flags, folder).is_ok_and(|named| named.asks_for_host())
}

/// How long a compilation may take is known roughly by the size of its source.
pub(super) fn urgency(job: &Job<'_>) -> Urgency {
    Urgency::Compile { bytes: fs::metadata(job.source).map_or(0, |source| source.len()) }
}

/// Compiles, or finds what an earlier run compiled. The outer error stops the run, the inner one is
/// this benchmark's outcome.
pub(super) async fn compile(
    context: &Context<'_>,
    job: &Job<'_>,
) -> Result<Result<Compiled, StageFailure>, PipelineError> {
    let key = match key(context, job).await? {
        Ok(key) => key,
        Err(why) => return Ok(Err(StageFailure::new(why))),
    };
    let _making = context.cache.maker(KIND, &key).await;
    if let Some(failure) = context.failures.of(KIND, &key) {
        return Ok(Err(failure));
    }
    let made = make(context, job, &key).await?;
    Ok(context.failures.keep(KIND, &key, made))
}

async fn make(
    context: &Context<'_>,
    job: &Job<'_>,
    key: &str,
) -> Result<Result<Compiled, StageFailure>, PipelineError> {
    let mut damaged = None;
    let started = Instant::now();
    match context.cache.lookup_aside(KIND, key).await? {
        Lookup::Hit(entry) => {
            if let Some(compiled) = read(&entry, None) {
                let seconds = started.elapsed().as_secs_f64();
                return Ok(Ok(Compiled { seconds, peak_memory_bytes: None, ..compiled }));
            }
            damaged = Some("its metadata is not readable".to_owned());
        }
        Lookup::Damaged(why) => damaged = Some(why),
        Lookup::Miss => {}
    }
    let _slot = context.slot_for(urgency(job)).await?;
    let staged = context.cache.stage()?;
    let file = |name: &str| staged.path().join(name);
    let command = Command::new(&job.tools.iree_compile, job.timeout)
        .args(argv::compile(&job.spec, job.source, &file(MODULE), &file(STATISTICS)))
        .cwd(job.folder)
        .log(file(LOG));
    let finished = context.run(&command).await?;
    if finished.exit != Exit::Success {
        let log = context.keep_log(&file(LOG), "compile", key)?;
        context.fail_on_full_disk(&finished, staged.path())?;
        return Ok(Err(failure(&finished, job.timeout, Some(log))));
    }
    if let Some(said) = diagnostics::despite_success(&finished, &file(LOG))? {
        let log = context.keep_log(&file(LOG), "compile", key)?;
        return Ok(Err(StageFailure { log: Some(log), took: Some(finished.wall), ..printed_error(&said) }));
    }
    let module = file(MODULE);
    let vmfb_bytes = fs::metadata(&module).map_err(PipelineError::io("read", &module))?.len();
    let statistics = file(STATISTICS);
    let dispatch_count = fs::read(&statistics).ok().as_deref().and_then(dispatch_count);
    let meta = Meta {
        seconds: finished.wall.as_secs_f64(),
        peak_memory_bytes: finished.peak_memory_bytes,
        vmfb_bytes,
        dispatch_count,
    };
    let meta = serde_json::to_value(&meta)
        .map_err(|error| PipelineError::io("write", staged.path())(std::io::Error::other(error)))?;
    let mut files = vec![MODULE, LOG];
    if statistics.exists() {
        files.push(STATISTICS);
    }
    let entry = context.cache.store(KIND, key, staged, &files, meta)?;
    read(&entry, damaged)
        .ok_or_else(|| {
            PipelineError::io("read", &entry.folder)(std::io::Error::other("entry lost its metadata"))
        })
        .map(Ok)
}

fn read(entry: &Entry, damaged: Option<String>) -> Option<Compiled> {
    let meta: Meta = entry.meta_as()?;
    Some(Compiled {
        module: entry.path(MODULE),
        vmfb_sha256: entry.files.get(MODULE)?.clone(),
        vmfb_bytes: meta.vmfb_bytes,
        dispatch_count: meta.dispatch_count,
        statistics: fs::read(entry.path(STATISTICS)).map(|bytes| statistics(&bytes)).unwrap_or_default(),
        seconds: meta.seconds,
        peak_memory_bytes: meta.peak_memory_bytes,
        cached: entry.cached,
        damaged,
        log: entry.path(LOG),
    })
}

/// `stream-aggregate.execution.dispatch-count` of `--iree-scheduling-dump-statistics-format=json`.
/// A tool that words its statistics differently leaves the count unknown, never zero.
fn dispatch_count(statistics: &[u8]) -> Option<u64> {
    let statistics: serde_json::Value = serde_json::from_slice(statistics).ok()?;
    statistics.get("stream-aggregate")?.get("execution")?.get("dispatch-count")?.as_u64()
}

/// Every count of `stream-aggregate`, as `execution.dispatch-count`. They are for people to compare.
fn statistics(statistics: &[u8]) -> BTreeMap<String, u64> {
    let read: Option<serde_json::Value> = serde_json::from_slice(statistics).ok();
    let aggregate = read.as_ref().and_then(|read| read.get("stream-aggregate")?.as_object());
    let groups = aggregate.into_iter().flatten().filter_map(|(group, of)| Some((group, of.as_object()?)));
    let counts = groups.flat_map(|(group, of)| {
        of.iter().filter_map(move |(name, count)| Some((format!("{group}.{name}"), count.as_u64()?)))
    });
    counts.collect()
}

/// A failed tool in one line: the first error it printed, or how it ended.
pub(super) fn failure(finished: &Finished, timeout: Duration, log: Option<PathBuf>) -> StageFailure {
    let said = finished
        .stderr_tail
        .lines()
        .map(str::trim)
        .find(|line| diagnostics::is_error(line))
        .or_else(|| finished.stderr_tail.lines().map(str::trim).find(|line| !line.is_empty()))
        .map(shorten);
    let ended = match finished.exit {
        Exit::TimedOut => format!("timed out after {} s", timeout.as_secs_f64()),
        Exit::Signal(_) | Exit::Code(_) => finished.exit.to_string(),
        Exit::Success | Exit::Interrupted => "did not finish".to_owned(),
    };
    let killed = finished.ended_from_outside();
    // After a timeout, or a signal from outside, the tool's own last words are rarely the reason.
    let why = match (killed, said) {
        (Some(cause), _) => format!("{ended}: {cause}"),
        (None, Some(said)) if finished.exit != Exit::TimedOut => format!("{ended}: {said}"),
        _ => ended,
    };
    StageFailure { log, took: Some(finished.wall), killed: killed.is_some(), ..StageFailure::new(why) }
}

/// A tool that printed an error and ended with success.
pub(super) fn printed_error(said: &str) -> StageFailure {
    StageFailure::new(format!("ended with exit code 0 and printed an error: {}", shorten(said)))
}

/// One line of a report has room for this much of a tool's message.
const MESSAGE_CHARS: usize = 300;

fn shorten(line: &str) -> String {
    match line.char_indices().nth(MESSAGE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dispatch_count_is_read_from_the_compiler_statistics() {
        let json = br#"{"stream-aggregate": {"execution": {"submission-count": 1, "dispatch-count": 7}}}"#;
        assert_eq!(dispatch_count(json), Some(7));
        let all = statistics(json);
        assert_eq!(all.get("execution.submission-count"), Some(&1));
        assert_eq!(all.len(), 2);
    }

    #[test]
    fn statistics_of_another_shape_leave_the_count_unknown() {
        for other in [&b"{}"[..], b"", b"{\"stream-aggregate\": 3}", b"dispatches: 7"] {
            assert_eq!(dispatch_count(other), None);
            assert!(statistics(other).is_empty());
        }
    }

    #[test]
    fn a_long_message_is_cut_at_a_character_boundary() {
        assert_eq!(shorten(&"é".repeat(400)).chars().count(), MESSAGE_CHARS + 1);
    }
}
