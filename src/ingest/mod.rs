//! L1, pure: one file per foreign format, bytes → [`crate::model::Run`].
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]
