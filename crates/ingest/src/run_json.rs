//! benchgate's own run.json. The format is implemented in [`benchgate_core::record`]; this module only passes
//! its runs on.

use benchgate_core::model::{Lint, LintCode, Run, SideName};
use benchgate_core::record::RunFile;

use super::IngestError;

/// Returns every side of the file, base first.
pub(super) fn read(bytes: &[u8], label: &str) -> Result<Vec<(SideName, Run)>, IngestError> {
    let file = RunFile::from_slice(bytes)
        .map_err(|error| IngestError::Record { label: label.to_owned(), what: error.to_string() })?;
    let mut sides = file.runs(label);
    if !file.complete {
        for (_, run) in &mut sides {
            let detail = "the run was interrupted before everything planned was measured";
            run.lints.push(Lint::new(LintCode::TruncatedInput, detail));
        }
    }
    Ok(sides)
}
