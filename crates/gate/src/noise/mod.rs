//! A/A calibration: spread, false positives and power from runs of unchanged code on a machine.

mod calibrate;
mod resample;

pub use calibrate::{Calibrating, NoiseOptions, NoiseReport, NoiseRow, PowerPoint, Share, noise};
pub use resample::{MeasuredSession, Recording, measure};
