//! `[[target]]`: the devices that a suite compiles for and runs on.
//!
//! `[toolchain]` and `[side.*]`: the tools and sources of each side.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;
use toml_span::Value;

use benchgate_core::model::{BACKENDS, DeviceKind, device_driver};

use super::fields::{KeyPresence, LINES, Section, ValueKind, optional, required};
use super::problems::{Collector, unique};
use super::table::{DeclaredTable, table};
use super::values::ConfigView;

table! {
    #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
    pub struct Target, TARGET: "[[target]]",
        "A target sets what the compiler generates code for and which device runs it. If the device is absent, the \
        target's benchmarks are only compiled: see docs/targets.md.";
    head "name" => name: String, ValueKind::Name, "Name of the target; unique in the suite.";
    head "backend": KeyPresence::Required => backend: String = String::new(),
        ValueKind::Choice(&BACKENDS),
        "Code generator of the compiler; `rocm` is another name of `hip`.";
    head "device": KeyPresence::Optional => device: String = String::new(), ValueKind::Line,
        "The runtime's device: `local-task`, `local-sync`, `cuda`, `hip://0`. By default `local-task` for \
             `llvm-cpu`, otherwise the backend's name.";
    "required" => required: Option<bool>, ValueKind::Bool,
        "Whether an absent device is a failure (`true`) or `unsupported` (`false`). The default is `true` if \
        the machine has such hardware on its bus, because the driver is then broken.";
    "judge" => judge: String = JUDGE_LATENCY.to_owned(), ValueKind::Choice(&[JUDGE_LATENCY, JUDGE_CODE, JUDGE_OUTPUTS]),
        "`latency` judges times; `code` judges facts of the generated code (benchmarks are only compiled, \
        without a device); `outputs` verifies each module by one call and times nothing: see \
        docs/targets.md.";
    "ptxas": KeyPresence::Optional => ptxas: Option<Assembler> = None, ValueKind::AnyPath,
        "Assembler that reports registers, spills and shared memory of the `cuda` backend's \
        code: `locked` (its wheel in \
             benchgate.lock) or an absolute path. By default `locked` with `judge = \"code\"`, otherwise none.";
    "ptxas-arch" => ptxas_arch: Option<String>, ValueKind::Name,
        "GPU that `ptxas` assembles for: `sm_90`. By default the one that the code names.";
    head "allocators" => allocators: Vec<String>, LINES,
        "Allocators of the runtime's device, passed as `--device_allocator=`: `[\"caching\"]`.";
    head "flags" => flags: Vec<String>, LINES, "Compile flags, such as `--iree-cuda-target=sm_86`.";
    head "run-flags" => run_flags: Vec<String>, LINES, "Flags of the runtime tools.";
    head "env" => env: BTreeMap<String, String>, ValueKind::Texts, "Environment variables of the runtime tools.";
}

const JUDGE_LATENCY: &str = "latency";
const JUDGE_CODE: &str = "code";
const JUDGE_OUTPUTS: &str = "outputs";

/// The `ptxas` that assembles a target's PTX.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Assembler {
    /// The `ptxas` from the wheel in `benchgate.lock`.
    Locked,
    Path(PathBuf),
}

/// The value of `ptxas` that means [`Assembler::Locked`].
const LOCKED: &str = "locked";

impl Target {
    /// Returns true if only the generated code is judged, and nothing is run.
    pub fn judges_code(&self) -> bool {
        self.judge == JUDGE_CODE
    }

    /// The assembler for the target's PTX. For a CUDA target whose code is judged, it defaults to the locked
    /// one.
    pub fn assembler(&self) -> Option<&Assembler> {
        let by_default = (assembles(&self.backend) && self.judges_code()).then_some(&Assembler::Locked);
        self.ptxas.as_ref().or(by_default)
    }

    /// Returns true if the outputs of one call are judged, and nothing is timed.
    pub fn judges_outputs(&self) -> bool {
        self.judge == JUDGE_OUTPUTS
    }

    /// Returns true if the run time is judged.
    pub fn is_timed(&self) -> bool {
        self.judge == JUDGE_LATENCY
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
            let backend = target.get("backend").owned();
            let facts = DeviceKind::of_backend(&backend).map(DeviceKind::facts);
            let backend = facts.map_or(backend, |facts| facts.backends[0].to_owned());
            let own = || facts.map_or_else(|| backend.clone(), |facts| facts.device.to_owned());
            let device = target.get("device").text().map_or_else(own, device);
            let ptxas = assembler(target.get("ptxas"), &backend, problems);
            Target { backend, device, ptxas, ..Target::read(target) }
        })
        .collect()
}

fn assembler(view: ConfigView<'_, '_>, backend: &str, problems: &mut Collector) -> Option<Assembler> {
    let text = view.text()?;
    if !assembles(backend) {
        problems.add(view.at(), "`ptxas` is for the backend `cuda`");
    }
    if text == LOCKED {
        return Some(Assembler::Locked);
    }
    let path = PathBuf::from(text);
    // A relative path would be inside the checkout, where a pull request could replace the program.
    if !path.is_absolute() {
        problems.add(view.at(), format!("expected `{LOCKED}` or an absolute path, found {text:?}"));
    }
    Some(Assembler::Path(path))
}

/// Returns true if a backend generates PTX.
fn assembles(backend: &str) -> bool {
    DeviceKind::of_backend(backend) == Some(DeviceKind::Cuda)
}

/// The name of a device in the runtime, which calls `rocm://0` `hip://0`.
fn device(text: &str) -> String {
    let name = device_driver(text);
    match DeviceKind::of_backend(name).map(DeviceKind::facts) {
        Some(facts) if facts.backends[0] != name => format!("{}{}", facts.device, &text[name.len()..]),
        _ => text.to_owned(),
    }
}

/// The pinned tools. The version is only a label; the commit is authoritative.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pin {
    pub version: String,
    pub commit: String,
    pub source: ToolSource,
}

/// The place that a pin's tools come from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ToolSource {
    /// The PyPI packages `iree-base-compiler` and `iree-base-runtime` of this version, whose hashes are in
    /// `benchgate.lock`.
    #[default]
    Pypi,
    /// Wheels, each given by its URL and SHA-256.
    Url { compiler: (String, String), runtime: (String, String) },
    /// A local build or install tree with `iree-compile` and the runtime tools.
    Path(PathBuf),
}

pub(super) static TOOLCHAIN: Section = Section {
    title: "[toolchain]",
    doc: "The IREE compiler and runtime, by version and commit. The version is a label; the commit is authoritative: benchgate measures only if both tools print this commit. `benchgate.lock` has the SHA-256 of every wheel. \
          Without `path` and `compiler`, wheels of this version come from PyPI.",
    fields: &[
        required("version", ValueKind::Version, "Release, for example `3.13.0`."),
        required(
            "commit",
            ValueKind::Commit,
            "The commit that `iree-compile --version` prints, all 40 digits.",
        ),
        optional(
            "path",
            ValueKind::AnyPath,
            "A local build or install tree, instead of wheels; relative to this file's folder.",
        ),
        optional(
            "compiler",
            ValueKind::Table(&WHEEL),
            "The compiler's wheel by URL, instead of by version; needs `runtime`.",
        ),
        optional(
            "runtime",
            ValueKind::Table(&WHEEL),
            "The runtime's wheel by URL, instead of by version; needs `compiler`.",
        ),
    ],
};

/// The content of the file that `benchgate bisect --toolchains` reads.
pub(super) static TOOLCHAINS: Section = Section {
    title: "a list of toolchains",
    doc: "",
    fields: &[required(
        "toolchain",
        ValueKind::Tables(&TOOLCHAIN),
        "The toolchains in order, the good end first.",
    )],
};

static WHEEL: Section = Section {
    title: "[toolchain.compiler] and [toolchain.runtime]",
    doc: "",
    fields: &[
        required("url", ValueKind::Url, "URL of the wheel, without credentials."),
        required("sha256", ValueKind::Sha256, "SHA-256 of the wheel, 64 digits."),
    ],
};

table! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Side, SIDE: "[side.base] and [side.head]", "";
    head "toolchain": KeyPresence::Optional => pin: Pin = Pin::default(),
        ValueKind::Table(&TOOLCHAIN), "Tools of this side, instead of `[toolchain]`.";
    head "flags" => flags: Vec<String>, LINES, "Compile flags added after the target's and the model's.";
    head "run-flags" => run_flags: Vec<String>, LINES, "Flags of the runtime tools, added last.";
    head "sources" => sources: PathBuf = PathBuf::from("."), ValueKind::Relative,
        "The folder that model paths start at, relative to this file. It must stay inside the repository.";
}

/// Reads both sides; the base is optional.
pub(super) fn sides(root: ConfigView<'_, '_>, problems: &mut Collector) -> (Option<Side>, Side) {
    let shared = root.get("toolchain");
    let shared = if shared.is_present() {
        Some(pin(shared, problems))
    } else {
        // A suite of commands needs no IREE tools.
        (!root.get("model").is_present() && root.get("command").is_present()).then(Pin::default)
    };
    let base = root.get("side").get("base");
    let head = root.get("side").get("head");
    let base = base.is_present().then(|| side("base", base, shared.as_ref(), problems));
    (base, side("head", head, shared.as_ref(), problems))
}

fn side(name: &str, view: ConfigView<'_, '_>, shared: Option<&Pin>, problems: &mut Collector) -> Side {
    let own = view.get("toolchain");
    let own = own.is_present().then(|| pin(own, problems));
    if own.is_none() && shared.is_none() {
        problems.add(
            view.at(),
            format!("no tools for side {name}: add [toolchain], or `toolchain` in [side.{name}]"),
        );
    }
    Side { pin: own.or_else(|| shared.cloned()).unwrap_or_default(), ..Side::read(view) }
}

pub(super) fn pin(view: ConfigView<'_, '_>, problems: &mut Collector) -> Pin {
    let path = view.get("path");
    let compiler = view.get("compiler");
    let runtime = view.get("runtime");
    if path.is_present() && (compiler.is_present() || runtime.is_present()) {
        problems.add(path.at(), "`path` can't be combined with the wheels' URLs");
    }
    for (here, there, missing) in [(compiler, runtime, "runtime"), (runtime, compiler, "compiler")] {
        if here.is_present() && !there.is_present() {
            problems.add(here.at(), format!("the wheel of the {missing} is missing: give both or neither"));
        }
    }
    let wheel = |wheel: ConfigView<'_, '_>| (wheel.get("url").owned(), wheel.get("sha256").owned());
    let source = if let Some(path) = path.text() {
        ToolSource::Path(PathBuf::from(path))
    } else if compiler.is_present() {
        ToolSource::Url { compiler: wheel(compiler), runtime: wheel(runtime) }
    } else {
        ToolSource::Pypi
    };
    Pin { version: view.get("version").owned(), commit: view.get("commit").owned(), source }
}

/// The text with this version and commit in `[toolchain]`. `None` if there is no such table with a version.
pub fn repinned(text: &str, version: &str, commit: &str) -> Option<String> {
    let document = toml_span::parse(text).ok()?;
    let place = |key: &str| {
        let value = document.pointer(&format!("/toolchain/{key}"))?;
        let known = value.as_str()?.to_owned();
        let Value { span, .. } = value;
        // The span may include the quotes.
        let at = span.start + text.get(span.start..span.end)?.find(&known)?;
        Some(at..at + known.len())
    };
    let at_version = place("version")?;
    let mut edits = vec![(at_version.clone(), version.to_owned())];
    match place("commit") {
        Some(at) => edits.push((at, commit.to_owned())),
        None => {
            let end = at_version.end + text[at_version.end..].find('\n')?;
            edits.push((end..end, format!("\ncommit = \"{commit}\"")));
        }
    }
    edits.sort_by_key(|(at, _)| std::cmp::Reverse(at.start));
    let mut changed = text.to_owned();
    edits.into_iter().for_each(|(at, new)| changed.replace_range(at, &new));
    Some(changed)
}

#[cfg(test)]
mod tests {
    use super::repinned;

    #[test]
    fn only_the_release_and_its_commit_change() {
        let text = "# 3.1.0 \n[suite]\nname = \"3.1.0\"\n\n[toolchain]\nversion = \"3.1.0\" # newest\ncommit = \"aa\"\n";
        let changed = repinned(text, "3.12.0", "bb").unwrap();
        assert_eq!(
            changed,
            text.replace("version = \"3.1.0\"", "version = \"3.12.0\"").replace("\"aa\"", "\"bb\"")
        );
        let without = "[toolchain]\nversion = '3.1.0'\n";
        assert_eq!(
            repinned(without, "3.2.0", "cc").as_deref(),
            Some("[toolchain]\nversion = '3.2.0'\ncommit = \"cc\"\n")
        );
        assert_eq!(repinned("[suite]\nname = \"a\"\n", "3.2.0", "cc"), None);
    }
}
