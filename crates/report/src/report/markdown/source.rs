//! Whose code was measured: a reader has to know how far to trust the numbers.

use super::escape::code;

/// The origin of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultSource {
    /// The commit that was proposed or pushed.
    pub commit: String,
    /// The code of a pull request measured itself.
    pub pull_request: bool,
    /// It belongs to another repository.
    pub fork: bool,
    /// Address of the run that measured; always of this repository.
    pub page: Option<String>,
}

impl ResultSource {
    fn short(&self) -> String {
        code(self.commit.get(..12).unwrap_or(&self.commit))
    }
}

/// The warning at the top if the code came from a fork.
pub(super) fn warning(source: Option<&ResultSource>) -> String {
    match source {
        Some(source) if source.fork => format!(
            "\n> [!NOTE]\n> These numbers come from the code of a fork, at {}. They were judged here, but untrusted \
            code produced them.\n",
            source.short()
        ),
        _ => String::new(),
    }
}

/// The last line. It claims no more than has happened.
pub(super) fn footer(source: Option<&ResultSource>, judged: bool) -> String {
    let Some(source) = source else { return String::new() };
    let commit = source.short();
    let whose = match (judged, source.pull_request) {
        (true, true) => {
            format!("measured by this pull request's own code at {commit}, judged by the base's policy")
        }
        (true, false) => format!("measured at {commit}"),
        (false, _) if source.fork => format!("about the code of a fork at {commit}"),
        (false, true) => format!("about this pull request's code at {commit}"),
        (false, false) => format!("about {commit}"),
    };
    let page = source.page.as_ref().map(|page| format!(" · [run]({page})")).unwrap_or_default();
    format!("\n<sub>benchgate {} · {whose}{page}</sub>\n", benchgate_core::VERSION)
}
