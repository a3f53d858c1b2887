//! NVIDIA GPUs through NVML. The library comes with the driver and is loaded at run time, so the same binary
//! also runs on machines without it.

use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock, ClockLimitId, PerformancePolicy, TemperatureSensor};
use nvml_wrapper::enums::device::GpuLockedClocksSetting;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

use benchgate_core::model::{GpuClock, Vendor};

use super::select::{Gpu, GpuReading, Limit};

const MILLIWATTS: f64 = 1000.0;

/// The driver's library, loaded.
#[derive(Debug)]
pub(super) struct Nvidia {
    nvml: Nvml,
    driver: Option<String>,
}

impl Nvidia {
    /// Loads `libnvidia-ml.so.1` by the system loader's search path. No setting can name another
    /// path, because a user who chooses the library controls this process.
    pub(super) fn load() -> Result<Self, String> {
        let nvml = Nvml::init().map_err(|error| error.to_string())?;
        let driver = nvml.sys_driver_version().ok();
        Ok(Self { nvml, driver })
    }

    /// Every GPU that this user may query, with its number.
    pub(super) fn gpus(&self) -> Vec<(u32, Gpu)> {
        let count = self.nvml.device_count().unwrap_or(0);
        (0..count)
            .filter_map(|index| Some((index, self.describe(&self.nvml.device_by_index(index).ok()?)?)))
            .collect()
    }

    /// Describes a device. `None` if the driver does not report its PCI address and its name,
    /// because there is nothing to show without them.
    fn describe(&self, device: &Device<'_>) -> Option<Gpu> {
        let pci = device.pci_info().ok()?.bus_id.to_ascii_lowercase();
        Some(Gpu {
            vendor: Vendor::Nvidia,
            name: device.name().ok()?,
            id: device.uuid().unwrap_or_else(|_| pci.clone()),
            // NVML writes the PCI domain with eight digits; other tools write four.
            pci: pci
                .strip_prefix("0000")
                .filter(|short| short.len() >= 12)
                .map_or(pci.clone(), str::to_owned),
            driver: self.driver.clone(),
            vbios: device.vbios_version().ok(),
            memory_bytes: device.memory_info().ok().map(|memory| memory.total),
            mig: device.mig_mode().ok().map(|mode| mode.current != 0),
            ecc: device.is_ecc_enabled().ok().map(|state| state.currently_enabled),
            power_limit_watts: device.enforced_power_limit().ok().map(|limit| f64::from(limit) / MILLIWATTS),
            max_clock_mhz: device.max_clock_info(Clock::Graphics).ok(),
        })
    }

    pub(super) fn read(&self, index: u32) -> GpuReading {
        let Ok(device) = self.nvml.device_by_index(index) else { return GpuReading::default() };
        let reasons = device.current_throttle_reasons().ok();
        let held_down = |policy| device.violation_status(policy).ok().map(|held| held.violation_time);
        let power = held_down(PerformancePolicy::Power);
        let thermal = held_down(PerformancePolicy::Thermal);
        GpuReading {
            clock_mhz: device.clock_info(Clock::Graphics).ok(),
            memory_clock_mhz: device.clock_info(Clock::Memory).ok(),
            temperature_celsius: device.temperature(TemperatureSensor::Gpu).ok().map(f64::from),
            power_watts: device.power_usage().ok().map(|power| f64::from(power) / MILLIWATTS),
            memory_used_bytes: device.memory_info().ok().map(|memory| memory.used),
            limits: reasons.map(limits),
            held_down_ns: power.zip(thermal).map(|(power, thermal)| [power, thermal]),
            processes: device
                .running_compute_processes()
                .ok()
                .map(|processes| processes.iter().map(|process| process.pid).collect()),
            // NVML can lock a clock but can't report whether one is locked.
            clock_locked: None,
        }
    }

    pub(super) fn lock_clock(&self, index: u32, clock: GpuClock) -> Result<(), String> {
        let setting = match clock {
            GpuClock::Base => GpuLockedClocksSetting::Symbolic {
                lower_bound: ClockLimitId::Tdp,
                upper_bound: ClockLimitId::Tdp,
            },
            GpuClock::Mhz(mhz) => GpuLockedClocksSetting::Numeric { min_clock_mhz: mhz, max_clock_mhz: mhz },
        };
        let lock = || self.nvml.device_by_index(index)?.set_gpu_locked_clocks(setting);
        lock().map_err(|error: NvmlError| error.to_string())
    }

    pub(super) fn unlock_clock(&self, index: u32) -> Result<(), String> {
        let unlock = || self.nvml.device_by_index(index)?.reset_gpu_locked_clocks();
        unlock().map_err(|error: NvmlError| error.to_string())
    }
}

/// Limits that hold the clock down under load. An idle GPU and a clock chosen by the user are not limits.
fn limits(reasons: ThrottleReasons) -> Vec<Limit> {
    let mut limits = Vec::new();
    if reasons.contains(ThrottleReasons::SW_POWER_CAP) {
        limits.push(Limit::Power);
    }
    if reasons.intersects(ThrottleReasons::SW_THERMAL_SLOWDOWN | ThrottleReasons::HW_THERMAL_SLOWDOWN) {
        limits.push(Limit::Thermal);
    }
    let brakes = ThrottleReasons::HW_SLOWDOWN | ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN;
    if reasons.intersects(brakes) && !reasons.contains(ThrottleReasons::HW_THERMAL_SLOWDOWN) {
        limits.push(Limit::Hardware);
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idleness_and_a_chosen_clock_are_no_throttling() {
        let calm = ThrottleReasons::GPU_IDLE | ThrottleReasons::APPLICATIONS_CLOCKS_SETTING;
        assert!(limits(calm).is_empty());
        assert_eq!(limits(ThrottleReasons::SW_POWER_CAP), [Limit::Power]);
        // The driver sets the general bit together with each specific one.
        let hot = ThrottleReasons::HW_SLOWDOWN | ThrottleReasons::HW_THERMAL_SLOWDOWN;
        assert_eq!(limits(hot), [Limit::Thermal]);
        assert_eq!(limits(ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN), [Limit::Hardware]);
    }
}
