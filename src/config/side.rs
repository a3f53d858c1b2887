//! `[toolchain]` and `[side.*]`.

use std::path::PathBuf;

use super::problems::Collector;
use super::view::ConfigView;
use super::{Pin, Side, ToolSource};

/// Base, where there is one, and head.
pub(super) fn sides(root: ConfigView<'_, '_>, problems: &mut Collector) -> (Option<Side>, Side) {
    let shared = root.get("toolchain");
    let shared = shared.is_present().then(|| pin(shared, problems));
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
    Side {
        pin: own.or_else(|| shared.cloned()).unwrap_or_else(|| Pin {
            version: String::new(),
            commit: String::new(),
            source: ToolSource::Pypi,
        }),
        flags: view.get("flags").texts(),
        run_flags: view.get("run-flags").texts(),
        sources: PathBuf::from(view.get("sources").owned()),
    }
}

pub(super) fn pin(view: ConfigView<'_, '_>, problems: &mut Collector) -> Pin {
    let path = view.get("path");
    let compiler = view.get("compiler");
    let runtime = view.get("runtime");
    if path.is_present() && (compiler.is_present() || runtime.is_present()) {
        problems.add(path.at(), "`path` and wheels by address exclude each other");
    }
    for (here, there, missing) in [(compiler, runtime, "runtime"), (runtime, compiler, "compiler")] {
        if here.is_present() && !there.is_present() {
            problems.add(here.at(), format!("the wheel of the {missing} is missing: both or none"));
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
