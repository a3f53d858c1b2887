//! Compiles sources to modules, through the cache.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use benchgate_core::model::{Event, Stage};
use benchgate_core::record::{Number, StageRecord};
use benchgate_host::files;
use benchgate_host::process::{Command, Exit, Finished, Opened};
use benchgate_toolchain::Installed;

use super::argv::CompileSpec;
use super::cache::{CacheEntry, KeyBuilder, Made, once};
use super::flags::Named;
use super::host::Host;
use super::plan::PlannedBenchmark;
use super::slots::Priority;
use super::stage::{Compiled, StageFailure, Staged, ended};
use super::trace::{TracePlace, clean};
use super::{PipelineError, argv, code, diagnostics};

const KIND: &str = "compile";
const TRACES: &str = "compile-trace";
const MODULE: &str = "module.vmfb";
const LOG: &str = "compile.log";
const STATISTICS: &str = "statistics.json";

/// The data that a cache entry stores about its compilation.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct CompileMeta {
    seconds: f64,
    peak_memory_bytes: Option<u64>,
    vmfb_bytes: u64,
    dispatch_count: Option<u64>,
    stores: Option<String>,
}

/// The inputs of one compilation.
#[derive(Debug)]
pub(super) struct CompileJob<'a> {
    pub(super) tools: &'a Installed,
    pub(super) source: &'a Path,
    pub(super) source_sha256: &'a str,
    pub(super) spec: CompileSpec,
    /// The folder that file names in flags are relative to.
    pub(super) folder: &'a Path,
    pub(super) timeout: Duration,
}

/// The digest of everything about a compilation that is known in advance: compiler, source, flags, and the
/// processor if a flag says `host`. The files that the compiler opens are recorded in its trace.
pub(super) fn key(host: &Host<'_>, job: &CompileJob<'_>) -> Staged<String> {
    let named = Named::find(&job.spec.flags, job.folder).map_err(StageFailure::new)?;
    let mut key = KeyBuilder::new("compile/4")
        .text("tools", &job.tools.digest)
        .text("installed in", &job.tools.root.to_string_lossy())
        .text("source", job.source_sha256)
        .list("flag", job.spec.flags());
    if named.asks_for_host() {
        key = key.text("testbed", &host.testbed.id);
    }
    Ok(key.finish())
}

/// Returns whether a module is compiled for the processor of this machine. False if a flag names a missing
/// file, because then nothing can be compiled.
pub(super) fn is_host_specific(spec: &CompileSpec, folder: &Path) -> bool {
    Named::find(&spec.flags, folder).is_ok_and(|named| named.asks_for_host())
}

/// The priority of a compilation. The size of the source is a rough estimate of its duration.
pub(super) fn urgency(job: &CompileJob<'_>) -> Priority {
    Priority::Compile { bytes: fs::metadata(job.source).map_or(0, |source| source.len()) }
}

/// Compiles a module, or returns an earlier run's module.
pub(super) async fn compile(host: &Host<'_>, job: &CompileJob<'_>) -> Staged<Compiled> {
    let key = key(host, job)?;
    let started = Instant::now();
    // A failure on one side is not reused for the other, because the files that the compiler opens can
    // differ.
    let attempt = KeyBuilder::new("attempt").text("key", &key).text("folder", &job.folder.to_string_lossy());
    let place = TracePlace::of_program(job.folder, &job.tools.root);
    let find = async || Ok(host.sources.entry(&host.cache, (TRACES, &key), &place, &host.digests).await);
    let make = async |staged: &Path| make(host, job, &key, &place, staged).await;
    let entry = host.cache.keep(KIND, &key, &attempt.finish(), find, make).await?;
    Ok(read(entry, started.elapsed()))
}

async fn make(
    host: &Host<'_>,
    job: &CompileJob<'_>,
    key: &str,
    place: &TracePlace,
    staged: &Path,
) -> Staged<Made<CompileMeta>> {
    let _slot = host.slot(urgency(job)).await?;
    let [module, log, statistics] = [MODULE, LOG, STATISTICS].map(|name| staged.join(name));
    let command = Command::new(&job.tools.iree_compile, job.timeout)
        .args(argv::compile(&job.spec, job.source, &module, &statistics))
        .cwd(job.folder)
        .log(&log)
        .observed();
    let finished = host.run(&command).await?;
    if finished.exit != Exit::Success {
        let kept = host.keep_log(&log, "compile", key)?;
        host.fail_on_full_disk(&finished, staged)?;
        let rejected = diagnostics::is_rejection(&finished, &log, job.source)?;
        return Err(StageFailure { rejected, ..failure(&finished, Some(kept)) }.into());
    }
    if let Some(said) = diagnostics::despite_success(&finished, &log)? {
        let log = Some(host.keep_log(&log, "compile", key)?);
        return Err(StageFailure { log, took: Some(finished.wall), ..printed_error(&said) }.into());
    }
    let vmfb_bytes = fs::metadata(&module).map_err(PipelineError::io("read", &module))?.len();
    let names = [MODULE, LOG].into_iter().chain(statistics.exists().then_some(STATISTICS));
    Ok(Made {
        key: traced(host, job, (key, place), &finished, staged).await?,
        files: names.map(str::to_owned).collect(),
        meta: CompileMeta {
            seconds: finished.wall.as_secs_f64(),
            peak_memory_bytes: finished.peak_memory_bytes,
            vmfb_bytes,
            dispatch_count: fs::read(&statistics).ok().as_deref().and_then(dispatch_count),
            stores: stores(job, finished.opened.as_ref(), staged)?,
        },
    })
}

/// Describes the first file, other than the source, with an operation that keeps a value for the next call. A
/// transform spec that a flag names can insert such an operation into any program. If the compiler can't be
/// observed, the files that its flags name are searched.
fn stores(job: &CompileJob<'_>, opened: Option<&Opened>, staged: &Path) -> Staged<Option<String>> {
    let own = [job.source, staged, &job.tools.root].map(clean);
    let read = match opened {
        Some(opened) => opened.read.iter().cloned().collect(),
        None => named_files(job)?,
    };
    for path in read.iter().filter(|path| own.iter().all(|own| !path.starts_with(own)) && is_of_user(path)) {
        if let Some(name) = code::suspect_operation(path).map_err(PipelineError::io("read", path))? {
            return Ok(Some(format!("`{}`, which the compiler reads, contains `{name}`", path.display())));
        }
    }
    Ok(None)
}

fn named_files(job: &CompileJob<'_>) -> Result<Vec<PathBuf>, StageFailure> {
    let named = Named::find(&job.spec.flags, job.folder).map_err(StageFailure::new)?;
    Ok(named.files.into_values().collect())
}

/// Returns whether a file belongs to the user. Devices and the system's libraries are not part of a program.
fn is_of_user(path: &Path) -> bool {
    const SYSTEM: [&str; 6] = ["/proc", "/sys", "/dev", "/usr", "/lib", "/lib64"];
    path.is_file() && !SYSTEM.iter().any(|folder| path.starts_with(folder))
}

/// The key of a cache entry: the key of the request, combined with the files that the compiler opened. If the
/// compilation can't be observed, the entry is stored for this run only.
async fn traced(
    host: &Host<'_>,
    job: &CompileJob<'_>,
    (key, place): (&str, &TracePlace),
    finished: &Finished,
    staged: &Path,
) -> Result<String, PipelineError> {
    let Some(Opened { read, listed, .. }) = &finished.opened else {
        host.note_unobserved();
        return Ok(once(key, staged));
    };
    // The request's key already contains the source. The files in the staging folder are the compiler's own.
    let [source, own] = [job.source, staged].map(clean);
    let is_input = |path: &&PathBuf| **path != source && !path.starts_with(&own);
    let [read, listed] = [read, listed].map(|paths| paths.iter().filter(is_input));
    let trace = host.sources.record(read, listed, place, &host.digests).await;
    trace.keep(&host.cache, TRACES, key)?;
    Ok(trace.entry_key(key))
}

/// Reads a cache entry. A cached module was compiled in an earlier run, so its time is not one of this run.
fn read(entry: CacheEntry<CompileMeta>, found_in: Duration) -> Compiled {
    let meta = &entry.meta;
    let (seconds, peak_memory_bytes) =
        if entry.cached { (found_in.as_secs_f64(), None) } else { (meta.seconds, meta.peak_memory_bytes) };
    Compiled {
        module: entry.path(MODULE),
        vmfb_sha256: entry.files.get(MODULE).cloned().unwrap_or_default(),
        vmfb_bytes: meta.vmfb_bytes,
        dispatch_count: meta.dispatch_count,
        stores: meta.stores.clone(),
        statistics: fs::read(entry.path(STATISTICS)).map(|bytes| statistics(&bytes)).unwrap_or_default(),
        report: StageRecord {
            made_in_seconds: entry.cached.then_some(Number(meta.seconds)),
            peak_memory_bytes,
            log: Some(entry.path(LOG).to_string_lossy().into_owned()),
            ..ended(Stage::Compile, entry.status(), seconds)
        },
        damaged: entry.damaged,
    }
}

/// The value of `stream-aggregate.execution.dispatch-count` in the output of
/// `--iree-scheduling-dump-statistics-format=json`. If the tool prints statistics in another form, the count
/// is unknown, never zero.
fn dispatch_count(statistics: &[u8]) -> Option<u64> {
    let statistics: serde_json::Value = serde_json::from_slice(statistics).ok()?;
    statistics.get("stream-aggregate")?.get("execution")?.get("dispatch-count")?.as_u64()
}

/// Every count below `stream-aggregate`, named like `execution.dispatch-count`. People can compare them.
fn statistics(statistics: &[u8]) -> BTreeMap<String, u64> {
    let read: Option<serde_json::Value> = serde_json::from_slice(statistics).ok();
    let aggregate = read.as_ref().and_then(|read| read.get("stream-aggregate")?.as_object());
    let groups =
        aggregate.into_iter().flatten().filter_map(|(group, counts)| Some((group, counts.as_object()?)));
    let counts = groups.flat_map(|(group, counts)| {
        counts.iter().filter_map(move |(name, count)| Some((format!("{group}.{name}"), count.as_u64()?)))
    });
    counts.collect()
}

/// Describes the failure of a tool in one line: the first error that it printed, or how it ended.
pub(super) fn failure(finished: &Finished, log: Option<PathBuf>) -> StageFailure {
    // The tail of stderr may begin in the middle of the error's line; the log contains the whole line.
    let logged = log.as_deref().and_then(diagnostics::first_error);
    let said = logged
        .as_deref()
        .or_else(|| finished.stderr_tail.lines().map(str::trim).find(|line| diagnostics::is_error(line)))
        .or_else(|| finished.stderr_tail.lines().map(str::trim).find(|line| is_status(line)))
        .or_else(|| raised(&finished.stderr_tail))
        .or_else(|| finished.stderr_tail.lines().map(str::trim).find(|line| !line.is_empty()))
        .map(shorten);
    let ended = match finished.exit {
        Exit::TimedOut(_) | Exit::Signal(_) | Exit::Code(_) => finished.exit.to_string(),
        Exit::Success | Exit::Interrupted => "did not finish".to_owned(),
    };
    let killed = finished.ended_from_outside();
    // After a timeout or a signal from outside, the last message of the tool is rarely the reason.
    let why = match (killed, said) {
        (Some(cause), _) => format!("{ended}: {cause}"),
        (None, Some(said)) if !finished.exit.is_timeout() => format!("{ended}: {said}"),
        _ => ended,
    };
    StageFailure { log, took: Some(finished.wall), killed: killed.is_some(), ..StageFailure::new(why) }
}

/// The failure of a tool that printed an error although it reported success.
pub(super) fn printed_error(said: &str) -> StageFailure {
    StageFailure::new(format!("ended with exit code 0 and printed an error: {}", shorten(said)))
}

/// The exception that ended a Python program. A traceback lists the calls before the exception; if there are
/// several tracebacks, the last one belongs to the uncaught exception.
fn raised(stderr: &str) -> Option<&str> {
    let (_, calls) = stderr.rsplit_once("Traceback (most recent call last):")?;
    calls.lines().find(|line| line.starts_with(|first: char| !first.is_whitespace())).map(str::trim)
}

/// Returns whether a line of the runtime tools reports the error, such as `….c:123: INVALID_ARGUMENT;
/// expected 2 arguments`. The lines before it describe devices and modules.
fn is_status(line: &str) -> bool {
    let Some((before, _)) = line.split_once("; ") else { return false };
    let word = before.rsplit(' ').next().unwrap_or_default();
    word.len() > 4 && word.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_')
}

/// Maximum length of a tool's message in one line of a report.
const MESSAGE_CHARS: usize = 300;

fn shorten(line: &str) -> String {
    let line = without_cache(line);
    match line.char_indices().nth(MESSAGE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// A message about a file in the cache, without the path of that file. The path contains a long digest that
/// would fill a table cell and hide the message. The log has the whole line.
fn without_cache(line: &str) -> &str {
    let place = line.split_once(": ").map_or(line, |(place, _)| place);
    let is_digest = |part: &str| part.len() == 64 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    match place.rsplit_once('/') {
        Some((folders, _)) if folders.split('/').any(is_digest) => &line[folders.len() + 1..],
        _ => line,
    }
}

/// Writes the IR of one benchmark on one side below `root`, for `--dump-ir`: the compiler's input, and a file
/// for every phase that the compiler reaches. If the compiler fails, the phases before the failed one are
/// written.
///
/// The compiler runs a second time for this. So the dump affects neither the measured module nor its compile
/// time nor the cache, and it also works for modules from the cache.
pub(super) async fn dump_ir(
    host: &Host<'_>,
    planned: PlannedBenchmark<'_>,
    job: &CompileJob<'_>,
    root: &Path,
) -> Result<(), PipelineError> {
    let folder = folder(root, planned);
    files::if_exists(fs::remove_dir_all(&folder)).map_err(PipelineError::io("remove", &folder))?;
    fs::create_dir_all(&folder).map_err(PipelineError::io("create", &folder))?;
    let kind = job.source.extension().map_or("mlir".into(), |kind| kind.to_string_lossy());
    let copy = folder.join(format!("0.source.{kind}"));
    fs::copy(job.source, &copy).map_err(PipelineError::io("write", &copy))?;
    let _slot = host.slot(urgency(job)).await?;
    let staged = host.scratch()?;
    let file = |name: &str| staged.path().join(name);
    let command = Command::new(&job.tools.iree_compile, job.timeout)
        .args(argv::compile(&job.spec, job.source, &file("module.vmfb"), &file("statistics.json")))
        .arg(argv::joined("--dump-compilation-phases-to=", &folder))
        .cwd(job.folder)
        .log(folder.join("compile.log"));
    let finished = host.run(&command).await?;
    if finished.exit != Exit::Success {
        host.fail_on_full_disk(&finished, &folder)?;
        let text = format!(
            "{} {}: the IR ends early, because the compiler {}",
            planned.name(),
            planned.side.name,
            finished.exit
        );
        host.progress.on(Event::Warning(&text));
    }
    Ok(())
}

/// The folder for a benchmark's IR. Every part of a benchmark's name begins with a letter, a digit or `_`, so
/// the path stays below `root`.
fn folder(root: &Path, planned: PlannedBenchmark<'_>) -> PathBuf {
    root.join(planned.side.name.as_str()).join(planned.name().as_str())
}

const COUNT_KIND: &str = "compile-instructions";
const VALGRIND: &str = "valgrind";
const VERSION_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of valgrind's log.
const MOST_OF_LOG: u64 = 1 << 20;

/// The number of instructions that the compiler executes for a module, counted with valgrind's callgrind, once a
/// compilation has succeeded. With one thread, the same compilation always executes the same instructions. So counts can
/// be compared exactly, while comparing times would need many pairs.
///
/// The count is taken from the cache only if it was made by the same valgrind on the same kind of machine, because the C
/// library chooses functions by processor.
pub(super) async fn instructions_of_compiler(
    host: &Host<'_>,
    job: &CompileJob<'_>,
    compiled: &Compiled,
) -> Staged<f64> {
    let key = KeyBuilder::new("compile-instructions/1")
        .text("compilation", &key(host, job)?)
        .text("module", &compiled.vmfb_sha256)
        .text("valgrind", &version(host).await?)
        .text("testbed", &host.testbed.id)
        .finish();
    let find = async || Ok(Some(key.clone()));
    let make = async |_: &Path| {
        let meta = count(host, job, &key).await?;
        Ok(Made { key: key.clone(), files: Vec::new(), meta })
    };
    let entry: CacheEntry<u64> = host.cache.keep(COUNT_KIND, &key, &key, find, make).await?;
    Ok(entry.meta as f64)
}

async fn version(host: &Host<'_>) -> Staged<String> {
    let command = Command::new(VALGRIND, VERSION_TIMEOUT).arg("--version").capture_stdout();
    match benchgate_host::process::run(&command, host.cancel).await {
        Ok(finished) if finished.exit == Exit::Interrupted => Err(PipelineError::Interrupted.into()),
        Ok(finished) if finished.exit == Exit::Success => {
            Ok(String::from_utf8_lossy(&finished.stdout).into_owned())
        }
        Ok(finished) => Err(StageFailure::new(format!("`valgrind --version` {}", finished.exit)).into()),
        Err(error) => Err(StageFailure::new(format!("valgrind can't be started: {error}")).into()),
    }
}

async fn count(host: &Host<'_>, job: &CompileJob<'_>, key: &str) -> Staged<u64> {
    let _slot = host.slot(urgency(job)).await?;
    let folder = host.scratch()?;
    let [module, statistics, log, counted] =
        ["module.vmfb", "statistics.json", "compile.log", "valgrind.log"]
            .map(|name| folder.path().join(name));
    let mut to_file = std::ffi::OsString::from("--log-file=");
    to_file.push(&counted);
    // valgrind 3.19 hangs on a program that uses io_uring. The process is observed, which makes io_uring
    // unavailable to it.
    let command = Command::new(VALGRIND, job.timeout)
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(to_file)
        .arg(&job.tools.iree_compile)
        .args(argv::compile(&job.spec, job.source, &module, &statistics))
        .arg("--mlir-disable-threading")
        .cwd(job.folder)
        .log(&log)
        .observed();
    let finished = host.run(&command).await?;
    host.fail_on_full_disk(&finished, folder.path())?;
    if finished.exit != Exit::Success {
        let kept = host.keep_log(&log, COUNT_KIND, key)?;
        return Err(failure(&finished, Some(kept)).into());
    }
    let said = files::read_bounded(&counted, MOST_OF_LOG).map_err(PipelineError::io("read", &counted))?;
    let said = String::from_utf8_lossy(&said);
    collected(&said).ok_or_else(|| StageFailure::new("callgrind printed no count").into())
}

/// The total, from the line `==12345== Collected : 1000074435` that callgrind prints at the end.
fn collected(log: &str) -> Option<u64> {
    let line = log.lines().rev().find_map(|line| line.split_once("Collected :"))?;
    line.1.split_whitespace().next()?.parse().ok().filter(|count| *count > 0)
}

#[cfg(test)]
mod tests {
    use super::{collected, *};

    #[test]
    fn a_file_of_the_cache_is_named_without_its_folders() {
        let error = "error: failed to legalize operation 'torch.operator': \"a/b\"";
        let cached =
            format!("/home/a/.cache/benchgate/export/b8/{}/main.mlir:4:12: {error}", "b8".repeat(32));
        assert_eq!(shorten(&cached), format!("main.mlir:4:12: {error}"));
        let own = format!("models/net.mlir:4:12: {error}");
        assert_eq!(shorten(&own), own);
    }

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
    fn a_failed_runtime_tool_is_quoted_where_it_says_what_failed() {
        let stderr = "Device: local-task\nModule: m.vmfb\n\
                      runtime/src/iree/vm/invocation.c:66: INVALID_ARGUMENT; expected 2 arguments but passed 1\n";
        let why = failure(&failed(stderr), None).why;
        assert!(why.ends_with("INVALID_ARGUMENT; expected 2 arguments but passed 1"), "{why}");
    }

    #[test]
    fn a_python_program_is_quoted_with_the_exception_that_ended_it() {
        let first = "loading\nTraceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    1 / 0\n    \
                     ~~^~~\nZeroDivisionError: division by zero\n";
        let why = |stderr: &str| failure(&failed(stderr), None).why;
        assert_eq!(why(first), "ended with exit code 1: ZeroDivisionError: division by zero");
        let second = first.replace("ZeroDivisionError: division by zero", "KeyError: 'x'\n'x' is no key");
        let handling = "\nDuring handling of the above exception, another exception occurred:\n\n";
        assert_eq!(why(&format!("{first}{handling}{second}")), "ended with exit code 1: KeyError: 'x'");
        assert_eq!(why("first\nsecond\n"), "ended with exit code 1: first");
    }

    fn failed(stderr: &str) -> Finished {
        Finished::new(Exit::Code(1), Vec::new(), stderr.to_owned())
    }

    #[test]
    fn a_long_message_is_cut_at_a_character_boundary() {
        assert_eq!(shorten(&"é".repeat(400)).chars().count(), MESSAGE_CHARS + 1);
    }

    #[test]
    fn the_count_is_the_last_line_of_its_kind() {
        let log = "==7== Callgrind, a call-graph generating cache profiler\n==7== Events    : Ir\n\
                   ==7== Collected : 1000074435\n==7== \n==7== I   refs:      1,000,074,435\n";
        assert_eq!(collected(log), Some(1_000_074_435));
        assert_eq!(collected("==7== Collected : 0\n"), None);
        assert_eq!(collected("killed\n"), None);
    }
}
