//! Stages split over machines: what a machine with a compiler prepares, a machine with a device verifies and
//! measures, with no Python and no compiler there.

mod archive;
mod open;
mod pack;

use crate::model::SideName;

pub use open::{OpenBundle, open_bundle};
pub use pack::PackedBundle;
pub(super) use pack::pack;

/// The folder of an unpacked bundle that a side's tools run in.
fn sources(side: SideName) -> String {
    format!("sources/{side}")
}
