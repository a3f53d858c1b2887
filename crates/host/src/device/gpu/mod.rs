//! The GPUs of this machine, as their drivers describe them.
//!
//! Reading never changes a setting. Facts that a driver does not report are left out: about one chip in three
//! does not support some query, which is not a reason to end a run.

mod amd;
mod nvidia;
mod select;

use std::fs;
use std::path::Path;

use benchgate_core::model::{DeviceKind, GpuClock};

pub use select::{Choice, Gpu, GpuReading, Limit, choose};

use nvidia::Nvidia;

/// The folder in which the kernel shows its devices.
const SYSFS: &str = "/sys";

/// The driver's reference to a GPU, with which it is queried again.
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
    /// The reason why an installed driver can't be queried.
    problem: Option<String>,
}

impl Gpus {
    /// Finds the GPUs. Loads the NVIDIA driver's library (`libnvidia-ml.so.1`) if the system's loader finds
    /// it.
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
            // The driver is not installed, as on most machines.
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

    /// The reason why an installed driver can't be queried.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Returns why no program can use a device of this driver; `None` if one may be present. Only what the kernel
    /// shows is certain: a driver whose library can't be loaded here may be usable elsewhere.
    pub fn absence(&self, driver: &str) -> Option<String> {
        let facts = DeviceKind::from_uri(driver).facts();
        let is_listed = self.list.iter().any(|gpu| facts.vendors.contains(&gpu.vendor));
        let is_unknown = is_listed || facts.nodes.is_empty() || has_node(Path::new(NODES), facts.nodes);
        (!is_unknown).then(|| format!("there is no {NODES}/{}*", facts.nodes[0]))
    }

    /// Reads the current state of the GPU at this position in the list.
    pub fn read(&self, index: usize) -> GpuReading {
        match (self.handles.get(index), &self.nvidia) {
            (Some(Handle::Nvidia(number)), Some(nvidia)) => nvidia.read(*number),
            (Some(Handle::Amd(card)), _) => card.read(),
            _ => GpuReading::default(),
        }
    }

    /// Locks the GPU's clock at `clock`. [`super::clocks`] ensures that this is undone.
    pub(super) fn lock_clock(&self, index: usize, clock: GpuClock) -> Result<(), String> {
        match (self.handles.get(index), &self.nvidia) {
            (Some(Handle::Nvidia(number)), Some(nvidia)) => nvidia.lock_clock(*number, clock),
            _ => Err("locking the clock is only supported through NVML".to_owned()),
        }
    }

    pub(super) fn unlock_clock(&self, index: usize) -> Result<(), String> {
        match (self.handles.get(index), &self.nvidia) {
            (Some(Handle::Nvidia(number)), Some(nvidia)) => nvidia.unlock_clock(*number),
            _ => Err("locking the clock is only supported through NVML".to_owned()),
        }
    }
}

/// The folder of the nodes through which programs use devices.
const NODES: &str = "/dev";

/// The folder in which the kernel lists PCI devices.
const DEVICES: &str = "/sys/bus/pci/devices";

/// The PCI address of the first device that this kernel driver handles.
pub fn accelerator(driver: &str) -> Option<String> {
    on_bus(Path::new(DEVICES), driver)
}

/// Searches the PCI devices in `devices`. A machine without this folder has no such device.
fn on_bus(devices: &Path, driver: &str) -> Option<String> {
    let facts = DeviceKind::from_uri(driver).facts();
    let vendor = facts.vendors.first()?.pci();
    let mut found: Vec<String> = fs::read_dir(devices)
        .ok()?
        .filter_map(|item| {
            let folder = item.ok()?.path();
            let fact = |name: &str| fs::read_to_string(folder.join(name)).ok();
            let class = fact("class")?;
            let is_it = fact("vendor")?.trim() == vendor
                && facts.bus_classes.iter().any(|known| class.starts_with(known));
            is_it.then(|| folder.file_name()?.to_str().map(str::to_owned)).flatten()
        })
        .collect();
    found.sort();
    found.into_iter().next()
}

/// Returns whether a folder has a node whose name begins like one of these. A folder that can't be read may have one.
fn has_node(folder: &Path, nodes: &[&str]) -> bool {
    let Ok(found) = fs::read_dir(folder) else { return true };
    let mut found = found.filter_map(|node| node.ok()?.file_name().into_string().ok());
    found.any(|name| nodes.iter().any(|node| name.starts_with(node)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bus(devices: &[(&str, &str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (address, vendor, class) in devices {
            let device = folder.path().join(address);
            fs::create_dir(&device).unwrap();
            fs::write(device.join("vendor"), format!("{vendor}\n")).unwrap();
            fs::write(device.join("class"), format!("{class}\n")).unwrap();
        }
        folder
    }

    #[test]
    fn a_gpu_is_seen_whatever_its_driver_does() {
        let machine = bus(&[
            ("0000:00:00.0", "0x8086", "0x060000"),
            ("0000:65:00.0", "0x10de", "0x030200"),
            ("0000:65:00.1", "0x10de", "0x040300"),
        ]);
        assert_eq!(on_bus(machine.path(), "cuda").as_deref(), Some("0000:65:00.0"));
        assert_eq!(on_bus(machine.path(), "hip"), None);
        assert_eq!(on_bus(machine.path(), "vulkan"), None);
    }

    #[test]
    fn graphics_inside_a_processor_ask_for_no_rocm() {
        let laptop = bus(&[("0000:04:00.0", "0x1002", "0x030000")]);
        assert_eq!(on_bus(laptop.path(), "hip"), None);
        let server = bus(&[("0000:05:00.0", "0x1002", "0x120000")]);
        assert_eq!(on_bus(server.path(), "hip").as_deref(), Some("0000:05:00.0"));
    }

    #[test]
    fn a_node_of_a_driver_is_seen_whatever_its_library_says() {
        let cuda = DeviceKind::Cuda.facts().nodes;
        for (node, is_there) in [("nvme0", false), ("nvidiactl", true), ("nvhost-ctrl", true), ("dxg", true)]
        {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join(node), "").unwrap();
            assert_eq!(has_node(folder.path(), cuda), is_there, "{node}");
        }
        assert!(has_node(Path::new("/nonexistent"), cuda), "what can't be read may be there");
        assert_eq!(Gpus::default().absence("vulkan"), None, "a processor can be a Vulkan device");
    }

    #[test]
    fn a_machine_without_a_readable_bus_shows_nothing() {
        assert_eq!(on_bus(Path::new("/nonexistent"), "cuda"), None);
    }
}
