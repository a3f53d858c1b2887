//! What to do about a finding, in the words of the tool that wrote the files.

use crate::model::LintCode;

/// The fix for a finding about results of this format.
pub(super) fn fix(code: LintCode, format: &str) -> &'static str {
    match (code, format) {
        (LintCode::SingleRepetition, "benchfmt" | "go-test-json") => "Repeat: `go test -bench . -count=10`.",
        (LintCode::SingleRepetition, "conv-library") => {
            "Run the driver several times and put its result lines into one file."
        }
        (LintCode::SingleRepetition, "hyperfine-json") => "Repeat: `hyperfine --runs 10`.",
        (LintCode::SingleRepetition, "pytest-benchmark-json") => {
            "Repeat: `pytest --benchmark-min-rounds=10`."
        }
        (LintCode::SingleRepetition, "jmh-json") => {
            "Repeat: `-f 5 -i 5` of JMH, five forks of five iterations."
        }
        (LintCode::SingleRepetition | LintCode::AggregatesOnly, "asv-json") => {
            "Keep the samples: `asv run --record-samples`."
        }
        (LintCode::AggregatesOnly, "pytest-benchmark-json") => {
            "Keep the samples: `pytest --benchmark-save-data --benchmark-json=FILE`."
        }
        (LintCode::AggregatesOnly, "cargo-bench" | "criterion-estimates") => {
            "Compare criterion's folders, which have the samples: `cp -r target/criterion base`, and the same for head."
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
        (LintCode::AssumedSpread, "hyperfine-json") => {
            "Run each side 21 times, in turns (`hyperfine --export-json base-$i.json COMMAND`), and give all files: `benchgate compare 'base-*.json' 'head-*.json'`; or declare how much processes differ: `--between-cv 1%`."
        }
        (LintCode::AssumedSpread, "benchfmt" | "go-test-json") => {
            "Run each side 21 times, in turns (`go test -bench . > base-$i.txt`), and give all files: `benchgate compare 'base-*.txt' 'head-*.txt'`; or declare how much processes differ: `--between-cv 1%`. `-count` repeats inside one process."
        }
        (LintCode::AssumedSpread, "pytest-benchmark-json") => {
            "Run each side 21 times, in turns (`pytest --benchmark-json=base-$i.json`), and give all files: `benchgate compare 'base-*.json' 'head-*.json'`; or declare how much processes differ: `--between-cv 1%`."
        }
        (LintCode::HighCv, foreign) if !foreign.starts_with("benchgate/") => {
            "Look for what else runs on the machine; repeat more often or for longer."
        }
        _ => code.fix(),
    }
}
