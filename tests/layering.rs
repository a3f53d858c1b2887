//! Layers within the root package; those of `crates/` are checked by the compiler, because a crate can't import a crate
//! that depends on it.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};

/// Lowest first: a module may name itself and the modules before it.
const LAYERS: [&str; 3] = ["toolchain", "pipeline", "cli"];

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn a_module_names_only_modules_of_lower_layers() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let modules =
        std::fs::read_dir(&src).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let mut found =
        modules.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect::<Vec<_>>();
    found.sort_by_key(|module| LAYERS.iter().position(|layer| layer == module));
    assert_eq!(found, LAYERS);

    for (level, module) in LAYERS.iter().enumerate() {
        let mut files = Vec::new();
        rust_files(&src.join(module), &mut files);
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            for higher in &LAYERS[level + 1..] {
                let import = format!("crate::{higher}::");
                let line = text
                    .lines()
                    .position(|line| !line.trim_start().starts_with("//") && line.contains(&import));
                assert_eq!(line, None, "{module} imports {higher} in {} (line from 0)", file.display());
            }
        }
    }
}
