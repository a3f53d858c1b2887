//! The devices that a target can run on.

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
