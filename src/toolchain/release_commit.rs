//! The commit that a release was built from, as its runtime's wheel states it: that wheel has a few megabytes, the
//! compiler's a hundred.

use std::path::Path;

use crate::model::{Event, Progress};
use crate::process::Cancel;

use super::installed::{RUNTIME_FOLDER, runtime_commit};
use super::iree::{requirement, tool_arguments};
use super::pin::workspace;
use super::pip::{Pip, write_requirements};
use super::wheel::Name;
use super::{LockedTools, ToolchainError, interpreter, pin};

/// The commit of resolved wheels. `None` if none of them is for this machine; the installation verifies the commit
/// there.
///
/// # Errors
/// The wheel can't be downloaded, or states no commit.
pub async fn release_commit(
    tools: &LockedTools,
    cache: &Path,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Option<String>, ToolchainError> {
    let is_runtime_here = |file: &str| {
        Name::parse(file)
            .is_some_and(|name| name.project == "iree_base_runtime" && name.runs_on(std::env::consts::ARCH))
    };
    let Some(wheel) = tools.wheels.iter().find(|wheel| is_runtime_here(&wheel.file)) else {
        return Ok(None);
    };
    let what = format!("the runtime of IREE {}", tools.version);
    progress.on(Event::Note(&format!("reading the commit of {what}")));
    let work = workspace(cache)?;
    let python = interpreter::with_pip(cache, cancel).await?;
    let pip =
        Pip { python: python.executable, pip: None, work: work.path().to_owned(), timeout: pin::TIMEOUT };
    let (target, requirements) = (work.path().join("runtime"), work.path().join("requirements.txt"));
    write_requirements(&requirements, &[requirement(wheel)?])?;
    pip.run(&what, tool_arguments(wheel, &target, &requirements), cancel).await?;
    let commit = runtime_commit(&target.join(RUNTIME_FOLDER).join("version.py"))?;
    if commit.is_empty() {
        let detail = "its wheel does not state the commit it was built from".to_owned();
        return Err(ToolchainError::NotFound { what, detail });
    }
    Ok(Some(commit))
}
