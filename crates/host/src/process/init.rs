//! Starts benchgate again as the supervisor of one tool.
//!
//! A program inherits the peak memory of the process that it replaces: Linux keeps the high-water mark of a
//! process over `exec`. benchgate uses more memory than many tools, so a tool that benchgate or its fork
//! started would be reported with benchgate's own peak. A freshly executed supervisor passes on only a few
//! hundred kilobytes.
//!
//! Every program that links this library, including the tests, can act as a supervisor: the hook below runs
//! before `main` and takes over if the program was started under the supervisor's name.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use super::plan::SupervisorPlan;
use super::supervisor::supervise;

/// Name of a supervisor in process listings.
pub(super) const NAME: &str = "benchgate-init";

/// Path of the running program, valid even if its file was replaced or removed.
pub(super) const SELF: &str = "/proc/self/exe";

/// The hook that the C library runs before `main`.
#[used]
// SAFETY: the section contains pointers to functions that return nothing; the C library passes arguments that
// they may ignore.
#[unsafe(link_section = ".init_array")]
static HOOK: extern "C" fn() = become_supervisor;

/// Keeps the linker from dropping the hook, which no other code refers to.
pub(super) fn keep_hook() {
    std::hint::black_box(&HOOK);
}

/// Runs the supervisor if the program was started under the supervisor's name; otherwise does nothing.
extern "C" fn become_supervisor() {
    // On some systems the standard library has no arguments before `main`, so they are read from the kernel.
    let Ok(line) = std::fs::read("/proc/self/cmdline") else { return };
    if let Some(plan) = plan_of(&line, std::env::vars_os()) {
        supervise(&plan);
    }
}

/// Reads the plan from a supervisor's command line, whose words each end with a zero byte. `None` for other
/// programs.
fn plan_of(line: &[u8], vars: impl Iterator<Item = (OsString, OsString)>) -> Option<SupervisorPlan> {
    let words = line.strip_prefix(NAME.as_bytes())?.strip_prefix(b"\0")?;
    let words = words.strip_suffix(b"\0").unwrap_or(words).split(|byte| *byte == 0);
    SupervisorPlan::from_parts(words.map(|word| OsStr::from_bytes(word).to_owned()), vars)
}

/// The command line of a supervisor, as the kernel shows it.
#[cfg(test)]
fn command_line(plan: &SupervisorPlan) -> Vec<u8> {
    let words = std::iter::once(NAME.into()).chain(plan.to_args());
    words.flat_map(|word: OsString| word.as_bytes().iter().copied().chain([0]).collect::<Vec<u8>>()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::plan::CgroupPlan;
    use super::*;

    fn plan() -> SupervisorPlan {
        SupervisorPlan {
            control: 5,
            report: 7,
            cgroup: None,
            opened: None,
            cpus: None,
            env: BTreeMap::from([("PATH".into(), "/bin".into()), ("EMPTY".into(), "".into())]),
            program: "/opt/tool".into(),
            args: vec!["".into(), "two words".into(), OsStr::from_bytes(b"\xff").to_owned(), "".into()],
        }
    }

    #[test]
    fn a_plan_survives_the_command_line_and_the_environment() {
        let cgroup = CgroupPlan { procs: 8, kill: Some(9), lock: 10, path: "/sys/fs/cgroup/a b".into() };
        let full =
            SupervisorPlan { cgroup: Some(cgroup), opened: Some(11), cpus: Some(vec![1, 3]), ..plan() };
        for plan in [plan(), full] {
            let vars: Vec<_> = plan.to_vars().map(|(name, value)| (name, value.clone())).collect();
            assert_eq!(plan_of(&command_line(&plan), vars.into_iter()), Some(plan));
        }
    }

    #[test]
    fn the_command_line_of_another_program_is_not_a_plan() {
        for line in [
            &b"benchgate\0gate\0"[..],
            b"benchgate-initial\0",
            b"benchgate-init\0",
            b"benchgate-init\x001\0x\0",
            b"",
        ] {
            assert_eq!(plan_of(line, std::iter::empty()), None);
        }
    }
}
