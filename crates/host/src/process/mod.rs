//! L3: runs programs. No other module starts any.
//!
//! ```text
//! benchgate ──control pipe──▶ supervisor ──fork, exec──▶ tool ──▶ what the tool starts
//!           ◀──report pipe──            ◀──SIGCHLD────
//! ```
//!
//! Every tool gets its own supervisor: benchgate's program, started again so that the tool inherits no peak
//! memory from benchgate. The supervisor is the subreaper of everything that the tool starts. When benchgate
//! dies for any reason, the control pipe closes, and the supervisor kills the tool's processes before it ends
//! too. So no orphan remains after a timeout, Ctrl-C, a dropped future, SIGKILL or the OOM killer, and
//! benchgate never signals a process that it did not start. If a cgroup can be created, the tool is moved
//! into it before it executes, and `cgroup.kill` ends processes that fork faster than they can be listed.

mod cancel;
mod cgroup;
mod child;
mod command;
mod hide;
mod init;
mod observe;
mod observed_calls;
mod opened;
mod output;
mod plan;
mod session;
mod supervisor;

pub use cancel::{Cancel, Interrupts, interrupts};
pub use cgroup::{Containment, containment};
pub use command::{Command, Exit, Finished, ProcessError, shell_word};
pub use hide::{hide_memory, take_variable};
pub use opened::Opened;
pub use output::LOG_CUT;
pub use session::{ProgramSession, Reply, run};

/// Runs a future to its end, for tests of modules that are not asynchronous.
#[cfg(test)]
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(work)
}
