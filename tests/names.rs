//! A name says which type is meant wherever it stands, and a function's name says what it returns.

use std::collections::BTreeMap;
use std::path::Path;

use super::circles::without_test_items;

/// The file and the code of each file of `src/` that is not test code, without comments.
fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    super::rust_files(&root.join("src"), &mut files);
    files.sort();
    let name = |file: &Path| file.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
    let mut sources: Vec<(String, String)> = Vec::new();
    for (file, name) in files.iter().map(|file| (file, name(file))) {
        let is_test = |part: &str| part == "tests" || part.ends_with("_tests");
        if name.trim_end_matches(".rs").split('/').any(is_test) {
            continue;
        }
        let code = without_test_items(&std::fs::read_to_string(file).unwrap());
        let code = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        sources.push((name, code.collect::<Vec<_>>().join("\n")));
    }
    assert!(sources.len() > 200, "only {} files were read", sources.len());
    sources
}

/// The type that a line defines. An indented `type` belongs to a trait, and its name is the trait's choice.
fn defined_type(line: &str) -> Option<&str> {
    let mut words = line
        .split_whitespace()
        .skip_while(|word| word.starts_with("pub") || word.ends_with(')') || *word == "unsafe");
    let keyword = words.next()?;
    let defines = match keyword {
        "struct" | "enum" | "trait" | "union" => true,
        "type" => !line.starts_with(' '),
        _ => false,
    };
    let name = words.next().filter(|_| defines)?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    name[..end].starts_with(char::is_uppercase).then(|| &name[..end])
}

#[test]
fn no_two_types_share_a_name() {
    let sources = sources();
    let mut files: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (file, code) in &sources {
        for name in code.lines().filter_map(defined_type) {
            files.entry(name).or_default().push(file);
        }
    }
    assert!(files.len() > 500, "only {} types were found", files.len());
    let shared = files.iter().filter(|(_, files)| files.len() > 1);
    let shared: Vec<String> = shared.map(|(name, files)| format!("{name}: {}", files.join(", "))).collect();
    assert!(
        shared.is_empty(),
        "types that share a name; give all but the most general one a longer name:\n{}",
        shared.join("\n")
    );
}

#[test]
fn a_function_says_what_it_returns() {
    let sources = sources();
    let is_of = |code: &str| super::words_after(code, "fn ").any(|name| name == "of");
    let files: Vec<&str> =
        sources.iter().filter(|(_, code)| is_of(code)).map(|(file, _)| file.as_str()).collect();
    assert!(files.is_empty(), "name each function `of` for what it returns:\n{}", files.join("\n"));
}

#[test]
fn every_way_to_define_a_type_is_seen() {
    let lines = [
        ("pub struct Row {", Some("Row")),
        ("pub(super) struct Cell<'a>(&'a str);", Some("Cell")),
        ("    pub enum Word: \"word\" {", Some("Word")),
        ("pub(in crate::ingest) trait Reader: Sized {", Some("Reader")),
        ("pub type Block = Vec<Row>;", Some("Block")),
        ("    type Item = Row;", None),
        ("        pub enum $type { A }", None),
        ("let structure = 1;", None),
    ];
    for (line, name) in lines {
        assert_eq!(defined_type(line), name, "{line}");
    }
}
