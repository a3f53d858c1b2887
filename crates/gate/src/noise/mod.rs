//! A/A calibration: spread, false positives and power from a machine's unchanged runs.

mod calibrate;
mod resample;

pub use calibrate::{Calibrating, NoiseOptions, NoiseReport, NoiseRow, PowerPoint, Share, noise};
pub use resample::{MeasuredSession, Recording, measure};
