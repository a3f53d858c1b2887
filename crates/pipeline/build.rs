//! Lists the export package's files for embedding, so that a new file needs no code.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The embedded package, relative to the manifest.
const PACKAGE: &str = "python/benchgate_export";

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join(PACKAGE);
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let mut files = Vec::new();
    collect(&root, "", &mut files)?;
    files.sort();
    let mut package = String::from("&[\n");
    for file in &files {
        let path = root.join(file);
        _ = writeln!(package, "    ({file:?}, include_str!({path:?})),");
    }
    package.push_str("]\n");
    fs::write(out.join("export_package.rs"), package)
}

/// Collects every Python file below `folder`, by its path in the package with `/` as separator. Folders are
/// watched too, so that a new file triggers a build.
fn collect(folder: &Path, prefix: &str, files: &mut Vec<String>) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() {
            if name != "__pycache__" {
                collect(&entry.path(), &format!("{prefix}{name}/"), files)?;
            }
        } else if name.ends_with(".py") {
            files.push(format!("{prefix}{name}"));
        }
    }
    Ok(())
}
