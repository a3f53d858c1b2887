//! The result of one check of `doctor`, and the output of all results.

use crate::model::counted;
use serde::Serialize;

use crate::report::{TerminalOptions, harmless, paragraph};

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingLevel {
    /// The check found no problem.
    Ok,
    /// Information. No action is needed unless it is unexpected.
    Note,
    /// Measurements work, but they take longer or are less reliable than they could be.
    Warning,
    /// Measurements and publications can't be trusted until this is fixed.
    Error,
}

impl FindingLevel {
    const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }

    const fn color(self) -> Option<anstyle::Style> {
        let color = match self {
            Self::Ok | Self::Note => return None,
            Self::Warning => anstyle::AnsiColor::Yellow,
            Self::Error => anstyle::AnsiColor::Red,
        };
        Some(anstyle::Style::new().fg_color(Some(anstyle::Color::Ansi(color))))
    }
}

/// The result of a check: the observation, its consequence and the fix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// A stable identifier in kebab case, by which scripts can filter.
    pub id: &'static str,
    pub level: FindingLevel,
    /// The observation on one line without a full stop, such as `load average 1.9 on 2 processors`.
    pub what: String,
    /// The consequence; empty for `ok`.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub why: &'static str,
    /// The fix; empty if there is nothing to do.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub fix: &'static str,
}

impl Finding {
    /// A check that found no problem.
    pub fn ok(id: &'static str, what: impl Into<String>) -> Self {
        Self { id, level: FindingLevel::Ok, what: what.into(), why: "", fix: "" }
    }

    pub fn note(id: &'static str, what: impl Into<String>, why: &'static str, fix: &'static str) -> Self {
        Self { id, level: FindingLevel::Note, what: what.into(), why, fix }
    }

    pub fn warning(id: &'static str, what: impl Into<String>, why: &'static str, fix: &'static str) -> Self {
        Self { id, level: FindingLevel::Warning, what: what.into(), why, fix }
    }

    pub fn error(id: &'static str, what: impl Into<String>, why: &'static str, fix: &'static str) -> Self {
        Self { id, level: FindingLevel::Error, what: what.into(), why, fix }
    }
}

/// All findings, for each of the two halves of `doctor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    pub schema: &'static str,
    pub benchgate: &'static str,
    pub machine: Vec<Finding>,
    pub repository: Vec<Finding>,
}

impl Diagnosis {
    pub fn new(machine: Vec<Finding>, repository: Vec<Finding>) -> Self {
        Self { schema: "benchgate/doctor/v1", benchgate: benchgate_core::VERSION, machine, repository }
    }

    fn count(&self, level: FindingLevel) -> usize {
        self.machine.iter().chain(&self.repository).filter(|finding| finding.level == level).count()
    }

    pub fn has_errors(&self) -> bool {
        self.count(FindingLevel::Error) > 0
    }

    /// The findings as JSON, for programs.
    pub fn json(&self) -> String {
        // Every key and value is text, so serializing can't fail.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// The findings as text for people: one line each, with the reason and the fix below it if there are any.
    pub fn text(&self, options: TerminalOptions) -> String {
        let width = usize::from(options.width);
        let mut text = String::new();
        for (half, findings) in [("machine", &self.machine), ("repository", &self.repository)] {
            if findings.is_empty() {
                continue;
            }
            text.push_str(&format!("{half}\n"));
            for finding in findings {
                let word = finding.level.word();
                let first = format!("  {word:<8} ");
                let what =
                    paragraph(&format!("{}: {}", finding.id, harmless(&finding.what)), width, &first, BELOW);
                // Colors are added after wrapping, because their codes have no width.
                text.push_str(&match finding.level.color().filter(|_| options.color) {
                    Some(color) => what.replacen(word, &format!("{color}{word}{color:#}"), 1),
                    None => what,
                });
                text.push('\n');
                for (label, sentence) in [("why", finding.why), ("fix", finding.fix)] {
                    if !sentence.is_empty() {
                        let first = format!("{BELOW}{label}: ");
                        text.push_str(&paragraph(sentence, width, &first, &format!("{BELOW}     ")));
                        text.push('\n');
                    }
                }
            }
        }
        let (errors, warnings) = (self.count(FindingLevel::Error), self.count(FindingLevel::Warning));
        let conclusion = match (errors, warnings) {
            (0, 0) => "Ready to measure.".to_owned(),
            (0, _) => format!("Ready to measure; {} above.", counted(warnings, "warning")),
            (_, 0) => format!("Not ready: fix {} first.", counted(errors, "error")),
            _ => {
                let (errors, warnings) = (counted(errors, "error"), counted(warnings, "warning"));
                format!("Not ready: fix {errors} first; there are {warnings} as well.")
            }
        };
        text.push_str(&format!("{conclusion}\n"));
        text
    }
}

/// Indentation of the lines below a finding.
const BELOW: &str = "             ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_shown_with_its_reason_and_its_fix() {
        let bad = Finding::error("host-lock", "held by 7", "It waits.", "Wait.");
        let diagnosis = Diagnosis::new(vec![Finding::ok("cpu", "fine"), bad], Vec::new());
        insta::assert_snapshot!(diagnosis.text(TerminalOptions::default()), @r"
        machine
          ok       cpu: fine
          error    host-lock: held by 7
                     why: It waits.
                     fix: Wait.
        Not ready: fix 1 error first.
        ");
        assert!(diagnosis.has_errors());
    }
}
