//! The Python of the backends, compiled into the binary so that the two can't drift apart.

use std::path::PathBuf;

use super::super::PipelineError;
use super::super::cache::{Cache, package_digest};

const KIND: &str = "backends";

macro_rules! package {
    ($($file:literal),+ $(,)?) => {
        &[$(($file, include_str!(concat!("../../../python/benchgate_backends/", $file)))),+]
    };
}

/// The package from `python/`.
#[derive(Debug, Clone, Copy)]
pub struct BackendsSource;

impl BackendsSource {
    /// File name and content.
    pub const FILES: &[(&str, &str)] = package![
        "__init__.py",
        "__main__.py",
        "after.py",
        "case.py",
        "graphs.py",
        "main.py",
        "memory.py",
        "onnx_backend.py",
        "profiling.py",
        "protocol.py",
        "reference.py",
        "timing.py",
        "torch_backends.py",
        "xla_backend.py",
    ];

    pub(super) fn digest() -> String {
        package_digest(KIND, Self::FILES)
    }

    /// Writes it into the cache. Returns the folder to import it from.
    pub(super) fn install(cache: &Cache) -> Result<PathBuf, PipelineError> {
        cache.install(KIND, "benchgate_backends", Self::FILES)
    }
}
