//! `[toolchain]` and `[side.*]`: the tools and sources of each side.

use std::path::PathBuf;

use super::fields::{KeyPresence, LINES, Section, ValueKind, optional, required};
use super::problems::Collector;
use super::table::{DeclaredTable, table};
use super::view::ConfigView;

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
