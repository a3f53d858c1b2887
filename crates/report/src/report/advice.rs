//! Advice about a finding, in the words of the tool that wrote the files.

use benchgate_core::model::LintCode;

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
        (LintCode::HighCv, foreign) if !foreign.starts_with("benchgate/") => {
            "Look for what else runs on the machine; repeat more often or for longer."
        }
        _ => code.fix(),
    }
}

/// How to settle rows of files that hold one session of each side, or a few.
#[derive(Debug, Clone)]
pub struct WayOut {
    pub advice: String,
    /// Lines for a shell.
    pub commands: String,
}

/// What the tool of this format is told to do, once for each session and side.
pub(super) fn way_out(format: &str, is_overloaded: bool) -> WayOut {
    let (session, files) = match format {
        "hyperfine-json" => ("hyperfine --export-json side-$i.json 'COMMAND_SIDE'", ".json"),
        "benchfmt" | "go-test-json" => ("(cd SIDE && go test -bench . -count=10) > side-$i.txt", ".txt"),
        "pytest-benchmark-json" => ("pytest SIDE --benchmark-json=side-$i.json", ".json"),
        "google-benchmark-json" => {
            ("SIDE/PROGRAM --benchmark_repetitions=3 --benchmark_out=side-$i.json", ".json")
        }
        "jmh-json" => ("java -jar SIDE.jar -rf json -rff side-$i.json", ".json"),
        "criterion-sample" | "criterion-estimates" => {
            ("(cd SIDE && cargo bench) && cp -r SIDE/target/criterion side-$i", "")
        }
        _ => ("COMMAND_SIDE  # writes side-$i.json", ".json"),
    };
    let side = |name: &str| session.replace("SIDE", &name.to_uppercase()).replace("side", name);
    let first = if is_overloaded { "The host was overloaded: end what else runs on it first. " } else { "" };
    WayOut {
        advice: format!(
            "{first}A few sessions a side can't settle the inconclusive rows. Measure both programs alternately: \
             `benchgate pair 'COMMAND_BASE' 'COMMAND_HEAD'`. Or measure 21 sessions of each program, alternately, and compare \
             them with the same options as now:"
        ),
        commands: format!(
            "for i in $(seq 21); do\n  {}\n  {}\ndone\nbenchgate compare 'base-*{files}' 'head-*{files}'",
            side("base"),
            side("head")
        ),
    }
}

/// The fix for an assumed spread if other advice precedes it.
pub(super) const DECLARE: &str = "If you know how much processes differ, declare it: `--between-cv 1%`.";
