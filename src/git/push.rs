//! What a push came to. git ends with the same code for a lost race and for a rule of the server, so its
//! report (`--porcelain`) is read; libgit2's `push` would even call both a success.

use crate::process::Finished;

/// How a push ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Push {
    Done,
    /// Somebody else pushed first; theirs must be fetched.
    Outrun,
    /// The server has a rule against it; trying again changes nothing.
    Refused(String),
    /// It did not get as far as an answer.
    Failed,
}

/// Reasons that mean a lost race, as git and the usual servers word them.
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

pub(super) fn refusal(finished: &Finished) -> Push {
    let report = String::from_utf8_lossy(&finished.stdout);
    // `!\t<from>:<to>\t[remote rejected] (why)`
    if let Some(line) = report.lines().find(|line| line.starts_with("!\t")) {
        let summary = line.rsplit('\t').next().unwrap_or(line);
        if RACES.iter().any(|race| summary.contains(race)) {
            return Push::Outrun;
        }
        let said = finished.stderr_tail.lines().filter_map(|line| line.trim().strip_prefix("remote: "));
        let said: Vec<&str> = said.map(str::trim).filter(|line| !line.is_empty()).take(3).collect();
        let why =
            if said.is_empty() { summary.to_owned() } else { format!("{summary}: {}", said.join("; ")) };
        return Push::Refused(why);
    }
    let answered =
        report.lines().any(|line| matches!(line.as_bytes(), [b' ' | b'*' | b'=' | b'+', b'\t', ..]));
    if finished.exit.is_success() && answered { Push::Done } else { Push::Failed }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::process::{Exit, Finished};

    use super::{Push, refusal};

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
        }
    }

    #[test]
    fn a_lost_race_is_told_from_a_rule() {
        let race = "To u\n!\ta:refs/heads/b\t[rejected] (fetch first)\nDone\n";
        assert_eq!(refusal(&finished(Exit::Code(1), race, "")), Push::Outrun);
        let rule = "To u\n!\ta:refs/heads/b\t[remote rejected] (protected branch hook declined)\nDone\n";
        let refused = refusal(&finished(Exit::Code(1), rule, "remote: GH006: Protected branch.        \n"));
        let why = "[remote rejected] (protected branch hook declined): GH006: Protected branch.";
        assert_eq!(refused, Push::Refused(why.to_owned()));
    }

    #[test]
    fn success_needs_an_answer_about_the_ref() {
        assert_eq!(refusal(&finished(Exit::Success, "Done\n", "")), Push::Failed);
        let done = "To u\n*\ta:refs/heads/b\t[new branch]\nDone\n";
        assert_eq!(refusal(&finished(Exit::Success, done, "")), Push::Done);
        assert_eq!(refusal(&finished(Exit::Code(128), "", "fatal: x")), Push::Failed);
    }
}
