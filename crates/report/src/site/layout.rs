//! Layout, file names and addresses for all pages. Pages contain nothing inline that a content
//! security policy would forbid: styles and the script are files, and data is a block that no
//! browser executes.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::report::clean;
use benchgate_core::model::{digest_of, is_commit};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'none'";

/// Returns a whole page. `root` is the relative path from the page to the top of the site.
pub fn page(title: &str, root: &str, body: &Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="referrer" content="no-referrer";
                link rel="icon" href="data:,";
                title { (clean(title)) " · benchgate" }
                link rel="stylesheet" href=(format!("{root}assets/site.css"));
                script src=(format!("{root}assets/site.js")) {}
            }
            body data-root=(root) {
                a.skip href="#content" { "Skip to content" }
                header {
                    nav aria-label="Site" {
                        a href=(format!("{root}index.html")) { "Overview" }
                        a href=(format!("{root}compare.html")) { "Compare sessions" }
                    }
                }
                main id="content" tabindex="-1" { (body) }
                footer { p { "Written by benchgate " (benchgate_core::VERSION) ". Times are UTC." } }
            }
        }
    }
    .into_string()
}

/// Renders an untrusted name. Hidden characters are replaced, and the text direction of the name
/// does not affect the text after it.
pub fn name(text: &str) -> Markup {
    html! { bdi { (clean(text)) } }
}

/// Returns a block of data that the script reads.
pub fn data(id: &str, value: &serde_json::Value) -> Markup {
    // Inside a script element, only `<` could end it or begin a comment.
    let text = value.to_string().replace('<', "\\u003c");
    html! { script type="application/json" id=(id) { (PreEscaped(text)) } }
}

/// Renders a part of a page that may be wider than a phone's screen.
pub fn wide(label: &str, content: &Markup) -> Markup {
    html! { div.wide role="region" aria-label=(label) tabindex="0" { (content) } }
}

// File names and addresses. Suites and benchmarks may have any name. The file names made from them are plain,
// differ even if case is ignored, and never lead out of the folder.

/// Maximum number of letters of a name that are kept in a file's name, so that people recognize it.
const KEPT: usize = 48;
/// Number of digits of the hash: no two names of one site share them by chance.
const DIGITS: usize = 12;

/// Returns a file name for these names together.
pub fn slug(names: &[&str]) -> String {
    let mut text = String::new();
    for letter in names.iter().flat_map(|name| name.chars().chain(['-'])) {
        let letter = if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
        if !(letter == '-' && (text.is_empty() || text.ends_with('-'))) {
            text.push(letter);
        }
        if text.len() == KEPT {
            break;
        }
    }
    let digest = digest_of(names);
    format!("{}-{}", text.trim_end_matches('-'), &digest[..DIGITS]).trim_start_matches('-').to_owned()
}

/// Address of a repository's commits, on GitHub or on a similar server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryUrl(String);

impl RepositoryUrl {
    /// Parses `https://github.com/OWNER/REPO`, or the same address as git writes it. Other addresses have no
    /// pages to link to.
    pub fn parse(url: &str) -> Option<Self> {
        let url = url.trim().trim_end_matches('/').trim_end_matches(".git");
        let url = match url.strip_prefix("git@").and_then(|rest| rest.split_once(':')) {
            Some((host, path)) => format!("https://{host}/{path}"),
            None => url.to_owned(),
        };
        let rest = url.strip_prefix("https://")?;
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-._~/:".contains(letter);
        // A user name or a password in an address must not be published.
        (rest.split('/').filter(|part| !part.is_empty()).count() == 3 && rest.chars().all(plain))
            .then_some(Self(url))
    }

    /// Returns the page of a commit; `None` if the text is not a commit.
    pub fn commit(&self, commit: &str) -> Option<String> {
        is_commit(commit).then(|| format!("{}/commit/{commit}", self.0))
    }

    /// Returns the page that compares two commits.
    pub fn compare(&self, from: &str, to: &str) -> Option<String> {
        (is_commit(from) && is_commit(to)).then(|| format!("{}/compare/{from}...{to}", self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::{RepositoryUrl, slug};

    #[test]
    fn names_that_differ_only_in_case_or_in_what_is_cut_have_different_files() {
        let names =
            ["Vit/gpu", "vit/GPU", "vit-gpu", "../../vit/gpu", "", "\u{202e}", "a\0b", &"x".repeat(300)];
        let slugs: std::collections::BTreeSet<String> = names.iter().map(|name| slug(&[name])).collect();
        assert_eq!(slugs.len(), names.len());
        for slug in &slugs {
            let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            assert!(slug.bytes().all(plain) && slug.len() < 70 && !slug.starts_with('-'), "{slug}");
        }
        assert_ne!(slug(&["a", "bc"]), slug(&["ab", "c"]));
    }

    #[test]
    fn only_a_plain_https_address_of_a_repository_is_linked() {
        let expected = Some("https://github.com/o/r/commit/0123456789".to_owned());
        for url in ["https://github.com/o/r", "https://github.com/o/r.git", "git@github.com:o/r.git"] {
            assert_eq!(RepositoryUrl::parse(url).unwrap().commit("0123456789"), expected, "{url}");
        }
        for url in
            ["javascript:alert(1)", "https://user:secret@github.com/o/r", "http://github.com/o/r", "/srv/r"]
        {
            assert_eq!(RepositoryUrl::parse(url), None, "{url}");
        }
        let repository = RepositoryUrl::parse("https://github.com/o/r").unwrap();
        assert_eq!(repository.commit("../x"), None);
    }
}
