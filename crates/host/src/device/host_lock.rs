//! One measurement at a time on a device, across jobs and users.
//!
//! A lock of the kernel (`flock`), so that it is released however its holder ends. The file itself is
//! empty: its holder is read from the kernel's own list, which no program can forge.

use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::libc::O_NOFOLLOW;

use crate::process::Cancel;
use benchgate_core::model::{Event, Progress, clean};

/// Folders that every user of a machine shares, the preferred one first. Containers have their own, so jobs in two
/// containers do not see each other unless they share one of these.
const FOLDERS: &[&str] = &["/run/lock", "/var/lock", "/tmp"];

/// Names another such folder: one that containers share, or a test's own.
const FOLDER_VARIABLE: &str = "BENCHGATE_LOCK_DIR";

/// Pause between two checks of the lock by a job that came now. Short compared with any measurement.
const POLL: Duration = Duration::from_millis(400);

/// The pause of one that has waited for ten minutes.
const LEAST_POLL: Duration = Duration::from_millis(20);

/// How often a waiting job says so.
const REPEAT: Duration = Duration::from_secs(30);

/// The device could not be reserved.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    #[error("lock {device} with {}: {source}", path.display())]
    Lock { device: String, path: PathBuf, source: io::Error },
    #[error("lock {device}: interrupted")]
    Interrupted { device: String },
    #[error("lock {device}: {holder} still holds {} after {} s", path.display(), waited.as_secs())]
    Held { device: String, path: PathBuf, holder: String, waited: Duration },
}

/// The right to measure. It is released when dropped or when the process ends.
#[derive(Debug)]
pub struct HostLock {
    _file: File,
}

/// Waits for the right to measure on this machine's processors, at most for `limit`: any user of the machine can
/// hold the lock for as long as they like.
///
/// # Errors
/// The lock file can't be used, `cancel` was raised, or another process still holds it after `limit`.
pub async fn lock_host(
    limit: Option<Duration>,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<HostLock, DeviceError> {
    lock("host", limit, progress, cancel).await
}

/// Waits for the lock of a device, and reports its holder.
pub async fn lock(
    device: &str,
    limit: Option<Duration>,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<HostLock, DeviceError> {
    let folder = shared_folder();
    std::fs::create_dir_all(&folder).map_err(|source| DeviceError::Lock {
        device: device.to_owned(),
        path: folder.clone(),
        source,
    })?;
    lock_in(&folder, device, limit, REPEAT, progress, cancel).await
}

/// The folder that every user of this machine sees.
pub(super) fn shared_folder() -> PathBuf {
    // If a named folder can't be created, taking the lock fails and names it: measuring while another job runs would
    // be worse.
    std::env::var_os(FOLDER_VARIABLE).filter(|named| !named.is_empty()).map_or_else(
        || FOLDERS.iter().map(PathBuf::from).find(|folder| folder.is_dir()).unwrap_or(PathBuf::from("/tmp")),
        PathBuf::from,
    )
}

async fn lock_in(
    folder: &Path,
    device: &str,
    limit: Option<Duration>,
    repeat: Duration,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<HostLock, DeviceError> {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let path = folder.join(format!("benchgate-{}.lock", device.chars().map(plain).collect::<String>()));
    let failed = |source| DeviceError::Lock { device: device.to_owned(), path: path.clone(), source };
    let file = open(&path).map_err(failed)?;
    let mut announced: Option<Instant> = None;
    let started = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(HostLock { _file: file }),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
            Err(TryLockError::WouldBlock) => {}
        }
        let holder = holder(&file);
        let who = holder.map_or_else(|| "a process of another container".to_owned(), described);
        if limit.is_some_and(|limit| started.elapsed() >= limit) {
            let waited = started.elapsed();
            return Err(DeviceError::Held { device: device.to_owned(), path, holder: who, waited });
        }
        if announced.is_none_or(|announced| announced.elapsed() >= repeat) {
            let waited = started.elapsed().as_secs();
            progress.on(Event::Note(&match (announced, limit) {
                (None, _) => format!("{who} is measuring on this {device}; waiting for it"),
                (_, None) => format!("still waiting for {who} ({waited} s); `--lock-timeout` limits it"),
                (_, Some(limit)) => format!("still waiting for {who} ({waited} s of {} s)", limit.as_secs()),
            }));
            announced = Some(Instant::now());
        }
        tokio::select! {
            () = tokio::time::sleep(pause(started.elapsed())) => {}
            () = cancel.requested() => return Err(DeviceError::Interrupted { device: device.to_owned() }),
        }
    }
}

/// The lock has no queue: whoever checks it first after its release has it. So the longer a job has waited, the more often
/// it checks, and jobs that come later seldom overtake it.
fn pause(waited: Duration) -> Duration {
    const HALVED_AFTER: Duration = Duration::from_secs(30);
    let share = HALVED_AFTER.as_secs_f64() / (HALVED_AFTER + waited).as_secs_f64();
    POLL.mul_f64(share).max(LEAST_POLL)
}

/// Opens the lock file, or creates it for every user. A link in its place is not followed, because every user can
/// write to these folders.
fn open(path: &Path) -> io::Result<File> {
    let existing = || OpenOptions::new().read(true).custom_flags(O_NOFOLLOW).open(path);
    match existing() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        result => return result,
    }
    // Created only if still missing: opening another user's file with O_CREAT in such a folder is what
    // `fs.protected_regular` forbids.
    let made = OpenOptions::new().write(true).create_new(true).custom_flags(O_NOFOLLOW).open(path);
    match made {
        Ok(file) => {
            file.set_permissions(Permissions::from_mode(0o444))?;
            existing()
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => existing(),
        Err(error) => Err(error),
    }
}

/// Describes who is measuring on this machine now. Does not wait, and does not create the file.
pub fn measuring_now() -> Option<String> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(O_NOFOLLOW)
        .open(shared_folder().join("benchgate-host.lock"))
        .ok()?;
    // Dropping the file releases a lock that this check may have taken.
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            Some(holder(&file).map_or_else(|| "a process of another container".to_owned(), described))
        }
        Ok(()) | Err(TryLockError::Error(_)) => None,
    }
}

/// Describes a process: its number, its program and its user, as far as the system shows them.
fn described(pid: u32) -> String {
    let proc = PathBuf::from(format!("/proc/{pid}"));
    let name = std::fs::read_to_string(proc.join("comm")).unwrap_or_default();
    let name = clean(name.trim());
    match std::fs::metadata(&proc) {
        Ok(found) if !name.is_empty() => format!("process {pid} ({name}, user {})", found.uid()),
        _ => format!("process {pid}"),
    }
}

/// The process that holds the lock on a file, by `/proc/locks`. `None` if the kernel does not show it (another
/// container's).
fn holder(file: &File) -> Option<u32> {
    let inode = file.metadata().ok()?.ino();
    find_holder(&std::fs::read_to_string("/proc/locks").ok()?, inode)
}

/// From lines like `1: FLOCK  ADVISORY  WRITE 4711 fe:00:393228 0 EOF`; waiting ones have an arrow.
fn find_holder(locks: &str, inode: u64) -> Option<u32> {
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, "FLOCK", _, "WRITE", pid, place, ..] = fields.as_slice() else { return None };
        let number = place.rsplit(':').next()?.parse::<u64>().ok()?;
        (number == inode).then(|| pid.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use benchgate_core::model::Quiet;

    #[test]
    fn a_job_that_waited_long_checks_the_lock_far_more_often_than_one_that_came_now() {
        let pauses = [0, 30, 300, 600, 36_000].map(|seconds| pause(Duration::from_secs(seconds)));
        assert!(pauses.is_sorted_by(|earlier, later| earlier >= later), "{pauses:?}");
        assert!(pauses[0] >= 15 * pauses[3], "{pauses:?}");
    }

    #[derive(Default)]
    struct Notes(Mutex<Vec<String>>);

    impl Progress for Notes {
        fn on(&self, event: Event<'_>) {
            if let Event::Note(text) = event {
                self.0.lock().unwrap().push(text.to_owned());
            }
        }
    }

    #[tokio::test]
    async fn the_second_job_waits_says_for_whom_and_gets_its_turn() {
        let folder = tempfile::tempdir().unwrap();
        let cancel = Cancel::new();
        let first = lock_in(folder.path(), "host", None, REPEAT, &Quiet, &cancel).await.unwrap();
        let notes = Notes::default();
        let second = lock_in(folder.path(), "host", None, REPEAT, &notes, &cancel);
        tokio::pin!(second);
        let early = tokio::time::timeout(Duration::from_millis(300), &mut second).await;
        assert!(early.is_err());
        drop(first);
        second.await.unwrap();
        let expected = format!("{} is measuring on this host; waiting for it", described(std::process::id()));
        assert_eq!(*notes.0.lock().unwrap(), [expected]);
    }

    #[tokio::test]
    async fn a_job_that_waits_for_long_says_so_again_with_the_time() {
        let folder = tempfile::tempdir().unwrap();
        let cancel = Cancel::new();
        let _first = lock_in(folder.path(), "host", None, REPEAT, &Quiet, &cancel).await.unwrap();
        let who = described(std::process::id());
        for (limit, end) in [(None, " s); `--lock-timeout` limits it"), (Some(REPEAT), " s of 30 s)")] {
            let notes = Notes::default();
            let second = lock_in(folder.path(), "host", limit, Duration::from_millis(1), &notes, &cancel);
            // However long a busy machine needs for it: the second note comes, and the lock does not.
            let said_twice = async {
                while notes.0.lock().unwrap().len() < 2 {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            tokio::select! {
                ended = second => panic!("{ended:?}"),
                () = said_twice => {}
            }
            let notes = notes.0.into_inner().unwrap();
            assert_eq!(notes[0], format!("{who} is measuring on this host; waiting for it"));
            let again = &notes[1];
            assert!(
                again.starts_with(&format!("still waiting for {who} (")) && again.ends_with(end),
                "{again}"
            );
        }
    }

    #[tokio::test]
    async fn a_lock_that_is_held_for_too_long_is_an_error_that_names_its_holder() {
        let folder = tempfile::tempdir().unwrap();
        let cancel = Cancel::new();
        let _first = lock_in(folder.path(), "host", None, REPEAT, &Quiet, &cancel).await.unwrap();
        let limit = Some(Duration::from_millis(250));
        let error = lock_in(folder.path(), "host", limit, REPEAT, &Quiet, &cancel).await.unwrap_err();
        let DeviceError::Held { holder, .. } = &error else { panic!("{error}") };
        assert!(holder.starts_with(&format!("process {} (", std::process::id())), "{holder}");
        assert!(error.to_string().contains("benchgate-host.lock"), "{error}");
    }

    #[tokio::test]
    async fn devices_do_not_wait_for_each_other_and_waiting_can_be_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let cancel = Cancel::new();
        let _host = lock_in(folder.path(), "host", None, REPEAT, &Quiet, &cancel).await.unwrap();
        let _gpu = lock_in(folder.path(), "cuda://GPU-1/..", None, REPEAT, &Quiet, &cancel).await.unwrap();
        cancel.request();
        let stopped = lock_in(folder.path(), "host", None, REPEAT, &Quiet, &cancel).await.unwrap_err();
        assert_eq!(stopped.to_string(), "lock host: interrupted");
    }

    #[tokio::test]
    async fn a_link_in_place_of_the_lock_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("benchgate-host.lock")).unwrap();
        assert!(lock_in(folder.path(), "host", None, REPEAT, &Quiet, &Cancel::new()).await.is_err());
    }

    #[test]
    fn a_waiting_process_is_not_the_holder() {
        let locks = "1: FLOCK  ADVISORY  WRITE 4711 fe:00:393228 0 EOF\n1: -> FLOCK  ADVISORY  WRITE 12 fe:00:393228 0 EOF\n";
        assert_eq!(find_holder(locks, 393_228), Some(4711));
        assert_eq!(find_holder(locks, 1), None);
    }
}
