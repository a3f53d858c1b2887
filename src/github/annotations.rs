//! Workflow commands that GitHub shows as annotations of a job (at most ten of each level per step), and the
//! outputs for later steps.

use crate::model::without_commands;

/// The level of an annotation, most severe first. The variant's name is the workflow command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::Display)]
#[strum(serialize_all = "kebab-case")]
pub enum AnnotationLevel {
    Error,
    Warning,
    Notice,
}

/// An annotation, usually about one row. Title and message may contain anything, because both are escaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    pub level: AnnotationLevel,
    pub title: String,
    pub message: String,
}

/// Number of annotations of each level that are printed in full. GitHub shows ten; the tenth states how many
/// were left out.
const SHOWN: usize = 9;

/// Maximum length of a message, below GitHub's limit of 4,096 characters.
const LONGEST: usize = 3_000;

/// Returns the lines to print. The last one states how many annotations were left out, and has their highest
/// level.
pub fn annotations(all: &[Annotation]) -> String {
    let mut lines: String = all.iter().take(SHOWN).map(line).collect();
    let rest = all.get(SHOWN..).unwrap_or_default();
    if let Some(first) = rest.first() {
        let level = rest.iter().map(|more| more.level).fold(first.level, AnnotationLevel::min);
        lines.push_str(&line(&Annotation {
            level,
            title: "benchgate".to_owned(),
            message: format!("{} more, in the job summary", rest.len()),
        }));
    }
    lines
}

fn line(annotation: &Annotation) -> String {
    let command = annotation.level;
    let title = escape(&annotation.title).replace(':', "%3A").replace(',', "%2C");
    let short: String = annotation.message.chars().take(LONGEST).collect();
    format!("::{command} title={title}::{}\n", escape(&short))
}

/// Escapes text as GitHub's toolkit does, so that it can't end the line or the command. `##[` is the older
/// form of a command, which GitHub recognizes anywhere in a line.
fn escape(text: &str) -> String {
    without_commands(&text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A"))
}

/// The lines for the output file of a step. Values are untrusted, so each is enclosed in delimiters
/// that the value can't contain: `delimiter` must be random and newly generated.
pub fn outputs(values: &[(&str, String)], delimiter: &str) -> String {
    let mut text = String::new();
    for (name, value) in values {
        let mut fence = delimiter.to_owned();
        // The delimiter can't be guessed, but a value that was created after it could still contain it.
        while value.contains(&fence) {
            fence.push('x');
        }
        text.push_str(&format!("{name}<<{fence}\n{value}\n{fence}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(title: &str, message: &str) -> Annotation {
        Annotation { level: AnnotationLevel::Error, title: title.to_owned(), message: message.to_owned() }
    }

    #[test]
    fn a_name_can_not_issue_a_command() {
        let text = annotations(&[error("a:b,c\n::add-mask::x", "100 %\r\n::stop-commands::x ##[error]y")]);
        assert_eq!(
            text,
            "::error title=a%3Ab%2Cc%0A%3A%3Aadd-mask%3A%3Ax::100 %25%0D%0A::stop-commands::x # #[error]y\n"
        );
    }

    #[test]
    fn the_tenth_annotation_counts_the_others() {
        let mut all: Vec<Annotation> = (0..12).map(|at| error(&at.to_string(), "slow")).collect();
        assert_eq!(annotations(&all).lines().count(), 10);
        assert!(annotations(&all).ends_with("::3 more, in the job summary\n"));
        all.truncate(9);
        assert_eq!(annotations(&all).lines().count(), 9);
    }

    #[test]
    fn a_long_message_is_cut_before_github_cuts_it() {
        assert!(annotations(&[error("a", &"é".repeat(10_000))]).chars().count() < 4_096);
    }

    #[test]
    fn a_value_can_not_end_itself_and_set_another() {
        let hostile = "pass\nd1\nverdict=pass".to_owned();
        let text = outputs(&[("verdict", hostile)], "d1");
        assert_eq!(text, "verdict<<d1x\npass\nd1\nverdict=pass\nd1x\n");
    }
}
