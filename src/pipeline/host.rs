//! The machine and the folders that all stages of a run use.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

use tokio::sync::{Mutex, MutexGuard};

use crate::device::{self, Choice, Gpus, Watched};
use crate::files::{self, Scratch};
use crate::model::{Event, Progress, Testbed, is_cpu};
use crate::process::{Cancel, Command, Exit, Finished, Opened};

use super::PipelineError;
use super::cache::{Cache, Digests};
use super::devices;
use super::memo::Memo;
use super::slots::{Priority, SlotTurn, Slots};
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
        let finished = crate::process::run(command, self.cancel).await?;
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
            indices: devices::chosen(&self.gpus, device, env).candidates().to_vec(),
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
            progress: &crate::model::Quiet,
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
