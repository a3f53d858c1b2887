//! Identifies the runtime on this machine by the content of its files: its programs, their libraries, the
//! drivers that a device needs, and every other file that they open. The files are observed while nothing is
//! timed: in the verified call, and in a start of the benchmark tool that measures nothing.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::process::{Command, Opened};

use super::PipelineError;
use super::cache::KeyBuilder;
use super::candidates::Measurable;
use super::host::Host;

/// Time limit for starting the tool. Loading a large driver for the first time takes seconds.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The digest of the files that a benchmark's processes load. `verified` are the files that the verified call
/// opened. `None` if the observation is incomplete.
pub(super) async fn digest(
    host: &Host<'_>,
    ready: &Measurable<'_>,
    verified: Option<&Opened>,
) -> Result<Option<String>, PipelineError> {
    let benchmark = &ready.tools.iree_benchmark_module;
    let key = (benchmark.clone(), ready.env.clone(), ready.folder.to_owned());
    let start = async || {
        // With `--help`, the tool loads its libraries but opens no device.
        let command =
            Command::new(benchmark, TIMEOUT).arg("--help").cwd(ready.folder).envs(ready.env).observed();
        Ok::<_, PipelineError>(host.run(&command).await?.opened.map(Arc::new))
    };
    let started = host.loaded.get(key, start).await?;
    let (Some(verified), Some(started)) = (verified, started) else {
        host.note_unobserved();
        return Ok(None);
    };
    let scratch = super::trace::clean(&host.scratch);
    // Files are identified without their folders, because the sides' sources and tools are in different ones.
    let mut files: BTreeSet<(OsString, String)> = BTreeSet::new();
    for path in verified.read.union(&started.read) {
        // The module is part of the key already, and the scratch folder only contains results.
        if path.starts_with(&scratch) || *path == ready.execution.module {
            continue;
        }
        if let Some(sha256) = host.digests.readable(path).await {
            files.insert((name(path), sha256));
        }
    }
    let key = files.iter().fold(KeyBuilder::new("loaded/1"), |key, (name, sha256)| {
        key.bytes("name", name.as_encoded_bytes()).text("is", sha256)
    });
    Ok(Some(key.finish()))
}

fn name(path: &Path) -> OsString {
    path.file_name().unwrap_or_default().to_owned()
}
