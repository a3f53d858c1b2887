//! The machine half of `doctor`: may what is measured here be trusted?

use crate::device;
use crate::process::{self, Cancel, Containment};

use super::finding::Finding;
use crate::cli::CliError;

/// Every finding about this machine, in the order a measurement meets them.
pub(super) async fn findings(_cancel: &Cancel) -> Result<Vec<Finding>, CliError> {
    let testbed = device::testbed();
    Ok(vec![processor(&testbed.facts), pinning(), containment(&process::containment())])
}

fn processor(facts: &std::collections::BTreeMap<String, String>) -> Finding {
    let fact = |name: &str| facts.get(name).map_or("unknown", String::as_str);
    let what = format!("{}, {} processors, {}", fact("cpu"), fact("processors"), fact("isa"));
    Finding::ok("processor", what)
}

fn pinning() -> Finding {
    match device::default_cpus() {
        Some(cpus) => {
            let list: Vec<String> = cpus.iter().map(usize::to_string).collect();
            Finding::ok("pinning", format!("CPU targets run on processor {}", list.join(",")))
        }
        None => Finding::warning(
            "pinning",
            "only one processor may be used",
            "The host's own work, and benchgate's, is in the numbers.",
            "Measure CPU targets on a machine with at least two processors.",
        ),
    }
}

fn containment(found: &Containment) -> Finding {
    match found {
        Containment::Cgroup { .. } => Finding::ok("containment", found.to_string()),
        Containment::Subreaper | Containment::ProcessGroup => Finding::note(
            "containment",
            found.to_string(),
            "A tool that forks faster than it can be listed could outlive its measurement.",
            "Delegate a cgroup to the runner: `Delegate=yes` in its systemd unit.",
        ),
    }
}
