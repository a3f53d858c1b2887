//! The fingerprint of the machine. Facts must be equal for two runs to be compared; notes are only recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::process::containment;
use benchgate_core::model::{Testbed, hex};

use super::busy::counters;
use super::gpu::Gpu;
use super::processors::{boost, parse_list};
use super::read_line;

/// Inspects the machine and the GPUs that are measured. Unknown facts are left out, so a machine that reports
/// less has a different fingerprint.
///
/// The identity of a GPU's chip is only a note. Chips of one model differ by up to a tenth, but a fleet of
/// them still shares one baseline, whose spread between sessions includes that difference.
pub fn testbed(gpus: &[&Gpu]) -> Testbed {
    let cpuinfo = read_line("/proc/cpuinfo").unwrap_or_default();
    let mut facts = processor_facts(&cpuinfo);
    let note = |map: &mut BTreeMap<String, String>, name: &str, value: Option<String>| {
        if let Some(value) = value {
            map.insert(name.to_owned(), value);
        }
    };
    note(&mut facts, "os", Some(std::env::consts::OS.to_owned()));
    note(&mut facts, "arch", Some(std::env::consts::ARCH.to_owned()));
    note(&mut facts, "kernel", read_line("/proc/sys/kernel/osrelease"));
    note(&mut facts, "memory-gib", memory_gib(&read_line("/proc/meminfo").unwrap_or_default()));
    note(&mut facts, "smt", read_line("/sys/devices/system/cpu/smt/active"));
    note(&mut facts, "governor", read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
    note(&mut facts, "turbo", turbo());
    note(&mut facts, "hypervisor", hypervisor(&cpuinfo));
    // This fact is left out if there is only one node, as on most machines, so that existing
    // fingerprints stay valid.
    let nodes = numa_nodes(&read_line("/sys/devices/system/node/online").unwrap_or_default());
    note(&mut facts, "numa-nodes", (nodes > 1).then(|| nodes.to_string()));
    facts.extend(gpu_facts(gpus));

    let mut notes = BTreeMap::new();
    note(&mut notes, "host-name", read_line("/proc/sys/kernel/hostname"));
    note(&mut notes, "boot-id", read_line("/proc/sys/kernel/random/boot_id"));
    note(&mut notes, "microcode", field(&cpuinfo, "microcode"));
    note(&mut notes, "load-average", read_line(counters("loadavg")));
    note(&mut notes, "containment", Some(containment().to_string()));
    note(&mut notes, "gpu-id", listed(gpus.iter().map(|gpu| Some(gpu.id.clone()))));
    Testbed { id: id_of(&facts), facts, notes }
}

/// This testbed with one more fact that must be equal, such as a clock that was locked for a run.
pub fn with_fact(testbed: &Testbed, name: &str, value: String) -> Testbed {
    let mut with = testbed.clone();
    with.facts.insert(name.to_owned(), value);
    with.id = id_of(&with.facts);
    with
}

/// Facts about the GPUs that must be equal; each fact lists the values of all GPUs.
fn gpu_facts(gpus: &[&Gpu]) -> BTreeMap<String, String> {
    type GpuFact = fn(&Gpu) -> Option<String>;
    let on_off = |on: bool| if on { "on" } else { "off" }.to_owned();
    let read: [(&str, GpuFact); 6] = [
        ("gpu", |gpu| Some(gpu.name.clone())),
        ("gpu-driver", |gpu| gpu.driver.clone()),
        ("gpu-vbios", |gpu| gpu.vbios.clone()),
        ("gpu-memory-gib", |gpu| {
            gpu.memory_bytes.map(|bytes| format!("{:.0}", bytes as f64 / f64::from(1u32 << 30)))
        }),
        // A lower power limit makes a GPU behave like a different model.
        ("gpu-power-limit-watts", |gpu| gpu.power_limit_watts.map(|watts| format!("{watts:.0}"))),
        ("gpu-max-clock-mhz", |gpu| gpu.max_clock_mhz.map(|clock| clock.to_string())),
    ];
    let mut facts: BTreeMap<String, String> = read
        .into_iter()
        .filter_map(|(name, read)| Some((name.to_owned(), listed(gpus.iter().map(|gpu| read(gpu)))?)))
        .collect();
    for (name, modes) in [
        ("gpu-mig", listed(gpus.iter().map(|gpu| gpu.mig.map(on_off)))),
        ("gpu-ecc", listed(gpus.iter().map(|gpu| gpu.ecc.map(on_off)))),
    ] {
        facts.extend(modes.map(|modes| (name.to_owned(), modes)));
    }
    facts
}

/// Joins the values in the order of the GPUs.
fn listed(values: impl Iterator<Item = Option<String>>) -> Option<String> {
    let values: Vec<String> = values.flatten().collect();
    (!values.is_empty()).then(|| values.join(" + "))
}

fn numa_nodes(online: &str) -> usize {
    parse_list(online).len()
}

/// An identifier of twelve digits: short enough for a folder's name, long enough to distinguish all machines.
fn id_of(facts: &BTreeMap<String, String>) -> String {
    let mut hash = Sha256::new();
    for (name, value) in facts {
        hash.update(name);
        hash.update([0]);
        hash.update(value);
        hash.update([0]);
    }
    hex(&hash.finalize()[..6])
}

/// The value of the first line `name : value`.
fn field(cpuinfo: &str, name: &str) -> Option<String> {
    cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

fn processor_facts(cpuinfo: &str) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let mut fact = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            facts.insert(name.to_owned(), value);
        }
    };
    fact("cpu", field(cpuinfo, "model name"));
    // A virtual machine often hides the name; these facts still distinguish the chips.
    let numbers: Vec<String> =
        ["vendor_id", "cpu family", "model", "stepping", "CPU implementer", "CPU part", "CPU variant"]
            .iter()
            .filter_map(|name| field(cpuinfo, name))
            .collect();
    fact("cpu-id", Some(numbers.join("/")));
    let processors = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
    fact("processors", (processors > 0).then(|| processors.to_string()));
    let flags = field(cpuinfo, "flags").or_else(|| field(cpuinfo, "Features")).unwrap_or_default();
    let flags: BTreeSet<&str> = flags.split_ascii_whitespace().collect();
    fact("isa", isa(&flags));
    facts
}

/// The microarchitecture level of the x86-64 psABI and the extensions beyond it that compilers use; on Arm
/// the vector extensions. Code compiled for `host` depends on exactly these.
fn isa(flags: &BTreeSet<&str>) -> Option<String> {
    let has = |names: &[&str]| names.iter().all(|name| flags.contains(name));
    let level = if has(&["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"]) {
        "x86-64-v4"
    } else if has(&["avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"]) {
        "x86-64-v3"
    } else if has(&["cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"]) {
        "x86-64-v2"
    } else if has(&["sse2", "cx8"]) {
        "x86-64"
    } else if has(&["asimd"]) {
        "armv8"
    } else {
        return None;
    };
    let beyond = [
        "avx512_vnni",
        "avx512_bf16",
        "avx512_fp16",
        "avx_vnni",
        "amx_tile",
        "amx_bf16",
        "amx_int8",
        "asimddp",
        "i8mm",
        "bf16",
        "sve",
        "sve2",
        "sme",
    ];
    let parts: Vec<&str> =
        [level].into_iter().chain(beyond.into_iter().filter(|name| flags.contains(name))).collect();
    Some(parts.join("+"))
}

/// The memory size, rounded to gibibytes, because the kernel's own share varies by some megabytes from boot
/// to boot.
fn memory_gib(meminfo: &str) -> Option<String> {
    let kib: f64 = field(meminfo, "MemTotal")?.split(' ').next()?.parse().ok()?;
    Some(format!("{:.0}", kib / f64::from(1u32 << 20)))
}

/// The state of turbo, which lets the clock exceed its nominal value.
fn turbo() -> Option<String> {
    Some(if boost(Path::new("/sys/devices/system"))? { "on" } else { "off" }.to_owned())
}

/// The hypervisor, by the name in the firmware; `virtual` if only the processor's flags show that there is
/// one.
fn hypervisor(cpuinfo: &str) -> Option<String> {
    let flags = field(cpuinfo, "flags").unwrap_or_default();
    if !flags.split_ascii_whitespace().any(|flag| flag == "hypervisor") {
        return None;
    }
    let name = read_line("/sys/class/dmi/id/sys_vendor").or_else(|| read_line("/sys/hypervisor/type"));
    Some(name.unwrap_or_else(|| "virtual".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPYC: &str = "\
processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\nstepping\t: 1\n\
flags\t\t: sse2 cx8 cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3 avx avx2 bmi1 bmi2 f16c fma abm movbe xsave \
avx512f avx512bw avx512cd avx512dq avx512vl avx512_vnni avx512_bf16 hypervisor\n\nprocessor\t: 1\nmodel name\t: AMD EPYC\n";

    #[test]
    fn a_processor_is_identified_by_model_count_and_instruction_set() {
        let facts = processor_facts(EPYC);
        assert_eq!(facts["cpu"], "AMD EPYC");
        assert_eq!(facts["cpu-id"], "AuthenticAMD/26/2/1");
        assert_eq!(facts["processors"], "2");
        assert_eq!(facts["isa"], "x86-64-v4+avx512_vnni+avx512_bf16");
        let older = EPYC.replace("avx512f ", "");
        assert_eq!(processor_facts(&older)["isa"], "x86-64-v3+avx512_vnni+avx512_bf16");
    }

    #[test]
    fn an_arm_processor_is_identified_by_its_part() {
        let neoverse = "processor\t: 0\nFeatures\t: fp asimd asimddp i8mm bf16 sve\nCPU implementer\t: 0x41\n\
                        CPU variant\t: 0x1\nCPU part\t: 0xd40\n";
        let facts = processor_facts(neoverse);
        assert_eq!(facts["cpu-id"], "0x41/0xd40/0x1");
        assert_eq!(facts["isa"], "armv8+asimddp+i8mm+bf16+sve");
    }

    #[test]
    fn the_fingerprint_is_of_the_facts_alone() {
        let one = testbed(&[]);
        let two = testbed(&[]);
        assert_eq!(one.id, two.id);
        assert_eq!(one.id.len(), 12);
        assert!(one.facts.contains_key("processors") && one.facts.contains_key("kernel"), "{:?}", one.facts);
        assert!(!one.facts.contains_key("host-name"));
        let mut facts = one.facts.clone();
        facts.insert("governor".into(), "another".into());
        assert_ne!(id_of(&facts), one.id);
    }

    #[test]
    fn a_gpu_is_identified_by_its_kind_and_its_settings_and_not_by_its_number() {
        let gpu = |id: &str, limit: f64| Gpu {
            vendor: benchgate_core::model::Vendor::Nvidia,
            name: "A100".into(),
            id: id.into(),
            pci: String::new(),
            driver: Some("570.1".into()),
            vbios: None,
            memory_bytes: Some(40 << 30),
            mig: Some(false),
            ecc: None,
            power_limit_watts: Some(limit),
            max_clock_mhz: Some(1410),
        };
        let (one, two, slower) = (gpu("GPU-1", 400.0), gpu("GPU-2", 400.0), gpu("GPU-1", 250.0));
        let testbeds = [testbed(&[&one]), testbed(&[&two]), testbed(&[&slower]), testbed(&[])];
        assert_eq!(testbeds[0].id, testbeds[1].id);
        assert_ne!(testbeds[0].notes["gpu-id"], testbeds[1].notes["gpu-id"]);
        assert_ne!(testbeds[0].id, testbeds[2].id);
        assert_ne!(testbeds[0].id, testbeds[3].id);
        assert_eq!(testbeds[0].facts["gpu-power-limit-watts"], "400");
        assert_eq!(testbeds[0].facts["gpu-mig"], "off");
        assert!(!testbeds[0].facts.contains_key("gpu-vbios"));
    }

    /// Compares the facts with the output of `lscpu -J`, if it is installed.
    #[test]
    fn the_facts_are_what_lscpu_says() {
        let Ok(asked) = std::process::Command::new("lscpu").args(["-J"]).env("LC_ALL", "C").output() else {
            return;
        };
        let Ok(said) = serde_json::from_slice::<serde_json::Value>(&asked.stdout) else { return };
        let facts = testbed(&[]).facts;
        let mut checked = 0;
        let mut check = |field: &str, fact: Option<&String>| {
            let rows = said["lscpu"].as_array().into_iter().flatten();
            let flat = rows
                .flat_map(|row| std::iter::once(row).chain(row["children"].as_array().into_iter().flatten()));
            let mut all: Vec<serde_json::Value> = Vec::new();
            for row in flat {
                all.push(row.clone());
                all.extend(row["children"].as_array().into_iter().flatten().cloned());
            }
            let value = all.iter().find(|row| row["field"] == field).and_then(|row| row["data"].as_str());
            if let (Some(value), Some(fact)) = (value, fact) {
                assert_eq!(value, fact, "{field}");
                checked += 1;
            }
        };
        check("Architecture:", facts.get("arch"));
        check("CPU(s):", facts.get("processors"));
        check("Model name:", facts.get("cpu"));
        assert!(checked >= 2, "{facts:?}");
    }
}
