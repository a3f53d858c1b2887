//! `--dump-ir`: the IR at the end of every phase of the compiler, for people to read.
//!
//! The compiler runs a second time for it, so that neither the measured module nor its compile time nor
//! the cache knows of it, and so that a module from the cache has its IR too.

use std::fs;
use std::path::{Path, PathBuf};

use crate::model::Event;
use crate::process::{Command, Exit};

use super::PipelineError;
use super::argv;
use super::compile::CompileJob;
use super::host::Host;
use super::plan::PlannedBenchmark;

/// Writes the IR of one benchmark of one side below `root`: the source as the compiler gets it, and a file
/// for every phase that it reaches. A compiler that fails leaves the phases before the one that failed.
pub(super) async fn dump(
    host: &Host<'_>,
    planned: PlannedBenchmark<'_>,
    job: &CompileJob<'_>,
    root: &Path,
) -> Result<(), PipelineError> {
    let folder = folder(root, planned);
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(PipelineError::io("remove", &folder)(error));
        }
        _ => {}
    }
    fs::create_dir_all(&folder).map_err(PipelineError::io("create", &folder))?;
    let kind = job.source.extension().map_or("mlir".into(), |kind| kind.to_string_lossy());
    let copy = folder.join(format!("0.source.{kind}"));
    fs::copy(job.source, &copy).map_err(PipelineError::io("write", &copy))?;
    let _slot = host.slot(super::compile::urgency(job)).await?;
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
            "{} {}: its IR ends early, the compiler {}",
            planned.name(),
            planned.side.name,
            finished.exit
        );
        host.progress.on(Event::Warning(&text));
    }
    Ok(())
}

/// Names of benchmarks begin with a letter, digit or `_` in each part, so they are paths that stay inside.
fn folder(root: &Path, planned: PlannedBenchmark<'_>) -> PathBuf {
    root.join(planned.side.name.as_str()).join(planned.name().as_str())
}
