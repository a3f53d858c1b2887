//! No two files import each other, directly or around a corner: a circle of files can only be understood,
//! changed and tested as one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A module by its path below the crate: `["gate", "noise"]`.
type Module = Vec<String>;

struct Source {
    file: PathBuf,
    code: String,
}

/// The text without each item that `#[cfg(test)]` stands before, such as `mod tests;` or `mod tests { … }`. rustfmt ends
/// an item on a line that is indented like its first one.
pub(super) fn without_test_items(text: &str) -> String {
    let mut kept = Vec::new();
    let mut test_item: Option<usize> = None;
    for line in text.lines() {
        let code = line.trim();
        let indentation = line.len() - line.trim_start().len();
        match test_item {
            Some(start) if start == indentation && code.ends_with([';', '}', ',']) => test_item = None,
            Some(_) => {}
            None if code == "#[cfg(test)]" => test_item = Some(indentation),
            None => kept.push(line),
        }
    }
    assert!(test_item.is_none(), "the end of a test item was not found");
    kept.join("\n")
}

/// Every module of the crate with its file, without comments and without unit tests.
fn modules() -> BTreeMap<Module, Source> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    super::rust_files(&src, &mut files);
    let module = |file: &Path| {
        let inside = file.strip_prefix(&src).unwrap().with_extension("");
        let mut path: Module = inside.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
        if path.last().is_some_and(|last| last == "mod") {
            path.pop();
        }
        path
    };
    let code = |file: &Path| {
        let text = std::fs::read_to_string(file).unwrap();
        without_test_items(&text)
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .collect::<Vec<_>>()
            .join("\n")
    };
    files.into_iter().map(|file| (module(&file), Source { code: code(&file), file })).collect()
}

/// The paths of a `use` tree: `a::{b, c::{d, e}}` is `a::b`, `a::c::d` and `a::c::e`.
fn expanded(tree: &str, prefix: &[String], found: &mut Vec<Module>) {
    let tree = tree.trim();
    let (head, rest) = match tree.find('{') {
        Some(open) if tree.ends_with('}') => (&tree[..open], Some(&tree[open + 1..tree.len() - 1])),
        _ => (tree.split(" as ").next().unwrap_or_default(), None),
    };
    let segments = head.split("::").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned);
    let path: Module = prefix.iter().cloned().chain(segments).collect();
    let Some(inner) = rest else {
        found.push(path);
        return;
    };
    let (mut depth, mut start) = (0, 0);
    for (at, character) in inner.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expanded(&inner[start..at], &path, found);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !inner[start..].trim().is_empty() {
        expanded(&inner[start..], &path, found);
    }
}

/// `use` statements of a file: whether each re-exports, and its paths.
fn uses(code: &str) -> Vec<(bool, Vec<Module>)> {
    let mut found = Vec::new();
    let mut statement = String::new();
    for line in code.lines() {
        let begins = ["use ", "pub use ", "pub(crate) use ", "pub(super) use "];
        if !statement.is_empty() || begins.iter().any(|begin| line.trim_start().starts_with(begin)) {
            statement.push_str(line.trim());
        }
        if statement.ends_with(';') {
            let text = statement.trim_end_matches(';');
            let (visibility, tree) = text.split_once("use ").unwrap_or_default();
            let mut paths = Vec::new();
            expanded(tree, &[], &mut paths);
            found.push((!visibility.is_empty(), paths));
            statement.clear();
        }
    }
    found
}

/// Paths that begin with `super::` or `crate::` anywhere in the code.
fn inline(code: &str) -> Vec<Module> {
    let end = |c: char| !(c.is_alphanumeric() || c == '_' || c == ':');
    let paths = ["super::", "crate::"].into_iter().flat_map(|start| {
        code.match_indices(start).filter_map(move |(at, _)| {
            let before = code[..at].chars().next_back();
            let inside = before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':');
            (!inside).then(|| code[at..].split(end).next().unwrap_or_default())
        })
    });
    paths.map(|path| path.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect()).collect()
}

/// What each module re-exports: the name, and the path it was imported by.
type Faces = BTreeMap<Module, BTreeMap<String, Module>>;

/// The module that defines what a path names, following re-exports.
fn home(from: &Module, path: &Module, modules: &BTreeMap<Module, Source>, faces: &Faces) -> Option<Module> {
    follow(from, path, modules, faces, &mut BTreeSet::new())
}

/// As [`home`]. A name that leads back to itself (`pub(crate) use own_macro;`) is defined where it stands.
fn follow(
    from: &Module,
    path: &Module,
    modules: &BTreeMap<Module, Source>,
    faces: &Faces,
    seen: &mut BTreeSet<(Module, Module)>,
) -> Option<Module> {
    if !seen.insert((from.clone(), path.clone())) {
        return Some(from.clone());
    }
    let mut at = from.clone();
    let mut relative = false;
    for segment in path {
        match segment.as_str() {
            "crate" => (at, relative) = (Vec::new(), true),
            "super" => {
                at.pop();
                relative = true;
            }
            "self" => relative = true,
            name => {
                let mut child = at.clone();
                child.push(name.to_owned());
                if modules.contains_key(&child) {
                    at = child;
                } else if let Some(handed) = faces.get(&at).and_then(|face| face.get(name)) {
                    return follow(&at, handed, modules, faces, seen);
                } else {
                    break;
                }
                relative = true;
            }
        }
    }
    (relative && modules.contains_key(&at)).then_some(at)
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let modules = modules();
    let mut faces = Faces::new();
    for (module, source) in &modules {
        let handed =
            uses(&source.code).into_iter().filter(|(public, _)| *public).flat_map(|(_, paths)| paths);
        let names = handed.filter_map(|path| Some((path.last()?.clone(), path)));
        faces.insert(module.clone(), names.collect());
    }
    let mut arrows: BTreeMap<&Module, BTreeSet<Module>> = BTreeMap::new();
    for (module, source) in &modules {
        let own = uses(&source.code).into_iter().filter(|(public, _)| !public).flat_map(|(_, paths)| paths);
        let named = own.chain(inline(&source.code));
        let targets = named.filter_map(|path| home(module, &path, &modules, &faces));
        arrows.insert(module, targets.filter(|target| target != module).collect());
    }
    let reached = |from: &Module| {
        let (mut seen, mut waiting) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(module) = waiting.pop() {
            let next = arrows.get(&module).into_iter().flatten();
            waiting.extend(next.filter(|target| seen.insert((*target).clone())).cloned());
        }
        seen
    };
    let reach: BTreeMap<&Module, BTreeSet<Module>> =
        modules.keys().map(|module| (module, reached(module))).collect();
    let mut circles: BTreeSet<Vec<String>> = BTreeSet::new();
    for module in modules.keys().filter(|module| reach[module].contains(*module)) {
        let circle =
            modules.keys().filter(|other| reach[module].contains(*other) && reach[other].contains(module));
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let file = |module: &Module| modules[module].file.strip_prefix(root).unwrap().display().to_string();
        circles.insert(circle.map(file).collect());
    }
    assert!(modules.len() > 200, "only {} modules were read", modules.len());
    assert!(circles.is_empty(), "files that import each other: {circles:#?}");
}

#[test]
fn only_the_test_item_itself_is_left_out() {
    let method =
        ["    #[cfg(test)]", "    #[must_use]", "    fn new() -> Self {", "        Self {}", "    }"];
    let module = ["#[cfg(test)]", "mod tests {", "    use super::b;", "}"];
    let lines = [&["#[cfg(test)]", "mod tests;", "pub use a::A;", "impl A {"][..], &method, &["}"], &module];
    let text = format!("{}\npub use b::B;", lines.concat().join("\n"));
    assert_eq!(without_test_items(&text), "pub use a::A;\nimpl A {\n}\npub use b::B;");
}

#[test]
fn a_file_that_reexports_its_own_name_is_its_home() {
    let path = |text: &str| text.split("::").map(str::to_owned).collect::<Module>();
    let file = || Source { file: PathBuf::new(), code: String::new() };
    let modules = BTreeMap::from([(path("words"), file()), (path("user"), file())]);
    let face = |own: &str| Faces::from([(path("words"), BTreeMap::from([("word".to_owned(), path(own))]))]);
    for own in ["word", "self::word", "crate::words::word"] {
        let home = home(&path("user"), &path("crate::words::word"), &modules, &face(own));
        assert_eq!(home, Some(path("words")), "{own}");
    }
}
