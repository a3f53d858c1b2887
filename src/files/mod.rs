//! L3: files that appear whole, temporary folders that a kill does not leave behind for ever, and locks that
//! say who holds them.
//!
//! A lock of the kernel (`flock`) is what tells a live owner from a dead one: it is released however its holder
//! ends, and it holds across containers that share a folder. Process numbers do not: the same number means
//! another process in another container, and another one again after a restart.

mod draft;
mod lock;
mod owner;
mod scratch;

pub use draft::{Draft, sweep_drafts, write};
pub use lock::{Attempt, LockFile};
pub use owner::Owner;
pub use scratch::{Scratch, sweep_scratch};
