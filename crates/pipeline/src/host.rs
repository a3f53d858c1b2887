//! The machine and the folders that all stages of a run use, and its devices: the GPUs, the lock on their clocks, and the
//! record of their state.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

use tokio::sync::{Mutex, MutexGuard};

use benchgate_core::model::{DeviceKind, Event, GpuClock, Lint, LintCode, Progress, Testbed, Vendor, is_cpu};
use benchgate_core::record::{CpuTelemetryRecord, GpuTelemetryRecord, Number, RangeRecord, TelemetryRecord};
use benchgate_host::device::{
    self, Choice, ClockHold, GpuReading, GpuSeen, Gpus, HostLock, Limit, Seen, Watched,
};
use benchgate_host::files::{self, Scratch};
use benchgate_host::process::{Cancel, Command, Exit, Finished, Opened};

use super::PipelineError;
use super::cache::{Cache, Digests};
use super::slots::{Memo, Priority, SlotTurn, Slots};
use super::stage::Caller;
use super::trace::Sources;

/// Free space below which a disk counts as full.
const FULL_DISK_BYTES: u64 = 1 << 20;

const UNOBSERVED: &str = "the files that tools open can't be observed here (the kernel or the container allows no \
     seccomp notification): models are compiled again in every run, and no benchmark counts as identical";

/// A started tool: its path, its environment and its folder.
pub(super) type ToolStart = (PathBuf, BTreeMap<String, String>, PathBuf);

/// The data that all stages of a run share.
pub(super) struct Host<'a> {
    pub(super) cache: Cache,
    pub(super) progress: &'a dyn Progress,
    pub(super) cancel: &'a Cancel,
    pub(super) testbed: Testbed,
    /// Limits the number of parallel tools while nothing is measured.
    pub(super) slots: Slots,
    /// Lets only one verification at a time run on a device with its own memory. Two large modules may not
    /// fit into it together, and then one side would fail because of the other.
    pub(super) device_turn: Mutex<()>,
    /// Digests of inputs and parameters.
    pub(super) digests: Digests,
    /// True if equal digests on both sides may be taken to mean equal times.
    pub(super) claims_identity: bool,
    /// Digests of the sides' sources.
    pub(super) sources: Sources,
    /// Ensures that the note about unobservable files is printed only once.
    pub(super) unobserved: Once,
    /// The runtime's device lists, by tool, driver and environment.
    pub(super) listed_devices: Memo<(PathBuf, String, BTreeMap<String, String>), Arc<Finished>>,
    /// The files that a runtime tool opens when it starts.
    pub(super) loaded: Memo<ToolStart, Option<Arc<Opened>>>,
    /// Modules that call a function more than once, by compiler and source text.
    pub(super) callers: Memo<(PathBuf, String), Result<Caller, String>>,
    /// Folder for the compiler's IR after every phase, if requested.
    pub(super) ir: Option<PathBuf>,
    /// Folder for copies of the compiled modules, if requested.
    pub(super) modules: Option<PathBuf>,
    /// The locked PTX assembler, or the reason why it is unavailable; `None` if no target needs it.
    pub(super) ptxas: Option<Result<PathBuf, String>>,
    /// Folder for logs of failures.
    pub(super) logs: PathBuf,
    /// Parent of the temporary folders of single steps. This folder is not in the cache, which may be
    /// read-only.
    pub(super) scratch: PathBuf,
    /// Parent of the folders that commands build in. This folder is not in the working folder, because tools
    /// look for settings in parent folders (`.cargo/config.toml`, `conftest.py`), and base would find head's
    /// there.
    pub(super) builds: PathBuf,
    /// The processors for CPU devices.
    pub(super) cpus: Option<Vec<usize>>,
    /// The GPUs of this machine; empty if no target needs one.
    pub(super) gpus: Arc<Gpus>,
    /// The GPU of each target's device.
    pub(super) choices: Vec<Choice>,
}

impl Host<'_> {
    /// Runs a tool. An interrupt is returned as an error that ends the run.
    pub(super) async fn run(&self, command: &Command) -> Result<Finished, PipelineError> {
        let finished = benchgate_host::process::run(command, self.cancel).await?;
        if finished.exit == Exit::Interrupted { Err(PipelineError::Interrupted) } else { Ok(finished) }
    }

    /// Prints a note, once per run, that files can't be observed.
    pub(super) fn note_unobserved(&self) {
        self.unobserved.call_once(|| {
            self.progress.on(Event::Warning(UNOBSERVED));
        });
    }

    /// Creates a temporary folder, which is removed when dropped.
    pub(super) fn scratch(&self) -> Result<Scratch, PipelineError> {
        Scratch::new_in(&self.scratch, "").map_err(PipelineError::io("write in", &self.scratch))
    }

    /// Waits for a turn to run a tool. An interrupt ends the wait with an error.
    pub(super) async fn slot(&self, urgency: Priority) -> Result<SlotTurn, PipelineError> {
        tokio::select! {
            turn = self.slots.turn(urgency) => Ok(turn),
            () = self.cancel.requested() => Err(PipelineError::Interrupted),
        }
    }

    /// Waits until no other module is being verified on this device, if the device has its own memory.
    pub(super) async fn device_turn(&self, device: &str) -> Option<MutexGuard<'_, ()>> {
        if is_cpu(device) { None } else { Some(self.device_turn.lock().await) }
    }

    /// Copies the log of a failed step, so that it outlives the step's own folder.
    pub(super) fn keep_log(&self, log: &Path, stage: &str, key: &str) -> Result<PathBuf, PipelineError> {
        fs::create_dir_all(&self.logs).map_err(PipelineError::io("create", &self.logs))?;
        // Twelve hexadecimal digits are enough to distinguish all steps of a run.
        let kept = self.logs.join(format!("{stage}-{}.log", &key[..12]));
        files::if_exists(fs::copy(log, &kept)).map_err(PipelineError::io("write", &kept))?;
        Ok(kept)
    }

    /// Returns an error if a tool failed because the disk is full. A full disk says nothing about the model,
    /// so the run stops.
    pub(super) fn fail_on_full_disk(&self, finished: &Finished, folder: &Path) -> Result<(), PipelineError> {
        // A program that writes to a mapped file on a full disk can't print an error; it is killed with
        // SIGBUS.
        let full = || device::free_bytes(folder).is_some_and(|free| free < FULL_DISK_BYTES);
        if finished.stderr_tail.contains("No space left on device") || finished.exit.is_bus_error() && full()
        {
            return Err(PipelineError::io("write in", folder)(std::io::ErrorKind::StorageFull.into()));
        }
        Ok(())
    }

    /// The devices to watch while a process runs on this device.
    pub(super) fn watched(&self, device: &str, env: &BTreeMap<String, String>) -> Watched {
        Watched {
            gpus: Arc::clone(&self.gpus),
            indices: chosen(&self.gpus, device, env).candidates().to_vec(),
            cpus: self.cpus_for(device),
        }
    }

    /// The processors to which a process on this device is pinned; `None` if it is not pinned.
    pub(super) fn cpus_for(&self, device: &str) -> Option<Vec<usize>> {
        self.cpus.clone().filter(|_| is_cpu(device))
    }
}

#[cfg(test)]
impl<'a> Host<'a> {
    /// A host for tests, which keeps everything in one folder and reports nothing.
    pub(super) fn in_folder(folder: &Path, cancel: &'a Cancel) -> Self {
        let own = ["a/.benchgate", "a/run.json"].map(|name| folder.join(name));
        Self {
            cache: Cache::open(&folder.join("cache")),
            progress: &benchgate_core::model::Quiet,
            cancel,
            testbed: Testbed::default(),
            slots: Slots::new(1),
            device_turn: Mutex::default(),
            digests: Digests::new(cancel),
            claims_identity: true,
            sources: Sources::without(own),
            unobserved: Once::new(),
            listed_devices: Memo::default(),
            loaded: Memo::default(),
            callers: Memo::default(),
            ir: None,
            modules: None,
            ptxas: None,
            logs: folder.join("logs"),
            scratch: folder.join("scratch"),
            builds: folder.join("builds"),
            cpus: None,
            gpus: Arc::default(),
            choices: Vec::new(),
        }
    }
}

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
