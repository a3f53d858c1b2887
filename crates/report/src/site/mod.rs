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
mod causes;
mod compare;
mod history;
mod issue;
mod layout;
mod overview;
mod plot;
mod silence;
mod stability;

use jiff::Timestamp;

use benchmark::{benchmark_page, path};
use compare::{compare_page, index, sessions};

pub use alerts::{Action, AlertPlan, AlertPolicy, IssueTrace, KnownIssue, LEAST_SESSIONS, Over, plan};
pub use causes::{Cause, ListCommits, Member, Move, Range, causes, compiler, key, sources};
pub use history::{BenchmarkHistory, Point, ProcessSpread, Session, Timeline, Track, name_machines};
pub use issue::{
    BenchmarkOwner, IssueContext, body as issue_body, closing as issue_closing, growth as issue_growth,
    title as issue_title,
};
pub use layout::RepositoryUrl;
pub use silence::{OpenSlowdown, RedRow, Silence, open_slowdowns, red_rows, silences};
pub use stability::{Unstable, unstable};

const STYLE: &str = include_str!("assets/site.css");
const SCRIPT: &str = include_str!("assets/site.js");

pub struct Site<'a> {
    pub timelines: &'a [Timeline],
    pub open: &'a [OpenSlowdown<'a>],
    /// Benchmarks that are red and have no open slowdown.
    pub red: &'a [RedRow<'a>],
    /// Number of newest sessions that were read of each suite and testbed, if not all.
    pub newest: Option<usize>,
    pub silent: &'a [Silence],
    pub unstable: &'a [Unstable<'a>],
    pub now: Timestamp,
    /// Repository for links to commits.
    pub repository: Option<&'a RepositoryUrl>,
    pub commits: ListCommits<'a>,
}

/// Returns every change of level of every benchmark.
pub fn moved(timelines: &[Timeline]) -> Vec<Member<'_>> {
    let mut found = Vec::new();
    for timeline in timelines {
        for (benchmark, history) in &timeline.benchmarks {
            for (metric, track) in &history.tracks {
                found.extend(track.moves().into_iter().map(|change| Member {
                    timeline,
                    benchmark,
                    metric,
                    change,
                }));
            }
        }
    }
    found
}

impl Site<'_> {
    /// Passes every file to `write`: its path, with `/` between the parts, and its content.
    ///
    /// # Errors
    /// Those of `write`.
    pub fn build<E>(
        &self,
        moved: &[Member<'_>],
        mut write: impl FnMut(&str, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self { timelines, unstable, repository, .. } = *self;
        write("assets/site.css", STYLE.as_bytes())?;
        write("assets/site.js", SCRIPT.as_bytes())?;
        write("index.html", self.overview(moved).as_bytes())?;
        write("compare.html", compare_page(timelines).as_bytes())?;
        for timeline in timelines {
            for (benchmark, history) in &timeline.benchmarks {
                let own = moved.iter().filter(|member| member.is_about(timeline, benchmark));
                let mut by_metric: Vec<(&str, Vec<Move>)> = Vec::new();
                for member in own {
                    match by_metric.iter_mut().find(|(metric, _)| *metric == member.metric) {
                        Some((_, moves)) => moves.push(member.change),
                        None => by_metric.push((member.metric, vec![member.change])),
                    }
                }
                let own_unstable = unstable.iter().find(|it| it.is_about(timeline, benchmark));
                let page = benchmark_page(timeline, benchmark, history, &by_metric, own_unstable, repository);
                write(&path(timeline, benchmark), page.as_bytes())?;
            }
            let (at, content) = index(timeline);
            write(&at, content.as_bytes())?;
            for (at, content) in sessions(timeline) {
                write(&at, content.as_bytes())?;
            }
        }
        Ok(())
    }
}
