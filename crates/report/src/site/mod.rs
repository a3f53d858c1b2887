//! Level 3: the stored history as pages. This module selects and renders the content of each page. It reads
//! no files; its callers write them. Sessions are kept in reduced form: see [`Timeline`].
//!
//! ```text
//! baseline files ─▶ history ─▶ moves ─▶ causes ─┐
//!                      ├─▶ silence, stability ──┼▶ overview, benchmark, compare ─▶ folder
//!                      └────────────────────────┴▶ alerts ─▶ issue
//!                                                    └──▶ open slowdowns ─▶ overview
//! ```

mod alerts;
mod benchmark;
mod build;
mod causes;
mod compare;
mod held;
mod history;
mod issue;
mod layout;
mod overview;
mod plot;
mod silence;
mod stability;

pub use alerts::{Action, AlertPlan, AlertPolicy, IssueTrace, KnownIssue, LEAST_SESSIONS, Over, plan};
pub use build::{Site, moved};
pub use causes::{Cause, ListCommits, Member, Move, Range, SourceCommit, causes, compiler, key, sources};
pub use history::{BenchmarkHistory, Point, Session, Timeline, Track, name_machines};
pub use issue::{
    BenchmarkOwner, IssueContext, body as issue_body, closing as issue_closing, growth as issue_growth,
    title as issue_title,
};
pub use layout::RepositoryUrl;
pub use silence::{OpenSlowdown, Silence, open_slowdowns, silences};
pub use stability::{ProcessSpread, Unstable, unstable};
