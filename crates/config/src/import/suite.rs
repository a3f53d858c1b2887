//! The suite that an import builds, and its text as TOML.
//!
//! Files to which definitions refer by URL.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use benchgate_core::model::{DeviceKind, FailureKind};

/// The tables of a new configuration while an import collects them.
#[derive(Debug, Default)]
pub(super) struct ImportedSuite {
    pub(super) models: Vec<ImportedModel>,
    pub(super) targets: Vec<ImportedTarget>,
    pub(super) expectations: Vec<Expected>,
    pub(super) tolerances: Vec<Tolerance>,
    /// Pairs of a benchmark and the tolerances that apply to it.
    pub(super) overrides: Vec<(String, Tolerance)>,
    pub(super) limits: Vec<ImportedLimit>,
    pub(super) artifacts: Vec<ImportedArtifact>,
}

/// A value that a benchmark must not exceed.
#[derive(Debug)]
pub(super) struct ImportedLimit {
    pub(super) benchmark: String,
    pub(super) metric: &'static str,
    /// The limit as TOML.
    pub(super) max: String,
    pub(super) testbed: Option<String>,
}

/// The property by which a target's benchmarks are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Judged {
    Latency,
    Outputs,
    Code,
}

#[derive(Debug, Default)]
pub(super) struct ImportedModel {
    pub(super) name: String,
    pub(super) source: String,
    pub(super) function: String,
    pub(super) inputs: Vec<String>,
    pub(super) expected: Vec<String>,
    pub(super) parameters: Vec<String>,
    pub(super) tags: Vec<String>,
    /// Names of the targets to run on; empty for all targets.
    pub(super) targets: Vec<String>,
}

#[derive(Debug, Clone)]
pub(super) struct ImportedTarget {
    pub(super) name: String,
    pub(super) backend: &'static str,
    pub(super) device: Option<String>,
    pub(super) flags: Vec<String>,
    pub(super) run_flags: Vec<String>,
    pub(super) allocators: Vec<String>,
    pub(super) judged: Judged,
}

/// Benchmarks that are expected to fail in one of these ways.
#[derive(Debug)]
pub(super) struct Expected {
    pub(super) failures: Vec<FailureKind>,
    pub(super) reason: String,
    pub(super) benchmarks: Vec<String>,
}

/// The largest allowed difference: |a − b| ≤ atol + rtol·|b|.
#[derive(Debug, Clone)]
pub(super) struct Tolerance {
    pub(super) dtype: String,
    pub(super) atol: f64,
    pub(super) rtol: f64,
}

/// The ratio of the longest allowed time to the golden time, unless the test specifies another
/// ratio.
pub(super) const TOLERANCE_FACTOR: f64 = 1.1;
/// Current and deprecated flags that select the compiler's target.
const BACKEND_FLAGS: [&str; 3] =
    ["--iree-hal-target-device", "--iree-hal-target-backends", "--iree-hal-local-target-device-backends"];

impl ImportedTarget {
    /// Makes a target from compile and run flags. Returns `None` if they name no backend, or an unknown one.
    pub(super) fn of_flags(name: &str, compile: Vec<String>, run: Vec<String>) -> Option<Self> {
        let (mut backend, mut flags) = (None, Vec::new());
        for flag in compile {
            let (key, value) = flag.split_once('=').unwrap_or((&flag, ""));
            if !BACKEND_FLAGS.contains(&key) {
                flags.push(flag);
                continue;
            }
            // `local` stands for the CPU, whose backend is named by another flag.
            if value != "local" {
                let named = if value == "vulkan-spirv" { "vulkan" } else { value };
                backend = Some(DeviceKind::of_backend(named)?.facts().backends[0]);
            }
        }
        let (mut device, mut run_flags) = (None, Vec::new());
        for flag in run {
            match flag.strip_prefix("--device=") {
                Some(named) => device = Some(named.to_owned()),
                None => run_flags.push(flag),
            }
        }
        // Tests of a single operator are too short to be timed.
        let (name, allocators, judged) = (name.to_owned(), Vec::new(), Judged::Outputs);
        Some(Self { name, backend: backend?, device, flags, run_flags, allocators, judged })
    }
}

impl Tolerance {
    /// The tolerance as TOML. The suites' own tools support only `atol` and `rtol`, so the other
    /// bounds are set such that they have as little effect as possible.
    fn keys(&self) -> String {
        let Self { atol, rtol, .. } = self;
        format!("atol = {atol:?}\nrtol = {rtol:?}\nstol = 0.0\nmax-error = 0.5\nmin-cosine = -1.0\n")
    }
}

impl ImportedSuite {
    /// The text of benchgate.toml.
    pub(super) fn to_toml(&self) -> String {
        let mut toml = String::from(HEAD);
        for tolerance in &self.tolerances {
            let _ = writeln!(toml, "[numerics.{}]\n{}", tolerance.dtype, tolerance.keys());
        }
        for artifact in &self.artifacts {
            let _ = writeln!(
                toml,
                "[[artifact]]\nname = {}\nurl = {}\nsha256 = {}\nsize = {}\n",
                quoted(&artifact.name),
                quoted(&artifact.url),
                quoted(&artifact.file.sha256),
                artifact.file.size
            );
        }
        for target in &self.targets {
            let _ = writeln!(toml, "[[target]]\nname = {}", quoted(&target.name));
            let _ = writeln!(toml, "backend = {}", quoted(target.backend));
            if let Some(device) = &target.device {
                let _ = writeln!(toml, "device = {}", quoted(device));
            }
            match target.judged {
                Judged::Latency => {}
                Judged::Outputs => toml.push_str("judge = \"outputs\"\n"),
                Judged::Code => toml.push_str("judge = \"code\"\n"),
            }
            list(&mut toml, "allocators", &target.allocators);
            list(&mut toml, "flags", &target.flags);
            list(&mut toml, "run-flags", &target.run_flags);
            toml.push('\n');
        }
        for model in &self.models {
            let _ = writeln!(toml, "[[model]]\nname = {}", quoted(&model.name));
            let _ = writeln!(toml, "source = {}", quoted(&model.source));
            let _ = writeln!(toml, "function = {}", quoted(&model.function));
            list(&mut toml, "inputs", &model.inputs);
            list(&mut toml, "expected", &model.expected);
            list(&mut toml, "parameters", &model.parameters);
            list(&mut toml, "tags", &model.tags);
            if model.targets.len() < self.targets.len() {
                list(&mut toml, "targets", &model.targets);
            }
            toml.push('\n');
        }
        for Expected { failures, reason, benchmarks } in &self.expectations {
            let failures: Vec<&str> = failures.iter().map(|failure| failure.as_str()).collect();
            toml.push_str("[[expect]]\n");
            list(&mut toml, "failure", &failures);
            let _ = writeln!(toml, "reason = {}\nbenchmark = [", quoted(reason));
            for benchmark in benchmarks {
                let _ = writeln!(toml, "  {},", quoted(benchmark));
            }
            toml.push_str("]\n\n");
        }
        for ImportedLimit { benchmark, metric, max, testbed } in &self.limits {
            let _ =
                writeln!(toml, "[[limit]]\nbenchmark = {}\nmetric = {}", quoted(benchmark), quoted(metric));
            let _ = writeln!(toml, "max = {max}");
            if let Some(testbed) = testbed {
                let _ = writeln!(toml, "testbed = {}", quoted(testbed));
            }
            toml.push('\n');
        }
        for (benchmark, tolerance) in &self.overrides {
            let _ = writeln!(
                toml,
                "[[numerics-override]]\nbenchmark = {}\ntype = {}\n{}",
                quoted(benchmark),
                quoted(&tolerance.dtype),
                tolerance.keys()
            );
        }
        toml.truncate(toml.trim_end().len());
        toml.push('\n');
        toml
    }
}

const HEAD: &str = "\
# Imported from iree-org/iree-test-suites by `benchgate import`. `benchgate tools pin` writes benchgate.lock next to this
# file.

[suite]
name = \"iree-test-suites\"

[toolchain]
version = \"3.13.0\"
# benchgate measures only if both tools print this commit.
commit = \"89ece87b89852100c0a4ac3d515e14842d090967\"

";

/// The longest allowed time as TOML: a golden time in milliseconds multiplied by the tolerance factor. The
/// time is rounded, because a factor such as 1.1 has no exact binary form.
pub(super) fn allowed_time(golden: f64, factor: f64) -> String {
    format!("\"{}ms\"", (golden * factor * 1e3).round() / 1e3)
}

/// Writes a list on one line; an empty list is left out.
fn list<T: AsRef<str>>(toml: &mut String, key: &str, items: &[T]) {
    if items.is_empty() {
        return;
    }
    let items: Vec<String> = items.iter().map(|item| quoted(item.as_ref())).collect();
    let _ = writeln!(toml, "{key} = [{}]", items.join(", "));
}

/// A text as a TOML string. JSON's escapes are valid in TOML.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The hash and size of a file that has been downloaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedFile {
    pub sha256: String,
    pub size: u64,
}

/// A file that becomes an `[[artifact]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ImportedArtifact {
    pub(super) name: String,
    pub(super) url: String,
    pub(super) file: FetchedFile,
}

/// The downloaded files, and the URLs of those that are missing.
pub(super) struct RemoteFiles<'a> {
    fetched: &'a BTreeMap<String, FetchedFile>,
    pub(super) missing: BTreeSet<String>,
}

impl<'a> RemoteFiles<'a> {
    pub(super) fn new(fetched: &'a BTreeMap<String, FetchedFile>) -> Self {
        Self { fetched, missing: BTreeSet::new() }
    }

    /// Notes which of the files that a test needs are missing.
    ///
    /// # Errors
    /// If any is missing, since the test can't be imported without it.
    pub(super) fn want<'b>(&mut self, urls: impl Iterator<Item = &'b str>) -> Result<(), String> {
        let mut is_complete = true;
        for url in urls.filter(|url| !self.fetched.contains_key(*url)) {
            is_complete = false;
            self.missing.insert(url.to_owned());
        }
        let why =
            "[[artifact]] needs the SHA-256 of the test's files; `--fetch` downloads them and records it";
        if is_complete { Ok(()) } else { Err(why.to_owned()) }
    }

    /// The path of a downloaded file below the sources. Declares the file as an artifact if it isn't one yet.
    pub(super) fn place(&self, url: &str, suite: &mut ImportedSuite) -> String {
        let known = suite.artifacts.iter().find(|artifact| artifact.url == url);
        let name = known.map(|artifact| artifact.name.clone()).unwrap_or_else(|| {
            let mut name = name_of(url);
            // Two URLs can differ only in characters that a name can't contain, so the names could
            // be equal.
            while suite.artifacts.iter().any(|artifact| artifact.name == name) {
                name = format!("other/{name}");
            }
            if let Some(file) = self.fetched.get(url).cloned() {
                suite.artifacts.push(ImportedArtifact { name: name.clone(), url: url.to_owned(), file });
            }
            name
        });
        format!("artifacts/{name}")
    }
}

/// An artifact name made from the path of a URL.
fn name_of(url: &str) -> String {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let path = path.split_once("://").map_or(path, |(_, rest)| rest);
    let below = path.split_once('/').map_or(path, |(_, below)| below);
    let part = |part: &str| -> String {
        let kept = part.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' });
        // A name must begin with a letter, a digit or `_`.
        kept.collect::<String>().trim_start_matches(['.', '-']).to_owned()
    };
    let parts: Vec<String> = below.split('/').map(part).filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { "file".to_owned() } else { parts.join("/") }
}
