//! Flags that must not be set by hand, because they only work together with others.

use super::problems::Collector;
use super::view::ConfigView;

/// Repeats every dispatch at compile time …
const REPEAT: &str = "--iree-hal-benchmark-dispatch-repeat-count";
/// … and divides the time at run time. One flag without the other on one side would look like a change.
const BATCH: &str = "--batch_size";

/// With other than the asynchronous models, no dispatch is repeated but the time is still divided.
const EXECUTION_MODEL: &str = "--iree-execution-model";
const ASYNCHRONOUS: [&str; 2] = ["async-internal", "async-external"];

/// Flags for the output of the tools: benchgate sets them, and the cache has their files.
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

/// Why a flag must not be given by hand, if it must not. Files of flags hold more of them, which are checked where
/// they are read.
pub fn refused_flag(flag: &str) -> Option<String> {
    let name = flag.split('=').next().unwrap_or_default();
    // The runtime's parser takes one dash or two; the compiler's too.
    let name = format!("--{}", name.trim_start_matches('-'));
    if !flag.starts_with('-') {
        return None;
    }
    if [REPEAT, BATCH].contains(&name.as_str()) {
        let why = "alone changes what a time means: use `dispatch-repeats` of the model, which also sets the compiler's repeat count";
        return Some(format!("`{name}` {why}"));
    }
    let value = flag.split_once('=').map_or("", |(_, value)| value);
    if name == EXECUTION_MODEL && !ASYNCHRONOUS.contains(&value) {
        let models = ASYNCHRONOUS.join("` or `");
        return Some(format!("`{name}` must be `{models}`: other models ignore `dispatch-repeats`"));
    }
    let shown = if name == "--o" { "-o" } else { &name };
    OUTPUTS
        .contains(&name.as_str())
        .then(|| format!("`{shown}` is set by benchgate, which needs the tool's output itself"))
}

/// Reports these flags wherever flags may be.
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
