//! Sessions of unchanged programs that other tools recorded on a loaded machine.

use std::collections::BTreeMap;
use std::path::Path;

use benchgate::ingest::{self, Joiner};
use benchgate::model::{LintCode, Metric, Process, Run, Series, Verdict};
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};

use super::build::{judged, run, with};

fn sessions(name: &str) -> Vec<Run> {
    let path = format!("tests/fixtures/corpus/plain/{name}.jsonl.gz");
    let bytes = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let text = String::from_utf8(ingest::decompressed(&bytes, name).unwrap().into_owned()).unwrap();
    let read = |line: &str| {
        let files: BTreeMap<String, String> = serde_json::from_str(line).unwrap();
        let mut joiner = Joiner::new();
        for (path, content) in files.iter().filter(|(path, _)| !path.ends_with("benchmark.json")) {
            joiner.push(ingest::read_detected(content.as_bytes(), path).unwrap()).unwrap();
        }
        joiner.finish().unwrap()
    };
    text.lines().map(read).collect()
}

#[test]
fn two_sessions_of_an_unchanged_program_on_a_loaded_machine_are_not_red() {
    let tools =
        ["hyperfine", "pytest-benchmark", "google-benchmark", "go", "asv", "criterion", "hyperfine-waiting"];
    for tool in tools {
        let runs = sessions(tool);
        for apart in [1, 5] {
            for at in 0..runs.len() - apart {
                let (a, b) = (&runs[at], &runs[at + apart]);
                for (base, head) in [(a, b), (b, a)] {
                    let comparison = judged(base, head);
                    let red = comparison.rows.iter().find(|row| row.verdict == Verdict::Regressed);
                    assert!(red.is_none(), "{tool} {at} {apart}: {red:?}");
                    let interval = |row: &benchgate::gate::Row| row.estimate.as_ref()?.interval;
                    let widest =
                        comparison.rows.iter().filter_map(interval).map(|it| it.high).fold(0.0, f64::max);
                    assert!(widest < 11.0, "{tool} {at} {apart}: an interval up to {widest}");
                }
            }
        }
    }
}

#[test]
fn no_file_of_a_real_tool_is_a_copy_of_another_one() {
    for tool in [
        "hyperfine",
        "pytest-benchmark",
        "google-benchmark",
        "go",
        "asv",
        "criterion",
        "hyperfine-waiting",
        "idle-google-benchmark",
    ] {
        let runs = sessions(tool);
        let (base, head) = runs.split_at(runs.len() / 2);
        let [base, head] = [base, head].map(|side| ingest::join(side.to_vec()).unwrap().unwrap());
        let comparison = judged(&base, &head);
        let of_rows = comparison.rows.iter().flat_map(|row| &row.lints);
        let copies = comparison.lints.iter().chain(of_rows).find(|it| it.code == LintCode::RepeatedSamples);
        assert_eq!(copies, None, "{tool}");
    }
}

#[test]
fn files_of_two_builds_recorded_in_turns_on_an_idle_machine_say_that_nothing_changed() {
    let runs = sessions("idle-google-benchmark");
    let join = |runs: &[Run]| ingest::join(runs.to_vec()).unwrap().unwrap();
    let comparison = judged(&join(&runs[..21]), &join(&runs[21..]));
    let of = |name: &str| comparison.rows.iter().find(|row| row.benchmark.as_str() == name).unwrap().verdict;
    assert_eq!([of("BM_xorshift"), of("BM_sum")], [Verdict::Pass; 2]);
    assert!(comparison.rows.iter().all(|row| row.verdict != Verdict::Regressed));
}

/// 24 files of ten repetitions, of which a share takes `factor` times as long.
fn stalling(seed: u64, share: f64, factor: f64) -> Run {
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    let mut time = || {
        let noise = 1.0 + 0.01 * random.random::<f64>();
        noise * if random.random::<f64>() < share { factor } else { 1.0 }
    };
    let of_file = |session| {
        let samples = (0..10).map(|_| 1000.0 * time()).collect();
        Process { samples, session, ..Process::default() }
    };
    run(vec![with("a", Metric::LATENCY, Series::Processes((0..24).map(of_file).collect()))])
}

#[test]
fn a_head_that_stalls_as_often_as_base_but_longer_is_not_green() {
    let verdict = |seed: u64, [of_base, of_head]: [f64; 2]| {
        judged(&stalling(seed, 0.1, of_base), &stalling(seed + 100, 0.1, of_head)).rows[0].verdict
    };
    let passes = |factors| (0..20).filter(|seed| verdict(*seed, factors) == Verdict::Pass).count();
    assert_eq!(passes([2.0, 10.0]), 0);
    assert!(passes([2.0, 4.0]) <= 2);
    assert!(passes([2.0, 2.0]) >= 18);
    assert!(passes([10.0, 10.0]) >= 18);
}
