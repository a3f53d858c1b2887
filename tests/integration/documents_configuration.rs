//! Checks that benchgate can read the configurations in the documents.

use std::path::Path;

use serde_json::Value;

use crate::documents::documents;

fn toml_blocks(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim_start() == "```toml" {
            let block = lines.by_ref().take_while(|line| line.trim_start() != "```");
            blocks.push(block.collect::<Vec<_>>().join("\n"));
        }
    }
    blocks
}

/// A block of a document, completed with the required tables of a suite.
fn completed(block: &str) -> String {
    const COMMIT: &str = "0123456789012345678901234567890123456789";
    let mut whole = format!("{}\n", block.replace("\"…\"", &format!("\"{COMMIT}\"")));
    for (table, needed) in [
        ("[suite]", "name = \"s\"".to_owned()),
        ("[toolchain]", format!("version = \"3.13.0\"\ncommit = \"{COMMIT}\"")),
        ("[[model]]", "name = \"m\"\nsource = \"m.mlir\"".to_owned()),
        ("[[target]]", "name = \"t\"\nbackend = \"llvm-cpu\"".to_owned()),
    ] {
        if !block.lines().any(|line| line.starts_with(table)) {
            whole.push_str(&format!("{table}\n{needed}\n"));
        }
    }
    whole
}

#[test]
fn every_configuration_that_the_documents_show_is_one() {
    let mut seen = 0;
    for (name, text) in documents() {
        for block in toml_blocks(&text) {
            let whole = completed(&block);
            if let Err(problems) = benchgate::config::parse(&whole, Path::new(&name)) {
                panic!("{name} shows a configuration that can't be used: {problems}\n{whole}");
            }
            seen += 1;
        }
    }
    assert!(seen >= 10, "only {seen} blocks were found");
}

/// The schema of the table with the header `[a.b]` or `[[a.b]]`.
fn table<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    name.trim_matches(['[', ']']).split('.').try_fold(schema, |table, part| {
        let inner = match table.pointer(&format!("/properties/{part}")) {
            Some(inner) => inner,
            // The suite chooses this name.
            None => table.get("additionalProperties").filter(|inner| inner.is_object())?,
        };
        Some(inner.get("items").unwrap_or(inner))
    })
}

/// The `key` and the `[table]` of each sentence that says that the key is in the table.
fn placed_keys(text: &str) -> Vec<(String, String)> {
    let parts: Vec<&str> = text.split('`').collect();
    let is_table = |part: &str| part.starts_with('[') && part.ends_with(']') && !part.contains([' ', '"']);
    let mut found = Vec::new();
    for at in (3..parts.len()).step_by(2).filter(|at| is_table(parts[*at])) {
        let between = parts[at - 1].split_whitespace().collect::<Vec<_>>().join(" ");
        if !["in", "of", "(", "(in"].contains(&between.as_str()) {
            continue;
        }
        // There may be several keys before the table: `a`, `b` and `c` in `[table]`.
        let mut key = at - 2;
        loop {
            let name = parts[key].split('=').next().unwrap_or_default().trim();
            found.push((name.to_owned(), parts[at].to_owned()));
            if key < 3 || ![",", "and", "or"].contains(&parts[key - 1].trim()) {
                break;
            }
            key -= 2;
        }
    }
    found
}

#[test]
fn a_key_is_in_the_table_that_the_documents_say() {
    let schema: Value = serde_json::from_str(&benchgate::config::json_schema()).unwrap();
    let mut wrong = Vec::new();
    let mut seen = 0;
    // The changelog contains old names of keys.
    for (name, text) in documents().into_iter().filter(|(name, _)| name != "CHANGELOG.md") {
        for (key, place) in placed_keys(&text) {
            seen += 1;
            if table(&schema, &place).is_none_or(|table| table["properties"].get(&key).is_none()) {
                wrong.push(format!("{name}: `{key}` in `{place}`"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen >= 5, "only {seen} places were found");
    let misplaced = placed_keys("Set `disclose = \"ratios\"` in `[github]`.");
    assert_eq!(misplaced, [("disclose".to_owned(), "[github]".to_owned())]);
    assert!(table(&schema, "[github]").unwrap()["properties"].get("disclose").is_none());
}
