//! The outcome of a push. git exits with the same code for a lost race and for a rule of the server, so this module parses
//! its report (`--porcelain`). libgit2's `push` would report both as success.

use crate::process::Finished;

/// How a push ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PushOutcome {
    Done,
    /// Another writer pushed first; fetch and try again.
    LostRace,
    /// A rule of the server forbids it; trying again is useless.
    Refused(String),
    /// There was no response about the ref.
    Failed,
}

/// Messages of git and common servers that mean a lost race.
const RACES: [&str; 8] = [
    "fetch first",
    "non-fast-forward",
    "stale info",
    "cannot lock ref",
    "failed to update ref",
    "incorrect old value",
    "reference already exists",
    "failed to lock",
];

pub(super) fn push_outcome(finished: &Finished) -> PushOutcome {
    let report = String::from_utf8_lossy(&finished.stdout);
    // `!\t<from>:<to>\t[remote rejected] (why)`
    if let Some(line) = report.lines().find(|line| line.starts_with("!\t")) {
        let summary = line.rsplit('\t').next().unwrap_or(line);
        if RACES.iter().any(|race| summary.contains(race)) {
            return PushOutcome::LostRace;
        }
        let said = finished.stderr_tail.lines().filter_map(|line| line.trim().strip_prefix("remote: "));
        let said: Vec<&str> = said.map(str::trim).filter(|line| !line.is_empty()).take(3).collect();
        let why =
            if said.is_empty() { summary.to_owned() } else { format!("{summary}: {}", said.join("; ")) };
        return PushOutcome::Refused(why);
    }
    let answered =
        report.lines().any(|line| matches!(line.as_bytes(), [b' ' | b'*' | b'=' | b'+', b'\t', ..]));
    if finished.exit.is_success() && answered { PushOutcome::Done } else { PushOutcome::Failed }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::process::{Exit, Finished};

    use super::{PushOutcome, push_outcome};

    fn finished(exit: Exit, stdout: &str, stderr: &str) -> Finished {
        Finished {
            exit,
            wall: Duration::ZERO,
            user: Duration::ZERO,
            system: Duration::ZERO,
            peak_memory_bytes: None,
            stdout: stdout.as_bytes().to_vec(),
            stdout_truncated: false,
            stderr_tail: stderr.to_owned(),
            leftovers: 0,
            memory_ran_out: false,
            opened: None,
        }
    }

    #[test]
    fn a_lost_race_and_a_server_rule_are_distinguished() {
        let race = "To u\n!\ta:refs/heads/b\t[rejected] (fetch first)\nDone\n";
        assert_eq!(push_outcome(&finished(Exit::Code(1), race, "")), PushOutcome::LostRace);
        let rule = "To u\n!\ta:refs/heads/b\t[remote rejected] (protected branch hook declined)\nDone\n";
        let refused =
            push_outcome(&finished(Exit::Code(1), rule, "remote: GH006: Protected branch.        \n"));
        let why = "[remote rejected] (protected branch hook declined): GH006: Protected branch.";
        assert_eq!(refused, PushOutcome::Refused(why.to_owned()));
    }

    #[test]
    fn success_requires_a_response_about_the_ref() {
        assert_eq!(push_outcome(&finished(Exit::Success, "Done\n", "")), PushOutcome::Failed);
        let done = "To u\n*\ta:refs/heads/b\t[new branch]\nDone\n";
        assert_eq!(push_outcome(&finished(Exit::Success, done, "")), PushOutcome::Done);
        assert_eq!(push_outcome(&finished(Exit::Code(128), "", "fatal: x")), PushOutcome::Failed);
    }
}
