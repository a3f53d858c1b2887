//! The GPUs of this machine, as their drivers describe them.
//!
//! Reading never changes a setting. Facts that a driver does not report are absent: one chip in three lacks some
//! query, and none of them justifies ending a run.

mod amd;
mod chip;
mod nvidia;
mod select;

use std::path::Path;

use benchgate_core::model::GpuClock;

pub use chip::{Gpu, GpuReading, Limit, Vendor};
pub use select::{Choice, choose, visible};

use nvidia::Nvidia;

/// The folder in which the kernel shows its devices.
const SYSFS: &str = "/sys";

/// How to reach a GPU again.
#[derive(Debug)]
enum Handle {
    Nvidia(u32),
    Amd(amd::Card),
}

/// Every GPU of this machine.
#[derive(Debug, Default)]
pub struct Gpus {
    nvidia: Option<Nvidia>,
    handles: Vec<Handle>,
    list: Vec<Gpu>,
    /// The reason why a present driver can't be queried.
    problem: Option<String>,
}

impl Gpus {
    /// Looks for them. Loads the driver's own library (`libnvidia-ml.so.1`) where the system's loader
    /// finds one.
    pub fn find() -> Self {
        let mut found = Self::default();
        match Nvidia::load() {
            Ok(nvidia) => {
                for (index, gpu) in nvidia.gpus() {
                    found.list.push(gpu);
                    found.handles.push(Handle::Nvidia(index));
                }
                found.nvidia = Some(nvidia);
            }
            // No driver, so no library: the usual case.
            Err(_) if !Path::new("/dev/nvidiactl").exists() => {}
            Err(why) => found.problem = Some(why),
        }
        for (card, gpu) in amd::cards(Path::new(SYSFS)) {
            found.list.push(gpu);
            found.handles.push(Handle::Amd(card));
        }
        found
    }

    pub fn list(&self) -> &[Gpu] {
        &self.list
    }

    /// The reason why a present driver could not be queried.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// The current state of the GPU at this position in the list.
    pub fn read(&self, index: usize) -> GpuReading {
        match (self.handles.get(index), &self.nvidia) {
            (Some(Handle::Nvidia(number)), Some(nvidia)) => nvidia.read(*number),
            (Some(Handle::Amd(card)), _) => card.read(),
            _ => GpuReading::default(),
        }
    }

    /// Locks the clock at `clock`. See `device::clocks`, which ensures that this is undone.
    pub(super) fn lock_clock(&self, index: usize, clock: GpuClock) -> Result<(), String> {
        match (self.handles.get(index), &self.nvidia) {
            (Some(Handle::Nvidia(number)), Some(nvidia)) => nvidia.lock_clock(*number, clock),
            _ => Err("locking the clock is only supported through NVML".to_owned()),
        }
    }

    /// Unlocks the clock.
    pub(super) fn unlock_clock(&self, index: usize) -> Result<(), String> {
        match (self.handles.get(index), &self.nvidia) {
            (Some(Handle::Nvidia(number)), Some(nvidia)) => nvidia.unlock_clock(*number),
            _ => Err("locking the clock is only supported through NVML".to_owned()),
        }
    }
}
