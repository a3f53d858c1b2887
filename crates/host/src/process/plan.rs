//! The instructions for a supervisor. The command line, which every user of the machine can read, contains
//! everything except the tool's variables. These are passed in the environment, which only this user can
//! read, because a variable may be a token.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Prefix of each variable of the tool in the supervisor's environment, so that none of them (`LD_*`) affects the
/// supervisor.
const OF_TOOL: &str = "@";

/// Placeholder for an absent value.
const NONE: &str = "-";

/// Instructions for a supervisor: descriptors that were opened for it, and the tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SupervisorPlan {
    /// Descriptor of the pipe from which orders are received.
    pub(super) control: RawFd,
    /// Descriptor of the pipe to which reports are written.
    pub(super) report: RawFd,
    pub(super) cgroup: Option<CgroupPlan>,
    /// Descriptor of the file that lists the files that the tool opens; `None` if the tool is not observed.
    pub(super) opened: Option<RawFd>,
    pub(super) cpus: Option<Vec<usize>>,
    /// The tool's whole environment. Variables are passed to the supervisor under prefixed names, so that no
    /// variable for the tool affects the supervisor.
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

impl SupervisorPlan {
    /// The descriptors that the supervisor inherits.
    pub(super) fn descriptors(&self) -> Vec<RawFd> {
        let cgroup =
            self.cgroup.iter().flat_map(|cgroup| [Some(cgroup.procs), cgroup.kill, Some(cgroup.lock)]);
        [self.control, self.report].into_iter().chain(cgroup.flatten()).chain(self.opened).collect()
    }

    /// The instructions as arguments of the supervisor.
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
            number(self.opened),
        ]
        .map(OsString::from)
        .into();
        args.push(cgroup.map_or_else(|| NONE.into(), |cgroup| cgroup.path.clone().into()));
        args.push(cpus.unwrap_or_else(|| NONE.to_owned()).into());
        args.push(self.program.clone().into());
        args.extend(self.args.iter().cloned());
        args
    }

    /// The tool's variables as the environment of the supervisor.
    pub(super) fn to_vars(&self) -> impl Iterator<Item = (OsString, &OsString)> {
        self.env.iter().map(|(name, value)| {
            let mut marked = OsString::from(OF_TOOL);
            marked.push(name);
            (marked, value)
        })
    }

    /// Reads the instructions back. `None` if these are not the arguments of a supervisor.
    pub(super) fn from_parts(
        mut args: impl Iterator<Item = OsString>,
        vars: impl Iterator<Item = (OsString, OsString)>,
    ) -> Option<Self> {
        let mut text = || args.next()?.into_string().ok();
        let mut number = || match text()?.as_str() {
            NONE => Some(None),
            digits => digits.parse().ok().map(Some),
        };
        let (control, report) = (number()??, number()??);
        let (procs, kill, lock): (Option<RawFd>, Option<RawFd>, Option<RawFd>) =
            (number()?, number()?, number()?);
        let opened = number()?;
        let path = PathBuf::from(args.next()?);
        let cpus = args.next()?.into_string().ok()?;
        let cpus = match cpus.as_str() {
            NONE => None,
            list => Some(list.split(',').map(str::parse).collect::<Result<Vec<usize>, _>>().ok()?),
        };
        let own = |name: &OsStr| {
            name.as_bytes().strip_prefix(OF_TOOL.as_bytes()).map(|name| OsStr::from_bytes(name).to_owned())
        };
        let env = vars.filter_map(|(name, value)| Some((own(&name)?, value))).collect();
        let program = PathBuf::from(args.next()?);
        let cgroup = procs.zip(lock).map(|(procs, lock)| CgroupPlan { procs, kill, lock, path });
        Some(Self { control, report, cgroup, opened, cpus, env, program, args: args.collect() })
    }
}
