//! The result of a bisection, as a comment on the alert about the benchmark that was searched for.

use crate::github::{self, Client, CommentRequest, GitHubError, Job, Marker};
use crate::record::BisectionFile;
use crate::report;
use crate::site::{self, Action, AlertPlan, IssueTrace, KnownIssue, Timeline};

pub struct Bisection<'a> {
    pub file: &'a BisectionFile,
    /// The job that comments; in a workflow, its run is also the search's.
    pub job: Option<&'a Job>,
}

/// The issue that is commented on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommentTarget {
    /// The issue of this action of the plan, which may not have a number yet.
    Action(usize),
    /// An issue that the plan leaves unchanged.
    Issue(u64),
}

/// Room for the link below the result.
const LINK_BYTES: usize = 1000;

impl Bisection<'_> {
    /// The issue about the benchmark that stays open; the newest of several.
    pub fn target(
        &self,
        timelines: &[Timeline],
        plan: &AlertPlan<'_>,
        known: &[KnownIssue],
    ) -> Option<CommentTarget> {
        let suite = timelines.iter().filter(|timeline| timeline.suite == self.file.suite);
        let keys: Vec<String> = suite.map(|timeline| site::key(timeline, &self.file.benchmark)).collect();
        let is_about = |trace: &IssueTrace| trace.members.iter().any(|member| keys.contains(member));
        let changed = plan.actions.iter().enumerate().filter_map(|(at, action)| {
            let (number, trace) = match action {
                Action::Open { trace, .. } => (u64::MAX, trace),
                Action::Update { number, trace, .. } | Action::Reopen { number, trace, .. } => {
                    (*number, trace)
                }
                Action::Close { .. } => return None,
            };
            is_about(trace).then_some((number, CommentTarget::Action(at)))
        });
        let acted_on = |wanted: u64| {
            plan.actions.iter().any(|action| match action {
                Action::Open { .. } => false,
                Action::Update { number, .. }
                | Action::Reopen { number, .. }
                | Action::Close { number, .. } => *number == wanted,
            })
        };
        let left =
            known.iter().filter(|issue| issue.open && is_about(&issue.trace) && !acted_on(issue.number));
        let left = left.map(|issue| (issue.number, CommentTarget::Issue(issue.number)));
        changed.chain(left).max_by_key(|(number, _)| *number).map(|(_, target)| target)
    }

    /// The action for it, in words.
    pub fn said(&self, target: Option<CommentTarget>) -> String {
        let name = report::clean(&self.file.benchmark);
        match target {
            Some(CommentTarget::Issue(number)) => format!("link the bisection of {name} on #{number}"),
            Some(CommentTarget::Action(_)) => format!("link the bisection of {name} on its issue"),
            None => format!("link nothing: no open issue is about the bisected {name}"),
        }
    }

    /// Comments on an issue; the same benchmark's earlier comment is replaced.
    pub async fn comment(&self, client: &Client, issue: u64, author: &str) -> Result<(), GitHubError> {
        let Some(job) = self.job else { return Ok(()) };
        let text = report::bisection_markdown(self.file, github::COMMENT_BYTES - LINK_BYTES);
        let body = format!("{text}\n[The run]({}) of this search.\n", job.run_page());
        let marker =
            Marker::new(&format!("bisection of {} in {}", self.file.benchmark, self.file.suite), job.attempt);
        let request =
            CommentRequest { pull_request: issue, marker: &marker, body: &body, create: true, author };
        client.comment(&request).await.map(drop)
    }
}
