//! Facts about one GPU of any vendor.

/// Who made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vendor {
    Nvidia,
    Amd,
}

/// Facts that don't change during a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Gpu {
    pub vendor: Vendor,
    /// As the driver names the product: `NVIDIA A100-SXM4-40GB`.
    pub name: String,
    /// Identity of the chip: `GPU-…` for NVIDIA, the fused number for AMD, otherwise its place on the bus.
    pub id: String,
    /// `0000:3b:00.0`.
    pub pci: String,
    pub driver: Option<String>,
    pub vbios: Option<String>,
    pub memory_bytes: Option<u64>,
    /// Cut into instances that share the chip.
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
    /// The power limit: the usual state of a large chip under full load.
    Power,
    Thermal,
    /// The board's supply or an emergency brake.
    Hardware,
}

/// A GPU at one moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GpuReading {
    pub clock_mhz: Option<u32>,
    pub memory_clock_mhz: Option<u32>,
    pub temperature_celsius: Option<f64>,
    pub power_watts: Option<f64>,
    pub memory_used_bytes: Option<u64>,
    /// In the order of [`Limit`]. `None` if the driver does not report it.
    pub limits: Option<Vec<Limit>>,
    /// Nanoseconds since the driver was loaded in which power or heat held the clock down; the difference between two
    /// readings covers the time between them.
    pub held_down_ns: Option<[u64; 2]>,
    /// The processes that have a context on it. `None` if the driver does not report it.
    pub processes: Option<Vec<u32>>,
    /// Whether the clock is locked. `None` if the driver does not report it.
    pub clock_locked: Option<bool>,
}
