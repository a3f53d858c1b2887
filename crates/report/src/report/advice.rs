//! Lists the findings of a comparison with the fix for each. Also advises how to settle undecided
//! rows of other tools' files, with the commands of the tool that wrote them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use benchgate_core::model::{Consequence, LintCode, Metric, SideName, Verdict};
use benchgate_gate::{Comparison, Reason, Row, RunSummary};

use super::row_view::RowView;
use super::words::ENOUGH_SESSIONS;

/// A lint code and every place where it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LintGroup {
    pub code: LintCode,
    /// Pairs of a benchmark, with the metric unless it is latency, and a detail; both unescaped.
    /// `None` stands for the run as a whole.
    pub found: Vec<(Option<String>, String)>,
    /// The benchmarks that have this finding.
    pub benchmarks: BTreeSet<String>,
    /// Advice on how to fix the finding.
    pub fix: &'static str,
    /// The consequence in this comparison. A finding that can forbid a verdict is only a note if
    /// all rows that have the finding also have a verdict.
    pub consequence: Consequence,
}

pub(super) fn lints(comparison: &Comparison) -> Vec<LintGroup> {
    let mut groups: Vec<LintGroup> = Vec::new();
    // The row to which a group's last findings belong, with their details.
    let mut last: BTreeMap<LintCode, (Option<String>, Vec<String>)> = BTreeMap::new();
    let is_open = |row: &Row| matches!(row.verdict, Verdict::Inconclusive | Verdict::Error);
    let some_open = comparison.rows.iter().any(is_open);
    let mut add = |row: Option<&Row>, code: LintCode, detail: &str| {
        let consequence = match code.consequence() {
            Consequence::Inconclusive | Consequence::NotGreen if !row.map_or(some_open, is_open) => {
                Consequence::Note
            }
            consequence => consequence,
        };
        let benchmark = row.map(|row| row.benchmark.to_string());
        let known = last.entry(code).or_default();
        if known.0 != benchmark {
            *known = (benchmark.clone(), Vec::new());
        }
        let named = row.and_then(|row| RowView::new(row).metric);
        let place =
            benchmark.as_ref().map(|name| named.map_or(name.clone(), |metric| format!("{name} {metric}")));
        // Metrics of one benchmark share most findings, which are listed once, without the metric.
        if known.1.iter().any(|known| known == detail) {
            let cases =
                groups.iter_mut().filter(|group| group.code == code).flat_map(|group| &mut group.found);
            if let Some(case) = cases.rev().find(|case| case.1 == detail).filter(|case| case.0 != place) {
                case.0 = benchmark;
            }
            return;
        }
        known.1.push(detail.to_owned());
        match groups.iter_mut().find(|group| group.code == code) {
            Some(group) => {
                group.found.push((place, detail.to_owned()));
                group.benchmarks.extend(benchmark);
                group.consequence = group.consequence.max(consequence);
            }
            None => {
                let (found, benchmarks) = (vec![(place, detail.to_owned())], benchmark.into_iter().collect());
                let is_own = comparison.head.format.starts_with("benchgate/");
                let fix = match row {
                    Some(Row { reason: Reason::FailsOnBoth { .. }, .. })
                        if code == LintCode::Errored && !is_own =>
                    {
                        LEAVE_OUT
                    }
                    _ => fix(code, &comparison.head.format),
                };
                groups.push(LintGroup { code, found, benchmarks, fix, consequence });
            }
        }
    };
    for lint in &comparison.lints {
        // A finding about both sides is reported once.
        let of_side = |side: SideName| format!("{side}: ");
        let on_both = |detail: &str, other: SideName| {
            let partner = format!("{}{detail}", of_side(other));
            comparison.lints.iter().any(|known| known.code == lint.code && known.detail == partner)
        };
        match (
            lint.detail.strip_prefix(&of_side(SideName::Base)),
            lint.detail.strip_prefix(&of_side(SideName::Head)),
        ) {
            (Some(detail), _) if on_both(detail, SideName::Head) => {
                add(None, lint.code, &format!("both sides: {detail}"));
            }
            (_, Some(detail)) if on_both(detail, SideName::Base) => {}
            _ => add(None, lint.code, &lint.detail),
        }
    }
    for row in &comparison.rows {
        for lint in &row.lints {
            add(Some(row), lint.code, &lint.detail);
        }
    }
    groups.sort_by_key(|group| Reverse(group.consequence));
    groups
}

/// Returns the fix for a finding about results in this format.
fn fix(code: LintCode, format: &str) -> &'static str {
    match (code, format) {
        (LintCode::SingleRepetition, "benchfmt" | "go-test-json") => "Repeat: `go test -bench . -count=10`.",
        (LintCode::SingleRepetition, "conv-library") => {
            "Run the driver several times and put its result lines into one file."
        }
        (LintCode::SingleRepetition, "hyperfine-json") => "Repeat: `hyperfine --runs 10`.",
        (LintCode::ZeroTime, "hyperfine-json") => {
            "The command takes no longer than starting its shell, and hyperfine subtracts the shell's time: \
            run the command without a shell (`hyperfine -N`)."
        }
        (LintCode::ZeroTime, "google-benchmark-json" | "google-benchmark-csv") => {
            "Leave out a benchmark with an empty loop (`--exclude`). A failed row is often printed as 0: look at the tool's log."
        }
        (LintCode::ZeroTime, "google-benchmark-console") => {
            "The console prints a time that is too short for its unit as 0.000: write all digits (`--benchmark_format=json`)."
        }
        (LintCode::SingleRepetition, "pytest-benchmark-json") => {
            "Repeat: `pytest --benchmark-min-rounds=10`."
        }
        (LintCode::SingleRepetition, "jmh-json") => {
            "Repeat: `-f 5 -i 5` of JMH, five forks of five iterations."
        }
        (
            LintCode::SingleRepetition,
            "google-benchmark-json" | "google-benchmark-csv" | "google-benchmark-console",
        ) => {
            "Repeat inside the process: `--benchmark_repetitions=3` or more (check the spelling, the tool ignores unknown flags)."
        }
        (LintCode::SingleRepetition, "asv-json") => {
            "asv runs `track_`, `mem_` and `peakmem_` benchmarks once: give 21 files per side. Run `time_` benchmarks without `--quick`."
        }
        (LintCode::AggregatesOnly, "asv-json") => "Keep the samples: `asv run --record-samples`.",
        (LintCode::Contradictory, "custom-bigger-is-better") => {
            "If less of the unit is better, use `--format-in custom-smaller-is-better`, and split a list that has units of both kinds."
        }
        (LintCode::Contradictory, "custom-smaller-is-better") => {
            "If more of the unit is better, use `--format-in custom-bigger-is-better`, and split a list that has units of both kinds."
        }
        (LintCode::AggregatesOnly, "pytest-benchmark-json") => {
            "Keep the samples: `pytest --benchmark-save-data --benchmark-json=FILE`."
        }
        (LintCode::AggregatesOnly, "criterion-estimates") => {
            "Compare criterion's folders, which have the samples: `cp -r target/criterion base`, and the same for head."
        }
        // libtest and criterion print the same lines, and only criterion writes files.
        (LintCode::AggregatesOnly | LintCode::SingleRepetition, "cargo-bench") => {
            "Give 21 files per side. If criterion printed the lines, compare its folders, which have the samples: `cp -r \
            target/criterion base`, and the same for head."
        }
        (
            LintCode::AggregatesOnly,
            "custom-smaller-is-better" | "custom-bigger-is-better" | "bencher-json",
        ) => {
            "The format keeps one value of each benchmark: compare the files that the benchmark tool itself writes."
        }
        (
            LintCode::SingleRepetition,
            "custom-smaller-is-better" | "custom-bigger-is-better" | "bencher-json" | "latency-csv",
        ) => {
            "Measure in several processes and give each side's files as a pattern: `'base-*.json' 'head-*.json'`."
        }
        (LintCode::SingleRepetition, "nvbench-json") => "Repeat: `--min-samples 10` of nvbench.",
        (LintCode::SingleRepetition, "results-jsonl") => "Repeat: `--repeat 10` of the runner.",
        (LintCode::SingleRepetition, own) if own.starts_with("benchgate/") => {
            "Repeat inside the process, or measure in more processes."
        }
        (LintCode::HighCv, foreign) if !foreign.starts_with("benchgate/") => {
            "Look for other programs on the machine; repeat more often or for longer."
        }
        _ => code.fix(),
    }
}

/// The fix for a benchmark that fails on both sides in the files of another tool.
const LEAVE_OUT: &str =
    "Read the tool's message. `--exclude REGEX` leaves out a benchmark that can't run on this machine.";

/// Returns the next step if head lacks benchmarks that base has.
pub(super) fn missing(comparison: &Comparison) -> Option<&'static str> {
    let is_missing = |row: &Row| {
        row.fatal && row.verdict == Verdict::Missing && matches!(row.reason, Reason::OnlyOn(SideName::Base))
    };
    comparison.rows.iter().any(is_missing).then(|| {
        if comparison.head.format.starts_with("benchgate/") {
            "To delete a benchmark, first merge a `[[waiver]]` for it, without `metric`, into the base branch. A renamed \
             model needs `renamed-from`."
        } else {
            "If head's benchmark has another name, `--rename FROM TO` pairs the two. `--exclude REGEX` leaves out one that was \
             deleted."
        }
    })
}

/// Advice on how to settle rows of files that contain only one or a few sessions per side.
#[derive(Debug, Clone)]
pub struct WayOut {
    pub advice: String,
    pub commands: String,
}

/// Returns the advice if rows are undecided because files contain too few sessions.
pub(super) fn way_out(comparison: &Comparison) -> Option<WayOut> {
    let few = |row: &Row| {
        let sessions = row.estimate.as_ref().and_then(|estimate| estimate.sessions);
        let is_assumed = row.lints.iter().any(|lint| lint.code == LintCode::AssumedSpread);
        // A compiler is timed only once per session, so more files don't help.
        let is_compile_time = row.metric.as_ref().is_some_and(Metric::is_compile_time);
        // Other findings that forbid a verdict about two files forbid it about more files too.
        let is_about_data = |code: LintCode| {
            use LintCode::{AggregatesOnly, AssumedSpread, HostOverloaded, SingleRepetition};
            matches!(code, AggregatesOnly | AssumedSpread | HostOverloaded | SingleRepetition)
        };
        let is_forbidden = matches!(&row.reason, Reason::Unusable(lint) if !is_about_data(lint.code));
        row.fatal
            && !is_forbidden
            && row.verdict == Verdict::Inconclusive
            && is_assumed
            && !is_compile_time
            && sessions.is_some_and(|sessions| sessions < ENOUGH_SESSIONS)
    };
    let all = || comparison.rows.iter().flat_map(|row| &row.lints).chain(&comparison.lints);
    let is_overloaded = || all().any(|lint| lint.code == LintCode::HostOverloaded);
    let repetitions = |row: &Row| {
        let head = row.head.as_ref()?;
        Some(head.samples / u64::from(head.processes.max(1)))
    };
    let most = comparison.rows.iter().filter_map(repetitions).max().unwrap_or(1);
    let count = if most < LEAST_REPETITIONS { ENOUGH_REPETITIONS } else { most };
    let sessions = |row: &Row| row.estimate.as_ref()?.sessions;
    let measured = comparison.rows.iter().filter(|row| few(row)).filter_map(sessions).min()?;
    Some(advice(&comparison.head, is_overloaded(), measured, count))
}

/// Minimum number of repetitions that describe a process sufficiently.
const LEAST_REPETITIONS: u64 = 3;
/// The number of repetitions that is recommended if there are fewer than the minimum.
const ENOUGH_REPETITIONS: u64 = 10;

/// The arguments of `benchgate pair` for Rust benchmarks.
const CARGO_BENCH: &str = "--cwd-base BASE --cwd-head HEAD \\\n  'cargo bench --bench NAME -- {filter}'";

/// Commands that run a tool such that its results can be judged. `SIDE` and `side` are placeholders
/// for the name of a side, `COUNT` for the number of repetitions.
struct ToolCommands {
    /// The arguments of `benchgate pair`.
    pair: &'static str,
    /// The command that measures one session of one side.
    session: &'static str,
    /// The extension of the files that the command writes.
    files: &'static str,
}

fn tool_commands(summary: &RunSummary) -> ToolCommands {
    let is_iree =
        summary.context.executable.as_deref().is_some_and(|path| path.ends_with("iree-benchmark-module"));
    let (pair, session, files) = match summary.format.as_str() {
        "hyperfine-json" if summary.benchmarks > 1 => (
            "--cwd-base BASE --cwd-head HEAD 'COMMAND'",
            "(cd SIDE && hyperfine --export-json \"$OLDPWD/side-$i.json\" COMMANDS)",
            ".json",
        ),
        "hyperfine-json" => (
            "'COMMAND_BASE' 'COMMAND_HEAD'",
            "hyperfine --export-json side-$i.json --command-name NAME \\\n    'COMMAND_SIDE'",
            ".json",
        ),
        "benchfmt" | "go-test-json" => (
            "--cwd-base BASE --cwd-head HEAD \\\n  \"go test -run '^$' -bench {filter}\"",
            "(cd SIDE && go test -bench . -count=COUNT) > side-$i.txt",
            ".txt",
        ),
        "pytest-benchmark-json" => (
            "--cwd-base BASE --cwd-head HEAD \\\n  'pytest --benchmark-json={output} -k {filter}'",
            "(cd SIDE && pytest --benchmark-json=\"$OLDPWD/side-$i.json\")",
            ".json",
        ),
        "google-benchmark-json" | "google-benchmark-csv" | "google-benchmark-console" if is_iree => (
            "\\\n  'iree-benchmark-module --module=BASE.vmfb --benchmark_format=json' \\\n  \
             'iree-benchmark-module --module=HEAD.vmfb --benchmark_format=json'",
            "iree-benchmark-module --module=SIDE.vmfb ARGUMENTS \\\n    --benchmark_repetitions=COUNT --benchmark_out=side-$i.json",
            ".json",
        ),
        "google-benchmark-json" | "google-benchmark-csv" | "google-benchmark-console" => (
            "\\\n  'BASE/PROGRAM --benchmark_format=json --benchmark_filter={filter}' \\\n  \
             'HEAD/PROGRAM --benchmark_format=json --benchmark_filter={filter}'",
            "SIDE/PROGRAM --benchmark_repetitions=COUNT --benchmark_out=side-$i.json",
            ".json",
        ),
        "jmh-json" => (
            "'java -jar BASE.jar -f 1 -rf json -rff {output}' \\\n  'java -jar HEAD.jar -f 1 -rf json -rff {output}'",
            "java -jar SIDE.jar -rf json -rff side-$i.json",
            ".json",
        ),
        "criterion-sample" | "criterion-estimates" => {
            (CARGO_BENCH, "(cd SIDE && cargo bench) && cp -r SIDE/target/criterion side-$i", "")
        }
        "cargo-bench" => (CARGO_BENCH, "(cd SIDE && cargo bench) > side-$i.txt", ".txt"),
        "nvbench-json" => (
            "'BASE/PROGRAM --json {output}' \\\n  'HEAD/PROGRAM --json {output}'",
            "SIDE/PROGRAM --json side-$i.json",
            ".json",
        ),
        // asv prints no results that `pair` could read, and starts too many programs to be timed as a whole.
        "asv-json" => (
            "",
            "(cd SIDE && asv run --record-samples 'HEAD^!') && \\\n    cp SIDE/results/MACHINE/RESULT.json side-$i.json",
            ".json",
        ),
        "results-jsonl" => (
            "'COMMAND_BASE' 'COMMAND_HEAD'",
            "(cd SIDE && python benchmarks/experiment_runner.py ARGUMENTS \\\n    --output-dirname=\"$OLDPWD/side-$i\")",
            "",
        ),
        "custom-smaller-is-better" | "custom-bigger-is-better" => {
            ("'COMMAND_BASE' 'COMMAND_HEAD'", "COMMAND_SIDE > side-$i.json", ".json")
        }
        _ => ("'COMMAND_BASE' 'COMMAND_HEAD'", "COMMAND_SIDE  # writes side-$i.json", ".json"),
    };
    ToolCommands { pair, session, files }
}

/// Returns advice with the commands of the tool that wrote these results, of which each side already has files of this
/// number of sessions.
fn advice(summary: &RunSummary, is_overloaded: bool, measured: u32, repetitions: u64) -> WayOut {
    let ToolCommands { pair, session, files } = tool_commands(summary);
    let session = session.replace("COUNT", &repetitions.to_string());
    let side = |name: &str| session.replace("SIDE", &name.to_uppercase()).replace("side", name);
    // The content does not identify these formats, so the command must name the format.
    let is_named = summary.format.starts_with("custom-");
    let [before, after] = if is_named {
        let option = format!("--format-in {}", summary.format);
        [format!("{option} \\\n  "), format!(" \\\n  {option}")]
    } else {
        Default::default()
    };
    let first =
        if is_overloaded { "The host was overloaded: stop the other programs on it first. " } else { "" };
    let (by_pair, pair) = match pair {
        "" => (String::new(), String::new()),
        _ => (
            "Measure both programs alternately with `benchgate pair`. Or ".to_owned(),
            format!("benchgate pair {before}{pair}\n# or\n"),
        ),
    };
    // One file of each side may have any name, so its number is not known.
    let (runs, numbers) = match measured {
        0 | 1 => (format!("run each program {ENOUGH_SESSIONS} times"), format!("{ENOUGH_SESSIONS}")),
        _ => (
            format!(
                "run each program {} more times, which makes {ENOUGH_SESSIONS} files per side",
                ENOUGH_SESSIONS - measured
            ),
            format!("{} {ENOUGH_SESSIONS}", measured + 1),
        ),
    };
    let runs = if by_pair.is_empty() { runs.replacen('r', "R", 1) } else { runs };
    WayOut {
        advice: format!(
            "{first}More data usually decides the inconclusive rows. {by_pair}{runs}, alternately and with your own \
            arguments, and compare all files with the options of this comparison:"
        ),
        commands: format!(
            "{pair}for i in $(seq {numbers}); do\n  {}\n  {}\ndone\n\
             benchgate compare 'base-*{files}' 'head-*{files}'{after}",
            side("base"),
            side("head")
        ),
    }
}

/// The fix for an assumed spread, if other advice precedes it.
pub(super) const DECLARE: &str = "If you have measured the spread between processes, declare it, for example \
    `--between-cv 5%`. A value that is too small makes noise look like a change.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_of_every_tool_fit_a_terminal_and_are_its_own() {
        const INDENT: usize = 8;
        for (format, command) in [
            ("hyperfine-json", "hyperfine"),
            ("benchfmt", "go test -bench . -count=12"),
            ("pytest-benchmark-json", "pytest"),
            ("google-benchmark-json", "--benchmark_repetitions=12"),
            ("google-benchmark-console", "--benchmark_repetitions=12"),
            ("jmh-json", "java -jar"),
            ("criterion-sample", "cp -r BASE/target/criterion base-$i"),
            ("cargo-bench", "cargo bench) > base-$i.txt"),
            ("nvbench-json", "--json base-$i.json"),
            ("asv-json", "asv run --record-samples"),
            ("results-jsonl", "experiment_runner.py"),
            ("custom-bigger-is-better", "benchgate pair --format-in custom-bigger-is-better"),
        ] {
            for executable in [None, Some("iree-benchmark-module".to_owned())] {
                let mut summary = RunSummary { format: format.to_owned(), ..RunSummary::default() };
                summary.context.executable = executable;
                let commands = advice(&summary, false, 1, 12).commands;
                assert!(commands.contains(command), "{format}: {commands}");
                let longest = commands.lines().map(str::len).max();
                assert!(longest <= Some(80 - INDENT), "{format}: {commands}");
            }
        }
    }
    #[test]
    fn lines_of_libtest_are_not_taken_for_those_of_criterion() {
        for code in [LintCode::SingleRepetition, LintCode::AggregatesOnly] {
            assert!(fix(code, "cargo-bench").starts_with("Give 21 files per side."));
        }
        assert!(
            fix(LintCode::AggregatesOnly, "criterion-estimates").starts_with("Compare criterion's folders")
        );
    }
}
