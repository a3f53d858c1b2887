//! The identity of the tools that compiled and ran a benchmark.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tools as they identified themselves after installation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Toolchain {
    /// The version that was pinned, for example `3.13.0`.
    pub version: String,
    /// The commit that `iree-compile --version` printed.
    pub compiler_commit: String,
    /// The commit that the runtime's own version file names.
    pub runtime_commit: String,
    /// How it was obtained: `pypi`, `url` or `path`.
    pub source: String,
}
