//! The process between benchgate and a tool: it starts the tool, watches it, and kills any process that it
//! leaves behind.
//!
//! The supervisor is a second process of benchgate's program ([`super::init`]) with one thread, no
//! runtime and none of benchgate's memory. The control pipe transmits the orders [`TERMINATE`] and
//! [`KILL`]; its end means that benchgate is gone. The report pipe transmits [`STARTED`] and then
//! one [`Report`].

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl, open};
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, killpg, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, getpid, getppid, read, setpgid, setsid, write};

use super::observe::{self, Handover, Observer};
use super::plan::SupervisorPlan;

/// A supervisor's first message if the tool was started. Any other first message is the number of the error
/// that prevented the start.
pub(super) const STARTED: i32 = 0;

/// Order to send SIGTERM to the process group, and to kill it after the grace period.
pub(super) const TERMINATE: u8 = b'T';
/// Order to kill everything at once.
pub(super) const KILL: u8 = b'K';

/// Grace period after SIGTERM. Long enough to flush a file or release a device, short enough for a user who waits after
/// Ctrl-C.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// Time to wait for killed processes. Only a process that is stuck in the kernel (a hung driver) takes
/// longer, and waiting for it would make benchgate hang too.
const DEATH: Duration = Duration::from_secs(5);

/// The supervisor's report, as sent through the report pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Report {
    pub(super) status: i32,
    pub(super) leftovers: u32,
    pub(super) wall_ns: u64,
    pub(super) user_us: u64,
    pub(super) system_us: u64,
    pub(super) max_rss_kib: u64,
    /// Peak memory that the tool inherited from the supervisor, in KiB.
    pub(super) floor_kib: u64,
}

impl Report {
    pub(super) const SIZE: usize = 48;

    fn encode(self) -> [u8; Self::SIZE] {
        let words = [
            u64::from(self.status.cast_unsigned()) << 32 | u64::from(self.leftovers),
            self.wall_ns,
            self.user_us,
            self.system_us,
            self.max_rss_kib,
            self.floor_kib,
        ];
        let mut bytes = [0; Self::SIZE];
        for (chunk, word) in bytes.chunks_exact_mut(8).zip(words) {
            chunk.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    pub(super) fn decode(bytes: [u8; Self::SIZE]) -> Self {
        let mut words = [0; Self::SIZE / 8];
        for (chunk, word) in bytes.chunks_exact(8).zip(&mut words) {
            let mut eight = [0; 8];
            eight.copy_from_slice(chunk);
            *word = u64::from_ne_bytes(eight);
        }
        let [head, wall_ns, user_us, system_us, max_rss_kib, floor_kib] = words;
        let halves = [(head >> 32) as u32, head as u32];
        Self {
            status: halves[0].cast_signed(),
            leftovers: halves[1],
            wall_ns,
            user_us,
            system_us,
            max_rss_kib,
            floor_kib,
        }
    }
}

/// Runs the supervisor and ends the process.
pub(super) fn supervise(plan: &SupervisorPlan) -> ! {
    let started = Instant::now();
    let floor_kib = private_memory_kib();
    match start(plan) {
        Ok((tool, listener)) => {
            let _ = write(borrowed(&plan.report), &STARTED.to_ne_bytes());
            watch_over(plan, tool, listener, started, floor_kib)
        }
        Err(error) => {
            let number = error.raw_os_error().unwrap_or(libc::EIO);
            let _ = write(borrowed(&plan.report), &number.to_ne_bytes());
            // SAFETY: `_exit` ends this process, whose `main` has not begun.
            unsafe { libc::_exit(0) }
        }
    }
}

/// Starts the tool, and returns once the program is executing. If there is a listener, the tool's
/// calls that open files wait until the listener is served.
fn start(plan: &SupervisorPlan) -> io::Result<(Pid, Option<OwnedFd>)> {
    // The tool must not inherit the descriptors that benchgate opened for the supervisor.
    for fd in plan.descriptors() {
        fcntl(borrowed(&fd), FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    }
    // A new session, so that Ctrl-C and the end of the terminal reach the tool only through the supervisor.
    setsid()?;
    prctl::set_child_subreaper(true)?;
    // If benchgate dies while the supervisor is stopped, SIGCONT resumes the supervisor so that it can clean
    // up.
    prctl::set_pdeathsig(Signal::SIGCONT)?;
    let mut before = SigSet::empty();
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut before))?;
    let supervisor = getpid();
    let procs = plan.cgroup.as_ref().map(|cgroup| cgroup.procs);
    let cpus = plan.cpus.as_deref().map(cpu_set).transpose()?;
    let mut tool = std::process::Command::new(&plan.program);
    tool.args(&plan.args).env_clear().envs(&plan.env).process_group(0);
    let handover = plan.opened.and_then(|_| Handover::new().ok());
    let observed = handover.as_ref().map(Handover::in_child);
    // SAFETY: `confine` and `install` only make async-signal-safe calls.
    unsafe {
        tool.pre_exec(move || {
            confine(supervisor, &before, procs, cpus.as_ref())?;
            if let Some((filter, socket)) = &observed {
                observe::install(filter, *socket);
            }
            Ok(())
        });
    }
    let pid = Pid::from_raw(tool.spawn()?.id().cast_signed());
    Ok((pid, handover.and_then(Handover::listener)))
}

/// Prepares the tool's process between `fork` and `exec`.
fn confine(supervisor: Pid, signals: &SigSet, procs: Option<RawFd>, cpus: Option<&CpuSet>) -> io::Result<()> {
    // A program inherits blocked signals over `exec`, so the original mask is restored.
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(signals), None)?;
    // The parent-death signal follows the parent's thread; the supervisor has only one.
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    if getppid() != supervisor {
        return Err(Errno::ESRCH.into());
    }
    // A crash of the tool is a result; a core file would only fill the disk.
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    if let Some(procs) = procs {
        write(borrowed(&procs), b"0")?;
    }
    if let Some(cpus) = cpus {
        sched_setaffinity(Pid::from_raw(0), cpus)?;
    }
    Ok(())
}

fn cpu_set(cpus: &[usize]) -> io::Result<CpuSet> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        set.set(*cpu)?;
    }
    Ok(set)
}

/// The supervisor's memory that is not file-backed. A fork copies it, so it counts toward the tool's peak.
fn private_memory_kib() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: Vec<u64> = pages.split_ascii_whitespace().map_while(|count| count.parse().ok()).collect();
    let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok().flatten().unwrap_or(4096);
    match *pages {
        [_, resident, shared, ..] => resident.saturating_sub(shared) * page.unsigned_abs() / 1024,
        _ => 0,
    }
}

/// Borrows a descriptor of the plan.
fn borrowed(fd: &RawFd) -> BorrowedFd<'_> {
    // SAFETY: the descriptors of a plan were inherited and stay open in this process.
    unsafe { BorrowedFd::borrow_raw(*fd) }
}

/// Descriptor numbers that [`keep_only`] assigns.
const CONTROL: RawFd = 0;
const REPORT: RawFd = 1;
const CGROUP_KILL: RawFd = 2;
const CGROUP_LOCK: RawFd = 3;
const OPENED: RawFd = 4;
const LISTENER: RawFd = 5;

/// Moves the needed descriptors to the lowest numbers and closes all others. Another process may wait for a
/// pipe to close, in particular for the one that reports a failed `exec`, so the supervisor must not keep it
/// open.
fn keep_only(plan: &SupervisorPlan, listener: Option<OwnedFd>) {
    let kill = plan.cgroup.as_ref().and_then(|cgroup| cgroup.kill);
    let lock = plan.cgroup.as_ref().map(|cgroup| cgroup.lock);
    // Copies to numbers above those that are assigned below.
    let above = |fd: RawFd| fcntl(borrowed(&fd), FcntlArg::F_DUPFD_CLOEXEC(LISTENER + 1)).ok();
    let opened = plan.opened.and_then(above);
    let listener = listener.and_then(|fd| above(fd.as_raw_fd()));
    // SAFETY: these are plain descriptor calls in a process with one thread. The sources are above 2 (0 to 2
    // are the tool's standard streams), so no copy overwrites a source that is still needed.
    unsafe {
        libc::dup2(plan.control, CONTROL);
        libc::dup2(plan.report, REPORT);
        match kill {
            Some(kill) => libc::dup2(kill, CGROUP_KILL),
            None => libc::close(CGROUP_KILL),
        };
        match lock {
            Some(lock) => libc::dup2(lock, CGROUP_LOCK),
            None => libc::close(CGROUP_LOCK),
        };
        for (fd, place) in [(opened, OPENED), (listener, LISTENER)] {
            match fd {
                Some(fd) => libc::dup2(fd, place),
                None => libc::close(place),
            };
        }
        let first = LISTENER + 1;
        // The system call is made by number, because its wrapper is newer than the C library that releases
        // are linked against.
        if libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) != 0 {
            // Linux before 5.9 does not have this call. Nothing in benchgate opens more files than this.
            for fd in first..4096 {
                libc::close(fd);
            }
        }
    }
}

/// The supervisor's view of the tool's process tree.
struct ProcessTree {
    tool: Pid,
    started: Instant,
    floor_kib: u64,
    /// The tool's report, set once the tool itself has been reaped.
    report: Option<Report>,
    /// Number of processes that were reaped after they had to be killed.
    killed: u32,
    /// Observes the files that the tool opens.
    observer: Option<Observer>,
    can_kill_cgroup: bool,
}

fn watch_over(
    plan: &SupervisorPlan,
    tool: Pid,
    listener: Option<OwnedFd>,
    started: Instant,
    floor_kib: u64,
) -> ! {
    // The parent and the child both set the group, so that it exists whichever runs first.
    let _ = setpgid(tool, tool);
    let observer = listener.is_some().then(|| Observer::new(LISTENER, OPENED));
    keep_only(plan, listener);
    let _ = prctl::set_name(c"benchgate-init");
    let mut tree = ProcessTree {
        tool,
        started,
        floor_kib,
        report: None,
        killed: 0,
        observer,
        can_kill_cgroup: plan.cgroup.as_ref().is_some_and(|cgroup| cgroup.kill.is_some()),
    };
    let mut wanted = SigSet::empty();
    wanted.add(Signal::SIGCHLD);
    let Ok(signals) = SignalFd::with_flags(&wanted, SfdFlags::SFD_NONBLOCK) else {
        tree.kill_rest(None);
        end(plan, tree)
    };
    tree.watch(&signals);
    tree.kill_rest(Some(&signals));
    end(plan, tree)
}

/// Reports to benchgate, cleans up, and ends the supervisor.
fn end(plan: &SupervisorPlan, tree: ProcessTree) -> ! {
    if let Some(observer) = tree.observer {
        observer.end();
    }
    if let Some(cgroup) = &plan.cgroup {
        // A cgroup can be busy for a moment after its last member died.
        for _ in 0..100 {
            match std::fs::remove_dir(&cgroup.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => pause(Duration::from_millis(2)),
                _ => break,
            }
        }
    }
    if let Some(report) = tree.report {
        let bytes = Report { leftovers: tree.killed, ..report }.encode();
        // The report is smaller than PIPE_BUF, so it arrives whole. If benchgate is gone, it is not needed.
        let _ = write(borrowed(&REPORT), &bytes);
    }
    // SAFETY: `_exit` ends this process without running destructors or exit handlers.
    unsafe { libc::_exit(0) }
}

fn pause(time: Duration) {
    let _ = poll(&mut [], PollTimeout::try_from(time).unwrap_or(PollTimeout::ZERO));
}

impl ProcessTree {
    /// Returns once the tool has ended or should no longer be waited for.
    fn watch(&mut self, signals: &SignalFd) {
        let mut deadline: Option<Instant> = None;
        let mut listens = self.observer.is_some();
        loop {
            self.reap();
            if self.report.is_some() {
                return;
            }
            let timeout = match deadline {
                None => PollTimeout::NONE,
                Some(at) => match at.checked_duration_since(Instant::now()) {
                    // The time is rounded up, because a timeout of zero would make the loop spin for the last
                    // millisecond.
                    Some(left) => {
                        PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::ZERO)
                    }
                    None => return,
                },
            };
            let control = borrowed(&CONTROL);
            let mut fds = [
                PollFd::new(control, PollFlags::POLLIN),
                PollFd::new(std::os::fd::AsFd::as_fd(signals), PollFlags::POLLIN),
                PollFd::new(borrowed(&LISTENER), PollFlags::POLLIN),
            ];
            let watched = if listens { &mut fds[..] } else { &mut fds[..2] };
            let _ = poll(watched, timeout);
            if let Some(observer) = &mut self.observer {
                match fds[2].revents() {
                    Some(events) if events.contains(PollFlags::POLLIN) => observer.answer(),
                    // A hang-up shows that no observed process is left.
                    Some(events) if !events.is_empty() => listens = false,
                    _ => {}
                }
            }
            let ordered = fds[0].any().unwrap_or(true);
            while let Ok(Some(_)) = signals.read_signal() {}
            if !ordered {
                continue;
            }
            let mut order = [0];
            match read(control, &mut order) {
                Ok(1) if order == [TERMINATE] => {
                    let _ = killpg(self.tool, Signal::SIGTERM);
                    deadline = Some(deadline.unwrap_or_else(|| Instant::now() + GRACE));
                }
                Err(Errno::EINTR | Errno::EAGAIN) => {}
                // The order was `KILL`, or the pipe closed because benchgate is gone.
                _ => return,
            }
        }
    }

    /// Reaps every process that has ended. `false` if no child is left.
    fn reap(&mut self) -> bool {
        loop {
            let mut status = 0;
            // SAFETY: an all-zero rusage is valid.
            let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
            // SAFETY: both pointers are to live local values.
            let pid = unsafe { libc::wait4(-1, &raw mut status, libc::WNOHANG, &raw mut usage) };
            match pid {
                0 => return true,
                -1 => return Errno::last() == Errno::EINTR,
                pid if pid == self.tool.as_raw() => self.report = Some(self.describe(status, &usage)),
                _ => {
                    self.killed +=
                        u32::from(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL)
                }
            }
        }
    }

    fn describe(&self, status: i32, usage: &libc::rusage) -> Report {
        let micros =
            |time: libc::timeval| time.tv_sec.cast_unsigned() * 1_000_000 + time.tv_usec.cast_unsigned();
        Report {
            status,
            leftovers: 0,
            wall_ns: u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX),
            user_us: micros(usage.ru_utime),
            system_us: micros(usage.ru_stime),
            max_rss_kib: usage.ru_maxrss.cast_unsigned(),
            floor_kib: self.floor_kib,
        }
    }

    /// Kills the rest of the tree, including the tool, and waits until it is gone.
    fn kill_rest(&mut self, signals: Option<&SignalFd>) {
        let deadline = Instant::now() + DEATH;
        while self.reap() && Instant::now() < deadline {
            if self.can_kill_cgroup {
                let _ = write(borrowed(&CGROUP_KILL), b"1");
            }
            // The group's ID is reserved for the tool only until the tool is reaped.
            if self.report.is_none() {
                let _ = killpg(self.tool, Signal::SIGKILL);
            }
            // Processes that left the group were adopted by the supervisor. Their own children are
            // adopted once they are dead, and killed in the next round. A child's ID can't be
            // reused before the child is reaped, so no other process is hit.
            each_child(|child| {
                let _ = kill(child, Signal::SIGKILL);
            });
            match signals {
                Some(signals) => {
                    let mut fds = [PollFd::new(std::os::fd::AsFd::as_fd(signals), PollFlags::POLLIN)];
                    let _ = poll(&mut fds, PollTimeout::from(20u8));
                    while let Ok(Some(_)) = signals.read_signal() {}
                }
                None => pause(Duration::from_millis(20)),
            }
        }
    }
}

/// The kernel's list of this thread's children. The process has no other thread.
const CHILDREN: &CStr = c"/proc/thread-self/children";

fn each_child(mut act: impl FnMut(Pid)) {
    let Ok(list) = open(CHILDREN, OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty()) else { return };
    let mut buffer = [0; 4096];
    let mut number: i32 = 0;
    while let Ok(length @ 1..) = read(&list, &mut buffer) {
        // The end of the buffer may split a number, so digits are carried over to the next read.
        for byte in buffer.iter().take(length) {
            if byte.is_ascii_digit() {
                number = number.wrapping_mul(10).wrapping_add(i32::from(byte - b'0'));
            } else if number > 0 {
                act(Pid::from_raw(number));
                number = 0;
            }
        }
    }
    if number > 0 {
        act(Pid::from_raw(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_survives_its_pipe() {
        let report = Report {
            status: -7,
            leftovers: 3,
            wall_ns: u64::MAX,
            user_us: 1,
            system_us: 2,
            max_rss_kib: 4,
            floor_kib: 5,
        };
        assert_eq!(Report::decode(report.encode()), report);
    }
}
