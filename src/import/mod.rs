//! L2: the definitions of other projects' test suites as a configuration. Reads no file itself: it takes the text of
//! the definitions, and returns the configuration and everything of them that it does not hold.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod definition;
mod onnx_ops;
mod remote;
mod suite;
mod torch_models;

use std::collections::{BTreeMap, BTreeSet};

pub use definition::Untranslated;
pub use remote::FetchedFile;

use definition::Definition;
use remote::RemoteFiles;
use suite::ImportedSuite;

/// The files below a folder, by path relative to the configuration that is written. The text is there for the
/// definitions; of other files it is enough to know that they exist.
pub type SuiteFiles = BTreeMap<String, Option<String>>;

/// A configuration made of another project's definitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The text of benchgate.toml.
    pub config: String,
    pub models: usize,
    pub targets: usize,
    pub expectations: usize,
    pub limits: usize,
    /// Addresses of files that definitions need and that were not downloaded.
    pub missing: BTreeSet<String>,
    /// Definitions that the configuration does not hold, with the reason for each.
    pub untranslated: Vec<Untranslated>,
}

/// Whether a file's text is needed, and not only its name.
pub fn is_definition(path: &str) -> bool {
    [".json", ".mlir"].iter().any(|ending| path.ends_with(ending)) || path.ends_with(onnx_ops::FLAG_FILE)
}

/// The suites of iree-org/iree-test-suites, with the lists that iree-org/iree keeps of them. `fetched`: the files that
/// were downloaded, by address.
pub fn iree_test_suites(files: &SuiteFiles, fetched: &BTreeMap<String, FetchedFile>) -> Imported {
    let mut suite = ImportedSuite::default();
    let mut untranslated = Vec::new();
    let (mut of_onnx_ops, mut of_torch_models) = (Vec::new(), Vec::new());
    for (path, text) in files {
        let Some(text) = text.as_ref().filter(|_| path.ends_with(".json")) else { continue };
        let definition = match Definition::parse(path, text) {
            Ok(definition) => definition,
            Err(why) => {
                untranslated.push(why);
                continue;
            }
        };
        match definition.family() {
            Some("onnx_ops") if definition.has("iree_compile_flags") => of_onnx_ops.push(definition),
            Some("torch_models") => of_torch_models.push(definition),
            Some(family) => definition.listed(|key| reason(family, key).to_owned(), &mut untranslated),
            // Settings of editors and test runners.
            None => {}
        }
    }
    onnx_ops::read(files, of_onnx_ops, &mut suite, &mut untranslated);
    let mut remote = RemoteFiles::new(fetched);
    torch_models::read(of_torch_models, &mut remote, &mut suite, &mut untranslated);
    Imported {
        config: suite.to_toml(),
        models: suite.models.len(),
        targets: suite.targets.len(),
        expectations: suite.expectations.iter().map(|expected| expected.benchmarks.len()).sum(),
        limits: suite.limits.len(),
        missing: remote.missing,
        untranslated,
    }
}

fn reason(family: &str, key: &str) -> &'static str {
    match (family, key) {
        (_, key) if key.starts_with("golden_") || key.starts_with("tolerance") => {
            "an absolute limit of one machine: the gate compares with the base, and a [[limit]] with `testbed` adds it"
        }
        ("torch_ops", "flat_args" | "seed") => {
            "the inputs are random numbers of NumPy, made when the test runs"
        }
        ("torch_ops", "expected_output") => {
            "the reference is downloaded, and no SHA-256 of it is recorded, which an [[artifact]] needs"
        }
        ("torch_ops", _) => {
            "its reference is downloaded, and no SHA-256 of it is recorded, which an [[artifact]] needs"
        }
        ("onnx_models", _) => {
            "the model is downloaded, and its reference is computed by ONNX Runtime when the test runs"
        }
        ("onnx_ops", _) => "not a key of a test configuration",
        _ => {
            "its program, weights or data are downloaded, and no SHA-256 of them is recorded, which an [[artifact]] needs"
        }
    }
}
