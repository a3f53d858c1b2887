//! benchgate's side of a running tool: pipes, orders to the supervisor, and waiting until the tool is gone.

use std::fs::{File, OpenOptions};
use std::io::{self, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::AsyncReadExt;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use super::cgroup::Cgroup;
use super::plan::{CgroupPlan, SupervisorPlan};
use super::supervisor::{self, KILL, Report, TERMINATE};
use super::{Command, Exit, Opened, ProcessError, cgroup, init, opened};

/// A running tool. Dropping it kills the tool and everything that it started, and waits until they have
/// ended.
pub(super) struct Child {
    supervisor: std::process::Child,
    /// The control pipe. Closing it orders the supervisor to kill the tool, so it is dropped first.
    control: Option<PipeWriter>,
    report: Option<ChildStdout>,
    cgroup: Option<Cgroup>,
    /// The file in which the supervisor records its observations, and the position up to which they were read.
    opened: Option<(File, u64)>,
    /// Number of out-of-memory kills before the start.
    kills_before: Option<u64>,
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: Option<ChildStdout>,
    pub(super) stderr: Option<ChildStderr>,
}

impl Child {
    /// Starts the tool. When it returns, the program is executing.
    pub(super) async fn start(command: &Command, talks: bool) -> Result<Self, ProcessError> {
        let owned = command.clone();
        // Starting two programs takes milliseconds, which would block the runtime's threads. If the caller
        // drops this future meanwhile, the result is dropped too, which kills the tool.
        let started = tokio::task::spawn_blocking(move || {
            let cgroup = Cgroup::make();
            let had_cgroup = cgroup.is_some();
            match spawn(&owned, talks, cgroup) {
                // Some delegations allow creating a cgroup but not entering it. If the tool starts without a
                // cgroup, that was the reason.
                Err(first) if had_cgroup && first.kind() != io::ErrorKind::NotFound => {
                    let second = spawn(&owned, talks, None);
                    if second.is_ok() {
                        Cgroup::refuse();
                    }
                    second
                }
                result => result,
            }
        })
        .await
        .unwrap_or_else(|panic| Err(io::Error::other(panic)));
        started.and_then(Self::register).map_err(|source| {
            let source = match source.raw_os_error().map(Errno::from_raw) {
                // The system's message, "Resource temporarily unavailable", does not say which limit was
                // reached.
                Some(Errno::EAGAIN) => io::Error::other(
                    "the limit on processes of this user or container was reached (`ulimit -u`, `pids.max`)",
                ),
                _ => source,
            };
            let program = command.program.clone();
            let cwd = command.folder();
            // A missing folder is reported by the same error number as a missing program.
            if source.kind() == io::ErrorKind::NotFound && cwd.is_dir() {
                ProcessError::NotFound { program }
            } else {
                ProcessError::Start { program, cwd, source }
            }
        })
    }

    /// Registers the pipes with the runtime.
    fn register(mut started: Started) -> io::Result<Self> {
        let supervisor = &mut started.supervisor;
        let (stdin, stdout, stderr) =
            (supervisor.stdin.take(), supervisor.stdout.take(), supervisor.stderr.take());
        // The child is built first, so that a failure below drops it and thereby ends the tool.
        let mut child = Self {
            supervisor: started.supervisor,
            control: Some(started.control),
            report: None,
            cgroup: started.cgroup,
            opened: started.opened.map(|file| (file, opened::START)),
            kills_before: started.kills_before,
            stdin: None,
            stdout: None,
            stderr: None,
        };
        child.report = Some(ChildStdout::from_std(OwnedFd::from(started.report).into())?);
        child.stdin = stdin.map(ChildStdin::from_std).transpose()?;
        child.stdout = stdout.map(ChildStdout::from_std).transpose()?;
        child.stderr = stderr.map(ChildStderr::from_std).transpose()?;
        Ok(child)
    }

    /// Resolves once the tool and everything that it started are gone. `None` if the supervisor was killed.
    /// Must be awaited only once.
    pub(super) fn ended(&mut self) -> impl Future<Output = Option<Report>> + Send + use<> {
        let report = self.report.take();
        async move {
            let mut bytes = [0; Report::SIZE];
            report?.read_exact(&mut bytes).await.ok()?;
            Some(Report::decode(bytes))
        }
    }

    /// Sends SIGTERM to the process group, then SIGKILL after the grace period.
    pub(super) fn terminate(&mut self) {
        self.order(TERMINATE);
    }

    /// Sends SIGKILL to everything.
    pub(super) fn kill(&mut self) {
        self.order(KILL);
    }

    fn order(&mut self, order: u8) {
        if let Some(control) = &mut self.control {
            // Writing fails if the supervisor is gone, and then there is nothing left to order.
            drop(control.write_all(&[order]));
        }
        wake(&self.supervisor);
    }

    /// The files that the tool opened since the last call, up to the end of a section.
    pub(super) fn opened(&mut self) -> Option<Opened> {
        let (file, start) = self.opened.as_mut()?;
        opened::read_sections(file, start)
    }

    /// Returns whether the kernel has killed a process because of low memory since the tool was started.
    pub(super) fn memory_ran_out(&self) -> bool {
        self.kills_before.zip(out_of_memory_kills()).is_some_and(|(before, now)| now > before)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.control = None;
        wake(&self.supervisor);
        // This wait ends soon, because the supervisor limits how long it waits for killed processes.
        drop(self.supervisor.wait());
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
    }
}

/// Milliseconds that a supervisor may take to start its tool before it is sent SIGCONT.
const WAKE_MS: u16 = 1000;

/// Resumes a supervisor that was stopped (`kill -STOP`), so that it can obey orders.
fn wake(supervisor: &std::process::Child) {
    // The supervisor has not been reaped yet, so its ID can't belong to another process. If it has
    // ended, the signal does nothing.
    let _ = kill(Pid::from_raw(supervisor.id().cast_signed()), Signal::SIGCONT);
}

/// The exit of a tool that benchgate did not end.
pub(super) fn exit_of(status: i32) -> Exit {
    use nix::libc::{WEXITSTATUS, WIFEXITED, WTERMSIG};
    match (WIFEXITED(status), WEXITSTATUS(status)) {
        (true, 0) => Exit::Success,
        (true, code) => Exit::Code(code),
        (false, _) => Exit::Signal(WTERMSIG(status)),
    }
}

/// Peak memory of the tool. `None` if the peak inherited from the supervisor is larger.
pub(super) fn peak_memory_bytes(report: &Report) -> Option<u64> {
    (report.max_rss_kib > report.floor_kib).then_some(report.max_rss_kib * 1024)
}

pub(super) const fn wall(report: &Report) -> Duration {
    Duration::from_nanos(report.wall_ns)
}

/// A started supervisor with its pipes, not yet registered with the runtime.
struct Started {
    supervisor: std::process::Child,
    control: PipeWriter,
    report: io::PipeReader,
    cgroup: Option<Cgroup>,
    opened: Option<File>,
    kills_before: Option<u64>,
}

fn spawn(command: &Command, talks: bool, cgroup: Option<Cgroup>) -> io::Result<Started> {
    init::keep_hook();
    let kills_before = out_of_memory_kills();
    let (control_end, control) = io::pipe()?;
    let (mut report, report_end) = io::pipe()?;
    // If the shared file can't be created, the tool runs unobserved.
    let opened = command.observed.then(|| opened::shared_list().ok()).flatten();
    let plan = SupervisorPlan {
        control: control_end.as_raw_fd(),
        report: report_end.as_raw_fd(),
        cgroup: cgroup.as_ref().map(cgroup_plan),
        opened: opened.as_ref().map(AsRawFd::as_raw_fd),
        cpus: command.cpus.clone(),
        env: command.environment(std::env::vars_os()),
        program: command.program.clone(),
        args: command.args.clone(),
    };
    let mut process = std::process::Command::new(init::SELF);
    process
        .arg0(init::NAME)
        .args(plan.to_args())
        .env_clear()
        .envs(plan.to_vars())
        .stdin(if talks { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(folder) = &command.cwd {
        process.current_dir(folder);
    }
    let inherited = plan.descriptors();
    // SAFETY: the closure only makes async-signal-safe calls, on descriptors that outlive the spawn below.
    unsafe {
        process.pre_exec(move || {
            for fd in &inherited {
                fcntl(BorrowedFd::borrow_raw(*fd), FcntlArg::F_SETFD(FdFlag::empty()))?;
            }
            Ok(())
        });
    }
    let mut supervisor = process.spawn()?;
    // Our copies are closed, so that the report pipe ends when the supervisor does.
    drop((control_end, report_end));
    // A supervisor that was stopped (`kill -STOP`) before it reported the start could not be ended either, so
    // it is resumed.
    while poll(&mut [PollFd::new(report.as_fd(), PollFlags::POLLIN)], PollTimeout::from(WAKE_MS)) == Ok(0) {
        wake(&supervisor);
    }
    let mut answer = [0; size_of::<i32>()];
    let failed = match report.read_exact(&mut answer).map(|()| i32::from_ne_bytes(answer)) {
        Ok(supervisor::STARTED) => {
            return Ok(Started { supervisor, control, report, cgroup, opened, kills_before });
        }
        Ok(number) => io::Error::from_raw_os_error(number),
        Err(_) => io::Error::other("the supervisor process ended before it started the program"),
    };
    drop(control);
    supervisor.wait()?;
    Err(failed)
}

fn cgroup_plan(cgroup: &Cgroup) -> CgroupPlan {
    CgroupPlan {
        procs: cgroup.procs.as_raw_fd(),
        kill: cgroup.kill.as_ref().map(AsRawFd::as_raw_fd),
        lock: cgroup.lock.as_raw_fd(),
        path: cgroup.path.clone(),
    }
}

/// The number of processes that the kernel has killed for lack of memory, in benchgate's own cgroup and below
/// if that is counted, otherwise on the whole machine. `None` if the kernel does not report it.
fn out_of_memory_kills() -> Option<u64> {
    let of_cgroup = || {
        let folder = cgroup::own()?;
        count(&std::fs::read_to_string(folder.join("memory.events")).ok()?)
    };
    of_cgroup().or_else(|| count(&std::fs::read_to_string(Path::new("/proc/vmstat")).ok()?))
}

/// The value of `oom_kill N`, a line that `memory.events` and `/proc/vmstat` both have.
fn count(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

/// Maximum number of bytes of stdout kept in memory. The JSON of a thousand repetitions has less than a
/// megabyte.
const CAPTURE_LIMIT: usize = 64 << 20;
/// Maximum number of bytes that one run adds to its log, so that a tool can't fill the disk.
const LOG_LIMIT: u64 = 64 << 20;
/// The last line of a log that was truncated.
pub const LOG_CUT: &str = "[the rest was dropped: the log reached its limit]";
/// Maximum number of bytes of stderr kept for messages.
const TAIL_LIMIT: usize = 16 << 10;

/// A log file with a size limit, to which output is appended.
pub(super) struct Log {
    file: Option<File>,
    path: PathBuf,
    left: u64,
}

impl Log {
    /// Opens the log and creates its folder. Without a path, all output is discarded.
    pub(super) fn open(path: Option<&Path>) -> Result<Self, ProcessError> {
        let open = |path: &Path| {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            OpenOptions::new().create(true).append(true).open(path)
        };
        let file = path
            .map(|path| open(path).map_err(|source| ProcessError::Log { path: path.to_owned(), source }))
            .transpose()?;
        Ok(Self { file, path: path.map(Path::to_owned).unwrap_or_default(), left: LOG_LIMIT })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), ProcessError> {
        self.append(bytes).map_err(|source| ProcessError::Log { path: self.path.clone(), source })
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        if self.left == 0 {
            return Ok(());
        }
        let take = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
        let (kept, rest) = bytes.split_at(take);
        file.write_all(kept)?;
        self.left -= kept.len() as u64;
        if !rest.is_empty() {
            self.left = 0;
            file.write_all(format!("\n{LOG_CUT}\n").as_bytes())?;
        }
        Ok(())
    }
}

/// The first bytes of a stream, up to a limit.
#[derive(Default)]
pub(super) struct OutputHead {
    pub(super) bytes: Vec<u8>,
    pub(super) truncated: bool,
}

impl OutputHead {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let take = bytes.len().min(CAPTURE_LIMIT - self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..take]);
        self.truncated |= take < bytes.len();
    }
}

/// The last bytes of a stream.
#[derive(Default)]
pub(super) struct Tail {
    bytes: Vec<u8>,
}

impl Tail {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL_LIMIT)..]);
        // The buffer is cut only at twice the limit, so that a tool that prints byte by byte does not shift
        // it every time.
        if self.bytes.len() > 2 * TAIL_LIMIT {
            self.bytes.drain(..self.bytes.len() - TAIL_LIMIT);
        }
    }

    pub(super) fn into_text(self) -> String {
        let from = self.bytes.len().saturating_sub(TAIL_LIMIT);
        String::from_utf8_lossy(&self.bytes[from..]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_are_read_where_they_are_counted() {
        assert_eq!(count("low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n"), Some(2));
        assert_eq!(count("oom 3\n"), None);
        assert!(out_of_memory_kills().is_some());
    }

    #[test]
    fn the_tail_keeps_the_end() {
        let mut tail = Tail::default();
        for number in 0..100_000 {
            tail.push(format!("{number}\n").as_bytes());
        }
        let text = tail.into_text();
        assert!(text.ends_with("99999\n"));
        assert_eq!(text.len(), TAIL_LIMIT);
    }

    #[test]
    fn a_log_says_where_it_was_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logs/a.log");
        let mut log = Log::open(Some(&path)).unwrap();
        log.left = 4;
        log.write(b"abc").unwrap();
        log.write(b"defg").unwrap();
        log.write(b"hij").unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        assert_eq!(text, "abcd\n[the rest was dropped: the log reached its limit]\n");
    }
}
