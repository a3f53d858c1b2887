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
mod init;
mod observe;
mod observed_calls;
mod opened;
mod plan;
mod session;
mod supervisor;

use std::ffi::{CStr, OsString, c_char};

use nix::sys::prctl;

pub use cancel::{Cancel, Interrupts, interrupts};
pub use cgroup::{Containment, containment};
pub use child::LOG_CUT;
pub use command::{Command, Exit, Finished, ProcessError};
pub use opened::{END_OF_SECTION, Opened};
pub use session::{ProgramSession, Reply, run};

/// Runs a future to its end, for tests of modules that are not asynchronous.
#[cfg(test)]
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(work)
}

unsafe extern "C" {
    /// The C library's list of environment variables. The variables that the process was started with are in the
    /// memory block that `/proc/PID/environ` shows.
    static environ: *const *mut c_char;
}

/// Makes this process's memory, environment and core dumps unreadable to others of the same user. Root can
/// still read them. A child is readable again as soon as it executes a program. Returns whether it worked.
pub fn hide_memory() -> bool {
    prctl::set_dumpable(false).is_ok()
}

/// Removes a variable from the environment and overwrites its value in memory. `/proc/PID/environ`, which
/// root can read for any process, shows the original values even after a variable is unset.
///
/// # Safety
/// No other thread may read or change the environment meanwhile.
pub unsafe fn take_variable(name: &str) -> Option<OsString> {
    let value = std::env::var_os(name)?;
    // SAFETY: the list ends with a null pointer, its entries are null-terminated strings, and the caller
    // ensures that no other code uses them.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            let text = CStr::from_ptr(*entry).to_bytes();
            let value = text.strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
            if let Some(length) = value.map(<[u8]>::len) {
                (*entry).add(name.len() + 1).write_bytes(0, length);
            }
            entry = entry.add(1);
        }
        std::env::remove_var(name);
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_process_is_not_dumpable() {
        assert!(hide_memory());
        assert_eq!(prctl::get_dumpable(), Ok(false));
        // Hidden memory would make this process's /proc files unreadable to the other tests.
        prctl::set_dumpable(true).unwrap();
    }
}
