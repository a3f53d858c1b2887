//! L2: the definitions of other projects' test suites as a configuration. Reads no file itself: it takes the text of
//! the definitions, and returns the configuration and everything of them that it does not hold.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod definition;
mod downloads;
mod onnx_ops;
mod suite;

use std::collections::BTreeMap;

pub use definition::Untranslated;

use definition::Definition;
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
    /// Definitions that the configuration does not hold, with the reason for each.
    pub untranslated: Vec<Untranslated>,
}

/// Whether a file's text is needed, and not only its name.
pub fn is_definition(path: &str) -> bool {
    [".json", ".mlir"].iter().any(|ending| path.ends_with(ending)) || path.ends_with(onnx_ops::FLAG_FILE)
}

/// The suites of iree-org/iree-test-suites, with the lists that iree-org/iree keeps of them.
pub fn iree_test_suites(files: &SuiteFiles) -> Imported {
    let mut suite = ImportedSuite::default();
    let mut untranslated = Vec::new();
    let mut of_onnx_ops = Vec::new();
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
            Some(family) => downloads::list(family, definition, &mut untranslated),
            // Settings of editors and test runners.
            None => {}
        }
    }
    onnx_ops::read(files, of_onnx_ops, &mut suite, &mut untranslated);
    Imported {
        config: suite.to_toml(),
        models: suite.models.len(),
        targets: suite.targets.len(),
        expectations: suite.expectations.iter().map(|expected| expected.benchmarks.len()).sum(),
        untranslated,
    }
}
