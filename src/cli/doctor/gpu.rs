//! The GPUs of the machine, and the state that their drivers report.

use crate::config::Config;
use crate::device::{self, Gpu, GpuReading, Gpus, Limit};
use crate::model::is_cpu;

use super::finding::Finding;

pub(super) fn findings(config: Option<&Config>) -> Vec<Finding> {
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
    use super::*;
    use crate::model::Vendor;

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
