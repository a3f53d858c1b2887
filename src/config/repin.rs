//! Replaces the IREE release in the text of a configuration and leaves everything else unchanged.

use toml_span::Value;

/// The text with this version and commit in `[toolchain]`. `None` if there is no such table with a version.
pub fn repinned(text: &str, version: &str, commit: &str) -> Option<String> {
    let document = toml_span::parse(text).ok()?;
    let place = |key: &str| {
        let value = document.pointer(&format!("/toolchain/{key}"))?;
        let known = value.as_str()?.to_owned();
        let Value { span, .. } = value;
        // The span may include the quotes.
        let at = span.start + text.get(span.start..span.end)?.find(&known)?;
        Some(at..at + known.len())
    };
    let at_version = place("version")?;
    let mut edits = vec![(at_version.clone(), version.to_owned())];
    match place("commit") {
        Some(at) => edits.push((at, commit.to_owned())),
        None => {
            let end = at_version.end + text[at_version.end..].find('\n')?;
            edits.push((end..end, format!("\ncommit = \"{commit}\"")));
        }
    }
    edits.sort_by_key(|(at, _)| std::cmp::Reverse(at.start));
    let mut changed = text.to_owned();
    edits.into_iter().for_each(|(at, new)| changed.replace_range(at, &new));
    Some(changed)
}

#[cfg(test)]
mod tests {
    use super::repinned;

    #[test]
    fn only_the_release_and_its_commit_change() {
        let text = "# 3.1.0 \n[suite]\nname = \"3.1.0\"\n\n[toolchain]\nversion = \"3.1.0\" # newest\ncommit = \"aa\"\n";
        let changed = repinned(text, "3.12.0", "bb").unwrap();
        assert_eq!(
            changed,
            text.replace("version = \"3.1.0\"", "version = \"3.12.0\"").replace("\"aa\"", "\"bb\"")
        );
        let without = "[toolchain]\nversion = '3.1.0'\n";
        assert_eq!(
            repinned(without, "3.2.0", "cc").as_deref(),
            Some("[toolchain]\nversion = '3.2.0'\ncommit = \"cc\"\n")
        );
        assert_eq!(repinned("[suite]\nname = \"a\"\n", "3.2.0", "cc"), None);
    }
}
