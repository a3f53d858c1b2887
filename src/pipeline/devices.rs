//! The devices of a run: its GPUs, the lock on their clocks, and the record of their state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::device::{self, Choice, ClockHold, GpuReading, GpuSeen, Gpus, HostLock, Limit, Seen};
use crate::model::{DeviceKind, Event, GpuClock, Lint, LintCode, Progress, Testbed, Vendor, is_cpu};
use crate::record::{CpuTelemetryRecord, GpuTelemetryRecord, Number, RangeRecord, TelemetryRecord};

/// A device on which something is measured, with the environment variables of its processes.
pub(super) type UsedDevice<'a> = (&'a str, &'a BTreeMap<String, String>);

/// The GPUs of this machine, if any of these devices may be a GPU. A suite that only uses CPUs doesn't load a
/// GPU driver's library, which would slow down its start.
pub(super) fn gpus<'a>(mut used: impl Iterator<Item = UsedDevice<'a>>) -> Arc<Gpus> {
    let wanted = used.any(|(device, _)| !is_cpu(device));
    Arc::new(if wanted { Gpus::find() } else { Gpus::default() })
}

/// The GPU of a target's device. As for the tools, the target's own variables take precedence over this
/// process's.
pub(super) fn chosen(gpus: &Gpus, device: &str, env: &BTreeMap<String, String>) -> Choice {
    let variables = DeviceKind::from_uri(device).facts().visible;
    let value = |name: &&str| env.get(*name).cloned().or_else(|| std::env::var(name).ok());
    let visible: Vec<String> = variables.iter().filter_map(value).collect();
    device::choose(device, &visible, gpus.list())
}

/// The GPUs of these devices, without duplicates.
pub(super) fn choices<'a>(gpus: &Gpus, used: impl Iterator<Item = UsedDevice<'a>>) -> Vec<Choice> {
    let mut found = Vec::new();
    for choice in used.map(|(device, env)| chosen(gpus, device, env)) {
        if !found.contains(&choice) {
            found.push(choice);
        }
    }
    found
}

/// The indices of all GPUs that the targets may use.
pub(super) fn candidates(choices: &[Choice]) -> BTreeSet<usize> {
    choices.iter().flat_map(|choice| choice.candidates().iter().copied()).collect()
}

/// This testbed with its clocks locked at this value, which makes it a different machine.
pub(super) fn with_clock(testbed: &Testbed, clock: GpuClock) -> Testbed {
    device::with_fact(testbed, "gpu-clock", clock.to_string())
}

/// Undoes the clock locks of killed runs, and reports them. Such a lock may be on a GPU that this suite does
/// not use.
pub(super) fn undo_leftovers(gpus: &Arc<Gpus>, progress: &dyn Progress, alone: &HostLock) {
    let left = device::leftover_locks();
    if left.is_empty() {
        return;
    }
    let looked = if gpus.list().is_empty() { Arc::new(Gpus::find()) } else { Arc::clone(gpus) };
    for said in device::undo_leftovers(left, &looked, alone) {
        progress.on(Event::Warning(&said));
    }
}

/// Locks the clocks if requested. Also returns findings for the record.
pub(super) fn hold(
    gpus: &Arc<Gpus>,
    choices: &[Choice],
    asked: Option<GpuClock>,
    progress: &dyn Progress,
    alone: &HostLock,
) -> (Option<ClockHold>, Vec<Lint>) {
    let all: Vec<usize> = candidates(choices).into_iter().collect();
    let unlocked = |why: String| (None, vec![Lint::new(LintCode::ClockUnlocked, why)]);
    if all.is_empty() {
        if asked.is_some() {
            progress
                .on(Event::Note("`lock-clocks` has no effect, because no benchmark is measured on a GPU"));
        }
        return (None, Vec::new());
    }
    let Some(asked) = asked else {
        let free = all.iter().find(|index| gpus.read(**index).clock_locked != Some(true));
        return match free.and_then(|index| gpus.list().get(*index)) {
            Some(gpu) => unlocked(format!("{}: `lock-clocks` is not set", gpu.name)),
            None => (None, Vec::new()),
        };
    };
    let result = if choices.iter().any(|choice| matches!(choice, Choice::AnyOf(_))) {
        Err(format!("it is unknown which of {} GPUs a target runs on; name the GPU by its UUID", all.len()))
    } else {
        device::hold_clocks(gpus, &all, asked, alone)
    };
    match result {
        Ok(held) => {
            progress.on(Event::Note("the GPU's clock is locked until this run ends"));
            (Some(held), Vec::new())
        }
        Err(why) => {
            progress.on(Event::Warning(&format!("the GPU's clock is not locked: {why}")));
            unlocked(why)
        }
    }
}

/// Converts the observations for the record. `None` if nothing was watched.
pub(super) fn record(seen: &Seen, gpus: &Gpus, held: bool) -> Option<TelemetryRecord> {
    let cpu = seen.cpu.map(|usage| CpuTelemetryRecord {
        foreign: rounded(usage.foreign),
        stolen: rounded(usage.stolen),
        resolution: rounded(usage.resolution),
        throttled: seen.cpu_throttled,
        by: seen.on_cpus.clone(),
    });
    let gpus: Vec<GpuTelemetryRecord> = seen
        .gpus
        .iter()
        .filter_map(|seen| {
            let gpu = gpus.list().get(seen.index)?;
            Some(gpu_record(seen, &gpu.id, (gpu.vendor == Vendor::Nvidia).then_some(held)))
        })
        .collect();
    (cpu.is_some() || !gpus.is_empty()).then_some(TelemetryRecord { cpu, gpus })
}

fn gpu_record(seen: &GpuSeen, id: &str, held: Option<bool>) -> GpuTelemetryRecord {
    // Only the readings in between are used, because the GPU is under load then; before and after, it may
    // idle at any clock. If a process is too short for such a reading, all readings are used.
    let all = || std::iter::once(&seen.before).chain(&seen.during).chain([&seen.after]);
    let at_work: Vec<&GpuReading> =
        if seen.during.is_empty() { all().collect() } else { seen.during.iter().collect() };
    let range = |value: &dyn Fn(&GpuReading) -> Option<f64>| {
        range(at_work.iter().filter_map(|reading| value(reading)))
    };
    let limits: BTreeSet<Limit> =
        at_work.iter().flat_map(|reading| reading.limits.iter().flatten().copied()).collect();
    let counted = seen.before.held_down_ns.zip(seen.after.held_down_ns);
    let seconds = |at: usize| {
        const NANOSECONDS: f64 = 1e9;
        counted.map(|(before, after)| Number(after[at].saturating_sub(before[at]) as f64 / NANOSECONDS))
    };
    GpuTelemetryRecord {
        id: id.to_owned(),
        readings: u32::try_from(seen.during.len() + 2).unwrap_or(u32::MAX),
        clock_mhz: range(&|reading| reading.clock_mhz.map(f64::from)),
        memory_clock_mhz: range(&|reading| reading.memory_clock_mhz.map(f64::from)),
        temperature_celsius: range(&|reading| reading.temperature_celsius),
        power_watts: range(&|reading| reading.power_watts),
        memory_used_bytes: all().filter_map(|reading| reading.memory_used_bytes).max(),
        throttled: limits.iter().map(|limit| limit.into_str().to_owned()).collect(),
        power_capped_seconds: seconds(0),
        thermal_seconds: seconds(1),
        clock_held: held,
        foreign: seen.foreign.clone(),
    }
}

fn range(values: impl Iterator<Item = f64>) -> Option<RangeRecord> {
    let mut found: Option<(f64, f64, f64)> = None;
    for value in values {
        found = Some(
            found.map_or((value, value, value), |(min, max, _)| (min.min(value), max.max(value), value)),
        );
    }
    found.map(|(min, max, last)| RangeRecord { min: Number(min), max: Number(max), last: Number(last) })
}

/// Rounds a share to four digits, because the underlying counters are not more precise.
fn rounded(share: f64) -> Number {
    Number((share * 1e4).round() / 1e4)
}
