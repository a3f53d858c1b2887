//! The devices that a target can run on.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The kind of device that a runtime URI such as `cuda://0` means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceKind {
    /// `local-task`, `local-sync`: always there, and pinned to processors.
    Cpu,
    Cuda,
    Hip,
    Vulkan,
    Metal,
    Other,
}

impl DeviceKind {
    pub fn from_uri(uri: &str) -> Self {
        match device_driver(uri) {
            "cuda" => Self::Cuda,
            "hip" => Self::Hip,
            "vulkan" => Self::Vulkan,
            "metal" => Self::Metal,
            driver if driver.starts_with("local-") => Self::Cpu,
            _ => Self::Other,
        }
    }
}

/// `cuda` of `cuda://0`.
pub fn device_driver(uri: &str) -> &str {
    uri.split(':').next().unwrap_or(uri)
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
