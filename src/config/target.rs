//! `[[target]]`.

use std::collections::BTreeMap;

use serde::Serialize;

use super::fields::{KeyPresence, LINES, ValueKind};
use super::names::unique;
use super::problems::Collector;
use super::table::{DeclaredTable, table};
use super::view::ConfigView;

table! {
    #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
    pub struct Target, TARGET: "[[target]]",
        "What the compiler generates code for, and what runs it. Where the device is not there, the target's \
          benchmarks are compiled only: see docs/targets.md.";
    head "name" => name: String, ValueKind::Name, "Names the target; unique in the suite.";
    head "backend": KeyPresence::Required => backend: String = String::new(),
        ValueKind::Choice(&["llvm-cpu", "cuda", "hip", "rocm", "vulkan"]),
        "What the compiler generates; `rocm` is another name of `hip`.";
    head "device": KeyPresence::Optional => device: String = String::new(), ValueKind::Line,
        "The runtime's device: `local-task`, `local-sync`, `cuda`, `hip://0`. By default `local-task` for \
             `llvm-cpu`, otherwise the backend's name.";
    "required" => required: Option<bool>, ValueKind::Bool,
        "Whether a device that is not there is a failure (`true`) or `unsupported` (`false`). By default it is a \
             failure where the machine has such hardware on its bus, because then a driver broke.";
    "judge" => judge: String = JUDGE_LATENCY.to_owned(), ValueKind::Choice(&[JUDGE_LATENCY, JUDGE_CODE]),
        "What decides: `latency`, or `code`, the facts of the generated code. Then the benchmarks are compiled only, and \
             no device is needed: see docs/targets.md.";
    head "allocators" => allocators: Vec<String>, LINES,
        "Allocators of the runtime's device, `--device_allocator=`: `[\"caching\"]`.";
    head "flags" => flags: Vec<String>, LINES, "Compile flags: `--iree-cuda-target=sm_86`.";
    head "run-flags" => run_flags: Vec<String>, LINES, "Flags of the runtime tools.";
    head "env" => env: BTreeMap<String, String>, ValueKind::Texts, "Environment variables of the runtime tools.";
}

const JUDGE_LATENCY: &str = "latency";
const JUDGE_CODE: &str = "code";

impl Target {
    /// Whether the generated code is judged, and nothing is measured.
    pub fn judges_code(&self) -> bool {
        self.judge == JUDGE_CODE
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

pub(super) fn targets(root: ConfigView<'_, '_>, problems: &mut Collector) -> Vec<Target> {
    let mut seen = BTreeMap::new();
    let view = root.get("target");
    if view.is_present() && view.items().next().is_none() {
        problems.add(view.at(), "no [[target]]: a suite needs at least one");
    }
    view.items()
        .map(|target| {
            unique(target.get("name"), "target", &mut seen, problems);
            let backend = match target.get("backend").owned() {
                // The seeds' and ROCm's own name for what the tools call `hip`.
                rocm if rocm == "rocm" => "hip".to_owned(),
                backend => backend,
            };
            let device = target.get("device").text().map_or_else(|| default_device(&backend), device);
            Target { backend, device, ..Target::read(target) }
        })
        .collect()
}

/// IREE's own name of the device that a backend's code runs on.
fn default_device(backend: &str) -> String {
    if backend == "llvm-cpu" { "local-task".to_owned() } else { backend.to_owned() }
}

/// A device as the runtime knows it: `rocm://0` is its `hip://0`.
fn device(text: &str) -> String {
    match text.strip_prefix("rocm") {
        Some(rest) if rest.is_empty() || rest.starts_with(':') => format!("hip{rest}"),
        _ => text.to_owned(),
    }
}
