//! The files that an observed program used, and how its supervisor passes them to benchgate.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::{FromRawFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use nix::libc;
use nix::sys::memfd::{MFdFlags, memfd_create};

/// Files and folders that a program read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Opened {
    /// Files that the program opened, and names that it looked for and may not have found. Excludes
    /// files that the program had written itself, and files of the kernel (`/proc`, `/sys`,
    /// `/dev`).
    pub read: BTreeSet<PathBuf>,
    /// Files whose content the program could use: files that it opened, executed, linked or renamed.
    pub used: BTreeSet<PathBuf>,
    /// Names that the program removed or gave to something else, if there was something.
    pub removed: BTreeSet<PathBuf>,
    /// Folders whose entries the program listed.
    pub listed: BTreeSet<PathBuf>,
    /// Everything that existed when the program first used its name, and the folders of these names, with the
    /// time of the last change. A folder changes with its entries, so the time of its creation is used.
    /// Excludes everything that was created while the program ran.
    pub found: BTreeMap<PathBuf, SystemTime>,
    /// Kinds of kernel memory that the program used and that outlive processes, such as POSIX
    /// message queues.
    pub kept_memory: BTreeSet<String>,
}

impl Opened {
    /// Adds the observations of a program that ran after this one.
    pub fn join(&mut self, later: Self) {
        self.read.extend(later.read);
        self.used.extend(later.used);
        self.removed.extend(later.removed);
        self.listed.extend(later.listed);
        for (path, time) in later.found {
            self.found.entry(path).or_insert(time);
        }
        self.kept_memory.extend(later.kept_memory);
    }
}

/// The name of a file that never exists. A program that serves requests looks for it before each answer, so that
/// [`super::ProgramSession::used`] returns the files that it used since the one before.
pub const END_OF_SECTION: &str = "/proc/benchgate/end-of-section";

/// The notes of a supervisor about a program that is running.
pub(super) struct Notes {
    started: SystemTime,
    /// The file in which the supervisor passes its observations to benchgate, its length, and whether it has all of them.
    shared: (RawFd, u64, bool),
    /// The observations of the current section.
    opened: Opened,
    /// Names that the program has named before.
    named: BTreeSet<PathBuf>,
    /// Files that the program created itself.
    made: BTreeSet<PathBuf>,
    /// Devices and inodes of created files that were renamed. Their creation time doesn't
    /// distinguish them from older files, because file systems record it less precisely than the
    /// program's start time.
    carried: BTreeSet<(u64, u64)>,
}

impl Notes {
    pub(super) fn new(shared: RawFd) -> Self {
        let (named, made, carried) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let (started, opened) = (SystemTime::now(), Opened::default());
        Self { started, shared: (shared, START, true), opened, named, made, carried }
    }

    pub(super) fn list(&mut self, path: PathBuf) {
        self.find(&path);
        if !is_kernels(&path) {
            self.opened.listed.insert(path);
        }
    }

    pub(super) fn read(&mut self, path: PathBuf) {
        self.find(&path);
        if !self.made.contains(&path) && !is_kernels(&path) {
            self.opened.read.insert(path);
        }
    }

    /// Notes that the content of a file may be used.
    pub(super) fn open(&mut self, path: PathBuf) {
        self.take(&path);
        self.read(path);
    }

    /// Notes that the content of a file may be used under another name.
    pub(super) fn take(&mut self, path: &Path) {
        let is_known = self.opened.used.contains(path) || self.made.contains(path) || is_kernels(path);
        let is_made = || inode(path).is_some_and(|inode| self.carried.contains(&inode));
        if !is_known && path.is_file() && !is_made() {
            self.opened.used.insert(path.to_owned());
            // A link that leads to the file may be gone after the program.
            if let Some(real) = path.canonicalize().ok().filter(|real| !self.made.contains(real)) {
                self.find(&real);
                self.opened.used.insert(real);
            }
        }
    }

    /// Notes that a name is removed or given to something else.
    pub(super) fn remove(&mut self, path: &Path) {
        if !self.made.contains(path) && path.symlink_metadata().is_ok() {
            self.opened.removed.insert(path.to_owned());
        }
    }

    /// Notes a call that opens a file for writing only.
    pub(super) fn write(&mut self, path: PathBuf, flags: libc::c_int) {
        let Ok(there) = path.symlink_metadata() else { return self.create(path, flags) };
        let has = |flag| flags & flag != 0;
        let empties = has(libc::O_CREAT) && has(libc::O_TRUNC);
        let fails = has(libc::O_EXCL) || has(libc::O_PATH) || has(libc::O_DIRECTORY) || !is_writable(&path);
        if !empties || fails || !path.is_file() {
            // The program learns that the file exists and, by the position in it, how long the file
            // is.
            return self.read(path);
        }
        if there.is_symlink() {
            self.find(&path);
        }
        if !self.opened.read.contains(&path) {
            self.made.insert(path);
        }
    }

    fn create(&mut self, path: PathBuf, flags: libc::c_int) {
        self.find(&path);
        if flags & libc::O_EXCL != 0 {
            self.opened.read.remove(&path);
        }
        if !self.opened.read.contains(&path) {
            self.made.insert(path);
        }
    }

    /// Notes a call that creates something, or fails because the name exists.
    pub(super) fn make(&mut self, path: PathBuf) {
        self.find(&path);
        if path.symlink_metadata().is_err() {
            self.made.insert(path);
        }
    }

    /// Notes a call that makes a link of this name, through which files of earlier processes may be read.
    pub(super) fn make_link(&mut self, path: &Path) {
        self.find(path);
        self.forget(path);
    }

    /// Notes a call that learns whether something of this name exists.
    pub(super) fn find(&mut self, path: &Path) {
        for place in path.ancestors() {
            if self.made.contains(place) || !self.named.insert(place.to_owned()) {
                return;
            }
            if inode(place).is_some_and(|inode| self.carried.contains(&inode)) {
                continue;
            }
            if let Some(time) = changed(place, self.started).filter(|_| !is_kernels(place)) {
                self.opened.found.insert(place.to_owned(), time);
            }
        }
    }

    /// Notes that a file is renamed.
    pub(super) fn carry(&mut self, path: &Path) {
        if self.made.contains(path) {
            self.carried.extend(inode(path));
        }
    }

    /// Forgets a name and the names below it, because they may refer to something else now.
    pub(super) fn forget(&mut self, path: &Path) {
        for names in [&mut self.made, &mut self.named] {
            // Names below a folder are next to each other, and the sets are large.
            let below = names.range(path.to_owned()..).take_while(|name| name.starts_with(path));
            let below: Vec<PathBuf> = below.cloned().collect();
            for name in below {
                names.remove(&name);
            }
        }
    }

    pub(super) fn use_memory(&mut self, kind: &str) {
        self.opened.kept_memory.insert(kind.to_owned());
    }

    /// Passes the observations to benchgate through the shared file, once the program has ended.
    pub(super) fn end(mut self, is_complete: bool) {
        let opened = std::mem::take(&mut self.opened);
        let mut entries = Entries::default();
        opened.read.iter().for_each(|path| entries.add("r", path.as_os_str().as_bytes()));
        opened.removed.iter().for_each(|path| entries.add("d", path.as_os_str().as_bytes()));
        opened.listed.iter().for_each(|path| entries.add("l", path.as_os_str().as_bytes()));
        for (path, time) in &opened.found {
            let time = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            entries.add(&format!("f{}", time.as_nanos()), path.as_os_str().as_bytes());
        }
        opened.kept_memory.iter().for_each(|kind| entries.add("k", kind.as_bytes()));
        self.pass_on(entries, &opened.used, is_complete);
    }

    /// Passes the files that were used in the current section to benchgate, and begins another one, in which files that were made
    /// in this one count as found.
    pub(super) fn end_section(&mut self, is_complete: bool) {
        let opened = std::mem::take(&mut self.opened);
        self.made.clear();
        self.carried.clear();
        self.named.clear();
        self.pass_on(Entries::default(), &opened.used, is_complete);
    }

    /// Appends a section to the shared file.
    fn pass_on(&mut self, mut entries: Entries, used: &BTreeSet<PathBuf>, is_complete: bool) {
        used.iter().for_each(|path| entries.add("u", path.as_os_str().as_bytes()));
        entries.add("s", &[]);
        let (shared, length, has_all) = &mut self.shared;
        // SAFETY: the supervisor inherited the descriptor, which stays open until the supervisor ends.
        let file = std::mem::ManuallyDrop::new(unsafe { File::from_raw_fd(*shared) });
        *has_all &= file.write_all_at(&entries.0, *length).is_ok() && is_complete;
        *length += entries.0.len() as u64;
        // The marker is written last, so that incomplete observations don't begin with `+`.
        drop(file.write_all_at(if *has_all { b"+" } else { b"-" }, 0));
    }
}

/// Observations as text: a letter for the kind, the content, and a zero.
#[derive(Default)]
struct Entries(Vec<u8>);

impl Entries {
    fn add(&mut self, kind: &str, content: &[u8]) {
        self.0.extend_from_slice(kind.as_bytes());
        self.0.extend_from_slice(content);
        self.0.push(0);
    }
}

/// Folders in which the kernel shows its own state. The parts of it that affect a result are facts of the
/// testbed.
const KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];

pub(super) fn is_kernels(path: &Path) -> bool {
    // Shared memory in `/dev/shm` consists of ordinary files.
    KERNEL.iter().any(|folder| path.starts_with(folder)) && !path.starts_with("/dev/shm")
}

/// The time at which a file was last changed or a folder was created, unless it was created after `started`.
/// For a link, the later one of its own time and its target's.
fn changed(path: &Path, started: SystemTime) -> Option<SystemTime> {
    let own = path.symlink_metadata().ok()?;
    let target = if own.is_symlink() { path.canonicalize().ok() } else { None };
    let target = target.filter(|target| !is_kernels(target)).and_then(|target| fs::metadata(target).ok());
    [Some(own), target].into_iter().flatten().filter_map(|it| changed_before(&it, started)).max()
}

fn changed_before(metadata: &Metadata, started: SystemTime) -> Option<SystemTime> {
    // Some file systems don't record when a file was created.
    let created = metadata.created().ok();
    if created.is_some_and(|at| at >= started) {
        return None;
    }
    if metadata.is_dir() {
        return created;
    }
    // No program can set the change time.
    let seconds = Duration::from_secs(u64::try_from(metadata.ctime()).ok()?);
    let rest = Duration::from_nanos(u64::try_from(metadata.ctime_nsec()).ok()?);
    Some(SystemTime::UNIX_EPOCH + seconds + rest)
}

fn inode(path: &Path) -> Option<(u64, u64)> {
    path.symlink_metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

fn is_writable(path: &Path) -> bool {
    nix::unistd::access(path, nix::unistd::AccessFlags::W_OK).is_ok()
}

/// Position of the first section in the shared file, after the marker.
pub(super) const START: u64 = 1;

/// A file in memory that both processes share, in which a supervisor records its observations.
pub(super) fn shared_list() -> io::Result<File> {
    Ok(memfd_create(c"opened", MFdFlags::MFD_CLOEXEC).map(File::from)?)
}

/// Reads the sections of a supervisor's observations that begin at `start` or later, and sets `start` to their end. `None` if
/// there is none, or if the observation is incomplete.
pub(super) fn read_sections(file: &File, start: &mut u64) -> Option<Opened> {
    let mut marker = [0];
    file.read_exact_at(&mut marker, 0).ok()?;
    let length = file.metadata().ok()?.len().checked_sub(*start)?;
    let mut text = vec![0; usize::try_from(length).ok()?];
    file.read_exact_at(&mut text, *start).ok()?;
    *start += length;
    let mut opened = Opened::default();
    let mut has_ended = false;
    let path = |bytes: &[u8]| PathBuf::from(OsString::from_vec(bytes.to_vec()));
    for entry in text.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
        let (kind, rest) = entry.split_first()?;
        match kind {
            b'r' => drop(opened.read.insert(path(rest))),
            b'u' => drop(opened.used.insert(path(rest))),
            b'd' => drop(opened.removed.insert(path(rest))),
            b'l' => drop(opened.listed.insert(path(rest))),
            b'f' => {
                let (time, name) = rest.split_at(rest.iter().position(|byte| *byte == b'/')?);
                let nanos = str::from_utf8(time).ok()?.parse().ok()?;
                let time = SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos);
                opened.found.insert(path(name), time);
            }
            b'k' => drop(opened.kept_memory.insert(str::from_utf8(rest).ok()?.to_owned())),
            b's' => has_ended = true,
            _ => return None,
        }
    }
    (marker == *b"+" && has_ended).then_some(opened)
}
