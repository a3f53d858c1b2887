//! A cgroup (version 2) for one tool, if this machine allows creating one.
//!
//! Killing a cgroup ends even a fork bomb that creates processes faster than they can be listed. This needs
//! no controller, only permission to create a folder below our own cgroup.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Prefix of cgroups created by benchgate.
const PREFIX: &str = "benchgate-";

/// Set once a tool could not be moved into a cgroup although the cgroup was created, which happens with some
/// delegations. Cgroups are not used from then on.
static REFUSED: AtomicBool = AtomicBool::new(false);

/// A cgroup created by benchgate. benchgate and the supervisor share its lock while either of them may clean
/// it up, so another process that gets the lock knows that both are gone.
#[derive(Debug)]
pub(super) struct Cgroup {
    pub(super) path: PathBuf,
    /// A process that writes `0` here moves into the cgroup.
    pub(super) procs: File,
    /// Writing `1` kills every member (Linux 5.14). Absent on older kernels.
    pub(super) kill: Option<File>,
    pub(super) lock: File,
}

impl Cgroup {
    /// Creates a cgroup below our own; `None` if that is not possible.
    pub(super) fn make() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let base = base()?;
        if REFUSED.load(Ordering::Relaxed) {
            return None;
        }
        // Another container that shares this part of the tree may use the same process ID, so try
        // the next name if the folder exists.
        for _ in 0..16 {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = base.join(format!("{PREFIX}{}-{number}", std::process::id()));
            match std::fs::create_dir(&path) {
                Ok(()) => return Self::open(path),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(_) => return None,
            }
        }
        None
    }

    fn open(path: PathBuf) -> Option<Self> {
        let open = || {
            let lock = File::open(&path).ok()?;
            lock.try_lock().ok()?;
            let procs = OpenOptions::new().write(true).open(path.join("cgroup.procs")).ok()?;
            let kill = OpenOptions::new().write(true).open(path.join("cgroup.kill")).ok();
            Some((procs, kill, lock))
        };
        match open() {
            Some((procs, kill, lock)) => Some(Self { path, procs, kill, lock }),
            None => {
                remove(&path);
                None
            }
        }
    }

    /// Kills every member. Needed only if the supervisor, which usually does this, was killed itself.
    pub(super) fn kill(&self) {
        if let Some(kill) = &self.kill {
            drop(std::io::Write::write_all(&mut &*kill, b"1"));
        }
    }

    /// Records that tools can't be moved into cgroups on this machine.
    pub(super) fn refuse() {
        REFUSED.store(true, Ordering::Relaxed);
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Removes an empty cgroup. Errors are ignored: usually the supervisor has removed it already, and one that still has
/// members is left to the next sweep.
fn remove(path: &Path) {
    drop(std::fs::remove_dir(path));
}

/// The folder of our own cgroup, if folders can be created in it.
pub(super) fn base() -> Option<&'static Path> {
    static BASE: OnceLock<Option<PathBuf>> = OnceLock::new();
    BASE.get_or_init(|| {
        let base = own()?;
        sweep(&base);
        let probe = base.join(format!("{PREFIX}{}-probe", std::process::id()));
        std::fs::create_dir(&probe).ok()?;
        remove(&probe);
        Some(base)
    })
    .as_deref()
}

/// The folder of our own cgroup, if it is visible.
pub(super) fn own() -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let membership = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    locate(&mounts, &membership)
}

/// Finds our own cgroup in the text of `/proc/self/mountinfo` and `/proc/self/cgroup`.
fn locate(mounts: &str, membership: &str) -> Option<PathBuf> {
    let own = membership.lines().find_map(|line| line.strip_prefix("0::"))?;
    // A path with `..` leads out of our cgroup namespace, to a folder that this mount does not show.
    if own.contains("..") {
        return None;
    }
    mounts.lines().find_map(|line| {
        let (fields, file_system) = line.split_once(" - ")?;
        if file_system.split(' ').next() != Some("cgroup2") {
            return None;
        }
        let mut fields = fields.split(' ').skip(3);
        let (root, mount) = (fields.next()?, fields.next()?);
        let below = if root == "/" { own } else { own.strip_prefix(root)? };
        Some(Path::new(mount).join(below.trim_start_matches('/')))
    })
}

/// Removes cgroups that remained because benchgate was killed together with its supervisors. A free lock
/// shows that no owner is alive, and only benchgate uses this prefix.
fn sweep(base: &Path) {
    let Ok(entries) = std::fs::read_dir(base) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let path = entry.path();
        let Ok(lock) = File::open(&path) else { continue };
        if lock.try_lock().is_ok() {
            drop(std::fs::write(path.join("cgroup.kill"), "1"));
            remove(&path);
        }
    }
}

/// The means by which a tool's process tree is contained, strongest first. Each includes the weaker ones
/// below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Containment {
    /// Each tool gets a cgroup below `base`, and `cgroup.kill` ends even a fork bomb.
    Cgroup { base: PathBuf },
    /// The supervisor adopts and kills every orphan, including processes that escaped by `setsid` or a double
    /// fork.
    Subreaper,
    /// The kernel does not list children (no `CONFIG_PROC_CHILDREN`), so only the process group can be ended.
    /// Processes that leave the group are not found.
    ProcessGroup,
}

impl fmt::Display for Containment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cgroup { base } => write!(f, "a cgroup below {} for each tool", base.display()),
            Self::Subreaper => f.write_str("a subreaper and a process group for each tool (no cgroup)"),
            Self::ProcessGroup => {
                f.write_str("a process group for each tool (no cgroup, no list of children)")
            }
        }
    }
}

/// The containment in use on this machine. Creates and removes a cgroup to find out.
pub fn containment() -> Containment {
    if let (Some(_made), Some(base)) = (Cgroup::make(), base()) {
        return Containment::Cgroup { base: base.to_owned() };
    }
    if Path::new("/proc/thread-self/children").exists() {
        Containment::Subreaper
    } else {
        Containment::ProcessGroup
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIFIED: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn the_own_cgroup_is_found_below_the_mount() {
        let session = "0::/user.slice/user-1000.slice/session-2.scope\n";
        let expected = "/sys/fs/cgroup/user.slice/user-1000.slice/session-2.scope";
        assert_eq!(locate(UNIFIED, session), Some(PathBuf::from(expected)));
    }

    #[test]
    fn a_hybrid_mount_is_found_next_to_version_1() {
        let mounts = "40 30 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      41 30 0:31 / /sys/fs/cgroup/unified rw - cgroup2 none rw\n";
        let membership = "4:memory:/somewhere\n0::/\n";
        assert_eq!(locate(mounts, membership), Some(PathBuf::from("/sys/fs/cgroup/unified/")));
    }

    #[test]
    fn a_mount_of_a_subtree_shows_only_what_is_below_its_root() {
        let mounts = "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup ro\n";
        let inside = locate(mounts, "0::/docker/abc/job\n");
        assert_eq!(inside, Some(PathBuf::from("/sys/fs/cgroup/job")));
        assert_eq!(locate(mounts, "0::/elsewhere\n"), None);
        assert_eq!(locate(UNIFIED, "0::/../other\n"), None);
    }
}
