//! Messages, comments, names and docs use plain technical English: some words are avoided everywhere.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Words to avoid, each with a better one.
const AVOIDED: &[(&str, &str)] = &[
    ("beside", "next to, in addition to"),
    ("dear", "expensive"),
    ("doubt", "question, uncertainty"),
    ("dull", "small, constant"),
    ("farewell", "message"),
    ("journey", "transfer, run of git"),
    ("journeys", "transfers, runs of git"),
    ("loan", "temporary acceptance"),
    ("loans", "temporary acceptances"),
    ("nobody", "no program, no user"),
    ("somebody", "another process, a user"),
    ("stranger", "fork, untrusted user"),
    ("strangers", "forks, untrusted users"),
    ("told", "reported, distinguished"),
    ("travel", "be part of, be transferred"),
    ("travels", "is part of, is transferred"),
    ("weather", "conditions"),
    ("whoever", "the user who, anyone who"),
];

/// Modules of `src/` and documents that still contain avoided words. Remove a name once it is clean; add none.
const EXCEPTIONS: &[&str] = &["src/gate"];

/// Data that was written by others, and this file, which lists the words.
const SKIPPED: &[&str] = &["tests/fixtures", "tests/wording.rs"];

/// Text files below a folder, or the file itself. The scripts in `.ci` and the Dockerfile have no extension.
fn texts(path: &Path, found: &mut Vec<PathBuf>) {
    if SKIPPED.iter().any(|skipped| path.ends_with(skipped)) {
        return;
    }
    if path.is_dir() {
        let mut entries: Vec<PathBuf> =
            std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for entry in entries {
            texts(&entry, found);
        }
    } else if path.extension().is_none_or(|extension| {
        ["rs", "py", "md", "yml", "toml", "sh", "mjs"]
            .iter()
            .any(|known| extension.eq_ignore_ascii_case(known))
    }) {
        found.push(path.to_owned());
    }
}

/// `file:line: word` of each avoided word, by module or document.
fn found() -> BTreeMap<String, Vec<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for name in [
        "src",
        "docs",
        "docker",
        "examples",
        "python/benchgate_backends",
        "python/benchgate_export",
        "python/tests",
        "python/README.md",
        "tests",
        "benches",
        "fuzz/fuzz_targets",
        "fuzz/src",
        "fuzz/README.md",
        ".ci",
        ".github",
        "build.rs",
        "Cargo.toml",
        "clippy.toml",
        "deny.toml",
        "action.yml",
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "CHANGELOG.md",
    ] {
        texts(&root.join(name), &mut files);
    }
    assert!(files.len() > 200, "only {} files were found", files.len());
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in files {
        let name = file.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        // A module is a folder or file of `src/`; elsewhere each file counts on its own.
        let place = match name.strip_prefix("src/").and_then(|inside| inside.split('/').next()) {
            Some(module) => format!("src/{}", module.trim_end_matches(".rs")),
            None => name.clone(),
        };
        let text = std::fs::read_to_string(&file).unwrap();
        for (at, line) in text.lines().enumerate() {
            // The name of a field in stored files stays as it is.
            if line.trim_start().starts_with("#[serde(rename = \"") {
                continue;
            }
            for word in line.split(|letter: char| !letter.is_ascii_alphabetic()) {
                if let Some((avoided, better)) =
                    AVOIDED.iter().find(|(avoided, _)| word.eq_ignore_ascii_case(avoided))
                {
                    let entry = format!("{name}:{}: {avoided:?}; better: {better}", at + 1);
                    found.entry(place.clone()).or_default().push(entry);
                }
            }
        }
    }
    found
}

#[test]
fn avoided_words_do_not_spread() {
    let found = found();
    let new: Vec<&String> = found
        .iter()
        .filter(|(place, _)| !EXCEPTIONS.contains(&place.as_str()))
        .flat_map(|(_, all)| all)
        .collect();
    assert!(
        new.is_empty(),
        "avoided words:\n{}",
        new.iter().map(|s| s.as_str()).collect::<Vec<_>>().join("\n")
    );
    let clean: Vec<_> = EXCEPTIONS.iter().filter(|place| !found.contains_key(**place)).collect();
    assert!(clean.is_empty(), "remove from EXCEPTIONS in tests/wording.rs, they are clean now: {clean:?}");
}
