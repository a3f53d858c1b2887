//! Splits the stages over machines. A machine with a compiler prepares a bundle; a machine with a device
//! verifies and measures it, without Python or a compiler.

mod archive;
mod open;
mod pack;

use crate::model::SideName;

pub use open::{OpenBundle, open_bundle};
pub use pack::PackedBundle;
pub(super) use pack::pack;

/// The folder of an unpacked bundle in which the tools of a side run.
fn sources(side: SideName) -> String {
    format!("sources/{side}")
}
