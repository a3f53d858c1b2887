//! The devices that a target can run on. What distinguishes one kind from another when it is compiled for, run and found is in
//! [`DeviceKind::facts`].

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::VariantArray;

/// The kind of device that a runtime URI such as `cuda://0` means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, VariantArray)]
pub enum DeviceKind {
    /// `local-task`, `local-sync`: always there, and pinned to processors.
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
    /// The vendor's number on the PCI bus, as the kernel writes it.
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
    /// Names of the compiler's code generator in `backend` of `[[target]]`. The first is the one that is kept.
    pub backends: &'static [&'static str],
    /// The compiler's flags that select the code generator.
    pub compile_flags: &'static [&'static str],
    /// The runtime's name of the device, without a number.
    pub device: &'static str,
    /// The usual name.
    pub title: &'static str,
    /// torch's name of the device.
    pub torch: Option<&'static str>,
    /// The family of events that the runtime's profiler records on it.
    pub profiling: &'static str,
    /// The vendors of the GPUs that it drives.
    pub vendors: &'static [Vendor],
    /// Classes of the PCI bus that identify such a GPU unmistakably, whether its driver works or not.
    pub bus_classes: &'static [&'static str],
    /// The environment variable that selects a job's GPUs.
    pub visible: &'static str,
}

impl DeviceKind {
    /// Adding a kind of device is adding its facts here.
    pub const fn facts(self) -> DeviceFacts {
        // A device of which nothing is known.
        const NONE: DeviceFacts = DeviceFacts {
            backends: &[],
            compile_flags: &[],
            device: "",
            title: "",
            torch: None,
            profiling: "dispatch-events",
            vendors: &[],
            bus_classes: &[],
            visible: "CUDA_VISIBLE_DEVICES",
        };
        match self {
            Self::Cpu => DeviceFacts {
                backends: &["llvm-cpu"],
                // `local-task` and `local-sync` run the same module.
                compile_flags: &[
                    "--iree-hal-target-device=local",
                    "--iree-hal-local-target-device-backends=llvm-cpu",
                ],
                device: "local-task",
                title: "CPU",
                torch: Some("cpu"),
                // Its kernels are timed on the host, and `dispatch-events` is UNIMPLEMENTED.
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
                ..NONE
            },
            Self::Hip => DeviceFacts {
                backends: &["hip", "rocm"],
                compile_flags: &["--iree-hal-target-device=hip"],
                device: "hip",
                title: "ROCm",
                // torch calls AMD's devices `cuda` too.
                torch: Some("cuda"),
                vendors: &[Vendor::Amd],
                // Instinct boards call themselves "other display controller" or "processing accelerator". AMD's display
                // class is missing: a processor with graphics in it has one and needs no ROCm.
                bus_classes: &["0x0380", "0x1200"],
                visible: "HIP_VISIBLE_DEVICES",
                ..NONE
            },
            // Half of all display adapters never had a driver for Vulkan, so no class of the bus shows one.
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

    /// The kind that a backend of the compiler generates code for.
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

/// All names of code generators.
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

/// `cuda` of `cuda://0`.
pub fn device_driver(uri: &str) -> &str {
    uri.split(':').next().unwrap_or(uri)
}

/// Whether a runtime URI means the processors, which are always there.
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
        // No GPU runs at clocks beyond these, so the number is a typing error.
        (100..=10_000).contains(&mhz).then_some(Self::Mhz(mhz))
    }
}

/// The text in the configuration.
impl fmt::Display for GpuClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Base => f.write_str("base"),
            Self::Mhz(mhz) => write!(f, "{mhz}MHz"),
        }
    }
}
