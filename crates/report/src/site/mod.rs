//! L3: the stored history as pages. This module selects and renders the content of each page; it reads nothing, and
//! only `folder` writes. Sessions are reduced: see [`Timeline`].
//!
//! ```text
//! baseline files ─▶ history ─▶ moves ─▶ causes ─┐
//!                      ├─▶ silence, stability ──┼▶ overview, benchmark, compare ─▶ folder
//!                      └────────────────────────┴▶ alerts ─▶ issue
//!                                                    └──▶ open slowdowns ─▶ overview
//! ```

mod address;
mod alerts;
mod benchmark;
mod build;
mod causes;
mod compare;
mod history;
mod issue;
mod layout;
mod moves;
mod open;
mod overview;
mod plot;
mod recovery;
mod silence;
mod spread;
mod stability;

pub use address::RepositoryUrl;
pub use alerts::{Action, AlertPlan, AlertPolicy, KnownIssue, plan};
pub use build::{Site, moved};
pub use causes::{Cause, Member, causes, key};
pub use history::{BenchmarkHistory, Point, Session, Timeline, Track, name_machines};
pub use issue::{
    BenchmarkOwner, IssueContext, body as issue_body, closing as issue_closing, growth as issue_growth,
    title as issue_title,
};
pub use moves::{ListCommits, Move, Range, SourceCommit, compiler, sources};
pub use open::{OpenSlowdown, open_slowdowns};
pub use recovery::{IssueTrace, Over};
pub use silence::{Silence, silences};
pub use spread::ProcessSpread;
pub use stability::{Unstable, unstable};
