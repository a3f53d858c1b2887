//! The machine half of `doctor`: checks that affect the reliability of measurements.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crate::config::Config;
use crate::device::{self, Governance, Gpu, GpuReading, Gpus, Limit, Usage};
use crate::model::{Unit, counted, is_cpu};
use crate::pipeline::CALIBRATION_DAYS;
use crate::process::{self, Containment};
use crate::record::RunFile;
use crate::report::quantity;

use super::super::clean;
use super::{CheckContext, Finding};

/// Time for which the processors are observed: long relative to the resolution of the kernel's counters, but
/// short for the user.
const LOOK: Duration = Duration::from_millis(500);
/// The share of a processor that the system's own services use on a quiet machine.
const QUIET: f64 = 0.05;

/// All findings about this machine, in the order in which they affect a measurement.
pub(super) fn findings(context: &CheckContext) -> Vec<Finding> {
    let testbed = device::testbed(&[]);
    let chosen = context.config.as_ref().and_then(|config| config.measure.cpus.clone());
    let cpus = chosen.or_else(device::default_cpus);
    let watched = cpus.clone().unwrap_or_else(|| vec![0]);
    let governance = device::governance(&watched);
    let mut found = vec![processor(&testbed.facts), pinning(cpus.as_deref())];
    found.extend(governor(&governance, testbed.facts.contains_key("hypervisor")));
    found.extend(boost(&governance));
    found.extend(nodes(&governance));
    found.push(neighbors(device::usage_now(Some(&watched), LOOK)));
    found.push(load(&device::load_average(), std::thread::available_parallelism().map_or(1, usize::from)));
    found.push(containment(&process::containment()));
    found.push(host_lock());
    found.extend(gpu_findings(context.config.as_ref()));
    found.push(calibration(context, &testbed.id));
    found.push(cache(&context.cache));
    found
}

fn cache(folder: &Path) -> Finding {
    const ID: &str = "cache";
    let place = folder.display();
    match clean::cache_bytes(folder) {
        Ok(bytes) => {
            let bytes = quantity(bytes as f64, &Unit::Bytes);
            Finding::ok(ID, format!("{bytes} in {place}; `benchgate clean` removes unused files"))
        }
        Err(error) => Finding::warning(
            ID,
            error.to_string(),
            "Cached modules and tools that can't be read are compiled and downloaded again, or fail.",
            "Give the folder to the user who measures, or choose another one with --cache-dir.",
        ),
    }
}

fn processor(facts: &BTreeMap<String, String>) -> Finding {
    let fact = |name: &str| facts.get(name).map_or("unknown", String::as_str);
    let processors = match fact("processors").parse() {
        Ok(count) => counted(count, "processor"),
        Err(_) => "an unknown number of processors".to_owned(),
    };
    let what = format!("{}, {processors}, {}", fact("cpu"), fact("isa"));
    Finding::ok("processor", what)
}

fn pinning(cpus: Option<&[usize]>) -> Finding {
    match cpus {
        Some(cpus) => {
            let list: Vec<String> = cpus.iter().map(usize::to_string).collect();
            Finding::ok("pinning", format!("CPU targets run on processor {}", list.join(",")))
        }
        None => Finding::warning(
            "pinning",
            "only one processor may be used",
            "The work of the host and of benchgate affects the measured times.",
            "Measure CPU targets on a machine with at least two processors.",
        ),
    }
}

fn governor(governance: &Governance, virtual_machine: bool) -> Option<Finding> {
    const ID: &str = "governor";
    let names: Vec<&str> = governance.governors.keys().map(String::as_str).collect();
    match names.as_slice() {
        [] if virtual_machine => Some(Finding::note(
            ID,
            "CPU frequency is not visible inside this virtual machine",
            "Other virtual machines on the same host can change the frequency.",
            "Measure in pairs (a base and a head side in one job); a dedicated host is steadier.",
        )),
        [] => None,
        ["performance"] => Some(Finding::ok(ID, "performance")),
        others => Some(Finding::warning(
            ID,
            others.join(", "),
            "This frequency governor lets the clock change during a measurement.",
            "Run `cpupower frequency-set -g performance` at every boot.",
        )),
    }
}

fn boost(governance: &Governance) -> Option<Finding> {
    const ID: &str = "boost";
    Some(if governance.boost? {
        Finding::note(
            ID,
            "turbo is on: the clock may exceed its nominal value",
            "How far the clock rises depends on the temperature and on the load of other cores.",
            "For the steadiest numbers: `echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo`, or 0 into \
             /sys/devices/system/cpu/cpufreq/boost.",
        )
    } else {
        Finding::ok(ID, "off")
    })
}

fn nodes(governance: &Governance) -> Option<Finding> {
    (governance.nodes.len() > 1).then(|| {
        Finding::warning(
            "numa",
            format!("CPU targets run on {} NUMA nodes", governance.nodes.len()),
            "A process's memory can be on a different node at each start.",
            "Name processors of one node: `cpus = […]` in `[measure]`; `lscpu` lists them.",
        )
    })
}

fn neighbors(usage: Option<Usage>) -> Finding {
    const ID: &str = "neighbors";
    let Some(usage) = usage else {
        return Finding::note(
            ID,
            "the kernel does not report processor times",
            "benchgate can't see other \
        programs.",
            "",
        );
    };
    let what = format!(
        "other programs use {:.0} % of the measured processors now, the hypervisor {:.0} %",
        usage.foreign * 100.0,
        usage.stolen * 100.0
    );
    if usage.foreign + usage.stolen > usage.resolution.max(QUIET) {
        let why = "CPU contention distorts timings.";
        Finding::warning(ID, what, why, "Stop the other programs, or give the runner a dedicated machine.")
    } else {
        Finding::ok(ID, what)
    }
}

fn load(average: &[f64], processors: usize) -> Finding {
    const ID: &str = "load";
    let Some(minute) = average.first() else {
        return Finding::note(ID, "the kernel does not report the load", "", "");
    };
    let what = format!("load average {minute:.2} on {}", counted(processors, "processor"));
    // A measurement needs one processor for itself.
    if minute + 1.0 > processors as f64 {
        let why = "The host is overloaded: more programs are running than there are free processors.";
        Finding::warning(ID, what, why, "Wait until these programs end, or measure on an idle machine.")
    } else {
        Finding::ok(ID, what)
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

fn host_lock() -> Finding {
    const ID: &str = "host-lock";
    match device::measuring_now() {
        None => Finding::ok(ID, "no other benchmark is running on this machine"),
        Some(who) => Finding::note(
            ID,
            format!("{who} is measuring"),
            "A run that starts now waits until the current one ends, so that each measures alone.",
            "",
        ),
    }
}

/// Checks the A/A session that `benchgate noise` stored next to the configuration.
fn calibration(context: &CheckContext, testbed: &str) -> Finding {
    const ID: &str = "noise";
    const FIX: &str = "Run `benchgate noise` on a quiet machine.";
    let file = context.folder.join("noise.json");
    let read = crate::cli::reading::file(&file).ok().and_then(|bytes| RunFile::from_slice(&bytes).ok());
    let Some(run) = read else {
        return Finding::note(
            ID,
            "this machine's noise was not measured (there is no noise.json)",
            "The smallest change that the gate can detect here and its error rate are unknown.",
            FIX,
        );
    };
    let created = run.created.parse::<jiff::Timestamp>().ok();
    let days = created.map(|then| jiff::Timestamp::now().duration_since(then).as_hours() / 24);
    let what = match days {
        Some(days) => format!(
            "measured {} ago ({})",
            counted(usize::try_from(days).unwrap_or_default(), "day"),
            file.display()
        ),
        None => format!("measured at an unknown time ({})", file.display()),
    };
    // A run that uses GPUs lists them as facts of its testbed. This check uses none, so the testbeds would
    // differ.
    let uses_gpu = run.testbed.facts.contains_key("gpu");
    if !uses_gpu && run.testbed.id != testbed {
        let why = "The calibration was measured on another machine, or this machine has changed.";
        Finding::warning(ID, what, why, FIX)
    } else if days.is_none_or(|days| days > CALIBRATION_DAYS) {
        Finding::warning(ID, what, "The machine may have changed since.", FIX)
    } else {
        Finding::ok(ID, what)
    }
}

/// The GPUs of the machine, and the state that their drivers report.
fn gpu_findings(config: Option<&Config>) -> Vec<Finding> {
    let gpus = Gpus::find();
    let wanted = needs_gpu(config);
    let mut found = Vec::new();
    if let Some(problem) = gpus.problem() {
        found.push(Finding::error(
            "gpu-driver",
            format!("an NVIDIA driver is loaded but can't be queried: {problem}"),
            "benchgate can't see throttling, temperature and other programs on the GPU.",
            "Make libnvidia-ml.so.1 of the same version visible to this process: run the container with NVIDIA's runtime and NVIDIA_DRIVER_CAPABILITIES=compute,utility.",
        ));
    }
    if gpus.list().is_empty() && gpus.problem().is_none() {
        found.push(if wanted {
            Finding::note(
                "gpu",
                "no NVIDIA or AMD driver reports a GPU",
                "benchgate can't see clocks, temperature and other programs on the devices of this suite.",
                "The lines `target` show the devices that the runtime finds.",
            )
        } else {
            Finding::ok("gpu", "none, and none is needed")
        });
    }
    for (index, gpu) in gpus.list().iter().enumerate() {
        let now = gpus.read(index);
        found.push(Finding::ok("gpu", described(gpu, &now)));
        found.extend(about(gpu, &now));
    }
    for left in device::leftover_locks().iter().filter(|left| !left.owner_lives()) {
        found.push(Finding::warning(
            "clock-left-locked",
            left.describe(),
            "The run that locked the clock was killed before it could unlock it.",
            "The next `benchgate run` unlocks the clock.",
        ));
    }
    found
}

/// The driver's report about a GPU on one line.
fn described(gpu: &Gpu, now: &GpuReading) -> String {
    let mut parts = vec![format!("{} ({}, {})", gpu.name, gpu.id, gpu.pci)];
    let mut add = |part: Option<String>| parts.extend(part);
    add(gpu.driver.as_ref().map(|driver| format!("driver {driver}")));
    add(gpu.vbios.as_ref().map(|vbios| format!("VBIOS {vbios}")));
    add(gpu.ecc.map(|on| format!("ECC {}", if on { "on" } else { "off" })));
    let clock = now.clock_mhz.zip(gpu.max_clock_mhz);
    add(clock.map(|(clock, most)| format!("{clock} of {most} MHz")));
    add(now.temperature_celsius.map(|degrees| format!("{degrees:.0} °C")));
    let power = now.power_watts.zip(gpu.power_limit_watts);
    add(power.map(|(power, limit)| format!("{power:.0} of {limit:.0} W")));
    parts.join(", ")
}

fn about(gpu: &Gpu, now: &GpuReading) -> Vec<Finding> {
    let mut found = Vec::new();
    if gpu.mig == Some(true) {
        found.push(Finding::warning(
            "gpu-shared",
            format!("{} is partitioned (MIG, or compute partitions)", gpu.name),
            "Instances share memory bandwidth, power and heat with their neighbors.",
            "Give the runner a whole GPU.",
        ));
    }
    let limits = now.limits.as_deref().unwrap_or_default();
    if limits.iter().any(|limit| *limit != Limit::Power) {
        let words: Vec<&str> = limits.iter().map(|limit| limit.into_str()).collect();
        found.push(Finding::warning(
            "gpu-throttled",
            format!("{} is limiting its clock now: {}", gpu.name, words.join(", ")),
            "The GPU is slower now than when it is cool and has full power.",
            "Improve cooling, check the power supply, or lower the power limit.",
        ));
    }
    let others = device::foreign(now.processes.as_deref().unwrap_or_default());
    if !others.is_empty() {
        let words: Vec<String> = others.iter().map(ToString::to_string).collect();
        found.push(Finding::warning(
            "gpu-foreign-process",
            format!("on {}: {}", gpu.name, words.join(", ")),
            "Other programs on the GPU change the measured times.",
            "Stop these programs, and run nothing else on the GPU.",
        ));
    }
    if now.clock_locked == Some(false) {
        found.push(Finding::note(
            "gpu-clock",
            format!(
                "the clock of {} is not locked (/sys/bus/pci/devices/{}/power_dpm_force_performance_level)",
                gpu.name, gpu.pci
            ),
            "The clock changes with temperature and power.",
            "Write `profile_standard` to that file as root before the job.",
        ));
    }
    found
}

/// Returns true if the suite has a target that is not a CPU.
pub(super) fn needs_gpu(config: Option<&Config>) -> bool {
    config.is_some_and(|config| config.targets.iter().any(|target| !is_cpu(&target.device)))
}

#[cfg(test)]
mod tests {
    use crate::cli::doctor::FindingLevel;
    use crate::model::Vendor;

    use super::*;

    #[test]
    fn a_busy_processor_is_a_warning_and_a_quiet_one_is_not() {
        let usage = |foreign, resolution| Some(Usage { foreign, stolen: 0.0, resolution });
        assert_eq!(neighbors(usage(0.5, 0.06)).level, FindingLevel::Warning);
        assert_eq!(neighbors(usage(0.05, 0.06)).level, FindingLevel::Ok);
        assert_eq!(neighbors(None).level, FindingLevel::Note);
    }

    #[test]
    fn a_load_that_leaves_no_processor_is_a_warning() {
        assert_eq!(load(&[1.5], 2).level, FindingLevel::Warning);
        assert_eq!(load(&[0.2], 2).level, FindingLevel::Ok);
    }

    #[test]
    fn any_governor_but_performance_is_a_warning() {
        let with = |name: &str| Governance {
            governors: BTreeMap::from([(name.to_owned(), 2)]),
            boost: Some(true),
            nodes: vec![0, 1],
        };
        assert_eq!(governor(&with("powersave"), false).unwrap().level, FindingLevel::Warning);
        assert_eq!(governor(&with("performance"), false).unwrap().level, FindingLevel::Ok);
        assert_eq!(boost(&with("performance")).unwrap().level, FindingLevel::Note);
        assert_eq!(nodes(&with("performance")).unwrap().level, FindingLevel::Warning);
        assert_eq!(governor(&Governance::default(), false), None);
        assert_eq!(governor(&Governance::default(), true).unwrap().level, FindingLevel::Note);
    }

    #[test]
    fn what_disturbs_on_a_gpu_is_a_warning_and_its_power_limit_is_not() {
        let gpu = Gpu {
            vendor: Vendor::Nvidia,
            name: "A100".into(),
            id: "GPU-1".into(),
            pci: "0000:3b:00.0".into(),
            driver: Some("570".into()),
            vbios: None,
            memory_bytes: None,
            mig: Some(true),
            ecc: Some(true),
            power_limit_watts: Some(400.0),
            max_clock_mhz: Some(1410),
        };
        let now = GpuReading {
            clock_mhz: Some(1095),
            power_watts: Some(61.4),
            limits: Some(vec![Limit::Power, Limit::Thermal]),
            processes: Some(vec![1]),
            ..GpuReading::default()
        };
        let ids: Vec<&str> = about(&gpu, &now).iter().map(|finding| finding.id).collect();
        assert_eq!(ids, ["gpu-shared", "gpu-throttled", "gpu-foreign-process"]);
        let calm = GpuReading { limits: Some(vec![Limit::Power]), ..GpuReading::default() };
        assert!(about(&Gpu { mig: None, ..gpu.clone() }, &calm).is_empty());
        let line = "A100 (GPU-1, 0000:3b:00.0), driver 570, ECC on, 1095 of 1410 MHz, 61 of 400 W";
        assert_eq!(described(&gpu, &now), line);
    }
}
