//! L3: argv in, [`Exit`] out. The only module that starts programs.
//!
//! ```text
//! benchgate ──control pipe──▶ supervisor ──fork, exec──▶ tool ──▶ what the tool starts
//!           ◀──report pipe──            ◀──SIGCHLD────
//! ```
//!
//! Every tool gets its own supervisor: benchgate's program, started again so that the tool inherits no peak memory
//! from benchgate. It is the subreaper of all that the tool starts, and outlives benchgate for exactly as long as it
//! takes to kill that (the control pipe reaches its end when benchgate dies, however it dies). So no way to end
//! (timeout, Ctrl-C, a dropped future, SIGKILL, the OOM killer) leaves an orphan, and nothing that benchgate did not
//! start is ever signaled. If a cgroup can be created, the tool is moved into it before it executes, and `cgroup.kill`
//! ends processes that fork faster than they can be listed.

mod cancel;
mod cgroup;
mod child;
mod command;
mod hide;
mod init;
mod observe;
mod output;
mod plan;
mod run;
mod session;
mod supervisor;

pub use cancel::{Cancel, Interrupts, interrupts};
pub use cgroup::{Containment, containment};
pub use command::{Command, Exit, Finished, ProcessError, shell_word};
pub use hide::{hide_memory, processor_time, take_variable};
pub use observe::Opened;
pub use output::LOG_CUT;
pub use run::run;
pub use session::{ProgramSession, Reply};

/// Runs a future to its end, for tests of layers that are not asynchronous.
#[cfg(test)]
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(work)
}
