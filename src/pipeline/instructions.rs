//! Counts the instructions that the compiler executes for a module, with valgrind's callgrind. With one
//! thread, the same compilation always executes the same instructions. So counts can be compared exactly,
//! while comparing times would need many pairs.

use std::path::Path;
use std::time::Duration;

use crate::files;
use crate::process::{Command, Exit};

use super::PipelineError;
use super::argv;
use super::cache::{CacheEntry, KeyBuilder, Made};
use super::compile::{self, CompileJob, failure};
use super::host::Host;
use super::stage::{Compiled, StageFailure, Staged};

const KIND: &str = "compile-instructions";
const VALGRIND: &str = "valgrind";
const VERSION_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of valgrind's log.
const MOST_OF_LOG: u64 = 1 << 20;

/// The instruction count of a compilation that has succeeded. It is taken from the cache only if it was made
/// by the same valgrind on the same kind of machine, because the C library chooses functions by processor.
pub(super) async fn of_compiler(host: &Host<'_>, job: &CompileJob<'_>, compiled: &Compiled) -> Staged<f64> {
    let key = KeyBuilder::new("compile-instructions/1")
        .text("compilation", &compile::key(host, job)?)
        .text("module", &compiled.vmfb_sha256)
        .text("valgrind", &version(host).await?)
        .text("testbed", &host.testbed.id)
        .finish();
    let find = async || Ok(Some(key.clone()));
    let make = async |_: &Path| {
        let meta = count(host, job, &key).await?;
        Ok(Made { key: key.clone(), files: Vec::new(), meta })
    };
    let entry: CacheEntry<u64> = host.cache.keep(KIND, &key, &key, find, make).await?;
    Ok(entry.meta as f64)
}

async fn version(host: &Host<'_>) -> Staged<String> {
    let command = Command::new(VALGRIND, VERSION_TIMEOUT).arg("--version").capture_stdout();
    match crate::process::run(&command, host.cancel).await {
        Ok(finished) if finished.exit == Exit::Interrupted => Err(PipelineError::Interrupted.into()),
        Ok(finished) if finished.exit == Exit::Success => {
            Ok(String::from_utf8_lossy(&finished.stdout).into_owned())
        }
        Ok(finished) => Err(StageFailure::new(format!("`valgrind --version` {}", finished.exit)).into()),
        Err(error) => Err(StageFailure::new(format!("valgrind can't be started: {error}")).into()),
    }
}

async fn count(host: &Host<'_>, job: &CompileJob<'_>, key: &str) -> Staged<u64> {
    let _slot = host.slot(compile::urgency(job)).await?;
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
        let kept = host.keep_log(&log, KIND, key)?;
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
    use super::collected;

    #[test]
    fn the_count_is_the_last_line_of_its_kind() {
        let log = "==7== Callgrind, a call-graph generating cache profiler\n==7== Events    : Ir\n\
                   ==7== Collected : 1000074435\n==7== \n==7== I   refs:      1,000,074,435\n";
        assert_eq!(collected(log), Some(1_000_074_435));
        assert_eq!(collected("==7== Collected : 0\n"), None);
        assert_eq!(collected("killed\n"), None);
    }
}
