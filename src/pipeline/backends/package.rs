//! The Python of the backends, compiled into the binary so that the two can't drift apart.

use std::fs;
use std::path::PathBuf;

use super::super::PipelineError;
use super::super::cache::{KeyBuilder, Lookup};
use super::super::prepare::Context;

const NAME: &str = "benchgate_backends";

macro_rules! package {
    ($($file:literal),+ $(,)?) => {
        &[$(($file, include_str!(concat!("../../../python/benchgate_backends/", $file)))),+]
    };
}

/// The package, as it lies in `python/`.
#[derive(Debug, Clone, Copy)]
pub struct BackendsSource;

impl BackendsSource {
    /// File name and content.
    pub const FILES: &[(&str, &str)] = package![
        "__init__.py",
        "__main__.py",
        "case.py",
        "dumps.py",
        "main.py",
        "memory.py",
        "onnx_backend.py",
        "protocol.py",
        "reference.py",
        "timing.py",
        "torch_backends.py",
        "xla_backend.py",
    ];

    pub(super) fn digest() -> String {
        let key = KeyBuilder::new("backends/1");
        Self::FILES.iter().fold(key, |key, (name, content)| key.text(name, content)).finish()
    }
}

/// Writes the package into the cache, once per version of benchgate. Returns the folder to import from.
pub(super) fn install(context: &Context<'_>) -> Result<PathBuf, PipelineError> {
    let key = BackendsSource::digest();
    if let Lookup::Hit(entry) = context.cache.lookup("backends", &key)? {
        return Ok(entry.folder);
    }
    let staged = context.cache.stage()?;
    let folder = staged.path().join(NAME);
    fs::create_dir(&folder).map_err(PipelineError::io("create", &folder))?;
    let mut files = Vec::new();
    for (name, content) in BackendsSource::FILES {
        let path = folder.join(name);
        fs::write(&path, content).map_err(PipelineError::io("write", &path))?;
        files.push(format!("{NAME}/{name}"));
    }
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    Ok(context.cache.store("backends", &key, staged, &files, serde_json::Value::Null)?.folder)
}
