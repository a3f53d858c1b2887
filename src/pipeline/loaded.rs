//! The files of the runtime on this machine, by content: its programs, their libraries, the drivers that a device
//! brings in, and every other file that they open. Observed while nothing is timed: in the verified call, and in a
//! start of the benchmark tool that measures nothing.

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

/// Loading a large driver for the first time takes seconds.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The digest of what the processes of a benchmark load. `verified` are the files that its verified call opened.
/// `None` if the observation is incomplete.
pub(super) async fn digest(
    host: &Host<'_>,
    ready: &Measurable<'_>,
    verified: Option<&Opened>,
) -> Result<Option<String>, PipelineError> {
    let benchmark = &ready.tools.iree_benchmark_module;
    let key = (benchmark.clone(), ready.env.clone(), ready.folder.to_owned());
    let start = async || {
        // Printing its help loads the tool's libraries and opens no device.
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
    // Without their folders: the sides' sources and tools lie in different ones.
    let mut files: BTreeSet<(OsString, String)> = BTreeSet::new();
    for path in verified.read.union(&started.read) {
        // The module is known by its content already, and results are written to the scratch folder.
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
