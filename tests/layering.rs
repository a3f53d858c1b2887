//! The arrows of the house as a test: a room may name only the rooms below it.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod circles;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Room → rooms it may name with `crate::`. Arrows within a level are listed one by one.
const ARROWS: &[(&str, &[&str])] = &[
    ("exit_code", &["model"]),
    ("model", &[]),
    ("stats", &["model"]),
    ("numerics", &["model"]),
    ("record", &["model"]),
    ("ingest", &["model", "record"]),
    ("gate", &["model", "exit_code", "stats", "numerics"]),
    ("fleet", &["model", "stats", "record", "gate"]),
    ("config", &["model", "numerics", "ingest", "gate", "files"]),
    ("report", &["model", "exit_code", "gate", "record"]),
    ("site", &["model", "stats", "record", "report", "files"]),
    ("files", &["model"]),
    ("process", &["model"]),
    ("device", &["model", "process", "files"]),
    ("toolchain", &["model", "config", "process", "files"]),
    ("git", &["model", "process", "files"]),
    ("github", &["model", "config"]),
    ("store", &["model", "record", "gate", "stats", "git", "process", "files"]),
    (
        "pipeline",
        &[
            "model",
            "exit_code",
            "stats",
            "numerics",
            "record",
            "ingest",
            "gate",
            "config",
            "process",
            "device",
            "toolchain",
            "git",
            "files",
        ],
    ),
    (
        "cli",
        &[
            "model",
            "exit_code",
            "stats",
            "numerics",
            "record",
            "ingest",
            "gate",
            "config",
            "report",
            "process",
            "device",
            "toolchain",
            "git",
            "github",
            "store",
            "site",
            "pipeline",
            "files",
            "fleet",
        ],
    ),
];

/// Crate → rooms that may name it. Every crate has few, named homes.
const HOMES: &[(&str, &[&str])] = &[
    ("statrs", &["stats"]),
    ("octocrab", &["github"]),
    ("serde_saphyr", &["cli", "github"]),
    ("reqwest", &["github", "toolchain"]),
    ("git2", &["git"]),
    ("comfy_table", &["report"]),
    ("resvg", &["report"]),
    ("clap", &["cli"]),
    ("csv", &["ingest", "report"]),
    ("flate2", &["ingest"]),
    ("ruzstd", &["ingest"]),
    ("tokio", &["process", "device", "github", "pipeline", "cli", "toolchain", "store"]),
    ("object_store", &["store"]),
    ("parquet", &["record"]),
    ("indicatif", &["cli"]),
    ("toml_span", &["config", "toolchain"]),
    ("nix", &["process", "device", "files"]),
    ("half", &["numerics"]),
    ("shlex", &["cli", "config"]),
    ("walkdir", &["files"]),
    ("nvml_wrapper", &["device"]),
    ("tar", &["pipeline"]),
    ("maud", &["site"]),
    ("ring", &["github"]),
];

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// Room name → (file, code without comments) of each of its files.
fn rooms() -> BTreeMap<String, Vec<(PathBuf, String)>> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&src, &mut files);
    let mut rooms: BTreeMap<String, Vec<(PathBuf, String)>> = BTreeMap::new();
    for file in files {
        let inside = file.strip_prefix(&src).unwrap();
        let room = inside.components().next().unwrap().as_os_str().to_str().unwrap();
        let room = room.trim_end_matches(".rs").to_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        let code: String =
            text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
        rooms.entry(room).or_default().push((file, code));
    }
    rooms
}

/// The identifiers that follow `prefix` in `code`, at a word boundary.
fn words_after<'a>(code: &'a str, prefix: &'a str) -> impl Iterator<Item = &'a str> + 'a {
    code.match_indices(prefix).filter_map(move |(at, _)| {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
            return None;
        }
        let rest = &code[at + prefix.len()..];
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        Some(&rest[..end])
    })
}

#[test]
fn every_room_names_only_rooms_below_it() {
    let arrows: BTreeMap<_, _> = ARROWS.iter().copied().collect();
    let mut wrong = Vec::new();
    for (room, files) in rooms() {
        if matches!(room.as_str(), "lib" | "main") {
            continue;
        }
        let Some(allowed) = arrows.get(room.as_str()) else {
            wrong.push(format!("{room} is not in the table of arrows"));
            continue;
        };
        for (file, code) in files {
            for prefix in ["crate::", "benchgate::"] {
                for named in words_after(&code, prefix) {
                    if named != room && !allowed.contains(&named) {
                        wrong.push(format!("{}: {room} names {named}", file.display()));
                    }
                }
            }
            assert!(!code.contains("use crate::{"), "{}: one `use crate::room` a line", file.display());
        }
    }
    assert!(wrong.is_empty(), "arrows that don't point down:\n{}", wrong.join("\n"));
}

#[test]
fn every_crate_is_named_only_in_its_homes() {
    let mut wrong = Vec::new();
    for (room, files) in rooms() {
        for (file, code) in files {
            for (name, homes) in HOMES {
                let path = format!("{name}::");
                if code.contains(&path)
                    && words_after(&code, &path).next().is_some()
                    && !homes.contains(&room.as_str())
                {
                    wrong.push(format!("{}: {room} names the crate {name}", file.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "crates away from home:\n{}", wrong.join("\n"));
}
