//! benchgate's end of a tool: the pipes, the orders, and the certainty that it is gone.

use std::ffi::CString;
use std::io::{self, PipeWriter, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::Duration;

use nix::sched::CpuSet;
use tokio::io::AsyncReadExt;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use super::cgroup::Cgroup;
use super::supervisor::{self, CgroupPlan, KILL, Plan, Report, TERMINATE};
use super::{Command, Exit, ProcessError};

/// A running tool. Dropping it kills the tool with everything it started, and waits for their end.
pub(super) struct Child {
    supervisor: std::process::Child,
    /// Its end is the order to kill, so it is dropped first.
    control: Option<PipeWriter>,
    report: Option<ChildStdout>,
    cgroup: Option<Cgroup>,
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: Option<ChildStdout>,
    pub(super) stderr: Option<ChildStderr>,
}

impl Child {
    /// Starts the tool. When it returns, the program is executing.
    pub(super) async fn start(command: &Command, talks: bool) -> Result<Self, ProcessError> {
        let owned = command.clone();
        // A fork of a large process takes milliseconds, which the runtime's threads don't have. Should the
        // caller lose interest meanwhile, the result is dropped, and with it the tool.
        let started = tokio::task::spawn_blocking(move || {
            let cgroup = Cgroup::make();
            let had_cgroup = cgroup.is_some();
            match spawn(&owned, talks, cgroup) {
                // Some delegations let us make a cgroup and not enter it. If the tool starts without one,
                // that was the reason.
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

    /// Hands the pipes to the runtime.
    fn register(mut started: Started) -> io::Result<Self> {
        let supervisor = &mut started.supervisor;
        let (stdin, stdout, stderr) =
            (supervisor.stdin.take(), supervisor.stdout.take(), supervisor.stderr.take());
        // Built first, so that a failure below drops a child that knows how to end itself.
        let mut child = Self {
            supervisor: started.supervisor,
            control: Some(started.control),
            report: None,
            cgroup: started.cgroup,
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

    /// Resolves once the tool and everything it started are gone. `None` if the supervisor was killed.
    /// Can be awaited once.
    pub(super) fn ended(&mut self) -> impl Future<Output = Option<Report>> + Send + use<> {
        let report = self.report.take();
        async move {
            let mut bytes = [0; Report::SIZE];
            report?.read_exact(&mut bytes).await.ok()?;
            Some(Report::decode(bytes))
        }
    }

    /// SIGTERM to the group, and SIGKILL after a moment of grace.
    pub(super) fn terminate(&mut self) {
        self.order(TERMINATE);
    }

    /// SIGKILL to everything.
    pub(super) fn kill(&mut self) {
        self.order(KILL);
    }

    fn order(&mut self, order: u8) {
        if let Some(control) = &mut self.control {
            // A supervisor that is gone has done its work.
            drop(control.write_all(&[order]));
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.control = None;
        // Ends within moments: the supervisor bounds how long it waits for the killed.
        drop(self.supervisor.wait());
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
    }
}

/// How the tool ended by itself.
pub(super) fn exit_of(status: i32) -> Exit {
    use nix::libc::{WEXITSTATUS, WIFEXITED, WTERMSIG};
    match (WIFEXITED(status), WEXITSTATUS(status)) {
        (true, 0) => Exit::Success,
        (true, code) => Exit::Code(code),
        (false, _) => Exit::Signal(WTERMSIG(status)),
    }
}

/// Peak memory, unless it disappears behind what the fork passed on.
pub(super) fn peak_memory_bytes(report: &Report) -> Option<u64> {
    (report.max_rss_kib > report.floor_kib).then_some(report.max_rss_kib * 1024)
}

pub(super) const fn wall(report: &Report) -> Duration {
    Duration::from_nanos(report.wall_ns)
}

/// A started supervisor with its pipes, not yet known to the runtime.
struct Started {
    supervisor: std::process::Child,
    control: PipeWriter,
    report: io::PipeReader,
    cgroup: Option<Cgroup>,
}

fn spawn(command: &Command, talks: bool, cgroup: Option<Cgroup>) -> io::Result<Started> {
    let (control_end, control) = io::pipe()?;
    let (report, report_end) = io::pipe()?;
    let plan = Plan {
        control: control_end.as_raw_fd(),
        report: report_end.as_raw_fd(),
        cgroup: cgroup.as_ref().map(cgroup_plan).transpose()?,
        cpus: command.cpus.as_deref().map(cpu_set).transpose()?,
    };
    let mut process = std::process::Command::new(&command.program);
    process
        .args(&command.args)
        .env_clear()
        .envs(command.environment(std::env::vars_os()))
        .stdin(if talks { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(folder) = &command.cwd {
        process.current_dir(folder);
    }
    // SAFETY: `split` only makes async-signal-safe calls, and the descriptors of the plan outlive the
    // spawn below.
    unsafe {
        process.pre_exec(move || supervisor::split(&plan));
    }
    let supervisor = process.spawn()?;
    Ok(Started { supervisor, control, report, cgroup })
}

fn cgroup_plan(cgroup: &Cgroup) -> io::Result<CgroupPlan> {
    Ok(CgroupPlan {
        procs: cgroup.procs.as_raw_fd(),
        kill: cgroup.kill.as_ref().map(AsRawFd::as_raw_fd),
        lock: cgroup.lock.as_raw_fd(),
        path: CString::new(cgroup.path.as_os_str().as_bytes())?,
    })
}

fn cpu_set(cpus: &[usize]) -> io::Result<CpuSet> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        set.set(*cpu)?;
    }
    Ok(set)
}
