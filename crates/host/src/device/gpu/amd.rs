//! AMD GPUs as the kernel driver reports them in `/sys/class/drm`. The values are those of amd-smi, but
//! neither its library nor its program is needed.

use std::fs;
use std::path::{Path, PathBuf};

use benchgate_core::model::Vendor;

use super::{Gpu, GpuReading, Limit};
use crate::device::read_line;

const MICROWATTS: f64 = 1e6;
const MILLIDEGREES: f64 = 1e3;

/// An AMD card and its folders in sysfs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Card {
    device: PathBuf,
    hwmon: Option<PathBuf>,
    /// The folder of processes that have a queue on any AMD GPU, with one subfolder each.
    queues: PathBuf,
}

/// Finds every AMD card below `sysfs`, in the order of their numbers.
pub(super) fn cards(sysfs: &Path) -> Vec<(Card, Gpu)> {
    let Ok(entries) = fs::read_dir(sysfs.join("class/drm")) else { return Vec::new() };
    let mut numbered: Vec<(u32, PathBuf)> = entries
        .flatten()
        // The folder also lists the cards' connectors (`card0-DP-1`), whose names are not a number after
        // `card`.
        .filter_map(|entry| {
            let number = entry.file_name().to_str()?.strip_prefix("card")?.parse().ok()?;
            Some((number, entry.path().join("device")))
        })
        .filter(|(_, device)| read_line(device.join("vendor")).as_deref() == Some(Vendor::Amd.pci()))
        .collect();
    numbered.sort();
    numbered
        .into_iter()
        .map(|(_, device)| {
            let card = Card { hwmon: hwmon(&device), queues: sysfs.join("class/kfd/kfd/proc"), device };
            let gpu = card.describe(sysfs);
            (card, gpu)
        })
        .collect()
}

/// The folder of the card's sensors.
fn hwmon(device: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(device.join("hwmon")).ok()?;
    entries.flatten().map(|entry| entry.path()).find(|path| path.join("name").exists())
}

impl Card {
    fn describe(&self, sysfs: &Path) -> Gpu {
        let says = |name: &str| read_line(self.device.join(name));
        let uevent = says("uevent").unwrap_or_default();
        let pci = uevent.lines().find_map(|line| line.strip_prefix("PCI_SLOT_NAME=")).unwrap_or_default();
        // The driver reports a product name only for accelerators.
        let name = says("product_name").unwrap_or_else(|| {
            let number = uevent.lines().find_map(|line| line.strip_prefix("PCI_ID=")).unwrap_or("unknown");
            format!("AMD GPU {number}")
        });
        Gpu {
            vendor: Vendor::Amd,
            name,
            id: says("unique_id").unwrap_or_else(|| pci.to_owned()),
            pci: pci.to_owned(),
            // The driver that is built into the kernel has no version of its own.
            driver: read_line(sysfs.join("module/amdgpu/version")),
            vbios: says("vbios_version"),
            memory_bytes: says("mem_info_vram_total").and_then(|bytes| bytes.parse().ok()),
            mig: says("current_compute_partition").map(|partition| partition != "SPX"),
            ecc: None,
            power_limit_watts: self.sensor("power1_cap").map(|limit| limit / MICROWATTS),
            max_clock_mhz: says("pp_dpm_sclk").and_then(|states| last_state(&states)),
        }
    }

    /// Reads a number from one of the card's sensors.
    fn sensor(&self, name: &str) -> Option<f64> {
        read_line(self.hwmon.as_ref()?.join(name))?.parse().ok()
    }

    pub(super) fn read(&self) -> GpuReading {
        let says = |name: &str| read_line(self.device.join(name));
        let metrics = fs::read(self.device.join("gpu_metrics")).unwrap_or_default();
        let level = says("power_dpm_force_performance_level");
        GpuReading {
            clock_mhz: says("pp_dpm_sclk").and_then(|states| current_state(&states)),
            memory_clock_mhz: says("pp_dpm_mclk").and_then(|states| current_state(&states)),
            temperature_celsius: self.temperature(),
            power_watts: self
                .sensor("power1_average")
                .or_else(|| self.sensor("power1_input"))
                .map(|power| power / MICROWATTS),
            memory_used_bytes: says("mem_info_vram_used").and_then(|bytes| bytes.parse().ok()),
            limits: throttled(&metrics),
            held_down_ns: None,
            processes: self.processes(),
            // At any other performance level the driver chooses the clock.
            clock_locked: level.map(|level| {
                level == "profile_standard" || level == "profile_peak" || level == "manual" || level == "high"
            }),
        }
    }

    /// The temperature of the junction, the hottest spot, if it is reported: the driver throttles by this
    /// value.
    fn temperature(&self) -> Option<f64> {
        let hwmon = self.hwmon.as_ref()?;
        let junction = (1..=4).find(|number| {
            read_line(hwmon.join(format!("temp{number}_label"))).as_deref() == Some("junction")
        });
        let number = junction.unwrap_or(1);
        self.sensor(&format!("temp{number}_input")).map(|degrees| degrees / MILLIDEGREES)
    }

    /// Processes that have a queue on an AMD GPU. The kernel's list does not show which card a queue is on
    /// without reading every queue, so with several cards a process counts for each of them.
    fn processes(&self) -> Option<Vec<u32>> {
        let entries = fs::read_dir(&self.queues).ok()?;
        Some(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
    }
}

/// The clock in MHz on the line with the star, from lines like `1: 1500Mhz *`.
fn current_state(states: &str) -> Option<u32> {
    states.lines().find(|line| line.trim_end().ends_with('*')).and_then(megahertz)
}

fn last_state(states: &str) -> Option<u32> {
    states.lines().filter_map(megahertz).max()
}

fn megahertz(line: &str) -> Option<u32> {
    let (_, value) = line.split_once(':')?;
    let digits: String = value.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// Limits that hold the clock down, read from the driver's metrics table. Only layout 1.3 (graphics cards) is
/// read, whose bits mean the same on every chip and which was checked on real cards. `None` for every other
/// layout.
fn throttled(metrics: &[u8]) -> Option<Vec<Limit>> {
    /// The offset of `indep_throttle_status`.
    const AT: usize = 112;
    let [_, _, 1, 3, ..] = *metrics else { return None };
    let bits = u64::from_le_bytes(metrics.get(AT..AT + 8)?.try_into().ok()?);
    // The driver sets all bits of a field that the chip does not have.
    if bits == u64::MAX {
        return None;
    }
    let any = |from: u32, to: u32| (from..=to).any(|bit| bits >> bit & 1 == 1);
    // The bit ranges of power, temperature and current limits.
    let groups = [(Limit::Power, any(0, 15)), (Limit::Thermal, any(32, 47)), (Limit::Hardware, any(16, 31))];
    Some(groups.into_iter().filter(|(_, set)| *set).map(|(limit, _)| limit).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(card: &str) -> (GpuReading, Gpu) {
        let sysfs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/sysfs/amd").join(card);
        let mut cards = cards(&sysfs);
        assert_eq!(cards.len(), 1);
        let (card, gpu) = cards.remove(0);
        (card.read(), gpu)
    }

    #[test]
    fn a_captured_card_is_described() {
        let (reading, gpu) = captured("rx6900xt");
        assert_eq!(gpu.name, "AMD GPU 1002:73BF");
        assert_eq!(gpu.id, "946d7e1ef9b172dd");
        assert_eq!(gpu.vbios.as_deref(), Some("113-D4121EXT-CO1"));
        assert_eq!(gpu.memory_bytes, Some(17_163_091_968));
        assert_eq!(gpu.power_limit_watts, Some(289.0));
        assert_eq!(gpu.max_clock_mhz, Some(2660));
        let expected = GpuReading {
            clock_mhz: Some(500),
            memory_clock_mhz: Some(1000),
            temperature_celsius: Some(59.0),
            power_watts: Some(36.0),
            memory_used_bytes: Some(668_274_688),
            limits: Some(Vec::new()),
            clock_locked: Some(false),
            ..GpuReading::default()
        };
        assert_eq!(reading, expected);
    }

    #[test]
    fn heat_is_read_from_a_captured_table_and_an_unknown_table_says_nothing() {
        let (reading, _) = captured("rx7600s");
        assert_eq!(reading.limits, Some(vec![Limit::Thermal]));
        assert_eq!(reading.clock_locked, Some(true));
        assert_eq!(throttled(&[0x78, 0, 2, 1, 0, 0]), None);
        assert_eq!(throttled(&[0x78, 0, 1, 3]), None);
    }

    #[test]
    fn connectors_and_cards_of_others_are_not_ours() {
        let sysfs = tempfile::tempdir().unwrap();
        for (name, vendor) in [("card0", "0x10de"), ("card1-DP-1", Vendor::Amd.pci())] {
            let device = sysfs.path().join("class/drm").join(name).join("device");
            fs::create_dir_all(&device).unwrap();
            fs::write(device.join("vendor"), vendor).unwrap();
        }
        assert!(cards(sysfs.path()).is_empty());
    }
}
