//! A/A calibration: what a machine's own unchanged runs say about spread, false positives and power.

mod calibrate;
mod resample;

pub use calibrate::{Calibrating, NoiseOptions, NoiseReport, NoiseRow, PowerPoint, Share, noise};
pub use resample::{MeasuredSession, Recording, measure};
