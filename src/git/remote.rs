//! Where a data branch lives and how `git` is started towards it. The token travels in the environment
//! of that one program, from which a credential helper hands it to git when the server asks: it is in no
//! argument, no URL and no configuration file.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use crate::process::{Command, Exit, Finished};

use super::GitError;

/// One journey. A listing of years is a megabyte or two; what takes longer than this is stuck.
const JOURNEY: Duration = Duration::from_secs(120);
/// The variable that carries the token to the helper.
const VARIABLE: &str = "BENCHGATE_GIT_TOKEN";
/// Answers git's question for credentials (gitcredentials(7)). `printf` is part of the shell, so the
/// token becomes no argument of a program.
const HELPER: &str = "!f() { test \"$1\" = get || exit 0; printf 'username=x-access-token\\npassword=%s\\n' \
                      \"$BENCHGATE_GIT_TOKEN\"; }; f";

/// A secret. It prints as a row of dots.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// `None` for an empty text, and for one that could be taken for more than one line.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty() && !text.contains(char::is_control)).then(|| Self(text.to_owned()))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// A remote repository.
#[derive(Debug, Clone)]
pub struct Remote {
    url: String,
    token: Option<Token>,
    /// What git needs of the caller's environment: proxies, certificates, the SSH agent.
    environment: Vec<(OsString, OsString)>,
}

impl Remote {
    /// A remote by its address. Without a token git uses what its user has set up.
    ///
    /// # Errors
    /// An address that carries a password: it would end in logs.
    pub fn new(
        url: &str,
        token: Option<Token>,
        environment: Vec<(OsString, OsString)>,
    ) -> Result<Self, GitError> {
        if url.starts_with('-') || url.contains(char::is_control) || url.is_empty() {
            return Err(GitError::BadUrl("it is no address".to_owned()));
        }
        if url.starts_with("http") && authority(url).contains('@') {
            let why = "it carries credentials; keep them in the environment or in git's credential helper";
            return Err(GitError::BadUrl(why.to_owned()));
        }
        Ok(Self { url: url.to_owned(), token, environment })
    }

    /// The address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// `git` with these arguments in a repository.
    pub(super) fn command(&self, repository: &Path, arguments: Vec<OsString>) -> Command {
        let mut command = Command::new("git", JOURNEY).args(arguments).cwd(repository).capture_stdout();
        for (name, value) in &self.environment {
            command = command.env(name, value);
        }
        for (at, (key, value)) in self.settings().iter().enumerate() {
            command =
                command.env(format!("GIT_CONFIG_KEY_{at}"), key).env(format!("GIT_CONFIG_VALUE_{at}"), value);
        }
        command = command
            .env("GIT_CONFIG_COUNT", self.settings().len().to_string())
            .env("GIT_DIR", repository)
            .env("GIT_TERMINAL_PROMPT", "0")
            // Reading the listing must never set off a journey for each file of it.
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("LC_ALL", "C");
        match &self.token {
            Some(Token(token)) => command.env(VARIABLE, token),
            None => command,
        }
    }

    /// Settings that hold for this one program, over those of files.
    fn settings(&self) -> Vec<(String, String)> {
        let mut settings: Vec<(String, String)> = [
            ("protocol.version", "2"),
            // A user's own hooks are about their work.
            ("core.hooksPath", "/dev/null"),
            ("gc.auto", "0"),
            ("maintenance.auto", "false"),
            ("push.gpgSign", "false"),
            ("push.followTags", "false"),
            // A line that died is noticed long before the journey's own limit.
            ("http.lowSpeedLimit", "1"),
            ("http.lowSpeedTime", "30"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .to_vec();
        if self.token.is_some() {
            // An empty helper forgets all others: none of them is to see or keep this token. Scoped to the
            // address's own host, so that a redirection elsewhere gets nothing.
            settings.push(("credential.helper".to_owned(), String::new()));
            settings.push(("core.askPass".to_owned(), String::new()));
            settings.push((format!("credential.{}.helper", origin(&self.url)), HELPER.to_owned()));
        }
        settings
    }

    /// Why a journey failed, in git's own words where there are no better ones.
    pub(super) fn failure(&self, verb: &'static str, finished: &Finished) -> GitError {
        let url = self.url.clone();
        let text = self.without_token(&finished.stderr_tail);
        let says = |needles: &[&str]| needles.iter().any(|needle| text.contains(needle));
        if finished.exit == Exit::TimedOut {
            return GitError::Unreachable { verb, url, why: "no answer within two minutes".to_owned() };
        }
        let why = last_line(&text);
        if says(&[
            "Authentication failed",
            "could not read Username",
            "could not read Password",
            " 401",
            " 403",
        ]) {
            let given =
                if self.token.is_some() { "the token that was given" } else { "no token was given, and git" };
            return GitError::Credentials { verb, url, given, why };
        }
        if says(&[
            "Could not resolve",
            "Failed to connect",
            "Connection refused",
            "Couldn't connect",
            "timed out",
            "Operation too slow",
            "early EOF",
            "hung up unexpectedly",
            "Empty reply",
            "Recv failure",
            " 500",
            " 502",
            " 503",
            " 504",
        ]) {
            return GitError::Unreachable { verb, url, why };
        }
        GitError::RemoteFailed { verb, url, why }
    }

    /// A server could echo what it was sent.
    fn without_token(&self, text: &str) -> String {
        match &self.token {
            Some(Token(token)) => text.replace(token.as_str(), "…"),
            None => text.to_owned(),
        }
    }
}

/// What stands between the scheme and the path.
fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest)
}

/// Scheme, host and port.
fn origin(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, _)) => format!("{scheme}://{}", authority(url)),
        None => url.to_owned(),
    }
}

/// The last thing git said about what went wrong.
fn last_line(text: &str) -> String {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let fatal = lines().rev().find_map(|line| line.strip_prefix("fatal: "));
    fatal.or_else(|| lines().next_back()).unwrap_or("git said nothing").to_owned()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Remote, Token};

    const SECRET: &str = "ghs_0123456789abcdef";

    #[test]
    fn the_token_is_in_the_environment_of_git_and_nowhere_else() {
        let token = Token::new(SECRET);
        let remote = Remote::new("https://example.org/a/b.git", token, Vec::new()).unwrap();
        let command = remote.command(Path::new("/tmp"), vec!["fetch".into(), "store".into()]);
        assert!(!format!("{remote:?} {command:?} {command}").contains(SECRET));
        assert!(!remote.settings().iter().any(|(key, value)| key.contains(SECRET) || value.contains(SECRET)));
        let carriers = command.env.values().filter(|value| value.to_string_lossy().contains(SECRET));
        assert_eq!(carriers.count(), 1);
    }

    #[test]
    fn a_token_goes_to_its_own_host_only() {
        let remote = Remote::new("https://example.org:8443/a/b.git", Token::new(SECRET), Vec::new()).unwrap();
        let keys: Vec<String> = remote.settings().into_iter().map(|(key, _)| key).collect();
        assert!(keys.contains(&"credential.https://example.org:8443.helper".to_owned()), "{keys:?}");
    }

    #[test]
    fn an_address_with_a_password_is_refused_without_repeating_it() {
        let error = Remote::new("https://x:hunter2@example.org/a.git", None, Vec::new()).unwrap_err();
        assert!(!error.to_string().contains("hunter2"));
        assert!(Remote::new("--upload-pack=x", None, Vec::new()).is_err());
        assert!(Remote::new("git@example.org:a/b.git", None, Vec::new()).is_ok());
    }

    #[test]
    fn a_token_of_two_lines_is_none() {
        assert_eq!(Token::new("a\nquit=1"), None);
        assert_eq!(Token::new("  \n"), None);
        assert!(Token::new("abc\n").is_some());
    }
}
