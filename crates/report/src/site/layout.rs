//! The layout that all pages share. Nothing that a content security policy forbids is inline: styles and the script
//! are files, and data is a block that no browser runs.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::report::clean;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'none'";

/// A whole page. `root` leads from it to the top of the site.
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

/// A name that may come from anyone: harmless letters only, and its direction ends with it.
pub fn name(text: &str) -> Markup {
    html! { bdi { (clean(text)) } }
}

/// A block of data that the script reads.
pub fn data(id: &str, value: &serde_json::Value) -> Markup {
    // Inside a script element only `<` could end it or begin a comment.
    let text = value.to_string().replace('<', "\\u003c");
    html! { script type="application/json" id=(id) { (PreEscaped(text)) } }
}

/// Part of a page that may be wider than a phone's screen.
pub fn wide(label: &str, content: &Markup) -> Markup {
    html! { div.wide role="region" aria-label=(label) tabindex="0" { (content) } }
}

/// The first digits of a commit.
pub fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}
