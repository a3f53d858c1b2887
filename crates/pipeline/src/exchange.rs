//! Finds the kernel that causes a change, by exchanging kernels. A call of base's module is captured, and the
//! runtime repeats it with some of head's kernels in place of base's.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use benchgate_core::model::{BenchmarkName, SideName};
use benchgate_host::files;
use benchgate_host::process::{Command, Exit};
use benchgate_ingest::{self, Executable};

use super::PipelineError;
use super::argv::{Timing, joined};
use super::candidates::{Measurable, PreparedSide, TimedProgram, candidates};
use super::compile::failure;
use super::host::Host;

/// Maximum size of a module, and of a capture, which includes the weights that the call reads.
const MOST_BYTES: u64 = 1 << 30;

/// Time limit for capturing a call, and for reading the capture.
const TIMEOUT: Duration = Duration::from_secs(300);

/// The timing of a replay, long enough that a process measures for longer than it takes to start.
const TIMING: Timing = Timing {
    repetitions: 5,
    iterations: None,
    min_time: Duration::from_millis(20),
    warmup: Duration::from_millis(5),
};

/// A captured call and the kernels that can be exchanged in it.
#[derive(Debug, Clone, PartialEq)]
pub struct ExchangePlan {
    pub capture: PathBuf,
    /// The command that times the call.
    pub replay: Vec<String>,
    pub device: String,
    pub env: BTreeMap<String, String>,
    /// The kernels whose code differs between the sides.
    pub kernels: Vec<Exchangeable>,
    /// Number of kernels with the same code on both sides.
    pub identical: usize,
    /// The kernels of base that can't be exchanged, each with the reason.
    pub unmatched: Vec<(String, String)>,
}

/// An executable of head that can replace one of base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchangeable {
    pub name: String,
    /// The argument that selects head's executable.
    pub head: String,
    /// The argument that selects base's own executable.
    pub base: String,
}

/// Captures base's call with the runtime of a side that can repeat it, preferably head's.
pub(super) async fn plan(
    host: &Host<'_>,
    sides: &[PreparedSide<'_>],
    benchmark: &BenchmarkName,
    folder: &Path,
) -> Result<ExchangePlan, PipelineError> {
    let refused = |why: String| PipelineError::Exchange(why);
    let candidates = candidates(sides, std::slice::from_ref(benchmark));
    let module = |side: SideName| match candidates.first()?.sides.get(&side)? {
        TimedProgram::Module(module) => Some(*module),
        TimedProgram::Command(_) => None,
    };
    let (Some(base), Some(head)) = (module(SideName::Base), module(SideName::Head)) else {
        let failed = sides.iter().filter_map(|side| {
            let prepared = side.benchmark(benchmark)?;
            let why = prepared.outcome.why()?;
            Some(format!("{benchmark} {}: {why}", side.input.name))
        });
        let why = failed.collect::<Vec<_>>().join("; ");
        let nothing = format!("{benchmark} has no compiled module on both sides");
        return Err(refused(if why.is_empty() { nothing } else { why }));
    };
    let able = [head, base].into_iter().find_map(|side| Some((side, side.tools.iree_benchmark_replay()?)));
    let Some((runtime, replay)) = able else {
        return Err(refused(format!(
            "IREE {} does not include iree-benchmark-replay; 3.13.0 does",
            runtime_versions(base, head)
        )));
    };
    let read = |path: &Path| files::read_bounded(path, MOST_BYTES).map_err(PipelineError::io("read", path));
    let modules = [read(&base.execution.module)?, read(&head.execution.module)?];
    let [of_base, of_head] = [("base", &modules[0]), ("head", &modules[1])].map(|(side, module)| {
        benchgate_ingest::executables(module).map_err(|why| refused(format!("the module of {side}: {why}")))
    });
    let (of_base, of_head) = (of_base?, of_head?);
    fs::create_dir_all(folder).map_err(PipelineError::io("create", folder))?;
    let capture = folder.join("base.ireereplay");
    let command = |name: &str| {
        Command::new(runtime.tools.iree_benchmark_module.with_file_name(name), TIMEOUT)
            .cwd(base.folder)
            .envs(base.env)
            .cpus(host.cpus_for(&base.execution.device))
    };
    let capturing = command("iree-run-module").args(base.execution.capture(&capture));
    let finished = host.run(&capturing.log(folder.join("capture.log"))).await?;
    host.fail_on_full_disk(&finished, &capture)?;
    if finished.exit != Exit::Success {
        return Err(refused(format!("capturing {benchmark} {}", failure(&finished, None).why)));
    }
    let finished =
        host.run(&command("iree-dump-replay").arg("--format=jsonl").arg(&capture).capture_stdout()).await?;
    if finished.exit != Exit::Success || finished.stdout_truncated {
        return Err(refused(format!("iree-dump-replay {}", failure(&finished, None).why)));
    }
    let captured = benchgate_ingest::captured_executables(&finished.stdout).map_err(refused)?;
    let bytes = read(&capture)?;
    let mut left: Vec<(u64, &[u8])> =
        captured.iter().filter_map(|found| Some((found.id, found.content(&bytes)?))).collect();
    let mut plan = ExchangePlan {
        replay: words(&replay, base.execution.replay(&TIMING, &capture)),
        capture,
        device: base.execution.device.clone(),
        env: base.env.clone(),
        kernels: Vec::new(),
        identical: 0,
        unmatched: Vec::new(),
    };
    for (number, (base, partner)) in partners(&of_base, of_head).into_iter().enumerate() {
        let name = name(base);
        let Some(head) = partner else {
            plan.unmatched.push((name, "head has no kernel of this name".to_owned()));
            continue;
        };
        if base.content == head.content {
            plan.identical += 1;
            continue;
        }
        let Some(at) = left.iter().position(|(_, content)| *content == base.content) else {
            plan.unmatched.push((name, "the captured call does not load it".to_owned()));
            continue;
        };
        let (id, _) = left.remove(at);
        let argument = |side: SideName, content: &[u8]| {
            let file = folder.join(format!("{side}-{number}.bin"));
            files::write(&file, content).map_err(PipelineError::io("write", &file))?;
            let argument = joined(&format!("--replay_executable_substitution={id}="), &file);
            Ok::<_, PipelineError>(argument.to_string_lossy().into_owned())
        };
        let (head, base) = (argument(SideName::Head, head.content)?, argument(SideName::Base, base.content)?);
        plan.kernels.push(Exchangeable { name, head, base });
    }
    Ok(plan)
}

fn runtime_versions(base: Measurable<'_>, head: Measurable<'_>) -> String {
    let [base, head] = [base, head].map(|side| side.tools.identity.version.clone());
    if base == head { base } else { format!("{base} (base) or {head} (head)") }
}

fn words(program: &Path, args: Vec<std::ffi::OsString>) -> Vec<String> {
    let all = std::iter::once(program.as_os_str().to_owned()).chain(args);
    all.map(|word| word.to_string_lossy().into_owned()).collect()
}

/// The name of an executable in reports. The name only contains characters that are valid in file names.
fn name(executable: &Executable<'_>) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' };
    let first: String = executable.kernels.first().map_or("", String::as_str).chars().map(plain).collect();
    match executable.kernels.len() {
        0 | 1 => first,
        kernels => format!("{first}+{}", kernels - 1),
    }
}

/// Matches each executable of base with the one of head that has the same kernels. Kernels are compared by
/// their names first, and then by their names without numbers, because numbers shift when an earlier kernel
/// disappears.
fn partners<'a, 'b>(
    base: &'a [Executable<'b>],
    mut head: Vec<Executable<'b>>,
) -> Vec<(&'a Executable<'b>, Option<Executable<'b>>)> {
    let mut pairs: Vec<(&Executable<'_>, Option<Executable<'_>>)> =
        base.iter().map(|executable| (executable, None)).collect();
    let unnumbered = |executable: &Executable<'_>| -> Vec<String> {
        executable.kernels.iter().map(|kernel| benchgate_ingest::unnumbered(kernel).to_owned()).collect()
    };
    let exactly = |executable: &Executable<'_>| executable.kernels.clone();
    for names in [&exactly as &dyn Fn(&Executable<'_>) -> Vec<String>, &unnumbered] {
        for (base, partner) in pairs.iter_mut().filter(|(_, partner)| partner.is_none()) {
            let wanted = names(base);
            if let Some(at) = head.iter().position(|executable| names(executable) == wanted) {
                *partner = Some(head.remove(at));
            }
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn executable(kernel: &str) -> Executable<'static> {
        Executable { kernels: vec![kernel.to_owned()], content: b"" }
    }

    #[test]
    fn kernels_whose_numbers_shifted_are_partners_and_new_ones_have_none() {
        let base = ["f_dispatch_0_copy", "f_dispatch_1_matmul", "f_dispatch_2_softmax"].map(executable);
        let head = ["f_dispatch_0_copy", "f_dispatch_1_softmax"].map(executable).to_vec();
        let found: Vec<Option<String>> =
            partners(&base, head).into_iter().map(|(_, head)| head.map(|head| name(&head))).collect();
        assert_eq!(
            found,
            [Some("f_dispatch_0_copy".to_owned()), None, Some("f_dispatch_1_softmax".to_owned())]
        );
    }
}
