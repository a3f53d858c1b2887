//! The devices that a target can run on. [`DeviceKind::facts`] holds every difference between the kinds in
//! compilation, execution and detection.

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::VariantArray;

/// The kind of device that a runtime URI such as `cuda://0` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, VariantArray)]
pub enum DeviceKind {
    /// `local-task` and `local-sync`: always available, and pinned to processors.
    Cpu,
    Cuda,
    Hip,
    Vulkan,
    Metal,
    Other,
}

/// The vendor of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vendor {
    Nvidia,
    Amd,
}

impl Vendor {
    /// Returns the vendor's PCI ID as the kernel writes it.
    pub const fn pci(self) -> &'static str {
        match self {
            Self::Nvidia => "0x10de",
            Self::Amd => "0x1002",
        }
    }
}

/// The names, flags and tools of a kind of device.
#[derive(Debug, Clone, Copy)]
pub struct DeviceFacts {
    /// The compiler's code generators, as `backend` of `[[target]]` names them. The first name is the
    /// canonical one.
    pub backends: &'static [&'static str],
    /// The compiler flags that select the code generator.
    pub compile_flags: &'static [&'static str],
    /// The runtime's name for the device, without a number.
    pub device: &'static str,
    /// The name shown to users.
    pub title: &'static str,
    /// PyTorch's name for the device.
    pub torch: Option<&'static str>,
    /// The family of events that the runtime's profiler records on this device.
    pub profiling: &'static str,
    /// The vendors of the GPUs that this device can use.
    pub vendors: &'static [Vendor],
    /// PCI classes that identify such a GPU unmistakably, whether its driver works or not.
    pub bus_classes: &'static [&'static str],
    /// The beginnings of the names in `/dev` without which no program can use such a GPU, also in a virtual machine or
    /// on a chip whose GPU is not on the bus. Empty if nothing certain is known.
    pub nodes: &'static [&'static str],
    /// The environment variables that select the GPUs of a job. Each variable selects from the GPUs that the
    /// previous variable leaves visible.
    pub visible: &'static [&'static str],
}

impl DeviceKind {
    /// Returns the facts about a kind of device. CONTRIBUTING.md lists what else a new kind needs.
    pub const fn facts(self) -> DeviceFacts {
        // The facts of a device about which nothing is known.
        const NONE: DeviceFacts = DeviceFacts {
            backends: &[],
            compile_flags: &[],
            device: "",
            title: "",
            torch: None,
            profiling: "dispatch-events",
            vendors: &[],
            bus_classes: &[],
            nodes: &[],
            visible: &["CUDA_VISIBLE_DEVICES"],
        };
        match self {
            Self::Cpu => DeviceFacts {
                backends: &["llvm-cpu"],
                // One module runs on both `local-task` and `local-sync`.
                compile_flags: &[
                    "--iree-hal-target-device=local",
                    "--iree-hal-local-target-device-backends=llvm-cpu",
                ],
                device: "local-task",
                title: "CPU",
                torch: Some("cpu"),
                // The runtime times its kernels on the host; it has not implemented `dispatch-events` for
                // this device.
                profiling: "host-execution",
                ..NONE
            },
            Self::Cuda => DeviceFacts {
                backends: &["cuda"],
                compile_flags: &["--iree-hal-target-device=cuda"],
                device: "cuda",
                title: "CUDA",
                torch: Some("cuda"),
                vendors: &[Vendor::Nvidia],
                bus_classes: &["0x0300", "0x0302"],
                nodes: &["nvidia", "nvhost", "nvmap", "dxg"],
                ..NONE
            },
            Self::Hip => DeviceFacts {
                backends: &["hip", "rocm"],
                compile_flags: &["--iree-hal-target-device=hip"],
                device: "hip",
                title: "ROCm",
                // PyTorch calls AMD's devices `cuda` too.
                torch: Some("cuda"),
                vendors: &[Vendor::Amd],
                // Instinct boards identify themselves as "other display controller" or "processing
                // accelerator". AMD's display class is not in this list: processors with integrated graphics
                // have it too, and don't need ROCm.
                bus_classes: &["0x0380", "0x1200"],
                nodes: &["kfd", "dxg"],
                visible: &["ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"],
                ..NONE
            },
            // Many display adapters never had a Vulkan driver, so no PCI class identifies a Vulkan device.
            Self::Vulkan => DeviceFacts {
                backends: &["vulkan"],
                compile_flags: &["--iree-hal-target-device=vulkan"],
                device: "vulkan",
                title: "Vulkan",
                vendors: &[Vendor::Nvidia, Vendor::Amd],
                ..NONE
            },
            Self::Metal => DeviceFacts { device: "metal", title: "Metal", ..NONE },
            Self::Other => NONE,
        }
    }

    pub fn from_uri(uri: &str) -> Self {
        let driver = device_driver(uri);
        if driver.starts_with("local-") {
            return Self::Cpu;
        }
        Self::VARIANTS.iter().copied().find(|kind| kind.facts().device == driver).unwrap_or(Self::Other)
    }

    /// Returns the kind of device that a backend of the compiler generates code for.
    pub fn of_backend(name: &str) -> Option<Self> {
        Self::VARIANTS.iter().copied().find(|kind| kind.facts().backends.contains(&name))
    }
}

const fn backend_count() -> usize {
    let (mut kind, mut count) = (0, 0);
    while kind < DeviceKind::VARIANTS.len() {
        count += DeviceKind::VARIANTS[kind].facts().backends.len();
        kind += 1;
    }
    count
}

/// The names of all code generators.
pub const BACKENDS: [&str; backend_count()] = {
    let mut names = [""; backend_count()];
    let (mut kind, mut count) = (0, 0);
    while kind < DeviceKind::VARIANTS.len() {
        let backends = DeviceKind::VARIANTS[kind].facts().backends;
        let mut name = 0;
        while name < backends.len() {
            names[count] = backends[name];
            (name, count) = (name + 1, count + 1);
        }
        kind += 1;
    }
    names
};

/// Returns the driver of a runtime URI, such as `cuda` for `cuda://0`.
pub fn device_driver(uri: &str) -> &str {
    uri.split(':').next().unwrap_or(uri)
}

/// Returns whether a runtime URI names the CPU, which is always available.
pub fn is_cpu(uri: &str) -> bool {
    DeviceKind::from_uri(uri) == DeviceKind::Cpu
}

/// A clock that a GPU can be locked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GpuClock {
    /// The clock that the chip sustains at its power limit under any load.
    Base,
    Mhz(u32),
}

impl GpuClock {
    /// `base`, or `1410MHz`.
    pub fn parse(text: &str) -> Option<Self> {
        if text == "base" {
            return Some(Self::Base);
        }
        let mhz = text.strip_suffix("MHz")?.trim_end().parse().ok()?;
        // No GPU runs at frequencies outside this range, so such a number is a typing error.
        (100..=10_000).contains(&mhz).then_some(Self::Mhz(mhz))
    }
}

/// Writes the clock as in the configuration.
impl fmt::Display for GpuClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Base => f.write_str("base"),
            Self::Mhz(mhz) => write!(f, "{mhz}MHz"),
        }
    }
}
