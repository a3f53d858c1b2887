//! `[measure]`: how benchmarks are measured.

use std::time::Duration;

use serde::Serialize;
use strum::VariantNames;

use crate::model::GpuClock;

use super::fields::{COUNT, KeyPresence, ValueKind};
use super::problems::Collector;
use super::table::{DeclaredTable, key_values, minutes, table};
use super::view::ConfigView;

table! {
    #[derive(Debug, Clone, PartialEq, Serialize)]
    pub struct Measure, MEASURE: "[measure]", "";
    "repetitions" => repetitions: Option<u32>, COUNT,
        "Repetitions inside one process. By default 3 to 24, chosen per benchmark from a short trial, so that a \
             process measures for about as long as it takes to start (40 to 200 ms).";
    "min-time" => min_time: Option<Duration>, ValueKind::Duration,
        "Minimum time of one repetition. By default 2.5 to 8 ms, or one iteration.";
    "iterations-per-run" => iterations: Option<u32>, COUNT,
        "Iterations of one repetition, instead of as many as fill `min-time`.";
    "warmup" => warmup: Option<Duration>, ValueKind::Duration,
        "Untimed warm-up of each process. By default at least one iteration and an eighth of the time measured.";
    "processes" => processes: u32 = 8, COUNT, "Processes per benchmark when one side is measured alone.";
    "min-blocks": KeyPresence::Policy(|policy| policy.sequential.min_blocks.to_string()), COUNT,
        "With two sides: blocks (two pairs of a base and a head process, in random order) per benchmark \
        before the first interim analysis (look).";
    "max-blocks": KeyPresence::Policy(|policy| policy.sequential.max_blocks.to_string()),
        COUNT, "Maximum number of blocks: a row still undecided after these is inconclusive.";
    "time-budget" => time_budget: Option<Duration>, ValueKind::Duration,
        "Measuring time of all benchmarks together. After the first look, the undecided rows that need the \
        least time for their next look are measured first. No row gets more than `max-blocks`.";
    "timeout" => timeout: Duration = minutes(5), ValueKind::Duration, "Limit of one benchmark process.";
    "compile-timeout" => compile_timeout: Duration = minutes(10), ValueKind::Duration, "Limit of one compilation.";
    "compile-instructions" => compile_instructions: bool = false, ValueKind::Bool,
        "Count the instructions of each compilation, with one thread and under valgrind, as the exact metric \
        `compile-instructions`. Counting takes 50 to 120 times as long as compiling, at most \
        `compile-timeout`.";
    "export-timeout" => export_timeout: Duration = minutes(10), ValueKind::Duration, "Limit of one export.";
    "cpus" => cpus: Option<Vec<usize>>, ValueKind::List(&ValueKind::Integer { min: 0, max: 4095 }),
        "Processors to pin CPU targets to. By default benchgate leaves one processor to the host.";
    "lock-clocks" => lock_clocks: Option<GpuClock>, ValueKind::Line,
        "Lock the GPU's clock while measuring, and unlock it afterwards: `\"base\"`, the clock that the chip \
        sustains under any load, or a value such as `\"1410MHz\"`. NVIDIA only, and needs permission \
        (docs/gpu-guide.md); without permission benchgate prints a note and continues. Without this key no setting \
        is changed.";
    "profile" => profile: Profiling = Profiling::Changed, ValueKind::Choice(Profiling::VARIANTS),
        "Time per kernel, from separate processes after all measurements; it is never judged, and `benchgate \
        explain` shows it. `changed`: for benchmarks whose latency regressed or improved. \
             `always`: for all. It needs a runtime that includes `iree-profile`.";
    "jobs" => jobs: Option<usize>,
        ValueKind::Integer { min: 1, max: 4096 }, "Parallel compile jobs; by default one per processor.";
    "seed" => seed: Option<u64>, ValueKind::Integer { min: 0, max: i64::MAX },
        "Seed of the order in which processes run, to repeat a schedule. By default each session draws its \
             own, so that the order can't be known beforehand; run.json records it. A pull request is measured \
             with the seed of its base.";
}

/// The benchmarks that are run again under the runtime's profiler after measuring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum Profiling {
    /// Benchmarks whose latency regressed or improved.
    Changed,
    Always,
    Never,
}

key_values! {
    Profiling: ConfigView::word, |word: &Self| format!("{:?}", word.into_str());
    GpuClock: |view: ConfigView<'_, '_>| view.text().and_then(Self::parse), |clock: &Self| format!("\"{clock}\"");
}

/// Reads the table and checks the rules for its values.
pub(super) fn measure(view: ConfigView<'_, '_>, problems: &mut Collector) -> Measure {
    let measure = Measure::read(view);
    for key in ["min-time", "timeout", "compile-timeout", "export-timeout", "time-budget"] {
        if view.get(key).duration().is_some_and(|duration| duration.is_zero()) {
            problems.add(view.get(key).at(), format!("`{key}`: expected more than zero"));
        }
    }
    let cpus = view.get("cpus");
    let numbers: Vec<usize> = cpus.items().filter_map(ConfigView::integer).collect();
    if cpus.is_present() && cpus.items().next().is_none() {
        problems.add(cpus.at(), "`cpus`: the list is empty; leave the key out to let benchgate choose");
    }
    for (index, item) in cpus.items().enumerate() {
        if item.integer().is_some_and(|cpu: usize| numbers[..index.min(numbers.len())].contains(&cpu)) {
            problems.add(item.at(), "`cpus`: a processor is named twice");
        }
    }
    let clock = view.get("lock-clocks");
    if clock.is_present() && clock.text().is_some() && measure.lock_clocks.is_none() {
        problems.add(clock.at(), "`lock-clocks`: expected \"base\" or a clock such as \"1410MHz\"");
    }
    measure
}
