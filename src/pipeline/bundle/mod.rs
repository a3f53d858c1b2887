//! Stages split over machines: what a machine with a compiler prepares, a machine with a device verifies and
//! measures, with no Python and no compiler there.

mod archive;
mod make;
mod open;

use crate::model::SideName;

pub use make::{MadeBundle, make_bundle};
pub use open::{OpenBundle, open_bundle, run_bundle};

/// The folder of an unpacked bundle that a side's tools run in.
fn sources(side: SideName) -> String {
    format!("sources/{side}")
}
