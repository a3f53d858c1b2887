//! L3: stored baselines. Each run is one append-only file, `<suite>/<testbed>/<time>-<commit>.json`, in a folder, in
//! the tree of a commit, or on a branch that contains nothing else; or one object of an object store. [`Files`] is the one
//! interface of all of them.
//!
//! ```text
//! update ─▶ quarantine ─▶ append ─▶  files  ─▶ select ─▶ gate
//!                                 ▲ accept, prune   verify, similar testbeds
//! ```
//!
//! Only the needed files are listed and read: names come newest first, an object store's a month at a time, and each file
//! is read when it is used. Files are never changed in place; an acceptance is a new file.

mod accept;
mod anchor;
mod branch;
mod clouds;
mod directory;
mod earlier;
mod encoding;
mod error;
mod export;
mod files;
mod folder;
mod listing;
mod name;
mod objects;
#[cfg(test)]
mod objects_tests;
mod prune;
mod quarantine;
#[cfg(test)]
mod quarantine_tests;
mod select;
mod similar;
mod summarise;
#[cfg(test)]
mod tests;
mod tree;
mod update;
mod verify;

pub use accept::{Acceptance, accept};
pub use anchor::judged_side;
pub use branch::{BRANCH, Branch};
pub use directory::Directory;
pub use encoding::Encoding;
pub use error::StoreError;
pub use export::{ExportedSessions, export};
pub use files::{Change, Files};
pub use folder::{BaselineFolder, Fault, LoadedFile, Stored, baseline_folders};
pub use listing::{Newest, Runs};
pub use name::{RunName, folder_name};
pub use objects::Objects;
pub use prune::{Pruned, prunable};
pub use quarantine::is_released;
pub use select::{History, HistoryQuery, Lineage, Missing, Selection, history_for_gate, is_usable};
pub use similar::SimilarTestbed;
pub use summarise::summarise;
pub use tree::CommitTree;
pub use update::{UpdateOptions, Updated, update};
pub use verify::{BATCH, Verified, verify};
