//! Records which files a program and its descendants open or look for.
//!
//! A kernel filter (seccomp) stops each system call that names a file until the supervisor has read the name.
//! This needs no privileges, works in containers, and costs a few microseconds for each such call; all other
//! calls run at full speed. The program is not traced with ptrace, so debuggers and sanitizers still work in
//! it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::mem::{offset_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::libc;
use nix::sys::memfd::{MFdFlags, memfd_create};

/// Files and folders that a program read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Opened {
    /// Files that it opened, and names that it looked for and may not have found. Excludes files that it had written
    /// itself, and files of the kernel (`/proc`, `/sys`, `/dev`).
    pub read: BTreeSet<PathBuf>,
    /// Folders whose names it listed.
    pub listed: BTreeSet<PathBuf>,
}

#[cfg(target_arch = "x86_64")]
const NATIVE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const NATIVE: u32 = 0xC000_00B7;

/// Folders in which the kernel shows its own state. The parts of it that affect a result are facts of the
/// testbed.
const KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];

/// Longest name that Linux accepts.
const LONGEST: usize = 4096;

/// The way in which a system call names its file.
#[derive(Clone, Copy)]
enum Call {
    /// Positions of the arguments: the folder's descriptor, the name and the flags.
    Open { folder: Option<usize>, name: usize, flags: usize },
    /// `openat2`, whose flags are in memory.
    OpenHow,
    Look {
        folder: Option<usize>,
        name: usize,
        /// Position of the flags, which may say that the name is empty and that the descriptor itself is
        /// meant.
        flags: Option<usize>,
    },
    /// The call could open files unobserved, so it is refused, as Docker's default profile does. Programs
    /// that would use it fall back to calls that can be observed.
    Refused,
}

const fn open(folder: Option<usize>, name: usize, flags: usize) -> Call {
    Call::Open { folder, name, flags }
}

const fn look(folder: Option<usize>, name: usize, flags: Option<usize>) -> Call {
    Call::Look { folder, name, flags }
}

/// The system calls that are stopped.
const CALLS: &[(libc::c_long, Call)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, open(None, 0, 1)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_stat, look(None, 0, None)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_lstat, look(None, 0, None)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_access, look(None, 0, None)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_readlink, look(None, 0, None)),
    (libc::SYS_openat, open(Some(0), 1, 2)),
    (libc::SYS_openat2, Call::OpenHow),
    (libc::SYS_newfstatat, look(Some(0), 1, Some(3))),
    (libc::SYS_statx, look(Some(0), 1, Some(2))),
    (libc::SYS_faccessat, look(Some(0), 1, None)),
    (libc::SYS_faccessat2, look(Some(0), 1, None)),
    (libc::SYS_readlinkat, look(Some(0), 1, None)),
    (libc::SYS_io_uring_setup, Call::Refused),
];

/// The filter program: stops [`CALLS`] and every call of another architecture, and allows all others.
fn filter() -> Vec<libc::sock_filter> {
    const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const HAS_BIT: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    let step = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter { code: code as u16, jt, jf, k };
    let stop = step(RETURN, libc::SECCOMP_RET_USER_NOTIF, 0, 0);
    let allow = step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0);
    let load = |offset: usize| step(LOAD, offset as u32, 0, 0);
    let mut program = vec![load(offset_of!(libc::seccomp_data, arch)), step(EQUAL, NATIVE, 1, 0), stop];
    program.push(load(offset_of!(libc::seccomp_data, nr)));
    // Calls of the x32 ABI have this bit.
    program.extend([step(HAS_BIT, 0x4000_0000, 0, 1), stop]);
    for (number, call) in CALLS {
        let flags = match call {
            Call::Look { flags, .. } => *flags,
            _ => None,
        };
        match flags {
            None => program.extend([step(EQUAL, *number as u32, 0, 1), stop]),
            // `fstat` of an open file is by far the most frequent call, and names no file.
            Some(flags) => program.extend([
                step(EQUAL, *number as u32, 0, 4),
                load(offset_of!(libc::seccomp_data, args) + 8 * flags),
                step(HAS_BIT, libc::AT_EMPTY_PATH as u32, 0, 1),
                allow,
                stop,
            ]),
        }
    }
    program.push(allow);
    program
}

/// Both ends of the socket through which the program's process sends its listener to the supervisor.
pub(super) struct Handover {
    program: Vec<libc::sock_filter>,
    child: OwnedFd,
    supervisor: OwnedFd,
}

impl Handover {
    pub(super) fn new() -> io::Result<Self> {
        let mut ends = [0; 2];
        // SAFETY: the array has room for both descriptors.
        Errno::result(unsafe {
            libc::socketpair(libc::AF_UNIX, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0, ends.as_mut_ptr())
        })?;
        // SAFETY: the call above opened them for us.
        let [child, supervisor] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
        Ok(Self { program: filter(), child, supervisor })
    }

    /// The data that the tool's process needs to call [`install`].
    pub(super) fn in_child(&self) -> (Vec<libc::sock_filter>, RawFd) {
        (self.program.clone(), self.child.as_raw_fd())
    }

    /// The listener, once the program is executing; `None` if the kernel or the container refused the filter.
    pub(super) fn listener(self) -> Option<OwnedFd> {
        let mut control = Control::default();
        let mut byte = 0_u8;
        // SAFETY: the message points to live values of this function, and the kernel writes no further than
        // their lengths.
        unsafe {
            let mut part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
            let mut message = control.message(&mut part);
            let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
            Errno::result(libc::recvmsg(self.supervisor.as_raw_fd(), &raw mut message, flags)).ok()?;
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            if header.is_null() || (*header).cmsg_type != libc::SCM_RIGHTS {
                return None;
            }
            Some(OwnedFd::from_raw_fd(libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned()))
        }
    }
}

/// A buffer for the message header and one descriptor.
#[derive(Default)]
#[repr(align(8))]
struct Control([u8; 32]);

impl Control {
    fn message(&mut self, part: &mut libc::iovec) -> libc::msghdr {
        // SAFETY: an all-zero message is valid and has no parts; `CMSG_SPACE` only computes a length.
        let (mut message, space) =
            unsafe { (zeroed::<libc::msghdr>(), libc::CMSG_SPACE(size_of::<RawFd>() as u32)) };
        message.msg_iov = part;
        message.msg_iovlen = 1;
        message.msg_control = self.0.as_mut_ptr().cast();
        message.msg_controllen = space as _;
        message
    }
}

/// Applies the filter to this process and sends the listener through `socket`. Only makes async-signal-safe calls. If
/// that is not allowed, the program runs unobserved.
pub(super) fn install(program: &[libc::sock_filter], socket: RawFd) {
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    // SAFETY: the program and the message outlive the calls, which keep no pointer to them.
    unsafe {
        let listen = |flags: libc::c_ulong| {
            let flags = flags | libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const filter)
        };
        // With this flag (Linux 5.19), signals do not interrupt a call that is being answered.
        let any = || match listen(libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV) {
            -1 if Errno::last() == Errno::EINVAL => listen(0),
            answer => answer,
        };
        let mut listener = any();
        if listener < 0 && Errno::last() == Errno::EACCES {
            // An unprivileged process must first give up the ability to gain privileges.
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            listener = any();
        }
        if listener < 0 {
            return;
        }
        let mut control = Control::default();
        let mut byte = 0_u8;
        let mut part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
        let message = control.message(&mut part);
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as _;
        libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(listener as RawFd);
        libc::sendmsg(socket, &raw const message, 0);
    }
}

/// The supervisor's side: answers the stopped calls and records the files that they name.
pub(super) struct Observer {
    listener: RawFd,
    opened: Opened,
    /// Files that the program created itself.
    made: BTreeSet<PathBuf>,
    /// True if a file may have been opened without being observed.
    hidden: bool,
}

impl Observer {
    pub(super) fn new(listener: RawFd) -> Self {
        Self { listener, opened: Opened::default(), made: BTreeSet::new(), hidden: false }
    }

    /// Answers one call that is waiting.
    pub(super) fn answer(&mut self) {
        // SAFETY: a zeroed notification is valid, and the kernel requires it to be zeroed.
        let mut request: libc::seccomp_notif = unsafe { zeroed() };
        // SAFETY: the pointer is to a live value of the type that this ioctl fills.
        if unsafe { libc::ioctl(self.listener, libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut request) } != 0 {
            // The process ended meanwhile.
            return;
        }
        let refused = call_of(&request.data).is_some_and(|call| matches!(call, Call::Refused));
        if !refused && self.note(&request).is_err() {
            // If the process was killed meanwhile, its call will not happen.
            // SAFETY: as above.
            let asks = unsafe {
                libc::ioctl(self.listener, libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const request.id)
            };
            self.hidden |= asks == 0;
        }
        let mut answer = libc::seccomp_notif_resp {
            id: request.id,
            val: 0,
            error: if refused { -libc::EPERM } else { 0 },
            flags: if refused { 0 } else { libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32 },
        };
        // SAFETY: as above. It fails if the process was killed meanwhile.
        unsafe { libc::ioctl(self.listener, libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer) };
    }

    fn note(&mut self, request: &libc::seccomp_notif) -> io::Result<()> {
        let (data, pid) = (&request.data, request.pid);
        let call = call_of(data).ok_or(io::ErrorKind::Unsupported)?;
        if let Ok(program) = std::fs::read_link(format!("/proc/{pid}/exe")) {
            self.read(program);
        }
        let memory = || File::open(format!("/proc/{pid}/mem"));
        let (folder, name, flags) = match call {
            Call::Refused => return Ok(()),
            Call::Open { folder, name, flags } => (folder, name, data.args[flags]),
            Call::Look { folder, name, .. } => (folder, name, 0),
            Call::OpenHow => {
                let mut flags = [0; 8];
                memory()?.read_exact_at(&mut flags, data.args[2])?;
                (Some(0), 1, u64::from_ne_bytes(flags))
            }
        };
        let mut buffer = [0; LONGEST];
        let length = memory()?.read_at(&mut buffer, data.args[name])?;
        let name = buffer[..length].split(|byte| *byte == 0).next().unwrap_or_default();
        // An empty name is an error or refers to the descriptor itself.
        if name.is_empty() {
            return Ok(());
        }
        let mut path = PathBuf::from(OsStr::from_bytes(name));
        if path.is_relative() {
            let folder = match folder.map(|folder| data.args[folder] as u32 as RawFd) {
                None | Some(libc::AT_FDCWD) => format!("/proc/{pid}/cwd"),
                Some(fd) => format!("/proc/{pid}/fd/{fd}"),
            };
            path = std::fs::read_link(folder)?.join(path);
        }
        let path = without_parents(&path);
        let flags = flags as i32;
        let writes = flags & libc::O_ACCMODE == libc::O_WRONLY
            || flags & libc::O_CREAT != 0 && flags & (libc::O_TRUNC | libc::O_EXCL) != 0;
        let reads = matches!(call, Call::Look { .. }) || !writes;
        // The name may lead through the kernel's folders to a file elsewhere.
        let elsewhere = if reads { through_kernel(&path, pid) } else { None };
        for path in elsewhere.into_iter().chain([path]) {
            if reads {
                let lists = flags & libc::O_DIRECTORY != 0 && flags & libc::O_PATH == 0;
                if lists && path.is_dir() && !is_kernels(&path) {
                    self.opened.listed.insert(path);
                } else {
                    self.read(path);
                }
            } else if !self.opened.read.contains(&path) || flags & libc::O_EXCL != 0 {
                self.opened.read.remove(&path);
                self.made.insert(path);
            }
        }
        Ok(())
    }

    fn read(&mut self, path: PathBuf) {
        if !self.made.contains(&path) && !is_kernels(&path) {
            self.opened.read.insert(path);
        }
    }

    /// Passes the observations to benchgate through the shared file. An empty file means that the observation
    /// is incomplete.
    pub(super) fn write(self, file: RawFd) {
        if self.hidden {
            return;
        }
        let mut text = vec![0];
        for (kind, paths) in [(b'r', &self.opened.read), (b'l', &self.opened.listed)] {
            for path in paths {
                text.push(kind);
                text.extend_from_slice(path.as_os_str().as_bytes());
                text.push(0);
            }
        }
        // SAFETY: the supervisor inherited the descriptor, which stays open until the supervisor ends.
        let mut file = std::mem::ManuallyDrop::new(unsafe { File::from_raw_fd(file) });
        // The marker `+` is written last, so that an incomplete list does not begin with it.
        if file.seek(io::SeekFrom::Start(1)).and_then(|_| file.write_all(&text[1..])).is_ok() {
            drop(file.write_all_at(b"+", 0));
        }
    }
}

/// The kind of a system call. `None` if it belongs to another architecture, whose arguments are not known.
fn call_of(data: &libc::seccomp_data) -> Option<Call> {
    let known = CALLS.iter().find(|(number, _)| *number == libc::c_long::from(data.nr))?;
    (data.arch == NATIVE).then_some(known.1)
}

fn is_kernels(path: &Path) -> bool {
    // Shared memory in `/dev/shm` consists of ordinary files.
    KERNEL.iter().any(|folder| path.starts_with(folder)) && !path.starts_with("/dev/shm")
}

/// The file that a path reaches outside the kernel's folders after passing through one, such as
/// `/proc/self/root/etc/passwd`. Links are followed as process `pid` sees them. `None` if the path never
/// enters the kernel's folders, or ends in one.
fn through_kernel(path: &Path, pid: u32) -> Option<PathBuf> {
    const MOST_LINKS: usize = 40;
    let (mut real, mut left, mut links) = (PathBuf::from("/"), path.to_owned(), 0);
    let mut entered = false;
    while let Some(part) = left.components().next() {
        let rest: PathBuf = left.components().skip(1).collect();
        match part {
            Component::RootDir => real = PathBuf::from("/"),
            Component::ParentDir => drop(real.pop()),
            Component::Normal(name) => real.push(name),
            Component::CurDir | Component::Prefix(_) => {}
        }
        entered |= is_kernels(&real);
        // The meaning of these two links depends on the calling process.
        let own = ["/proc/self", "/proc/thread-self"].iter().any(|own| real == Path::new(own));
        let target = if own { Some(PathBuf::from(format!("/proc/{pid}"))) } else { real.read_link().ok() };
        if let Some(target) = target {
            links += 1;
            if links > MOST_LINKS {
                return None;
            }
            real.pop();
            left = target.join(rest);
        } else {
            left = rest;
        }
    }
    (entered && !is_kernels(&real)).then_some(real)
}

/// A path without `.` and `..`. Links before the last `..` are resolved, because `..` refers to the target's
/// parent. Later links stay in the path, because they may have another target the next time.
fn without_parents(path: &Path) -> PathBuf {
    let parts: Vec<Component<'_>> = path.components().collect();
    let Some(last) = parts.iter().rposition(|part| *part == Component::ParentDir) else {
        return parts.iter().collect();
    };
    let (before, after) = parts.split_at(last + 1);
    let before: PathBuf = before.iter().collect();
    // A missing folder contains no files, so its path can stay as it is.
    let before = before.canonicalize().unwrap_or(before);
    before.join(after.iter().collect::<PathBuf>())
}

/// A file in memory that both processes share, in which a supervisor records its observations.
pub(super) fn shared_list() -> io::Result<File> {
    Ok(memfd_create(c"opened", MFdFlags::MFD_CLOEXEC).map(File::from)?)
}

/// Reads the observations of a supervisor. `None` if the observation is incomplete.
pub(super) fn read_list(mut file: File) -> Option<Opened> {
    let mut text = Vec::new();
    file.rewind().ok()?;
    file.read_to_end(&mut text).ok()?;
    let mut opened = Opened::default();
    for entry in text.strip_prefix(b"+")?.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
        let (kind, path) = entry.split_first()?;
        let path = PathBuf::from(std::ffi::OsString::from_vec(path.to_vec()));
        match kind {
            b'r' => opened.read.insert(path),
            b'l' => opened.listed.insert(path),
            _ => return None,
        };
    }
    Some(opened)
}
