//! L3: baselines that live. One append-only file a run, `<suite>/<testbed>/<time>-<commit>.json`, in a
//! folder, in the tree of a commit, or on a branch that holds nothing else.
//!
//! ```text
//! update ─▶ quarantine ─▶ append ─▶  files  ─▶ select ─▶ gate
//!                                 ▲ accept, prune   verify, near misses
//! ```
//!
//! What is asked for is what is read: a shelf is a listing, and a file is opened when its turn comes.
//! Nothing is ever changed in place: an acceptance is one more file.

mod accept;
mod branch;

mod directory;
mod error;
mod files;
mod name;
mod near;
mod prune;
mod quarantine;
mod select;
mod shelf;
mod summarise;
#[cfg(test)]
mod tests;
mod tree;
mod update;
mod verify;

pub use accept::{Acceptance, accept};
pub use branch::{BRANCH, Branch};
pub use directory::Directory;
pub use error::StoreError;
pub use files::{Change, Files};
pub use name::{RunName, folder_name};
pub use near::NearMiss;
pub use prune::{Pruned, prunable};
pub use select::{Ask, History, Lineage, Missing, Selection, history_for_gate};
pub use shelf::{Fault, Shelf, Stored, shelves};
pub use summarise::summarise;
pub use tree::Tree;
pub use update::{Updated, Writing, update};
pub use verify::{Verified, verify};
