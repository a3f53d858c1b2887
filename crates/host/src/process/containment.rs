//! How processes are contained on this machine; shown by `doctor` and recorded in runs.

use std::fmt;
use std::path::{Path, PathBuf};

use super::cgroup::{self, Cgroup};

/// How a tool's process tree is contained, strongest first. Each includes the following ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Containment {
    /// Each tool gets a cgroup below this one; `cgroup.kill` ends even a fork bomb.
    Cgroup { base: PathBuf },
    /// The supervisor adopts every orphan and kills it: escapes by `setsid` or a double fork are found.
    Subreaper,
    /// The kernel lists no children (no `CONFIG_PROC_CHILDREN`): only the process group can be ended, and processes
    /// that leave it are not found.
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
    if let (Some(_made), Some(base)) = (Cgroup::make(), cgroup::base()) {
        return Containment::Cgroup { base: base.to_owned() };
    }
    if Path::new("/proc/thread-self/children").exists() {
        Containment::Subreaper
    } else {
        Containment::ProcessGroup
    }
}
