//! Records which files a program and its descendants open or look for.
//!
//! A kernel filter (seccomp) stops each system call that names a file until the supervisor has read the name.
//! This needs no privileges, works in containers, and costs some tens of microseconds for each; all other
//! calls run at full speed. The program is not traced with ptrace, so debuggers and sanitizers still work in
//! it.

use std::ffi::OsStr;
use std::fs::{File, read_link};
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::libc;

use super::observed_calls::{Call, Named, call_of, filter};
use super::opened::{END_OF_SECTION, Notes, is_kernels};

/// Longest name that Linux accepts.
const LONGEST: usize = 4096;

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
/// the system does not allow the filter, the program runs unobserved.
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
    notes: Notes,
    /// True if a file may have been opened without being observed.
    hidden: bool,
}

impl Observer {
    /// `shared` is the file through which the observations are passed to benchgate.
    pub(super) fn new(listener: RawFd, shared: RawFd) -> Self {
        Self { listener, notes: Notes::new(shared), hidden: false }
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
        // SAFETY: as above. The call fails if the process was killed meanwhile.
        unsafe { libc::ioctl(self.listener, libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer) };
    }

    fn note(&mut self, request: &libc::seccomp_notif) -> io::Result<()> {
        let call = call_of(&request.data).ok_or(io::ErrorKind::Unsupported)?;
        if let Ok(program) = read_link(format!("/proc/{}/exe", request.pid)) {
            self.notes.open(program);
        }
        match call {
            Call::Refused => {}
            Call::Kept(kind) => self.notes.use_memory(kind),
            Call::SetOf { pid, value } => {
                let sets = value.is_none_or(|value| request.data.args[value] != 0);
                if sets && is_outside(request.data.args[pid] as u32) {
                    self.notes.use_memory(OTHER_PROCESSES);
                }
            }
            Call::Priority { process } => {
                let [which, who, ..] = request.data.args;
                // A group or a user has processes that are not measured.
                if which != process || who != 0 && is_outside(who as u32) {
                    self.notes.use_memory(OTHER_PROCESSES);
                }
            }
            Call::Open { path, flags } => self.note_open(request, path, request.data.args[flags] as i32)?,
            #[cfg(target_arch = "x86_64")]
            Call::Create(path) => {
                self.note_open(request, path, libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC)?;
            }
            Call::OpenHow => {
                let mut flags = [0; 8];
                memory(request)?.read_exact_at(&mut flags, request.data.args[2])?;
                let path = Named { folder: Some(0), name: 1 };
                self.note_open(request, path, u64::from_ne_bytes(flags) as i32)?;
            }
            Call::Look { path, .. } => {
                for path in named(request, path)? {
                    if path == Path::new(END_OF_SECTION) {
                        self.notes.end_section(!self.hidden);
                    } else {
                        self.notes.read(path);
                    }
                }
            }
            Call::Bind => {
                let mut start = [0; 4];
                // The call fails if the address can't be read.
                let is_read = memory(request)?.read_exact_at(&mut start, request.data.args[1]).is_ok();
                let [family, port] = [[start[0], start[1]], [start[2], start[3]]];
                let family = i32::from(u16::from_ne_bytes(family));
                // The kernel chooses a free port for port 0.
                if is_read && [libc::AF_INET, libc::AF_INET6].contains(&family) && port != [0, 0] {
                    self.notes.use_memory("ports of the network");
                }
            }
            Call::Attributes(path) => {
                let mut paths: Vec<PathBuf> = match path {
                    Some(path) => named(request, path)?.collect(),
                    None => Vec::new(),
                };
                if paths.is_empty() {
                    // The call fails if the descriptor is not open.
                    let descriptor = request.data.args[0] as u32 as RawFd;
                    paths.extend(read_link(format!("/proc/{}/fd/{descriptor}", request.pid)));
                }
                // The descriptors of sockets and pipes have no path.
                for path in paths.into_iter().filter(|path| path.is_absolute()) {
                    // The time of a folder says nothing about its attributes.
                    if path.is_dir() {
                        self.notes.use_memory("attributes of folders");
                    }
                    self.notes.read(path);
                }
            }
            Call::Make(path) => named(request, path)?.for_each(|path| self.notes.make(path)),
            Call::MakeLink(path) => named(request, path)?.for_each(|path| self.notes.make_link(&path)),
            Call::Remove(path) => {
                for path in named(request, path)? {
                    self.notes.remove(&path);
                    self.notes.find(&path);
                }
            }
            Call::HardLink([from, to]) => {
                for path in named(request, from)? {
                    self.notes.carry(&path);
                    self.notes.open(path);
                }
                named(request, to)?.for_each(|path| self.notes.make_link(&path));
            }
            Call::Rename { paths: [from, to], flags } => {
                let replaces = flags.is_none_or(|flags| request.data.args[flags] == 0);
                for path in named(request, from)? {
                    self.notes.take(&path);
                    self.notes.remove(&path);
                    self.notes.carry(&path);
                    self.notes.find(&path);
                    self.notes.forget(&path);
                }
                for path in named(request, to)? {
                    // If a file is replaced, the program learns nothing about it. If the name is a
                    // folder, the call fails.
                    if !replaces || path.is_dir() {
                        self.notes.find(&path);
                    }
                    self.notes.forget(&path);
                }
            }
        }
        Ok(())
    }

    fn note_open(&mut self, request: &libc::seccomp_notif, path: Named, flags: i32) -> io::Result<()> {
        let writes = flags & libc::O_ACCMODE == libc::O_WRONLY
            || flags & libc::O_CREAT != 0 && flags & (libc::O_TRUNC | libc::O_EXCL) != 0;
        let lists = flags & libc::O_DIRECTORY != 0 && flags & libc::O_PATH == 0;
        for path in named(request, path)? {
            // `/proc/123/oom_score_adj`
            let mut parts = path.iter().skip(1).map(OsStr::to_str);
            let process = (parts.next() == Some(Some("proc"))).then(|| parts.next()??.parse().ok()).flatten();
            let is_settable =
                path.file_name().and_then(OsStr::to_str).is_some_and(|it| SETTABLE.contains(&it));
            let is_set = flags & libc::O_ACCMODE != libc::O_RDONLY;
            if (is_set || is_settable) && process.is_some_and(is_outside) {
                self.notes.use_memory(OTHER_PROCESSES);
            }
            if writes {
                self.notes.write(path, flags);
            } else if lists && path.is_dir() {
                self.notes.list(path);
            } else if flags & libc::O_PATH != 0 {
                self.notes.read(path);
            } else {
                self.notes.open(path);
            }
        }
        Ok(())
    }

    /// Passes the observations to benchgate, once the program has ended.
    pub(super) fn end(self) {
        self.notes.end(!self.hidden);
    }
}

/// Attributes below `/proc/PID` that other processes of the user can set. A process that reads them may learn a result that an
/// earlier one left there.
const SETTABLE: [&str; 7] =
    ["autogroup", "coredump_filter", "limits", "oom_adj", "oom_score_adj", "sched", "timerslack_ns"];

/// A program can leave numbers in the limits or the priority of a process that outlives it.
const OTHER_PROCESSES: &str = "attributes of other processes";

/// Returns whether a process or thread is not one of the supervisor's descendants.
fn is_outside(process: u32) -> bool {
    /// Maximum number of ancestors that are looked at.
    const MOST: usize = 1000;
    let mut process = process;
    for _ in 0..MOST {
        let parent = std::fs::read_to_string(format!("/proc/{process}/status")).ok().and_then(|status| {
            status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse::<u32>().ok())
        });
        match parent {
            Some(parent) if parent == std::process::id() => return false,
            Some(parent) if parent > 0 => process = parent,
            Some(_) => return true,
            // A process that is gone has nothing left to set.
            None => return false,
        }
    }
    true
}

fn memory(request: &libc::seccomp_notif) -> io::Result<File> {
    File::open(format!("/proc/{}/mem", request.pid))
}

/// The path that a call names. If this path passes through the kernel's folders to a file elsewhere,
/// that file is returned too. The result is empty for an empty name, which is an error or refers to
/// the descriptor itself.
fn named(request: &libc::seccomp_notif, path: Named) -> io::Result<impl Iterator<Item = PathBuf> + use<>> {
    let (args, pid) = (&request.data.args, request.pid);
    let mut buffer = [0; LONGEST];
    // Programs pass a null name to find out whether the kernel has a call. Such a call names no
    // file.
    let is_null = args[path.name] == 0;
    let length = if is_null { 0 } else { memory(request)?.read_at(&mut buffer, args[path.name])? };
    let name = buffer[..length].split(|byte| *byte == 0).next().unwrap_or_default();
    let mut whole = PathBuf::from(OsStr::from_bytes(name));
    if !name.is_empty() && whole.is_relative() {
        let folder = match path.folder.map(|folder| args[folder] as u32 as RawFd) {
            None | Some(libc::AT_FDCWD) => format!("/proc/{pid}/cwd"),
            Some(fd) => format!("/proc/{pid}/fd/{fd}"),
        };
        whole = read_link(folder)?.join(whole);
    }
    let whole = (!name.is_empty()).then(|| with_parents_resolved(&whole));
    let elsewhere = whole.as_ref().and_then(|path| through_kernel(path, pid));
    Ok(elsewhere.into_iter().chain(whole))
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
fn with_parents_resolved(path: &Path) -> PathBuf {
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
