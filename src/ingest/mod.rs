//! L1, pure: one file per foreign format, bytes → [`crate::model::Run`].
//!
//! Strict: what can't be trusted is an error, a failed outcome or a lint, never a number.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod detect;
mod error;
mod format;
mod google_benchmark;
mod join;
mod json_scan;
mod read;
mod text;

pub use detect::detect;
pub use error::IngestError;
pub use format::Format;
pub use join::{Joiner, join};
pub use read::{read, read_detected};
