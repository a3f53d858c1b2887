//! Baselines that are missing, not comparable, or contain wrong results.

use crate::harness::Outcome;
use crate::stored_gate::{commit, git};
use crate::suite::{Suite, npy};

use super::{FAIL_ON, Greens};

fn suite() -> Suite {
    let suite = Suite::new().model("a", &["latency-us=1000"]).write();
    suite.world.write(".gitignore", "/tools\n/run.json\n/.benchgate\n");
    suite
}

/// A suite with two stored sessions.
fn stored() -> Suite {
    let suite = suite();
    git(&suite, &["init", "--quiet"]);
    commit(&suite);
    for _ in 0..2 {
        suite.run_on_a_quiet_host();
        suite.world.run(["baseline", "update"]).expect_code(0);
        commit(&suite);
    }
    suite
}

fn files(suite: &Suite) -> Vec<std::path::PathBuf> {
    fn below(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { below(&path, found) } else { found.push(path) }
        }
    }
    let mut found = Vec::new();
    below(&suite.world.work().join("baselines"), &mut found);
    found
}

fn edited(suite: &Suite, edit: impl Fn(String) -> String) {
    for file in files(suite) {
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(file, edit(text)).unwrap();
    }
    commit(suite);
}

type Spoil = fn(&Suite);

#[test]
fn no_gate_against_a_baseline_that_is_missing_or_spoiled_is_green() {
    let cases: &[(&str, Spoil)] = &[
        ("the store is empty", |suite| {
            std::fs::remove_dir_all(suite.world.work().join("baselines")).unwrap();
            commit(suite);
        }),
        ("the stored files are empty", |suite| edited(suite, |_| String::new())),
        ("the stored files were cut off", |suite| edited(suite, |text| text[..text.len() / 2].to_owned())),
        ("the stored files are of a newer version", |suite| {
            edited(suite, |text| text.replace("benchgate/baseline/v1", "benchgate/baseline/v9"));
        }),
        ("the stored benchmark has another name", |suite| {
            edited(suite, |text| text.replace("a/cpu/main", "z/cpu/main"));
        }),
        ("the stored metric is another one", |suite| {
            edited(suite, |text| text.replace("latency", "latenz"));
        }),
        ("the baseline is of another testbed", |suite| {
            let store = suite.world.work().join("baselines/fake");
            let testbed = std::fs::read_dir(&store).unwrap().next().unwrap().unwrap().path();
            std::fs::rename(&testbed, store.join("0000000000000000")).unwrap();
            edited(suite, |text| text);
        }),
        ("head is three times as slow", |suite| suite.source("a", &["latency-us=3000"])),
        ("head does not compile", |suite| suite.source("a", &["compile-error=no such op"])),
        ("head's output is wrong", |suite| suite.source("a", &["output=1,2,4"])),
        ("head and its reference are wrong together", |suite| {
            suite.source("a", &["latency-us=1000", "output=0,0,0"]);
            suite.world.write("data/y.npy", npy(&[0.0, 0.0, 0.0]));
        }),
        ("head takes no time", |suite| suite.source("a", &["latency-us=0"])),
        ("head is slower and the stored sessions are of the future", |suite| {
            edited(suite, |text| text.replace("2026-", "2099-"));
            suite.source("a", &["latency-us=3000"]);
        }),
        ("head is slower and the stored sessions are of another century", |suite| {
            edited(suite, |text| text.replace("2026-", "1926-"));
            suite.source("a", &["latency-us=3000"]);
        }),
    ];
    let mut greens = Greens::default();
    for (case, spoil) in cases {
        let suite = stored();
        spoil(&suite);
        greens.check(case, &suite.world.run(["gate", "--stored", "--fail-on", FAIL_ON]));
    }
    greens.none(14);
}

#[test]
fn no_slow_night_becomes_the_baseline_it_is_judged_by() {
    let suite = stored();
    let mut greens = Greens::default();
    suite.source("a", &["latency-us=3000"]);
    for night in 0..3 {
        commit(&suite);
        suite.world.run(["run"]).expect_code(0);
        // The update may store the session or refuse it, but the session must not join the baseline.
        suite.world.run(["baseline", "update"]);
        commit(&suite);
        greens.check(
            &format!("after slow night {night}"),
            &suite.world.run(["gate", "--stored", "--fail-on", FAIL_ON]),
        );
    }
    greens.none(3);
}

/// The commit of such a session does not contain what was measured.
#[test]
fn no_session_of_untracked_files_joins_the_baseline() {
    let mut greens = Greens::default();
    let suite = stored();
    suite.world.write("flags.txt", "--iree-opt-level=O2\n");
    let toml = suite.world.read("benchgate.toml");
    suite.world.write(
        "benchgate.toml",
        toml.replace("[[target]]\n", "[[target]]\nflags = [\"--flagfile=flags.txt\"]\n"),
    );
    suite.world.write("notes.txt", "");
    commit(&suite);
    let update = || {
        suite.run_on_a_quiet_host();
        suite.world.run(["baseline", "update"])
    };
    let untrack = |file: &str| {
        git(&suite, &["rm", "--quiet", "--cached", file]);
        git(&suite, &["commit", "--quiet", "-m", "m"]);
    };
    // An untracked file that nothing names is no reason.
    untrack("notes.txt");
    update().expect_code(0);
    commit(&suite);
    for file in ["models/a.mlir", "data/y.npy", "flags.txt"] {
        untrack(file);
        greens.check(file, &update());
        let gate = suite.world.run(["gate", "--stored", "--format", "json"]);
        let report: serde_json::Value = serde_json::from_str(&gate.stdout).unwrap();
        assert!(report["notes"].to_string().contains(file), "{}", gate.said());
        commit(&suite);
    }
    // The author of a file that is ignored knows that no commit has it.
    untrack("flags.txt");
    suite.world.write(".gitignore", "/tools\n/run.json\n/.benchgate\n/flags.txt\n");
    commit(&suite);
    update().expect_code(0);
    greens.none(3);
}

/// Prints a row whose time differs between repetitions, with a rate of this much work per call.
const RATES: &str = r#"
echo '{"context":{},"benchmarks":['
for repetition in 0 1 2 3; do
    time=$((1000000 + 3 * $$ % 5000 + $(date +%N | cut -c1-6 | sed 's/^0*//;s/^$/0/') % 3000))
    [ $repetition = 0 ] || echo ,
    printf '{"name":"BM_a","run_name":"BM_a","run_type":"iteration","repetitions":4,"repetition_index":%s,' $repetition
    printf '"iterations":100,"real_time":%s,"cpu_time":%s,"time_unit":"ns"' $time $time
    RATE
    echo '}'
done
echo ']}'
"#;

/// A stored session has one value of each process, and so does the work that a rate implies.
/// A suite with one command, whose nights are stored.
fn nights() -> Suite {
    let suite = Suite::new();
    suite.world.write(".gitignore", "/tools\n/data\n/run.json\n/.benchgate\n");
    suite.world.write(
        "benchgate.toml",
        "[suite]\nname = \"micro\"\n\n[[command]]\nname = \"micro\"\nrun = \"sh bench.sh\"\nwarmup = 0\n\n\
         [measure]\nprocesses = 6\n",
    );
    git(&suite, &["init", "--quiet"]);
    suite
}

/// Stores a night in which the command also runs `more` for each row.
fn night(suite: &Suite, more: &str) -> Outcome {
    suite.world.write("bench.sh", RATES.replace("RATE", more));
    commit(suite);
    suite.run_on_a_quiet_host();
    suite.world.run(["baseline", "update"])
}

#[test]
fn a_count_of_failures_that_varies_from_night_to_night_joins_the_baseline() {
    let suite = nights();
    let night = |errors: u32| night(&suite, &format!(r#"printf ',"errors":{errors}'"#));
    for errors in [2, 1, 3, 0, 2, 4, 0, 3] {
        night(errors).expect_code(0);
    }
    assert_eq!(night(9).code, Some(11));
}

#[test]
fn no_night_whose_calls_do_less_work_joins_the_baseline() {
    let suite = nights();
    let night = |work: Option<f64>| {
        let printed = work.map_or_else(String::new, |work| {
            format!(r#"awk -v t=$time 'BEGIN {{ printf ",\"items_per_second\":%.17g", {work} / t * 1e9 }}'"#)
        });
        night(&suite, &printed)
    };
    night(Some(1000.0)).expect_code(0);
    night(Some(1000.0)).expect_code(0);
    let mut greens = Greens::default();
    for (case, work) in [
        ("a hundredth of the work", Some(10.0)),
        ("half of the work", Some(500.0)),
        ("half of the work again", Some(500.0)),
        ("no rate", None),
    ] {
        greens.check(case, &night(work));
    }
    greens.none(4);
    night(Some(1000.0)).expect_code(0);
}
