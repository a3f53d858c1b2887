//! Runs several short processes in one slot of the schedule. The time of a short process depends on the
//! scheduler, so a command that is timed as a whole is started repeatedly until its slot is long enough. The
//! slot remains the sampling unit; its processes count like the repetitions in a process that measures
//! itself.

use std::path::Path;
use std::time::Duration;

use benchgate_config::OutputReading;
use benchgate_host::process::Finished;
use benchgate_ingest::FileContent;

use super::super::PipelineError;
use super::super::host::Host;
use super::reading::needs_format;
use super::{CommandOutput, CommandRows, PreparedCommand, read};

/// Minimum duration of a slot. Shorter processes are run several times in one slot.
const SLOT: Duration = Duration::from_millis(500);

/// Maximum number of processes per slot, because starting a process takes milliseconds too.
const MOST: u32 = 50;

impl PreparedCommand {
    /// The number of processes in a slot, based on the duration of one: the shorter of `warmed` and one more
    /// process.
    pub(crate) async fn processes_per_slot(
        &self,
        host: &Host<'_>,
        log: &Path,
        output: &Path,
        warmed: Option<Finished>,
    ) -> Result<u32, PipelineError> {
        if let OutputReading::Format(_) = self.spec.reading {
            return Ok(1);
        }
        let mut least = Duration::MAX;
        for finished in [warmed, None] {
            let finished = match finished {
                Some(finished) => finished,
                None => self.unmeasured(host, log, output, false).await?,
            };
            // In a suite, only the command's own benchmark fails.
            if self.rows == CommandRows::AsPrinted && needs_format(self, &finished, output) {
                return Err(PipelineError::UnknownOutput(FileContent::Directionless));
            }
            least = least.min(undisturbed(finished.wall, finished.user + finished.system));
            let is_whole = read(self, &finished, output).is_ok_and(|read| read.printed.format.is_none());
            if !is_whole || least >= SLOT {
                return Ok(1);
            }
        }
        Ok(fitting(least))
    }
}

/// The number of processes of this length that fill a slot.
fn fitting(length: Duration) -> u32 {
    let fitting = SLOT.as_nanos().div_ceil(length.as_nanos().max(1));
    u32::try_from(fitting).unwrap_or(MOST).min(MOST)
}

/// Estimates how long a process takes on an idle machine. On a loaded machine it also waits for a processor,
/// but then its slot should not contain fewer processes, because each is less accurate. A process that sleeps
/// or reads from a disk also uses little processor time, so at most two thirds of its time count as waiting.
fn undisturbed(wall: Duration, busy: Duration) -> Duration {
    busy.clamp(wall / MOST_WAITING, wall)
}

/// Maximum ratio of a process's wall-clock time to its estimated undisturbed time.
const MOST_WAITING: u32 = 3;

/// Adds the measurements of the next process to its slot.
///
/// # Errors
/// The reason why the process did not measure the same thing.
pub(crate) fn joined(slot: Option<CommandOutput>, next: CommandOutput) -> Result<CommandOutput, String> {
    let Some(mut slot) = slot else { return Ok(next) };
    let is_whole = |output: &CommandOutput| output.printed.format.is_none();
    if !is_whole(&slot) || !is_whole(&next) {
        return Err("the command is timed as a whole, but one of its processes printed benchmarks".to_owned());
    }
    for (into, row) in slot.printed.rows.iter_mut().zip(&next.printed.rows) {
        for (metric, values) in row.samples.iter() {
            match into.samples.get_mut(metric) {
                Some(samples) => samples.extend(values),
                None => into.samples.insert(metric.to_owned(), values.to_vec()),
            }
        }
        let new: Vec<_> = row.lints.iter().filter(|lint| !into.lints.contains(lint)).cloned().collect();
        into.lints.extend(new);
    }
    Ok(slot)
}

/// Combines the last process of a slot with the time and memory of those before it.
pub(crate) fn together(before: &Finished, last: Finished) -> Finished {
    Finished {
        wall: before.wall + last.wall,
        user: before.user + last.user,
        system: before.system + last.system,
        peak_memory_bytes: before.peak_memory_bytes.max(last.peak_memory_bytes),
        ..last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loaded_machine_does_not_empty_the_slot_of_a_busy_process() {
        let processes =
            |wall, busy| fitting(undisturbed(Duration::from_millis(wall), Duration::from_millis(busy)));
        assert_eq!(processes(50, 50), 10);
        assert_eq!(processes(100, 50), 10, "it waited for a processor");
        assert_eq!(processes(50, 100), 10, "it has two threads");
        assert_eq!(processes(150, 1), 10, "it sleeps");
        assert_eq!(processes(1, 1), MOST);
    }
}
