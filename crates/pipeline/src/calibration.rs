//! The calibration of a suite on a testbed, which `noise` stores and every later run includes.
//!
//! A calibration is an ordinary run file, so its samples can be judged again. It is copied into the runs that
//! use it, so that a verdict needs no other file.

use std::fs;
use std::path::{Path, PathBuf};

use benchgate_core::model::{Event, Progress, Testbed};
use benchgate_core::record::{CalibrationRecord, MOST_RESULT_BYTES, RunFile};
use benchgate_host::files;

use super::PipelineError;
use super::cache::{KeyBuilder, write_atomically};

/// Age in days above which a calibration is ignored. Changes to drivers, kernels and settings change the
/// testbed's fingerprint, but dust, aging thermal paste and noisier neighbors don't. These changes take
/// months.
pub const CALIBRATION_DAYS: i64 = 90;

/// The source of a run's calibration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CalibrationSource {
    /// No calibration, because the run is a calibration itself.
    None,
    /// The calibration that `noise` stored in the cache for this suite and testbed, if any.
    #[default]
    Kept,
    /// A run file that contains a calibration.
    File(PathBuf),
}

/// Stores a run file that contains a calibration, for later runs of its suite on its testbed.
pub fn keep_calibration(cache: &Path, file: &RunFile) -> Result<PathBuf, PipelineError> {
    let path = kept(cache, &file.suite, &file.testbed.id);
    let folder = path.parent().unwrap_or(cache);
    fs::create_dir_all(folder).map_err(PipelineError::io("create the folder", folder))?;
    write_atomically(&path, &file.to_json())?;
    Ok(path)
}

fn kept(cache: &Path, suite: &str, testbed: &str) -> PathBuf {
    // The file name is a digest, because a suite's name may contain any character, and a testbed's name may
    // come from a file.
    let key = KeyBuilder::new("calibration/1").text("suite", suite).text("testbed", testbed).finish();
    cache.join("calibration").join(format!("{key}.json"))
}

/// Finds the calibration for `suite` on `testbed`. A stored one that does not fit is ignored with a warning;
/// one that the user named must fit.
///
/// # Errors
/// The named file can't be read, is for another suite or testbed, or contains no calibration.
pub(super) fn find(
    source: &CalibrationSource,
    cache: &Path,
    suite: &str,
    testbed: &Testbed,
    progress: &dyn Progress,
) -> Result<Option<CalibrationRecord>, PipelineError> {
    match source {
        CalibrationSource::None => Ok(None),
        CalibrationSource::File(path) => {
            let record = read(path, suite, testbed);
            record.map(Some).map_err(|why| PipelineError::Calibration { path: path.clone(), why })
        }
        CalibrationSource::Kept => {
            let path = kept(cache, suite, &testbed.id);
            if !path.exists() {
                return Ok(None);
            }
            let found = read(&path, suite, testbed);
            if let Err(why) = &found {
                progress.on(Event::Warning(&format!(
                    "the calibration {} is not used: {why}; `benchgate noise` makes a new one",
                    path.display()
                )));
            }
            Ok(found.ok())
        }
    }
}

fn read(path: &Path, suite: &str, testbed: &Testbed) -> Result<CalibrationRecord, String> {
    let bytes = files::read_bounded(path, MOST_RESULT_BYTES).map_err(|error| error.to_string())?;
    let file = RunFile::from_slice(&bytes).map_err(|error| error.to_string())?;
    if file.suite != suite {
        return Err(format!("it was made for the suite {:?}, but this suite is {suite:?}", file.suite));
    }
    if file.testbed.id != testbed.id {
        return Err(format!(
            "it was measured on the testbed {}, but this machine is {}",
            file.testbed.id, testbed.id
        ));
    }
    let created: jiff::Timestamp = file
        .created
        .parse()
        .map_err(|_| format!("expected a time in `created`, found {:?}", file.created))?;
    let days = jiff::Timestamp::now().duration_since(created).as_hours() / 24;
    if days > CALIBRATION_DAYS {
        return Err(format!("it is {days} days old (the limit is {CALIBRATION_DAYS})"));
    }
    file.calibration.ok_or_else(|| "it contains no calibration".to_owned())
}
