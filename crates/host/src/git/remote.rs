//! The remote of a data branch, and how `git` is started for it. The token is passed to git only in its
//! environment, where a credential helper reads it when the server asks for it. It never appears in an
//! argument, URL or configuration file.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use crate::process::{Command, Finished};

use super::GitError;

/// Time limit for one git command. A listing of several years has one or two megabytes; a transfer that takes
/// longer is stuck.
const GIT_TIMEOUT: Duration = Duration::from_secs(120);
/// The environment variable that passes the token to the helper.
const VARIABLE: &str = "BENCHGATE_GIT_TOKEN";
/// Credential helper (gitcredentials(7)). `printf` is a shell builtin, so the token is never an argument of a
/// program.
const HELPER: &str = "!f() { test \"$1\" = get || exit 0; printf 'username=x-access-token\\npassword=%s\\n' \
                      \"$BENCHGATE_GIT_TOKEN\"; }; f";

/// An access token. Its Debug output hides the value.
#[derive(Clone, PartialEq, Eq)]
pub struct GitToken(String);

impl GitToken {
    /// Wraps a token. `None` if the text is empty or contains control characters, such as a line break.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty() && !text.contains(char::is_control)).then(|| Self(text.to_owned()))
    }
}

impl fmt::Debug for GitToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[derive(Debug, Clone)]
pub struct Remote {
    url: String,
    token: Option<GitToken>,
    /// Variables that git needs from the caller's environment: proxies, certificates, the SSH agent.
    environment: Vec<(OsString, OsString)>,
}

impl Remote {
    /// Creates a remote from its URL. Without a token, git uses the user's own credentials.
    ///
    /// # Errors
    /// The URL is invalid or contains a password, which would appear in logs.
    pub fn new(
        url: &str,
        token: Option<GitToken>,
        environment: Vec<(OsString, OsString)>,
    ) -> Result<Self, GitError> {
        if url.starts_with('-') || url.contains(char::is_control) || url.is_empty() {
            return Err(GitError::BadUrl("it is not a valid URL".to_owned()));
        }
        if url.starts_with("http") && authority(url).contains('@') {
            let why = "it contains credentials; keep them in the environment or in git's credential helper";
            return Err(GitError::BadUrl(why.to_owned()));
        }
        Ok(Self { url: url.to_owned(), token, environment })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// The `git` command with these arguments in a repository.
    pub(super) fn command(&self, repository: &Path, arguments: Vec<OsString>) -> Command {
        let mut command = Command::new("git", GIT_TIMEOUT).args(arguments).cwd(repository).capture_stdout();
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
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            // Without this, reading the listing would fetch each of its files separately.
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("LC_ALL", "C");
        match &self.token {
            Some(GitToken(token)) => command.env(VARIABLE, token),
            None => command,
        }
    }

    /// Settings for this command only, which override configuration files.
    fn settings(&self) -> Vec<(String, String)> {
        let mut settings: Vec<(String, String)> = [
            ("protocol.version", "2"),
            // The user's hooks are not meant for these commits.
            ("core.hooksPath", "/dev/null"),
            ("gc.auto", "0"),
            ("maintenance.auto", "false"),
            ("push.gpgSign", "false"),
            ("push.followTags", "false"),
            // Detects a dead connection long before GIT_TIMEOUT.
            ("http.lowSpeedLimit", "1"),
            ("http.lowSpeedTime", "30"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .to_vec();
        if self.token.is_some() {
            // An empty helper removes all others, so that none of them can see or store this token. Ours is limited to the
            // URL's host, so that a redirection to another host gets no token.
            settings.push(("credential.helper".to_owned(), String::new()));
            settings.push(("core.askPass".to_owned(), String::new()));
            settings.push((format!("credential.{}.helper", origin(&self.url)), HELPER.to_owned()));
        }
        settings
    }

    /// The error for a failed git command; it contains git's own message unless the cause is known.
    pub(super) fn failure(&self, verb: &'static str, finished: &Finished) -> GitError {
        let url = self.url.clone();
        let text = self.without_token(&finished.stderr_tail);
        let says = |needles: &[&str]| needles.iter().any(|needle| text.contains(needle));
        if finished.exit.is_timeout() {
            return GitError::Unreachable { verb, url, why: finished.exit.to_string() };
        }
        let why = last_line(&text);
        let status = http_status(&text);
        if matches!(status, Some(401 | 403))
            || says(&["Authentication failed", "could not read Username", "could not read Password"])
        {
            let given = if self.token.is_some() {
                "the given token"
            } else {
                "git's own credentials, because no token was given"
            };
            return GitError::Credentials { verb, url, given, why };
        }
        let busy = matches!(status, Some(500 | 502 | 503 | 504));
        if busy
            || says(&[
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
            ])
        {
            return GitError::Unreachable { verb, url, why };
        }
        GitError::RemoteFailed { verb, url, why }
    }

    /// Removes the token from a text, because a server could echo it.
    fn without_token(&self, text: &str) -> String {
        match &self.token {
            Some(GitToken(token)) => text.replace(token.as_str(), "…"),
            None => text.to_owned(),
        }
    }
}

/// The part of a URL between its scheme and its path.
fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest)
}

/// The scheme, host and port of a URL.
fn origin(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, _)) => format!("{scheme}://{}", authority(url)),
        None => url.to_owned(),
    }
}

/// The HTTP status that git printed. It is read after the words of git and curl only, because a port or an object name can
/// contain the same digits.
fn http_status(text: &str) -> Option<u16> {
    ["returned error: ", "HTTP "].into_iter().find_map(|words| {
        let (_, rest) = text.rsplit_once(words)?;
        let number = rest.split(|letter: char| !letter.is_ascii_digit()).next()?;
        number.parse().ok().filter(|status| (100..600).contains(status))
    })
}

/// The last error line that git printed.
pub(super) fn last_line(text: &str) -> String {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let fatal = lines().rev().find_map(|line| line.strip_prefix("fatal: "));
    fatal.or_else(|| lines().next_back()).unwrap_or("git printed no message").to_owned()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{GitToken, Remote, http_status};

    const SECRET: &str = "ghs_0123456789abcdef";

    #[test]
    fn the_token_is_in_the_environment_of_git_and_nowhere_else() {
        let token = GitToken::new(SECRET);
        let remote = Remote::new("https://example.org/a/b.git", token, Vec::new()).unwrap();
        let command = remote.command(Path::new("/tmp"), vec!["fetch".into(), "store".into()]);
        assert!(!format!("{remote:?} {command:?} {command}").contains(SECRET));
        assert!(!remote.settings().iter().any(|(key, value)| key.contains(SECRET) || value.contains(SECRET)));
        let carriers = command.env.values().filter(|value| value.to_string_lossy().contains(SECRET));
        assert_eq!(carriers.count(), 1);
    }

    #[test]
    fn a_token_goes_to_its_own_host_only() {
        let remote =
            Remote::new("https://example.org:8443/a/b.git", GitToken::new(SECRET), Vec::new()).unwrap();
        let keys: Vec<String> = remote.settings().into_iter().map(|(key, _)| key).collect();
        assert!(keys.contains(&"credential.https://example.org:8443.helper".to_owned()), "{keys:?}");
    }

    #[test]
    fn a_url_with_a_password_is_rejected_and_not_repeated() {
        let error = Remote::new("https://x:hunter2@example.org/a.git", None, Vec::new()).unwrap_err();
        assert!(!error.to_string().contains("hunter2"));
        assert!(Remote::new("--upload-pack=x", None, Vec::new()).is_err());
        assert!(Remote::new("git@example.org:a/b.git", None, Vec::new()).is_ok());
    }

    #[test]
    fn a_status_is_not_read_from_a_port() {
        let refused = "fatal: unable to access 'http://127.0.0.1:40311/r.git/': Failed to connect to 127.0.0.1 port 40311";
        assert_eq!(http_status(refused), None);
        let forbidden =
            "fatal: unable to access 'http://h:50311/r.git/': The requested URL returned error: 403\n";
        assert_eq!(http_status(forbidden), Some(403));
        let busy = "error: RPC failed; HTTP 502 curl 22 The requested URL returned error: 502";
        assert_eq!(http_status(busy), Some(502));
    }

    #[test]
    fn a_token_with_a_line_break_is_rejected() {
        assert_eq!(GitToken::new("a\nquit=1"), None);
        assert_eq!(GitToken::new("  \n"), None);
        assert!(GitToken::new("abc\n").is_some());
    }
}
