//! benchgate, started once more as the supervisor of one tool.
//!
//! A program inherits the peak memory of the process that it replaces: Linux keeps the high-water mark of a
//! process over `exec`. benchgate is larger than many tools, so a tool started by it, or by a fork of it, would be
//! reported with benchgate's own peak. A supervisor that was itself executed has a few hundred kilobytes to pass on.
//!
//! Any program that links this library can be started that way, tests included: the hook below runs before
//! `main` and takes over where the program was started under the supervisor's name.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::supervisor::supervise;

/// What a supervisor is called in a list of processes.
pub(super) const NAME: &str = "benchgate-init";

/// The program that runs, whatever became of its file.
pub(super) const SELF: &str = "/proc/self/exe";

/// Stands for a value that is absent.
const NONE: &str = "-";

/// What a supervisor is to do: descriptors that were opened for it, and the tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    /// Orders come in here.
    pub(super) control: RawFd,
    /// Reports go out here.
    pub(super) report: RawFd,
    pub(super) cgroup: Option<CgroupPlan>,
    pub(super) cpus: Option<Vec<usize>>,
    /// The tool's whole environment. The supervisor itself has none: a variable for the tool can't change it.
    pub(super) env: BTreeMap<OsString, OsString>,
    pub(super) program: PathBuf,
    pub(super) args: Vec<OsString>,
}

/// The tool's cgroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CgroupPlan {
    pub(super) procs: RawFd,
    pub(super) kill: Option<RawFd>,
    pub(super) lock: RawFd,
    pub(super) path: PathBuf,
}

impl Plan {
    /// The descriptors that the supervisor inherits.
    pub(super) fn descriptors(&self) -> Vec<RawFd> {
        let cgroup =
            self.cgroup.iter().flat_map(|cgroup| [Some(cgroup.procs), cgroup.kill, Some(cgroup.lock)]);
        [self.control, self.report].into_iter().chain(cgroup.flatten()).collect()
    }

    /// As arguments of the supervisor.
    pub(super) fn to_args(&self) -> Vec<OsString> {
        let number = |fd: Option<RawFd>| fd.map_or_else(|| NONE.to_owned(), |fd| fd.to_string());
        let cgroup = self.cgroup.as_ref();
        let cpus =
            self.cpus.as_ref().map(|cpus| cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(","));
        let mut args: Vec<OsString> = [
            number(Some(self.control)),
            number(Some(self.report)),
            number(cgroup.map(|cgroup| cgroup.procs)),
            number(cgroup.and_then(|cgroup| cgroup.kill)),
            number(cgroup.map(|cgroup| cgroup.lock)),
        ]
        .map(OsString::from)
        .into();
        args.push(cgroup.map_or_else(|| NONE.into(), |cgroup| cgroup.path.clone().into()));
        args.push(cpus.unwrap_or_else(|| NONE.to_owned()).into());
        args.push(self.env.len().to_string().into());
        for (name, value) in &self.env {
            args.extend([name.clone(), value.clone()]);
        }
        args.push(self.program.clone().into());
        args.extend(self.args.iter().cloned());
        args
    }

    /// The other way. `None` where these are not the arguments of a supervisor.
    fn from_args(mut args: impl Iterator<Item = OsString>) -> Option<Self> {
        let mut text = || args.next()?.into_string().ok();
        let mut number = || match text()?.as_str() {
            NONE => Some(None),
            digits => digits.parse().ok().map(Some),
        };
        let (control, report) = (number()??, number()??);
        let (procs, kill, lock): (Option<RawFd>, Option<RawFd>, Option<RawFd>) =
            (number()?, number()?, number()?);
        let path = PathBuf::from(args.next()?);
        let cpus = args.next()?.into_string().ok()?;
        let cpus = match cpus.as_str() {
            NONE => None,
            list => Some(list.split(',').map(str::parse).collect::<Result<Vec<usize>, _>>().ok()?),
        };
        let variables: usize = args.next()?.into_string().ok()?.parse().ok()?;
        let mut env = BTreeMap::new();
        for _ in 0..variables {
            env.insert(args.next()?, args.next()?);
        }
        let program = PathBuf::from(args.next()?);
        let cgroup = procs.zip(lock).map(|(procs, lock)| CgroupPlan { procs, kill, lock, path });
        Some(Self { control, report, cgroup, cpus, env, program, args: args.collect() })
    }
}

/// Run by the C library before `main`.
#[used]
// SAFETY: the section holds pointers to functions that take no argument they need and return nothing.
#[unsafe(link_section = ".init_array")]
static HOOK: extern "C" fn() = become_supervisor;

/// Keeps the hook in every program that starts tools: a linker drops what is not referred to.
pub(super) fn keep_hook() {
    std::hint::black_box(&HOOK);
}

/// Does nothing in a program that was started under any other name.
extern "C" fn become_supervisor() {
    // The standard library knows the arguments only from `main` on, on some systems.
    let Ok(line) = std::fs::read("/proc/self/cmdline") else { return };
    if let Some(plan) = plan_of(&line) {
        supervise(&plan);
    }
}

/// The plan in a process's command line, where it is a supervisor's: words that each end with a zero.
fn plan_of(line: &[u8]) -> Option<Plan> {
    let words = line.strip_prefix(NAME.as_bytes())?.strip_prefix(b"\0")?;
    let words = words.strip_suffix(b"\0").unwrap_or(words).split(|byte| *byte == 0);
    Plan::from_args(words.map(|word| OsStr::from_bytes(word).to_owned()))
}

/// The command line of a supervisor, as the kernel shows it.
#[cfg(test)]
fn command_line(plan: &Plan) -> Vec<u8> {
    let words = std::iter::once(NAME.into()).chain(plan.to_args());
    words.flat_map(|word: OsString| word.as_bytes().iter().copied().chain([0]).collect::<Vec<u8>>()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan {
            control: 5,
            report: 7,
            cgroup: None,
            cpus: None,
            env: BTreeMap::from([("PATH".into(), "/bin".into()), ("EMPTY".into(), "".into())]),
            program: "/opt/tool".into(),
            args: vec!["".into(), "two words".into(), OsStr::from_bytes(b"\xff").to_owned(), "".into()],
        }
    }

    #[test]
    fn a_plan_survives_the_command_line() {
        let cgroup = CgroupPlan { procs: 8, kill: Some(9), lock: 10, path: "/sys/fs/cgroup/a b".into() };
        let full = Plan { cgroup: Some(cgroup), cpus: Some(vec![1, 3]), ..plan() };
        for plan in [plan(), full] {
            assert_eq!(plan_of(&command_line(&plan)), Some(plan));
        }
    }

    #[test]
    fn another_program_s_command_line_is_no_plan() {
        for line in [
            &b"benchgate\0gate\0"[..],
            b"benchgate-initial\0",
            b"benchgate-init\0",
            b"benchgate-init\01\0x\0",
            b"",
        ] {
            assert_eq!(plan_of(line), None);
        }
    }
}
