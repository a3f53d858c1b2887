//! Flags that must not be set by hand, because benchgate sets them or because they only work in combination.

use super::problems::Collector;
use super::values::ConfigView;

/// The compile flag that repeats every dispatch. `BATCH` divides the measured time at run time; either flag
/// without the other would look like a change in performance.
const REPEAT: &str = "--iree-hal-benchmark-dispatch-repeat-count";
/// The run flag that divides the measured time by a count.
const BATCH: &str = "--batch_size";

/// The compile flag for the execution model. Dispatches are repeated only in the asynchronous models, but the
/// measured time is divided in every model.
const EXECUTION_MODEL: &str = "--iree-execution-model";
const ASYNCHRONOUS: [&str; 2] = ["async-internal", "async-external"];

/// The compile flag that skips phases. The phase `hal` repeats the dispatches, so it must not be skipped.
const COMPILE_FROM: &str = "--compile-from";
const BEFORE_REPEATING: [&str; 11] = [
    "start",
    "input",
    "abi",
    "preprocessing",
    "global-optimization",
    "dispatch-creation",
    "flow",
    "stream",
    "executable-sources",
    "executable-configurations",
    "executable-targets",
];

/// Flags for the output of the tools. benchgate sets them itself and keeps the files in its cache.
const OUTPUTS: [&str; 8] = [
    "--o",
    "--compile-to",
    "--output-format",
    "--iree-scheduling-dump-statistics-file",
    "--iree-scheduling-dump-statistics-format",
    "--output",
    "--benchmark_out",
    "--benchmark_out_format",
];

/// The reason why a flag must not be given by hand; `None` if it may be. The flags in a flag file are checked
/// when that file is read.
pub fn refused_flag(flag: &str) -> Option<String> {
    let name = flag.split('=').next().unwrap_or_default();
    // The parsers of the runtime and the compiler accept one dash or two.
    let name = format!("--{}", name.trim_start_matches('-'));
    if !flag.starts_with('-') {
        return None;
    }
    if [REPEAT, BATCH].contains(&name.as_str()) {
        let why = "alone makes the times wrong: use `dispatch-repeats` of the model, which also sets the compiler's repeat count";
        return Some(format!("`{name}` {why}"));
    }
    let value = flag.split_once('=').map_or("", |(_, value)| value);
    if name == EXECUTION_MODEL && !ASYNCHRONOUS.contains(&value) {
        let models = ASYNCHRONOUS.join("` or `");
        return Some(format!("`{name}` must be `{models}`: other models ignore `dispatch-repeats`"));
    }
    if name == COMPILE_FROM && !BEFORE_REPEATING.contains(&value) {
        let why = "later phases ignore `dispatch-repeats`";
        return Some(format!("`{name}` must be a phase of the compiler up to `executable-targets`: {why}"));
    }
    let shown = if name == "--o" { "-o" } else { &name };
    OUTPUTS
        .contains(&name.as_str())
        .then(|| format!("benchgate sets `{shown}`, because it reads the tool's output itself"))
}

/// Reports refused flags in every table that can have flags.
pub(super) fn check(root: ConfigView<'_, '_>, problems: &mut Collector) {
    let sides = ["base", "head"].map(|side| root.get("side").get(side));
    let tables = root.get("model").items().chain(root.get("target").items()).chain(sides);
    for table in tables {
        let flags = ["flags", "run-flags"].map(|key| table.get(key));
        for flag in flags.into_iter().flat_map(ConfigView::items) {
            if let Some(why) = flag.text().and_then(refused_flag) {
                problems.add(flag.at(), why);
            }
        }
    }
}
