//! Accelerators on the machine's bus: they are there whether their driver works or not.

use std::fs;
use std::path::Path;

/// The folder in which the kernel lists the devices of the bus.
const DEVICES: &str = "/sys/bus/pci/devices";

/// The vendor of each IREE driver's devices, and the device classes that identify them unmistakably.
///
/// AMD's display class is not among them: a processor with graphics in it has one and needs no ROCm. Vulkan
/// is missing altogether, because half of all display adapters never had a driver for it.
const KNOWN: [(&str, &str, &[&str]); 2] = [
    ("cuda", "0x10de", &["0x0300", "0x0302"]),
    // Instinct boards call themselves "other display controller" or "processing accelerator".
    ("hip", "0x1002", &["0x0380", "0x1200"]),
];

/// The bus address of a device for this driver.
pub fn accelerator(driver: &str) -> Option<String> {
    on_bus(Path::new(DEVICES), driver)
}

/// A machine whose bus can't be read shows no device.
fn on_bus(devices: &Path, driver: &str) -> Option<String> {
    let (_, vendor, classes) = KNOWN.iter().find(|(known, ..)| *known == driver)?;
    let mut found: Vec<String> = fs::read_dir(devices)
        .ok()?
        .filter_map(|item| {
            let folder = item.ok()?.path();
            let fact = |name: &str| fs::read_to_string(folder.join(name)).ok();
            let class = fact("class")?;
            let is_it =
                fact("vendor")?.trim() == *vendor && classes.iter().any(|known| class.starts_with(known));
            is_it.then(|| folder.file_name()?.to_str().map(str::to_owned)).flatten()
        })
        .collect();
    found.sort();
    found.into_iter().next()
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
    fn a_machine_without_a_readable_bus_shows_nothing() {
        assert_eq!(on_bus(Path::new("/nonexistent"), "cuda"), None);
    }
}
