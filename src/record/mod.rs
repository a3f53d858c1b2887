//! L1: the stored formats and their versions: frozen serde structs and migrations.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]
