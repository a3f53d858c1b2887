//! One snapshot for each captured file. Each snapshot was compared with its file before it was accepted.

use std::path::{Path, PathBuf};

use super::{describe, fixture_path};

use benchgate::ingest;
use benchgate::model::Run;

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if !path.ends_with("README.md") {
            found.push(path);
        }
    }
}

/// Reads every fixture that should be readable.
pub(crate) fn readable_fixtures() -> Vec<(String, Run)> {
    let root = fixture_path("");
    let mut found = Vec::new();
    files(&root, &mut found);
    found.sort();
    let read = |file: PathBuf| {
        let name = file.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        let run = ingest::read_detected(&std::fs::read(&file).unwrap(), &name).ok()?;
        Some((name, run))
    };
    found.into_iter().filter_map(read).collect()
}

#[test]
fn every_captured_file_is_read_to_the_numbers_in_it() {
    let root = fixture_path("");
    let mut found = Vec::new();
    files(&root, &mut found);
    found.sort();
    for file in &found {
        let name = file.strip_prefix(&root).unwrap().to_str().unwrap();
        let read = ingest::read_detected(&std::fs::read(file).unwrap(), name);
        let text = read.map_or_else(|error| format!("error: {error}\n"), |run| describe(&run));
        insta::with_settings!({ snapshot_path => "../snapshots/ingest", prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(name.replace('/', "__"), text);
        });
    }
    assert!(found.len() > 50, "the fixtures are gone");
}

#[test]
fn the_page_about_formats_names_what_convert_writes() {
    let page =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/formats.md")).unwrap();
    let names: Vec<&str> =
        <ingest::ExportFormat as strum::VariantArray>::VARIANTS.iter().map(Into::into).collect();
    let names = names.join("|");
    assert!(page.contains(&names), "docs/formats.md does not name {names}");
}
