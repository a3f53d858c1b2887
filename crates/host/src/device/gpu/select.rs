//! Facts about a GPU of any vendor, and the selection of the GPUs that a target may run on.

use benchgate_core::model::{DeviceKind, Vendor};

/// The GPU or GPUs that a target may run on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// The target runs on the CPU.
    None,
    /// The target runs on exactly this GPU.
    One(usize),
    /// The target runs on one of these GPUs. Which one is unknown, because the runtime and the drivers number
    /// GPUs differently.
    AnyOf(Vec<usize>),
}

impl Choice {
    /// All GPUs that the target may run on.
    pub fn candidates(&self) -> &[usize] {
        match self {
            Self::None => &[],
            Self::One(index) => std::slice::from_ref(index),
            Self::AnyOf(several) => several,
        }
    }
}

/// The GPU of an IREE device (`cuda`, `cuda://GPU-…`, `hip://0`, `vulkan`). `visible` contains the values of
/// the environment variables that select a job's GPUs; each one selects from the GPUs that the previous one
/// leaves.
pub fn choose(device: &str, visible: &[String], gpus: &[Gpu]) -> Choice {
    let (driver, rest) = device.split_once("://").unwrap_or((device, ""));
    let vendors = DeviceKind::from_uri(driver).facts().vendors;
    let mut candidates: Vec<usize> =
        (0..gpus.len()).filter(|index| vendors.contains(&gpus[*index].vendor)).collect();
    if candidates.is_empty() {
        return Choice::None;
    }
    // Vulkan ignores such variables, and numbers the GPUs of all vendors together.
    let of_one_vendor = vendors.len() == 1;
    let mut is_known = true;
    for names in visible.iter().filter(|names| of_one_vendor && !names.is_empty()) {
        match shown(names, &candidates, gpus) {
            Some(shown) => candidates = shown,
            None => is_known = false,
        }
    }
    let wanted = rest.split(['?', '#']).next().unwrap_or_default();
    if let Some(index) = candidates.iter().find(|index| is_same(&gpus[**index].id, wanted)) {
        return Choice::One(*index);
    }
    // CUDA and HIP number the fastest GPU first; the drivers number by bus position. If all GPUs are equal,
    // both orders are the same.
    let alike = candidates.iter().all(|index| gpus[*index].name == gpus[candidates[0]].name);
    let number = if wanted.is_empty() { Some(0) } else { wanted.parse::<usize>().ok() };
    match (candidates.as_slice(), number) {
        ([only], _) => Choice::One(*only),
        (several, Some(number)) if is_known && alike && of_one_vendor && number < several.len() => {
            Choice::One(several[number])
        }
        _ => Choice::AnyOf(candidates),
    }
}

/// The GPUs that the environment variable leaves visible, in its order. `None` if its value can't be
/// interpreted.
fn shown(names: &str, candidates: &[usize], gpus: &[Gpu]) -> Option<Vec<usize>> {
    names
        .split(',')
        .map(str::trim)
        .map(|name| match name.parse::<usize>() {
            Ok(number) => candidates.get(number).copied(),
            // CUDA accepts the beginning of an identifier, and ROCm writes `GPU-` before the number of the chip.
            Err(_) => {
                let number = name.strip_prefix("GPU-").unwrap_or(name);
                let is_it = |id: &str| id.starts_with(name) || id.starts_with(number);
                candidates.iter().copied().find(|index| is_it(&gpus[*index].id))
            }
        })
        .collect()
}

fn is_same(id: &str, wanted: &str) -> bool {
    !wanted.is_empty() && id.eq_ignore_ascii_case(wanted)
}

/// Facts about a GPU that don't change during a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Gpu {
    pub vendor: Vendor,
    /// The product name from the driver: `NVIDIA A100-SXM4-40GB`.
    pub name: String,
    /// Identity of the chip: `GPU-…` for NVIDIA, the serial number fused into the chip for AMD, otherwise the
    /// PCI address.
    pub id: String,
    /// The PCI address, for example `0000:3b:00.0`.
    pub pci: String,
    pub driver: Option<String>,
    pub vbios: Option<String>,
    pub memory_bytes: Option<u64>,
    /// True if the GPU is partitioned into instances that share the chip (NVIDIA MIG). `None` if the driver
    /// does not report it.
    pub mig: Option<bool>,
    pub ecc: Option<bool>,
    /// The driver's power limit.
    pub power_limit_watts: Option<f64>,
    pub max_clock_mhz: Option<u32>,
}

/// The reason why a GPU's clock is below the requested value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum Limit {
    /// The power limit. A large chip under full load usually runs at it.
    Power,
    Thermal,
    /// A limit of the board: its power supply or an emergency brake.
    Hardware,
}

/// The state of a GPU at one moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GpuReading {
    pub clock_mhz: Option<u32>,
    pub memory_clock_mhz: Option<u32>,
    pub temperature_celsius: Option<f64>,
    pub power_watts: Option<f64>,
    pub memory_used_bytes: Option<u64>,
    /// The active limits, in the order of [`Limit`]. `None` if the driver does not report them.
    pub limits: Option<Vec<Limit>>,
    /// Nanoseconds since the driver was loaded in which power or heat held the clock down. The difference
    /// between two readings covers the time between them.
    pub held_down_ns: Option<[u64; 2]>,
    /// The processes that have a context on this GPU. `None` if the driver does not report them.
    pub processes: Option<Vec<u32>>,
    /// True if the clock is locked. `None` if the driver does not report it.
    pub clock_locked: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(vendor: Vendor, name: &str, id: &str) -> Gpu {
        Gpu {
            vendor,
            name: name.into(),
            id: id.into(),
            pci: String::new(),
            driver: None,
            vbios: None,
            memory_bytes: None,
            mig: None,
            ecc: None,
            power_limit_watts: None,
            max_clock_mhz: None,
        }
    }

    fn machine() -> Vec<Gpu> {
        vec![
            gpu(Vendor::Nvidia, "A100", "GPU-aaaa"),
            gpu(Vendor::Nvidia, "A100", "GPU-bbbb"),
            gpu(Vendor::Amd, "MI210", "f00d"),
        ]
    }

    #[test]
    fn a_target_names_its_gpu_by_identifier_number_or_not_at_all() {
        let gpus = machine();
        assert_eq!(choose("cuda://GPU-BBBB", &[], &gpus), Choice::One(1));
        assert_eq!(choose("cuda://1", &[], &gpus), Choice::One(1));
        assert_eq!(choose("cuda", &[], &gpus), Choice::One(0));
        assert_eq!(choose("hip", &[], &gpus), Choice::One(2));
        assert_eq!(choose("local-task", &[], &gpus), Choice::None);
    }

    #[test]
    fn what_the_job_was_given_counts_from_zero() {
        let gpus = machine();
        assert_eq!(choose("cuda", &["1".to_owned()], &gpus), Choice::One(1));
        assert_eq!(choose("cuda://0", &["GPU-bb,GPU-aa".to_owned()], &gpus), Choice::One(1));
        assert_eq!(choose("cuda://1", &["1,0".to_owned()], &gpus), Choice::One(0));
        // Nothing is known about instances of a partitioned GPU.
        assert_eq!(choose("cuda", &["MIG-1".to_owned()], &gpus), Choice::AnyOf(vec![0, 1]));
    }

    #[test]
    fn rocm_selects_first_and_hip_from_what_is_left() {
        let of = |id| gpu(Vendor::Amd, "MI300X", id);
        let gpus = [of("aa"), of("bb"), of("cc")];
        let visible = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
        assert_eq!(choose("hip", &visible(&["1,2"]), &gpus), Choice::One(1));
        assert_eq!(choose("hip", &visible(&["1,2", "1"]), &gpus), Choice::One(2));
        assert_eq!(choose("hip", &visible(&["GPU-cc"]), &gpus), Choice::One(2));
    }

    #[test]
    fn where_counting_is_ambiguous_no_gpu_is_guessed() {
        let mut gpus = machine();
        gpus[1].name = "H100".into();
        assert_eq!(choose("cuda", &[], &gpus), Choice::AnyOf(vec![0, 1]));
        assert_eq!(choose("vulkan", &[], &gpus), Choice::AnyOf(vec![0, 1, 2]));
        assert_eq!(choose("cuda://GPU-bbbb", &[], &gpus), Choice::One(1));
    }
}
