//! The manifest of a bundle, version 1: the models that one machine prepared for another to measure. Frozen:
//! see the rule in [`crate::record`] before touching a field.
//!
//! A manifest may be hostile: every path must be plain, and every file is named once, with its size and its
//! digest, before any other byte of the archive is trusted.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::{Lint, SideName, Toolchain, VerifyCode, is_sha256};

use super::{
    BundleSchema, OutcomeRecord, OutcomeStatus, RecordError, ShardRecord, StageRecord, schema, wrong,
};

/// Everything that verifying and measuring need, by the name of a file in the archive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BundleFile {
    pub schema: BundleSchema,
    /// The version of benchgate that wrote the bundle.
    pub benchgate: String,
    pub suite: String,
    /// RFC 3339.
    pub created: String,
    /// The side whose configuration judges: thresholds, tolerances, waivers.
    pub judged_by: SideName,
    /// Facts of the machine that compiled.
    pub made_on: BTreeMap<String, String>,
    /// Every other file of the archive, in the order they follow.
    pub files: Vec<BundledFile>,
    /// One, or base and head.
    pub sides: Vec<BundledSide>,
    /// The part of a plan that the bundle contains; absent if it contains the whole suite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<ShardRecord>,
    /// Notes that stand before the verdict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// A file of the archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BundledFile {
    /// Plain and relative: letters, digits and `._+@=-`, separated by `/`.
    pub path: String,
    pub bytes: u64,
    pub sha256: String,
}

/// One side of the suite.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BundledSide {
    pub name: SideName,
    /// Its configuration, as a file of the archive. A separate policy file and the lock are next to it.
    pub config: String,
    /// The name of this side in that configuration: the base of a pull request is the head in its configuration.
    pub declared: SideName,
    pub commit: Option<String>,
    pub dirty: Option<bool>,
    pub toolchain: Toolchain,
    /// Old names of the models that head renames, by their new names. Both sides use the new names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub renamed: BTreeMap<String, String>,
    /// `iree-run-module` of the pin.
    pub run_module: String,
    /// `iree-benchmark-module` of the pin. If the pin has `iree-profile`, it is in the same folder.
    pub benchmark_module: String,
    /// Every benchmark of the requested side, including failed ones.
    pub benchmarks: Vec<BundledBenchmark>,
}

/// A benchmark up to its module, or up to its failure.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BundledBenchmark {
    /// `model/target/function`; unique within the side.
    pub name: String,
    pub outcome: OutcomeRecord,
    pub stages: Vec<StageRecord>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lints: Vec<Lint>,
    /// Present exactly where the outcome is `ok`.
    pub module: Option<BundledModule>,
}

/// A compiled module with its data.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BundledModule {
    pub path: String,
    pub dispatch_count: Option<u64>,
    /// Statistics of the compiler, by its own names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub compiler: BTreeMap<String, u64>,
    /// True if the module was compiled for the processor of `made_on`.
    pub host_specific: bool,
    /// The dialect that an exported model was lowered to.
    pub lowering: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<BundledInput>,
    /// Reference outputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<String>,
    /// Reference outputs in double precision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expected64: Vec<String>,
    /// Names of the tensors that the model stores and that its export leaves out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<BundledParameters>,
    /// The exporter's reason why the reference can't be used.
    pub reference_problem: Option<ReferenceProblem>,
    /// The module that calls the function twice in one process, if the function is timed.
    pub caller: Option<BundledCaller>,
}

/// An input: a file of the archive, or the runtime's own notation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BundledInput {
    Npy(String),
    Literal(String),
}

/// An archive of parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BundledParameters {
    /// Empty for the default scope.
    pub scope: String,
    pub path: String,
}

/// A module that calls the function of another one twice in one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BundledCaller {
    pub path: String,
    /// Results of the function that are buffers.
    pub results: u32,
    /// Inputs of the function that are buffers.
    pub inputs: u32,
}

/// The reason why there is no reference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReferenceProblem {
    pub code: VerifyCode,
    pub why: String,
}

impl BundleFile {
    /// Reads a manifest.
    pub fn from_slice(bytes: &[u8]) -> Result<Self, RecordError> {
        schema::read(bytes, &BundleSchema::FORMAT, consistent)
    }

    /// Returns the manifest's bytes. Equal values give equal bytes.
    pub fn to_json(&self) -> Vec<u8> {
        schema::indented(self)
    }

    /// Returns the size of all files in bytes.
    pub fn bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.bytes))
    }
}

/// Longer names don't fit into the plain header of an archive.
const LONGEST_PATH: usize = 100;

/// Returns whether a path is safe: it can't leave its folder or hide a file, and has no special meaning to a
/// shell or a tool.
pub fn is_plain_path(path: &str) -> bool {
    let plain = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._+@=-".contains(&byte))
    };
    path.len() <= LONGEST_PATH && path.split('/').all(plain)
}

/// Rejects a manifest that contradicts itself, naming the first contradiction.
fn consistent(file: &BundleFile) -> Result<(), RecordError> {
    let mut paths = BTreeSet::new();
    for (at, listed) in file.files.iter().enumerate() {
        let at = format!("files[{at}]");
        if !is_plain_path(&listed.path) {
            return Err(wrong(at, format!("{:?} is not a plain path", listed.path)));
        }
        if !is_sha256(&listed.sha256) {
            return Err(wrong(at, "`sha256` is not 64 hexadecimal digits"));
        }
        if !paths.insert(listed.path.as_str()) {
            return Err(wrong(at, format!("{:?} is listed twice", listed.path)));
        }
    }
    // If one file's path needs a folder where another file is, unpacking would only show an error of the file
    // system.
    let is_folder = |path: &str| {
        let inside = format!("{path}/");
        paths.range(inside.as_str()..).next().is_some_and(|next| next.starts_with(&inside))
    };
    if let Some(path) = paths.iter().find(|path| is_folder(path)) {
        return Err(wrong("files", format!("{path:?} is a file and a folder")));
    }
    let there = |at: &str, path: &str| {
        if paths.contains(path) { Ok(()) } else { Err(wrong(at, format!("{path:?} is not in `files`"))) }
    };
    match file.sides.iter().map(|side| side.name).collect::<Vec<_>>().as_slice() {
        [_] | [SideName::Base, SideName::Head] => {}
        _ => return Err(wrong("sides", "expected one side, or base followed by head")),
    }
    if file.sides.iter().all(|side| side.name != file.judged_by) {
        return Err(wrong("judged_by", "the bundle has no such side"));
    }
    for (at, side) in file.sides.iter().enumerate() {
        let at = format!("sides[{at}]");
        there(&at, &side.config)?;
        there(&at, &side.run_module)?;
        there(&at, &side.benchmark_module)?;
        let mut names = BTreeSet::new();
        for benchmark in &side.benchmarks {
            let at = format!("{at}, {:?}", benchmark.name);
            if !names.insert(benchmark.name.as_str()) {
                return Err(wrong(at, "a second benchmark has this name"));
            }
            benchmark.outcome.check(&at)?;
            if (benchmark.outcome.status == OutcomeStatus::Ok) != benchmark.module.is_some() {
                return Err(wrong(
                    at,
                    "a benchmark needs a module if it is ok, and must not have one otherwise",
                ));
            }
            let Some(module) = &benchmark.module else { continue };
            for path in module.paths() {
                there(&at, path)?;
            }
            for input in &module.inputs {
                // The runtime would read a file that is not part of the bundle.
                if let BundledInput::Literal(text) = input
                    && text.contains('@')
                {
                    return Err(wrong(at, format!("the literal input {text:?} contains a file name")));
                }
            }
        }
    }
    Ok(())
}

impl BundledModule {
    /// Returns the paths of every file that it needs.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        let inputs = self.inputs.iter().filter_map(|input| match input {
            BundledInput::Npy(path) => Some(path.as_str()),
            BundledInput::Literal(_) => None,
        });
        let texts = self.expected.iter().chain(&self.expected64).map(String::as_str);
        let parameters = self.parameters.iter().map(|parameters| parameters.path.as_str());
        let caller = self.caller.iter().map(|caller| caller.path.as_str());
        std::iter::once(self.path.as_str()).chain(inputs).chain(texts).chain(parameters).chain(caller)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOLDEN: &str = include_str!("../../../../tests/fixtures/record/bundle-v1.json");

    fn refused(from: &str, to: &str) -> String {
        assert!(GOLDEN.contains(from), "{from}");
        BundleFile::from_slice(GOLDEN.replacen(from, to, 1).as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn the_golden_manifest_is_read_and_written_again() {
        let file = BundleFile::from_slice(GOLDEN.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(file.to_json()).unwrap(), GOLDEN);
        assert_eq!(file.bytes(), 3_450);
    }

    #[test]
    fn a_path_that_leads_elsewhere_is_refused() {
        for path in
            ["../x", "/etc/passwd", "a/../b", "a//b", ".ssh/id", "a/.b", "-rf", "a\\b", "a b", "", "a/", "ä"]
        {
            assert!(!is_plain_path(path), "{path}");
        }
        assert!(!is_plain_path(&"a".repeat(101)));
        assert!(is_plain_path("tools/0f/iree-run-module") && is_plain_path("a/b_c.1+x@y=z.npy"));
        let said = refused("\"data/in.npy\",\n      \"bytes\"", "\"data/../../in.npy\",\n      \"bytes\"");
        assert!(said.contains("not a plain path"), "{said}");
    }

    #[test]
    fn a_manifest_that_contradicts_itself_is_refused() {
        for (from, to, why) in [
            ("\"path\": \"data/in.npy\"", "\"path\": \"data/out.npy\"", "listed twice"),
            ("\"path\": \"data/in.npy\"", "\"path\": \"data\"", "file and a folder"),
            ("\"path\": \"data/out.npy\"", "\"path\": \"data/in.npy/x\"", "file and a folder"),
            ("\"npy\": \"data/in.npy\"", "\"npy\": \"data/elsewhere.npy\"", "not in `files`"),
            ("\"literal\": \"3xf32=1\"", "\"literal\": \"3xf32=@/etc/passwd\"", "contains a file name"),
            ("\"config\": \"config/", "\"config\": \"elsewhere/", "not in `files`"),
            ("\"name\": \"base\"", "\"name\": \"head\"", "expected one side"),
            ("\"judged_by\": \"head\"", "\"judged_by\": \"front\"", "front"),
            ("\"name\": \"head\"", "\"name\": \"base\"", "expected one side"),
            ("\"name\": \"b/cpu/main\"", "\"name\": \"a/cpu/main\"", "second benchmark"),
            ("\"status\": \"ok\"", "\"status\": \"skipped\", \"why\": \"\"", "needs a module"),
            ("\"sha256\": \"00", "\"sha256\": \"0x", "64 hexadecimal"),
            ("bundle/v1", "bundle/v2", "newer"),
            ("\"suite\"", "\"sweet\"", "unknown field"),
        ] {
            let said = refused(from, to);
            assert!(said.contains(why), "{why}: {said}");
        }
    }
}
