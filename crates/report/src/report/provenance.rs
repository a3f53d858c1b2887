//! States whose code was measured, because readers must know how far to trust the numbers. Also renders the
//! page for a run without a comparison: a first run, or a failure before it.
//!
//! Removes absolute values from reports if they are private; only ratios remain.

use benchgate_core::model::{Disclose, Verdict, short_commit};
use benchgate_gate::{Comparison, Reason, SideStats, Typical};

use super::document::{self, Block, Part, Text, icon};

/// The origin of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultSource {
    /// The commit that was proposed or pushed.
    pub commit: String,
    /// True if a pull request's own code did the measuring.
    pub pull_request: bool,
    /// True if the pull request comes from another repository.
    pub fork: bool,
    /// Address of the workflow run that measured, which is always in this repository.
    pub page: Option<String>,
}

/// Returns the warning above everything else, if the code came from outside.
pub(super) fn warning(source: Option<&ResultSource>) -> Option<Block<'_>> {
    let source = source.filter(|source| source.fork)?;
    let text =
        Text::from("These numbers come from the code of a fork, at ").name(short_commit(&source.commit));
    let text = text.say(". They were judged here, but untrusted code produced them.");
    Some(Block::Callout("NOTE", text))
}

/// Returns the last line, which claims no more than what happened.
pub(super) fn footer(source: Option<&ResultSource>, judged: bool) -> Option<Block<'_>> {
    let source = source?;
    let (before, after) = match (judged, source.pull_request) {
        (true, true) => ("measured by this pull request's own code at ", ", judged by the base's policy"),
        (true, false) => ("measured at ", ""),
        (false, _) if source.fork => ("about the code of a fork at ", ""),
        (false, true) => ("about this pull request's code at ", ""),
        (false, false) => ("about ", ""),
    };
    let text = Text::from(format!("benchgate {} · {before}", benchgate_core::VERSION));
    let text = text.name(short_commit(&source.commit)).say(after);
    Some(Block::Small(match &source.page {
        Some(page) => text.say(" · ").with(Part::Link("run", page.into())),
        None => text,
    }))
}

/// The reason why there is no comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure<'a> {
    /// [`Verdict::Missing`] for a first run.
    pub verdict: Verdict,
    /// Untrusted text, which may quote anything.
    pub message: &'a str,
    pub hint: Option<&'a str>,
    pub source: Option<ResultSource>,
}

/// Returns a sentence without any untrusted text.
pub fn failure_headline(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Missing => "Missing: there is nothing to compare with yet.",
        _ => "Error: there is no verdict.",
    }
}

/// Renders the failure as Markdown.
pub fn failure(failure: &Failure<'_>) -> String {
    let headline = failure_headline(failure.verdict);
    let (word, rest) = headline.split_once(": ").unwrap_or((headline, ""));
    let mut blocks = vec![
        Block::Title(Text::default().with(Part::Icon(icon(failure.verdict))).say(word)),
        Block::Prose(format!("Nothing was judged: {rest}").into()),
        Block::Prose(Text::message_of(failure.message)),
    ];
    blocks.extend(failure.hint.map(|hint| Block::Prose(hint.into())));
    blocks.extend(footer(failure.source.as_ref(), false));
    document::markdown(&blocks, usize::MAX)
}

/// Removes values from a comparison that must not be disclosed. Verdicts, changes, intervals and numbers of
/// samples stay.
pub fn withhold(comparison: &mut Comparison, disclose: Disclose) {
    if disclose == Disclose::All {
        return;
    }
    for row in &mut comparison.rows {
        for side in [&mut row.base, &mut row.head].into_iter().flatten() {
            *side = relative(side);
        }
        row.typical = Typical::WITHHELD;
        if let Some(alignment) = &mut row.alignment {
            alignment.reference = None;
        }
        if let Some(policy) = &mut row.policy {
            policy.floor.absolute = 0.0;
        }
        // Details contain measured values.
        for lint in &mut row.lints {
            lint.detail.clear();
        }
        match &mut row.reason {
            Reason::Unusable(lint) => lint.detail.clear(),
            Reason::Limit(reading) => reading.withhold(),
            _ => {}
        }
    }
    comparison.notes.push("Absolute values are withheld (`disclose`); only ratios are shown.".to_owned());
}

fn relative(side: &SideStats) -> SideStats {
    // Every field is listed, so that the compiler requires a decision about each new field.
    let &SideStats { processes, samples, cv, location: _, mean: _, min: _, max: _, stddev: _ } = side;
    let hidden = f64::NAN;
    SideStats {
        processes,
        samples,
        cv,
        location: hidden,
        mean: hidden,
        min: hidden,
        max: hidden,
        stddev: None,
    }
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
