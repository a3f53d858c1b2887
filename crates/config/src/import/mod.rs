//! L2: translates the test suites of other projects into a configuration. It reads no files itself: it takes
//! the text of the definitions, and returns the configuration and everything that it could not translate.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod definition;
mod onnx;
mod operators;
mod sharktank_models;
mod suite;
#[cfg(test)]
mod tests;
mod torch_models;
mod torch_ops;

use std::collections::{BTreeMap, BTreeSet};

pub use definition::Untranslated;
pub use suite::FetchedFile;

use definition::Definition;
use suite::{ImportedSuite, RemoteFiles};

/// The files below a folder, keyed by their path relative to the new configuration. Definitions come with
/// their text; for other files it is enough to know that they exist.
pub type SuiteFiles = BTreeMap<String, Option<String>>;

/// A configuration made from another project's definitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The text of benchgate.toml.
    pub config: String,
    pub models: usize,
    pub targets: usize,
    pub expectations: usize,
    pub limits: usize,
    /// URLs of the files that definitions need but that have not been downloaded.
    pub missing: BTreeSet<String>,
    /// Everything that could not be translated, with the reason.
    pub untranslated: Vec<Untranslated>,
}

/// Returns true if the import needs a file's text, and not only its name.
pub fn is_definition(path: &str) -> bool {
    let endings = [".json", ".mlir", onnx::FLAG_FILE];
    endings.iter().any(|ending| path.ends_with(ending)) || onnx::is_test(path)
}

/// Translates the suites of iree-org/iree-test-suites, together with the lists that iree-org/iree keeps for
/// them. `fetched` has the downloaded files by URL. `lists` is the folder of those lists, which is outside
/// the suites' folder; a definition in it replaces one of the same name in the suites.
pub fn iree_test_suites(
    files: &SuiteFiles,
    fetched: &BTreeMap<String, FetchedFile>,
    lists: Option<&str>,
) -> Imported {
    let mut untranslated = Vec::new();
    let mut families: BTreeMap<&str, BTreeMap<String, Definition>> = BTreeMap::new();
    for (path, text) in files {
        let Some(text) = text.as_ref().filter(|_| path.ends_with(".json")) else { continue };
        let definition = match Definition::parse(path, text) {
            Ok(definition) => definition,
            Err(why) => {
                untranslated.push(why);
                continue;
            }
        };
        // Other JSON files are settings of editors and test runners.
        let Some(family) = definition.family() else { continue };
        let known = families.entry(family).or_default();
        let name = definition.place_in(family);
        let Some(earlier) = known.remove(&name) else {
            known.insert(name, definition);
            continue;
        };
        let is_preferred = lists.is_some_and(|folder| path.starts_with(folder));
        let (kept, other) = if is_preferred { (definition, earlier) } else { (earlier, definition) };
        let why = format!("{} has the same name and is imported", kept.file);
        untranslated.push(other.untranslated("", why));
        known.insert(name, kept);
    }
    let mut of = |family| families.remove(family).unwrap_or_default().into_values().collect::<Vec<_>>();
    let (mut suite, mut remote) = (ImportedSuite::default(), RemoteFiles::new(fetched));
    let (operators, others): (Vec<_>, Vec<_>) =
        of("onnx_ops").into_iter().partition(|definition| definition.has("iree_compile_flags"));
    for other in others {
        other.listed(|_| "not a key of a test configuration".to_owned(), &mut untranslated);
    }
    onnx::read_operators(files, operators, &mut suite, &mut untranslated);
    torch_ops::read(files, of("torch_ops"), &mut remote, &mut suite, &mut untranslated);
    onnx::read(files, of("onnx_models"), &mut remote, &mut suite, &mut untranslated);
    sharktank_models::read(files, lists, of("sharktank_models"), &mut remote, &mut suite, &mut untranslated);
    torch_models::read(of("torch_models"), &mut remote, &mut suite, &mut untranslated);
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
