//! The GPUs of this machine, as their drivers describe them.
//!
//! Looking never changes a setting. What a driver does not tell is absent: on one chip in three some
//! query is not supported, and none of them is worth ending a run for.

mod amd;
mod nvidia;
mod select;

use std::path::Path;

pub use select::{Choice, choose, visible};

use nvidia::Nvidia;

/// Where the kernel shows its devices.
const SYSFS: &str = "/sys";

/// Who made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vendor {
    Nvidia,
    Amd,
}

/// What stays the same while a run goes on.
#[derive(Debug, Clone, PartialEq)]
pub struct Gpu {
    pub vendor: Vendor,
    /// As the driver names the product: `NVIDIA A100-SXM4-40GB`.
    pub name: String,
    /// This very chip: `GPU-…` for NVIDIA, the fused number for AMD, else where it is plugged in.
    pub id: String,
    /// `0000:3b:00.0`.
    pub pci: String,
    pub driver: Option<String>,
    pub vbios: Option<String>,
    pub memory_bytes: Option<u64>,
    /// Cut into instances that share the chip.
    pub mig: Option<bool>,
    pub ecc: Option<bool>,
    /// What the driver keeps the power below.
    pub power_limit_watts: Option<f64>,
    pub max_clock_mhz: Option<u32>,
}

/// Why a GPU's clock is held below what was asked of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Limit {
    /// The power limit: the usual state of a large chip under full load.
    Power,
    Thermal,
    /// The board's supply or an emergency brake.
    Hardware,
}

impl Limit {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Power => "power",
            Self::Thermal => "thermal",
            Self::Hardware => "hardware",
        }
    }
}

/// A GPU at one moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reading {
    pub clock_mhz: Option<u32>,
    pub memory_clock_mhz: Option<u32>,
    pub temperature_celsius: Option<f64>,
    pub power_watts: Option<f64>,
    pub memory_used_bytes: Option<u64>,
    /// In the order of [`Limit`]. `None` where the driver does not say.
    pub limits: Option<Vec<Limit>>,
    /// Nanoseconds that the clock was held down by power and by heat since the driver was loaded: what
    /// happened between two readings is in their difference.
    pub held_down_ns: Option<[u64; 2]>,
    /// Whoever has a context on it. `None` where the driver does not say.
    pub processes: Option<Vec<u32>>,
    /// Somebody locked the clock. `None` where the driver does not say.
    pub clock_locked: Option<bool>,
}

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
    /// A driver is there and can't be asked: why.
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
            // No driver, no library: the usual machine.
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

    /// Why a driver that is there could not be asked.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// The state of the GPU at this place of the list, now.
    pub fn read(&self, index: usize) -> Reading {
        match (self.handles.get(index), &self.nvidia) {
            (Some(Handle::Nvidia(number)), Some(nvidia)) => nvidia.read(*number),
            (Some(Handle::Amd(card)), _) => card.read(),
            _ => Reading::default(),
        }
    }

    /// Holds the clock at `clock`. See `device::clocks`, which is what makes sure that it is undone.
    pub(super) fn lock_clock(&self, index: usize, clock: crate::device::ClockLock) -> Result<(), String> {
        match (self.handles.get(index), &self.nvidia) {
            (Some(Handle::Nvidia(number)), Some(nvidia)) => nvidia.lock_clock(*number, clock),
            _ => Err("locking the clock is only supported through NVML".to_owned()),
        }
    }

    /// Lets the clock move again.
    pub(super) fn unlock_clock(&self, index: usize) -> Result<(), String> {
        match (self.handles.get(index), &self.nvidia) {
            (Some(Handle::Nvidia(number)), Some(nvidia)) => nvidia.unlock_clock(*number),
            _ => Err("locking the clock is only supported through NVML".to_owned()),
        }
    }
}
