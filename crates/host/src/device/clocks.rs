//! Locks a GPU's clock for a run and unlocks it however the run ends.
//!
//! Before a lock is taken, it is recorded in a file that every later start can see. A run that ends,
//! fails, panics or is asked to stop unlocks the clock itself and removes the file. A killed run leaves the
//! file behind; the next start undoes the recorded change once it holds the host lock, which ensures that no
//! other run is measuring.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::libc::O_NOFOLLOW;
use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};

use benchgate_core::model::GpuClock;

use super::HostLock;
use super::busy::started;
use super::gpu::Gpus;
use super::host_lock::shared_folder;

/// Prefix of the files that record locks.
const PREFIX: &str = "benchgate-clock-";
const ENDING: &str = ".json";

/// The size limit of a record; a larger file was not written by benchgate.
const MOST_BYTES: u64 = 4096;

/// Tolerance for the clock of an idle GPU: it may be slightly above the locked value, because drivers round
/// to a step.
const STEP_MHZ: u32 = 20;

/// The record of a clock lock, written before the lock is taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct WrittenLock {
    gpu: String,
    clock: GpuClock,
    pid: u32,
    /// Start time of that process, because process IDs are reused.
    started: Option<u64>,
    /// The boot in which the lock was taken: a reboot releases every lock.
    boot: String,
}

/// Locked clocks. Dropping this value unlocks them.
#[derive(Debug)]
pub struct ClockHold {
    gpus: Arc<Gpus>,
    held: Vec<(usize, PathBuf)>,
}

impl Drop for ClockHold {
    fn drop(&mut self) {
        for (index, file) in self.held.drain(..) {
            // If unlocking fails, the file stays, and the next start tries again and reports the
            // lock.
            if self.gpus.unlock_clock(index).is_ok() {
                drop(fs::remove_file(file));
            }
        }
    }
}

/// Locks the clocks of these GPUs. The host lock ensures that no other run does.
///
/// # Errors
/// The reason why a clock could not be locked; clocks that were locked before it are unlocked again.
pub fn hold_clocks(
    gpus: &Arc<Gpus>,
    indices: &[usize],
    clock: GpuClock,
    _alone: &HostLock,
) -> Result<ClockHold, String> {
    let mut hold = ClockHold { gpus: Arc::clone(gpus), held: Vec::new() };
    for index in indices {
        let Some(gpu) = gpus.list().get(*index) else { continue };
        let pid = std::process::id();
        let boot = boot_id().unwrap_or_default();
        let written = WrittenLock { gpu: gpu.id.clone(), clock, pid, started: started(pid), boot };
        let file = write_down(&shared_folder(), &written)
            .map_err(|error| format!("{}: the clock lock can't be recorded: {error}", gpu.name))?;
        if let Err(why) = gpus.lock_clock(*index, clock) {
            // Nothing was changed, so there is nothing to undo.
            drop(fs::remove_file(&file));
            return Err(format!("{}: {why}", gpu.name));
        }
        hold.held.push((*index, file));
    }
    Ok(hold)
}

/// Writes the record whole or not at all, so that a kill leaves no partial file. An existing file is not
/// replaced.
fn write_down(folder: &Path, written: &WrittenLock) -> io::Result<PathBuf> {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = written.gpu.chars().map(plain).collect();
    let path = folder.join(format!("{PREFIX}{name}{ENDING}"));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(&serde_json::to_vec(written)?)?;
    file.as_file().sync_all()?;
    file.persist_noclobber(&path).map_err(|error| error.error)?;
    Ok(path)
}

/// A clock lock whose owner may have ended without undoing it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    file: PathBuf,
    written: WrittenLock,
}

impl Leftover {
    /// Returns whether the run that took the lock is still active.
    pub fn owner_lives(&self) -> bool {
        self.written.boot == boot_id().unwrap_or_default()
            && self.written.started.is_some()
            && started(self.written.pid) == self.written.started
    }

    /// Describes the lock, for example `GPU-… was locked to its base clock by process 4711`.
    pub fn describe(&self) -> String {
        let clock = match self.written.clock {
            GpuClock::Base => "its base clock".to_owned(),
            GpuClock::Mhz(mhz) => format!("{mhz} MHz"),
        };
        format!("{} was locked to {clock} by process {}", self.written.gpu, self.written.pid)
    }
}

/// All recorded clock locks; during a run, they include the run's own.
pub fn leftover_locks() -> Vec<Leftover> {
    leftovers_in(&shared_folder())
}

fn leftovers_in(folder: &Path) -> Vec<Leftover> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<Leftover> = entries
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(ENDING))
        })
        .filter_map(|entry| Some(Leftover { written: read(&entry.path())?, file: entry.path() }))
        .collect();
    found.sort_by(|a, b| a.file.cmp(&b.file));
    found
}

/// Reads a record of this user. Every user can write to the folder, and another user's file could make us
/// change a setting that its author may not change, so only our own files are trusted.
fn read(path: &Path) -> Option<WrittenLock> {
    let file = OpenOptions::new().read(true).custom_flags(O_NOFOLLOW).open(path).ok()?;
    let about = file.metadata().ok()?;
    if !about.is_file() || about.uid() != geteuid().as_raw() || about.len() > MOST_BYTES {
        return None;
    }
    serde_json::from_reader(file).ok()
}

/// Undoes locks whose owners were killed, and returns a message about each. `_alone` proves that no owner is
/// still measuring.
pub fn undo_leftovers(leftovers: Vec<Leftover>, gpus: &Gpus, _alone: &HostLock) -> Vec<String> {
    let boot = boot_id().unwrap_or_default();
    leftovers.into_iter().map(|leftover| undo(&leftover, gpus, &boot)).collect()
}

fn undo(leftover: &Leftover, gpus: &Gpus, boot: &str) -> String {
    let what = leftover.describe();
    let WrittenLock { gpu, clock, boot: then, .. } = &leftover.written;
    if then != boot {
        drop(fs::remove_file(&leftover.file));
        return format!("{what}; the machine has rebooted since, which undid the lock");
    }
    if leftover.owner_lives() {
        return format!("{what}, which still runs, so the lock was not changed");
    }
    let Some(index) = gpus.list().iter().position(|known| known.id == *gpu) else {
        return format!(
            "{what}, which was killed; this GPU is not available now, so the lock can't be undone"
        );
    };
    // NVML does not report locks. If the clock is above the locked value, another program has
    // changed the setting since, so this setting must not be undone.
    let now = gpus.read(index).clock_mhz;
    if let (GpuClock::Mhz(mhz), Some(now)) = (clock, now)
        && now > mhz.saturating_add(STEP_MHZ)
    {
        drop(fs::remove_file(&leftover.file));
        return format!(
            "{what}, which was killed; the GPU runs at {now} MHz now, so another program has changed the clock since"
        );
    }
    match gpus.unlock_clock(index) {
        Ok(()) => {
            drop(fs::remove_file(&leftover.file));
            format!("{what}, which was killed; benchgate unlocked the clock")
        }
        Err(why) => format!("{what}, which was killed; the clock could not be unlocked: {why}"),
    }
}

fn boot_id() -> Option<String> {
    Some(fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(boot: &str) -> WrittenLock {
        WrittenLock {
            gpu: "GPU-1/..".into(),
            clock: GpuClock::Mhz(1410),
            pid: 7,
            started: None,
            boot: boot.into(),
        }
    }

    #[test]
    fn a_lock_is_written_down_under_a_plain_name_and_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = write_down(folder.path(), &written("b")).unwrap();
        assert_eq!(file.file_name().unwrap(), "benchgate-clock-GPU-1___.json");
        let found = leftovers_in(folder.path());
        assert_eq!(found, [Leftover { file, written: written("b") }]);
        assert_eq!(found[0].describe(), "GPU-1/.. was locked to 1410 MHz by process 7");
        assert!(write_down(folder.path(), &written("b")).is_err(), "a second owner");
    }

    #[test]
    fn a_restart_has_undone_it_and_a_gpu_that_is_gone_is_kept_in_mind() {
        let folder = tempfile::tempdir().unwrap();
        write_down(folder.path(), &written("old")).unwrap();
        let [leftover] = leftovers_in(folder.path()).try_into().unwrap();
        let said = undo(&leftover, &Gpus::default(), "old");
        assert!(said.contains("not available now"), "{said}");
        assert_eq!(leftovers_in(folder.path()).len(), 1);
        let said = undo(&leftover, &Gpus::default(), "new");
        assert!(said.contains("rebooted since"), "{said}");
        assert!(leftovers_in(folder.path()).is_empty());
    }

    #[test]
    fn links_and_nonsense_are_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("elsewhere");
        fs::write(&target, serde_json::to_vec(&written("b")).unwrap()).unwrap();
        std::os::unix::fs::symlink(&target, folder.path().join("benchgate-clock-a.json")).unwrap();
        fs::write(folder.path().join("benchgate-clock-b.json"), "{}").unwrap();
        fs::write(folder.path().join("benchgate-clock-c.json"), vec![b' '; 5000]).unwrap();
        assert!(leftovers_in(folder.path()).is_empty());
    }

    #[test]
    fn another_users_file_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let file = write_down(folder.path(), &written("b")).unwrap();
        // Only root can change the owner of a file, so a file belongs to the user who created it.
        let given = std::os::unix::fs::chown(&file, Some(65_534), None).is_ok();
        assert_eq!(leftovers_in(folder.path()).is_empty(), given);
    }
}
