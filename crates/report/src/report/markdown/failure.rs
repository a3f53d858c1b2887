//! The page if there is no comparison: a first run, or something that failed before it.

use crate::report::ResultSource;
use benchgate_core::model::Verdict;

use super::escape::{message, paragraph};
use super::source::footer;

/// The reason why there is no comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure<'a> {
    /// [`Verdict::Missing`] for a first run.
    pub verdict: Verdict,
    /// May quote anything.
    pub message: &'a str,
    pub hint: Option<&'a str>,
    pub source: Option<ResultSource>,
}

/// One sentence without anybody's words.
pub fn failure_headline(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Missing => "Missing: there is nothing to compare with yet.",
        _ => "Error: there is no verdict.",
    }
}

/// Renders it.
pub fn failure(failure: &Failure<'_>) -> String {
    let headline = failure_headline(failure.verdict);
    let (word, rest) = headline.split_once(": ").unwrap_or((headline, ""));
    let icon = super::icon(failure.verdict);
    let mut page = format!("### {icon} {word}\n\nNothing was judged: {rest}\n");
    page.push_str(&format!("\n{}\n", message(failure.message)));
    if let Some(hint) = failure.hint {
        page.push_str(&format!("\n{}\n", paragraph(hint)));
    }
    page.push_str(&footer(failure.source.as_ref(), false));
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_judged_is_not_said_to_have_been() {
        let source = ResultSource { commit: "2".repeat(40), pull_request: true, fork: true, page: None };
        let page = failure(&Failure {
            verdict: Verdict::Error,
            message: "failed to find a result",
            hint: Some("its log says why"),
            source: Some(source),
        });
        assert!(page.starts_with("### ⛔ Error\n\nNothing was judged: there is no verdict.\n"), "{page}");
        assert!(page.contains("about the code of a fork at `222222222222`"), "{page}");
        assert!(!page.contains("judged by"), "{page}");
    }
}
