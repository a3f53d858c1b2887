//! The suite that an import makes, and its text.

use std::fmt::Write as _;

use crate::model::{DeviceKind, FailureKind};

use super::remote::ImportedArtifact;

/// A suite on its way into a configuration.
#[derive(Debug, Default)]
pub(super) struct ImportedSuite {
    pub(super) models: Vec<ImportedModel>,
    pub(super) targets: Vec<ImportedTarget>,
    pub(super) expectations: Vec<Expected>,
    pub(super) tolerances: Vec<Tolerance>,
    /// By benchmark.
    pub(super) overrides: Vec<(String, Tolerance)>,
    pub(super) limits: Vec<ImportedLimit>,
    pub(super) artifacts: Vec<ImportedArtifact>,
}

/// A value that a benchmark must not exceed.
#[derive(Debug)]
pub(super) struct ImportedLimit {
    pub(super) benchmark: String,
    pub(super) metric: &'static str,
    /// As TOML.
    pub(super) max: String,
    pub(super) testbed: Option<String>,
}

/// The criterion of a target's benchmarks.
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
    /// Empty for all.
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

/// Benchmarks that are known to fail in one of these ways.
#[derive(Debug)]
pub(super) struct Expected {
    pub(super) failures: Vec<FailureKind>,
    pub(super) reason: String,
    pub(super) benchmarks: Vec<String>,
}

/// |a − b| ≤ atol + rtol·|b|.
#[derive(Debug, Clone)]
pub(super) struct Tolerance {
    pub(super) dtype: String,
    pub(super) atol: f64,
    pub(super) rtol: f64,
}

/// By how much a time may exceed the golden one, if a test does not say it.
pub(super) const TOLERANCE_FACTOR: f64 = 1.1;
/// Flags that select the compiler's target, old and new.
const BACKEND_FLAGS: [&str; 3] =
    ["--iree-hal-target-device", "--iree-hal-target-backends", "--iree-hal-local-target-device-backends"];

impl ImportedTarget {
    /// `None` if the flags name no backend, or one that is not known.
    pub(super) fn of_flags(name: &str, compile: Vec<String>, run: Vec<String>) -> Option<Self> {
        let (mut backend, mut flags) = (None, Vec::new());
        for flag in compile {
            let (key, value) = flag.split_once('=').unwrap_or((&flag, ""));
            if !BACKEND_FLAGS.contains(&key) {
                flags.push(flag);
                continue;
            }
            // The device of a CPU; the backend is named by another flag.
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
        // Tests of single operators are too short to be timed.
        let (name, allocators, judged) = (name.to_owned(), Vec::new(), Judged::Outputs);
        Some(Self { name, backend: backend?, device, flags, run_flags, allocators, judged })
    }
}

impl Tolerance {
    /// Only the two parts that the suite's own tool knows.
    fn keys(&self) -> String {
        let Self { atol, rtol, .. } = self;
        format!("atol = {atol:?}\nrtol = {rtol:?}\nstol = 0.0\nmax-error = 0.5\nmin-cosine = -1.0\n")
    }
}

impl ImportedSuite {
    /// The configuration.
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

/// A golden time of milliseconds times what it may be exceeded by, as TOML and without the binary fraction of 1.1.
pub(super) fn allowed_time(golden: f64, factor: f64) -> String {
    format!("\"{}ms\"", (golden * factor * 1e3).round() / 1e3)
}

/// A list on one line; an empty one is left out.
fn list<T: AsRef<str>>(toml: &mut String, key: &str, items: &[T]) {
    if items.is_empty() {
        return;
    }
    let items: Vec<String> = items.iter().map(|item| quoted(item.as_ref())).collect();
    let _ = writeln!(toml, "{key} = [{}]", items.join(", "));
}

/// A text as TOML: the escapes of JSON are among those of TOML.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
