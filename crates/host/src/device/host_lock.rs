//! Ensures that only one job at a time measures on a device, across all users.
//!
//! The lock is a kernel lock (`flock`), so it is released however its holder ends. The lock file is empty:
//! the holder is read from the kernel's list of locks, which no program can forge. Waiting jobs are in that
//! list too: each locks the byte whose number is its time of arrival (`Place`), and they take turns in this
//! order.

use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc::{self, O_NOFOLLOW};
use nix::unistd::User;

use crate::process::Cancel;
use benchgate_core::model::{Event, Progress, clean, counted};

/// Folders that every user of a machine shares, the preferred one first. Containers have their own, so jobs in two
/// containers do not see each other unless they share one of these.
const FOLDERS: &[&str] = &["/run/lock", "/var/lock", "/tmp"];

/// The environment variable that names another such folder: one that containers share, or a test's.
const FOLDER_VARIABLE: &str = "BENCHGATE_LOCK_DIR";

/// Pause between two checks of the lock. Short compared with any measurement.
const POLL: Duration = Duration::from_millis(400);

/// The time that the lock has to stay free before a job overtakes earlier jobs, which may be
/// suspended.
const PASSED_AFTER: Duration = Duration::from_secs(5);

/// Time after which a waiting job repeats its message for the first time.
const REPEAT: Duration = Duration::from_secs(30);

/// The time at which a job that has waited for `waited` repeats its message: after 30 s, 1 and 2 minutes, and
/// then every 5 minutes.
fn next_message(waited: Duration, repeat: Duration) -> Duration {
    let mut early = [1_u32, 2, 4].into_iter().map(|times| times * repeat);
    early.find(|at| *at > waited).unwrap_or(waited + 10 * repeat)
}

/// The reason why the device could not be reserved.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    #[error("lock {device} with {}: {source}", path.display())]
    Lock { device: String, path: PathBuf, source: io::Error },
    #[error("lock {device}: interrupted")]
    Interrupted { device: String },
    #[error("lock {device}: {holder} still holds {} after {} s", path.display(), waited.as_secs())]
    Held { device: String, path: PathBuf, holder: String, waited: Duration },
}

/// The right to measure on a device. The right ends when this value is dropped or the process ends.
#[derive(Debug)]
pub struct HostLock {
    _file: File,
}

/// Waits for the right to measure on this machine's processors. `limit` bounds the wait, because any user of
/// the machine can hold the lock indefinitely.
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

/// The folder for locks that every user of this machine sees.
pub(super) fn shared_folder() -> PathBuf {
    // If this folder can't be created, taking the lock fails with an error that names it. Falling back to
    // another folder could let two jobs measure at the same time.
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
    let place = Place::last(&path).map_err(failed)?;
    let mut announce_at: Option<Duration> = None;
    let mut free: Option<Instant> = None;
    let started = Instant::now();
    loop {
        let earlier = place.earlier();
        match file.try_lock() {
            Ok(()) if earlier == 0 || free.is_some_and(|free| free.elapsed() >= PASSED_AFTER) => {
                return Ok(HostLock { _file: file });
            }
            Ok(()) => {
                file.unlock().map_err(failed)?;
                free = free.or(Some(Instant::now()));
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
            Err(TryLockError::WouldBlock) => free = None,
        }
        let who = match holder(&file) {
            Some(holder) => described(holder),
            None if free.is_some() => "a job that started earlier".to_owned(),
            None => "a process of another container".to_owned(),
        };
        if limit.is_some_and(|limit| started.elapsed() >= limit) {
            let waited = started.elapsed();
            return Err(DeviceError::Held { device: device.to_owned(), path, holder: who, waited });
        }
        let passed = started.elapsed();
        if announce_at.is_none_or(|at| passed >= at) {
            let waited = passed.as_secs();
            let queue = match earlier {
                0 => String::new(),
                _ => format!(", and {} before this one", counted(earlier, "other job")),
            };
            progress.on(Event::Note(&match (announce_at, limit) {
                (None, _) => format!("{who} is measuring on this {device}; waiting for it{queue}"),
                (_, None) => {
                    format!("still waiting for {who}{queue} ({waited} s); `--lock-timeout` limits it")
                }
                (_, Some(limit)) => {
                    format!("still waiting for {who}{queue} ({waited} s of {} s)", limit.as_secs())
                }
            }));
            announce_at = Some(next_message(passed, repeat));
        }
        tokio::select! {
            () = tokio::time::sleep(POLL) => {}
            () = cancel.requested() => return Err(DeviceError::Interrupted { device: device.to_owned() }),
        }
    }
}

/// A job's place in the queue for a lock. The kernel removes it when this value is dropped or when the
/// process ends.
struct Place {
    file: File,
    came: i64,
}

impl Place {
    /// Takes the last place in the queue. If the clock was set back, jobs only get the lock in a different
    /// order.
    fn last(path: &Path) -> io::Result<Self> {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self::at(open(path)?, i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
    }

    fn at(file: File, came: i64) -> io::Result<Self> {
        // Read locks don't exclude each other, and don't need write permission for the file.
        let byte = libc::flock {
            l_type: libc::F_RDLCK as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: came,
            l_len: 1,
            l_pid: 0,
        };
        match fcntl(&file, FcntlArg::F_OFD_SETLK(&byte)) {
            // Without support for such locks there is no queue.
            Ok(_) | Err(Errno::EINVAL) => Ok(Self { file, came }),
            Err(errno) => Err(errno.into()),
        }
    }

    /// The number of jobs that came earlier and still wait; 0 if the system does not show them.
    fn earlier(&self) -> usize {
        let count = || {
            let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
            self.file.metadata().map_or(0, |found| count_earlier(&locks, found.ino(), self.came))
        };
        // The kernel writes the list in parts, and can leave out a lock while others come and go.
        match count() {
            0 => count(),
            found => found,
        }
    }
}

/// Opens the lock file, or creates it with access for every user. A symbolic link in its place is not
/// followed, because every user can write to these folders.
fn open(path: &Path) -> io::Result<File> {
    let existing = || OpenOptions::new().read(true).custom_flags(O_NOFOLLOW).open(path);
    match existing() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        result => return result,
    }
    // The file is created only if it is still missing: `fs.protected_regular` forbids opening another user's
    // file with O_CREAT in such a folder.
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

/// Describes the process that is measuring on this machine now. Does not wait, and does not create the lock
/// file.
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

/// Describes a process by its number, program, user and folder, as far as the system shows them.
fn described(pid: u32) -> String {
    let proc = PathBuf::from(format!("/proc/{pid}"));
    let name = std::fs::read_to_string(proc.join("comm")).unwrap_or_default();
    let name = clean(name.trim());
    let Some(found) = std::fs::metadata(&proc).ok().filter(|_| !name.is_empty()) else {
        return format!("process {pid}");
    };
    let user = match User::from_uid(found.uid().into()) {
        Ok(Some(user)) => clean(&user.name),
        Ok(None) | Err(_) => found.uid().to_string(),
    };
    // Another user's folder is not visible.
    let folder = std::fs::read_link(proc.join("cwd"));
    let folder = folder.map_or_else(|_| String::new(), |at| format!(", in {}", clean(&at.to_string_lossy())));
    format!("process {pid} ({name}, user {user}{folder})")
}

/// The process that holds the lock on a file, from `/proc/locks`. `None` if the kernel does not
/// show the process, because it is in another container.
fn holder(file: &File) -> Option<u32> {
    let inode = file.metadata().ok()?.ino();
    find_holder(&std::fs::read_to_string("/proc/locks").ok()?, inode)
}

/// The holder, from lines like `1: FLOCK  ADVISORY  WRITE 4711 fe:00:393228 0 EOF`. Lines of waiting
/// processes have an arrow.
fn find_holder(locks: &str, inode: u64) -> Option<u32> {
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, "FLOCK", _, "WRITE", pid, place, ..] = fields.as_slice() else { return None };
        let number = place.rsplit(':').next()?.parse::<u64>().ok()?;
        (number == inode).then(|| pid.parse().ok()).flatten()
    })
}

/// The number of earlier places, from lines like `2: OFDLCK ADVISORY  READ -1 fe:00:393228
/// 1795724931059202660 1795724931059202660`.
fn count_earlier(locks: &str, inode: u64, came: i64) -> usize {
    let earlier = locks.lines().filter(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, "OFDLCK", _, "READ", _, place, start, _] = fields.as_slice() else { return false };
        let number = place.rsplit(':').next().and_then(|number| number.parse::<u64>().ok());
        number == Some(inode) && start.parse::<i64>().is_ok_and(|start| start < came)
    });
    earlier.count()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use benchgate_core::model::Quiet;

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
    async fn jobs_get_the_lock_in_the_order_in_which_they_came() {
        let folder = tempfile::tempdir().unwrap();
        let (cancel, notes) = (Cancel::new(), Notes::default());
        let first = lock_in(folder.path(), "host", None, REPEAT, &Quiet, &cancel).await.unwrap();
        let order = Mutex::new(Vec::new());
        let job = |number: usize| {
            let (folder, cancel, notes, order) = (&folder, &cancel, &notes, &order);
            async move {
                // Each job starts once the previous one is waiting.
                while notes.0.lock().unwrap().len() < number {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                let _held = lock_in(folder.path(), "host", None, REPEAT, notes, cancel).await.unwrap();
                order.lock().unwrap().push(number);
            }
        };
        let released = async {
            while notes.0.lock().unwrap().len() < 6 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            drop(first);
        };
        tokio::join!(job(5), job(4), job(3), job(2), job(1), job(0), released);
        assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4, 5]);
        let last = notes.0.lock().unwrap().pop().unwrap();
        assert!(
            last.ends_with("is measuring on this host; waiting for it, and 5 other jobs before this one"),
            "{last}"
        );
    }

    #[tokio::test]
    async fn a_job_passes_a_suspended_one_that_came_earlier() {
        let folder = tempfile::tempdir().unwrap();
        let _suspended = Place::at(open(&folder.path().join("benchgate-host.lock")).unwrap(), 0).unwrap();
        let started = Instant::now();
        lock_in(folder.path(), "host", None, REPEAT, &Quiet, &Cancel::new()).await.unwrap();
        assert!(started.elapsed() >= PASSED_AFTER);
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
            // Waits for the second note instead of a fixed time, because a busy machine may need long for it.
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
    fn a_waiting_job_repeats_its_message_less_and_less_often() {
        let mut at = Duration::ZERO;
        let times = [30, 60, 120, 420, 720].map(|seconds| {
            at = next_message(at, REPEAT);
            (at.as_secs(), seconds)
        });
        assert!(times.iter().all(|(at, expected)| at == expected), "{times:?}");
    }

    #[test]
    fn a_holder_is_described_by_its_user_and_its_folder() {
        let user = User::from_uid(nix::unistd::geteuid()).unwrap().unwrap();
        let folder = std::env::current_dir().unwrap();
        let end = format!(", user {}, in {})", user.name, folder.display());
        let said = described(std::process::id());
        assert!(said.ends_with(&end), "{said}");
    }

    #[test]
    fn a_waiting_process_is_not_the_holder() {
        let locks = "1: FLOCK  ADVISORY  WRITE 4711 fe:00:393228 0 EOF\n1: -> FLOCK  ADVISORY  WRITE 12 fe:00:393228 0 EOF\n";
        assert_eq!(find_holder(locks, 393_228), Some(4711));
        assert_eq!(find_holder(locks, 1), None);
    }
}
