//! The state of the machine while a process was measured.

/// The state of the machine over the time of one process, as far as it bears on the verdict.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Telemetry {
    /// Position among all processes of the session.
    pub order: u32,
    /// Share of the measured processors' time that other programs took; absent if it was too small to differ from
    /// none.
    pub foreign_share: Option<f64>,
    /// Other programs that were observed: `process 4711 (python3)`.
    pub foreign: Vec<String>,
    /// Why the clock was held down, in words; without the power limit.
    pub throttled: Vec<String>,
    /// The power limit held the clock down.
    pub power_capped: bool,
    /// Temperature of the device at the end, in degrees Celsius.
    pub temperature: Option<f64>,
}
