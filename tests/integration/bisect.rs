//! `benchgate bisect`: finds the commit or toolchain that made a benchmark worse.

use git2::Repository;
use serde_json::Value;

use crate::harness::{Outcome, install_script};
use crate::pull_request::{commit, repository};
use crate::schemas::faults;
use crate::suite::{Suite, install_fake_tools};

/// Runs a search that must end with this code, and returns its stored form.
pub fn bisect(suite: &Suite, arguments: &[&str], code: i32) -> (Value, Outcome) {
    let all = [&["bisect", "--format", "json", "--max-blocks", "24"][..], arguments].concat();
    let outcome = suite.world.run(all).expect_code(code);
    let found: Value = serde_json::from_str(&outcome.stdout).unwrap_or_default();
    if !found.is_null() {
        assert_eq!(faults("bisection.json", &found), Vec::<String>::new());
        assert_eq!(found["exit_code"], code);
    }
    (found, outcome)
}

pub fn culprits(found: &Value) -> Vec<(u64, u64)> {
    let parts = found["parts"].as_array().unwrap();
    let culprits = parts.iter().filter(|part| part["kind"] == "culprit");
    culprits.map(|part| (part["after"].as_u64().unwrap(), part["upto"].as_u64().unwrap())).collect()
}

/// A repository with one commit for each of these latencies; 0 stands for a commit that only changes a page.
pub fn history(latencies: &[u32]) -> (Suite, Repository) {
    let (suite, repository) = repository();
    let head = repository.head().unwrap().peel_to_commit().unwrap();
    repository.branch("main", &head, true).unwrap();
    drop(head);
    for (at, latency) in latencies.iter().enumerate() {
        if *latency == 0 {
            suite.world.write("README", format!("{at}"));
        } else {
            suite.source("a", &[&format!("latency-us={latency}")]);
        }
        commit(&repository, &format!("commit {at}"));
    }
    (suite, repository)
}

fn visits(suite: &Suite) -> usize {
    let searches = std::fs::read_dir(suite.world.work().join(".benchgate/bisect")).unwrap();
    let files = searches.flat_map(|search| std::fs::read_dir(search.unwrap().path()).unwrap());
    files.filter(|file| file.as_ref().unwrap().file_name().to_string_lossy().starts_with("visit-")).count()
}

#[test]
fn the_commit_that_made_it_slower_is_named_and_a_second_search_measures_nothing() {
    // The first commit contains the suite itself; these commits follow it.
    let (suite, _repository) = history(&[0, 0, 1100, 0, 0]);
    let ends = ["--good", "main", "--bad", "change"];
    let (found, _) = bisect(&suite, &ends, 0);
    assert_eq!(culprits(&found), [(2, 3)], "{found:#}");
    assert_eq!(found["result"], "found");
    assert_eq!(found["candidates"][3]["title"], "commit 2");
    let culprit = found["parts"].as_array().unwrap().iter().find(|part| part["kind"] == "culprit").unwrap();
    let change = culprit["observation"]["change"].as_f64().unwrap();
    assert!((1.05..1.15).contains(&change), "{change}");
    // Commits that don't change the module are the same candidate.
    assert_eq!(found["candidates"][2]["same_as"], 0);
    let measured = visits(&suite);
    let (again, _) = bisect(&suite, &ends, 0);
    assert_eq!((culprits(&again), visits(&suite)), (vec![(2, 3)], measured));
}

#[test]
fn a_search_that_was_cut_short_by_its_time_budget_goes_on_where_it_stopped() {
    let (suite, _repository) = history(&[0, 1100, 0]);
    let ends = ["--good", "main", "--bad", "change"];
    let (cut, _) = bisect(&suite, &[&ends[..], &["--time-budget", "1ms"]].concat(), 11);
    assert_eq!((cut["result"].as_str(), visits(&suite)), (Some("unfinished"), 1));
    let (found, _) = bisect(&suite, &ends, 0);
    assert_eq!(culprits(&found), [(1, 2)]);
    assert!(suite.world.work().join(".benchgate/bisect").is_dir());
}

#[test]
fn a_bad_end_that_is_not_worse_is_said_and_no_commit_is_named() {
    let (suite, _repository) = history(&[0, 900]);
    let (found, outcome) = bisect(&suite, &["--good", "main", "--bad", "change"], 2);
    assert_eq!(found["result"], "not-worse");
    assert!(found["parts"].is_null() && visits(&suite) == 1, "{}", outcome.stdout);
}

#[test]
fn a_bad_end_that_is_many_times_faster_is_said_to_be_better() {
    let (suite, _repository) = history(&[0, 80]);
    let (found, _) = bisect(&suite, &["--good", "main", "--bad", "change"], 2);
    let headline = found["headline"].as_str().unwrap();
    assert!(headline.contains("is not worse") && headline.ends_with("× better)"), "{headline}");
}

#[test]
fn a_filter_that_matches_nothing_is_a_usage_error_as_in_a_run() {
    let (suite, _repository) = history(&[0, 1100]);
    let (_, outcome) =
        bisect(&suite, &["--good", "main", "--bad", "change", "--filter", "nothing-of-this-name"], 2);
    assert!(is_one_error(&outcome) && outcome.stderr.contains("--filter"), "{}", outcome.stderr);
}

#[test]
fn commits_that_do_not_build_are_skipped_and_reported_as_a_range() {
    let (suite, repository) = history(&[]);
    suite.source("a", &["compile-error=broken"]);
    commit(&repository, "broken");
    suite.source("a", &["latency-us=1200"]);
    commit(&repository, "repaired and slower");
    let (found, _) = bisect(&suite, &["--good", "main", "--bad", "change"], 0);
    assert_eq!(culprits(&found), [(0, 2)]);
    assert!(found["candidates"][1]["skipped"].as_str().unwrap().contains("compile"), "{found:#}");
}

#[test]
fn a_commit_whose_compiler_never_ends_is_skipped() {
    let (suite, repository) = repository();
    let toml =
        suite.world.read("benchgate.toml").replace("compile-timeout = \"20s\"", "compile-timeout = \"2s\"");
    suite.world.write("benchgate.toml", toml);
    commit(&repository, "a shorter limit");
    suite.source("a", &["compile-hang=1"]);
    commit(&repository, "hangs");
    suite.source("a", &["latency-us=1200"]);
    commit(&repository, "slower");
    let (found, _) = bisect(&suite, &["--good", "change~2", "--bad", "change"], 0);
    assert_eq!(culprits(&found), [(0, 2)]);
}

#[test]
fn exact_values_failures_and_wrong_outputs_take_one_look_at_a_commit() {
    let cases: [(&str, &[&str]); 3] = [
        ("dispatch-count", &["latency-us=1000", "dispatch-count=9"]),
        ("outputs", &["latency-us=1000", "output=1,2,4"]),
        ("failure", &["compile-error=no"]),
    ];
    for (observed, directives) in cases {
        let (suite, repository) = repository();
        suite.source("a", &["latency-us=1000", "dispatch-count=7"]);
        commit(&repository, "counted");
        for at in 0..6 {
            suite.world.write("README", format!("{at}"));
            if at == 3 {
                suite.source("a", directives);
            }
            commit(&repository, &format!("commit {at}"));
        }
        let ends = ["--good", "change~6", "--bad", "change", "--observe", observed];
        let (found, _) = bisect(&suite, &ends, 0);
        assert_eq!(culprits(&found), [(3, 4)], "{observed}: {found:#}");
        assert!(visits(&suite) <= 7, "{observed}");
    }
}

/// Creates a folder of tools whose compiler makes everything this slow.
fn tools(suite: &Suite, name: &str, script: &str) {
    let folder = suite.world.work().join(name);
    install_fake_tools(&folder);
    let real = suite.world.work().join("tools/iree-compile");
    std::fs::remove_file(folder.join("iree-compile")).unwrap();
    install_script(&folder.join("iree-compile"), &script.replace("REAL", &real.display().to_string()));
}

fn list(suite: &Suite, names: &[&str]) {
    let table = |name: &&str| {
        format!(
            "[[toolchain]]\nversion = \"{name}\"\ncommit = \"{}\"\npath = \"{name}\"\n\n",
            crate::suite::COMMIT
        )
    };
    suite.world.write("list.toml", names.iter().map(table).collect::<String>());
}

#[test]
fn toolchains_of_a_list_are_searched_and_one_that_can_not_run_is_skipped() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).write();
    for (name, latency) in [("1.0", 1000), ("1.1", 1000), ("1.3", 1150)] {
        tools(&suite, name, &format!("#!/bin/sh\nexec REAL \"$@\" --fake=latency-us={latency}\n"));
    }
    tools(&suite, "1.2", "#!/bin/sh\nexit 1\n");
    list(&suite, &["1.0", "1.1", "1.2", "1.3"]);
    let (found, _) = bisect(&suite, &["--toolchains", "list.toml"], 0);
    assert_eq!(culprits(&found), [(1, 3)], "{found:#}");
    assert!(found["candidates"][2]["skipped"].is_string());
}

/// A compiler that accepts one of the two names of a flag.
fn knows(flag: &str, latency: u32) -> String {
    format!(
        "#!/bin/sh\nfor arg in \"$@\"; do case \"$arg\" in\n\
         {flag}=*) ;;\n\
         --its-*) echo \"iree-compile: Unknown command line argument '$arg'.  Try: 'iree-compile --help'\" >&2; exit 1 ;;\n\
         esac; done\nexec REAL \"$@\" --fake=latency-us={latency}\n"
    )
}

#[test]
fn a_flag_that_was_renamed_is_given_by_the_name_that_a_version_knows() {
    let target = "[[target]]\nname = \"gpu\"\nbackend = \"llvm-cpu\"\ndevice = \"local-task\"\nflags = [\"--its-new-target=a\"]";
    let suite = Suite::new().model("a", &["latency-us=1000"]).toml(target).write();
    tools(&suite, "1.0", &knows("--its-old-target", 1000));
    tools(&suite, "1.1", &knows("--its-new-target", 1200));
    list(&suite, &["1.0", "1.1"]);
    let arguments = ["--toolchains", "list.toml", "--filter", "gpu"];
    let (_, outcome) = bisect(&suite, &arguments, 20);
    assert!(
        outcome.stderr.contains("[aliases]") && outcome.stderr.contains("--its-new-target"),
        "{}",
        outcome.stderr
    );
    let toml = suite.world.read("benchgate.toml");
    suite
        .world
        .write("benchgate.toml", format!("{toml}\n[aliases]\n\"--its-old-target\" = \"--its-new-target\"\n"));
    let (found, _) = bisect(&suite, &arguments, 0);
    assert_eq!(culprits(&found), [(0, 1)]);
}

#[test]
fn builds_of_another_repository_are_made_once_and_searched() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).write();
    let compiler = suite.world.work().join("compiler");
    std::fs::create_dir(&compiler).unwrap();
    let repository = Repository::init(&compiler).unwrap();
    for latency in ["1000", "1001", "1200"] {
        std::fs::write(compiler.join("latency"), latency).unwrap();
        commit(&repository, latency);
    }
    let work = suite.world.work();
    // The tools of a tree report the commit from which they were built.
    let script = format!(
        "#!/bin/sh\nset -e\ncp -R {0}/tools/. \"$BENCHGATE_TREE\"\n\
         echo \"$BENCHGATE_COMMIT\" > \"$BENCHGATE_TREE/COMMIT\"\n\
         printf 'REVISIONS = {{\"IREE\": \"%s\"}}\\n' \"$BENCHGATE_COMMIT\" > \"$BENCHGATE_TREE/version.py\"\n\
         latency=$(git show \"$BENCHGATE_COMMIT:latency\")\n\
         mv \"$BENCHGATE_TREE/iree-compile\" \"$BENCHGATE_TREE/real\"\n\
         cp \"$BENCHGATE_TREE/iree-run-module\" \"$BENCHGATE_TREE/iree-compile\"\n\
         rm \"$BENCHGATE_TREE/iree-compile\"\n\
         mkdir \"$BENCHGATE_TREE/real.d\"\nmv \"$BENCHGATE_TREE/real\" \"$BENCHGATE_TREE/real.d/iree-compile\"\n\
         cp \"$BENCHGATE_TREE/COMMIT\" \"$BENCHGATE_TREE/real.d\"\n\
         printf '#!/bin/sh\\nexec %s/real.d/iree-compile \"$@\" --fake=latency-us=%s\\n' \"$BENCHGATE_TREE\" \"$latency\" \
         > \"$BENCHGATE_TREE/iree-compile\"\nchmod +x \"$BENCHGATE_TREE/iree-compile\"\n",
        work.display()
    );
    install_script(&work.join("build.sh"), &script);
    let build = work.join("build.sh").display().to_string();
    let arguments =
        ["--good", "HEAD~2", "--bad", "HEAD", "--build-repository", "compiler", "--build", build.as_str()];
    let (found, _) = bisect(&suite, &arguments, 0);
    assert_eq!(culprits(&found), [(1, 2)], "{found:#}");
}

#[test]
fn ends_that_can_not_be_searched_between_are_usage_errors_and_measure_nothing() {
    let (suite, repository) = history(&[0, 0]);
    let head = repository.head().unwrap().peel_to_commit().unwrap();
    // Another history that has no commit in common with this one.
    let author = git2::Signature::now("t", "t@example.com").unwrap();
    repository
        .commit(Some("refs/heads/island"), &author, &author, "alone", &head.tree().unwrap(), &[])
        .unwrap();
    for (good, bad, says) in [
        ("change", "change", "the range is empty"),
        ("change", "main", "swap the ends"),
        ("island", "change", "no commit in common"),
        ("3.9.0", "change", "a release and a commit"),
    ] {
        let (_, outcome) = bisect(&suite, &["--good", good, "--bad", bad], 2);
        assert!(is_one_error(&outcome) && outcome.stderr.contains(says), "{good}..{bad}: {}", outcome.stderr);
    }
    assert!(!suite.world.work().join(".benchgate/bisect").exists());
}

/// Returns true if exactly one error was reported, and otherwise only notes.
fn is_one_error(outcome: &Outcome) -> bool {
    let errors = outcome.stderr.lines().filter(|line| line.starts_with("error:"));
    outcome.stdout.is_empty() && errors.count() == 1
}

#[test]
fn a_tag_that_was_deleted_between_two_attempts_is_an_error_and_nothing_measured_is_lost() {
    let (suite, repository) = history(&[0, 1100, 0]);
    let good = repository.revparse_single("main").unwrap();
    repository.tag_lightweight("v1", &good, false).unwrap();
    let cut = ["--good", "v1", "--bad", "change", "--time-budget", "1ms"];
    bisect(&suite, &cut, 11);
    repository.tag_delete("v1").unwrap();
    let (_, outcome) = bisect(&suite, &["--good", "v1", "--bad", "change"], 2);
    assert!(is_one_error(&outcome) && outcome.stderr.contains("resolve `v1`"), "{}", outcome.stderr);
    // If the good end is named by its commit, the search is resumed.
    let (found, outcome) = bisect(&suite, &["--good", &good.id().to_string(), "--bad", "change"], 0);
    assert_eq!(culprits(&found), [(1, 2)]);
    assert!(outcome.stderr.contains("resuming: reusing 1 measurement"), "{}", outcome.stderr);
}

#[test]
fn a_good_end_that_is_as_slow_as_the_bad_one_is_said_with_what_to_try() {
    let (suite, _repository) = history(&[1200, 0, 0]);
    let (found, _) = bisect(&suite, &["--good", "change~2", "--bad", "change"], 2);
    assert_eq!(found["result"], "not-worse");
    assert!(found["notes"][0].as_str().unwrap().contains("choose a good end before"), "{found:#}");
}

#[test]
fn a_commit_whose_program_never_ends_is_skipped() {
    let (suite, repository) = repository();
    suite.source("a", &["benchmark-hang=1"]);
    commit(&repository, "hangs");
    suite.source("a", &["latency-us=1200"]);
    commit(&repository, "slower");
    // The time limit in the configuration of the ends applies to every candidate.
    let toml = suite.world.read("benchgate.toml").replace("timeout = \"20s\"", "timeout = \"2s\"");
    suite.world.write("benchgate.toml", toml);
    let (found, _) = bisect(&suite, &["--good", "change~2", "--bad", "change"], 0);
    assert_eq!(culprits(&found), [(0, 2)]);
    assert!(found["candidates"][1]["skipped"].as_str().unwrap().contains("benchmark"), "{found:#}");
}

#[test]
fn a_shallow_clone_says_how_to_get_the_rest_of_the_history() {
    let (suite, repository) = history(&[0, 0, 0]);
    // The history after `git clone --depth 2`.
    let end = repository.revparse_single("change~1").unwrap().id();
    std::fs::write(repository.path().join("shallow"), format!("{end}\n")).unwrap();
    let (_, outcome) = bisect(&suite, &["--good", "main", "--bad", "change"], 2);
    assert!(is_one_error(&outcome) && outcome.stderr.contains("--unshallow"), "{}", outcome.stderr);
}

#[test]
fn a_good_end_that_fails_stops_the_search_with_the_reason() {
    let (suite, repository) = repository();
    suite.source("a", &["compile-error=broken"]);
    commit(&repository, "broken");
    suite.source("a", &["latency-us=1200"]);
    commit(&repository, "repaired");
    let (_, outcome) = bisect(&suite, &["--good", "change~1", "--bad", "change"], 20);
    assert!(is_one_error(&outcome), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("good end") && outcome.stderr.contains("broken"), "{}", outcome.stderr);
}

#[test]
fn ends_whose_samples_can_not_be_used_stop_the_search_with_the_finding() {
    let (suite, repository) = repository();
    suite.source("a", &["json-replace=\"real_time\": =>\"real_time\": 1e-3, \"x\": "]);
    commit(&repository, "every process prints the same");
    let (_, outcome) = bisect(&suite, &["--good", "main", "--bad", "change"], 20);
    assert!(is_one_error(&outcome) && outcome.stderr.contains("repeated-samples"), "{}", outcome.stderr);
    assert_eq!(visits(&suite), 1);
}

#[test]
fn ends_that_do_other_work_are_measured_once_and_the_finding_is_noted() {
    let (suite, repository) = repository();
    suite.source("a", &["latency-us=1300"]);
    suite.world.write("benchgate.toml", suite.world.read("benchgate.toml").replace("3xf32=1", "3xf32=2"));
    commit(&repository, "other inputs");
    let (found, _) = bisect(&suite, &["--good", "main", "--bad", "change"], 11);
    assert_eq!((found["result"].as_str(), visits(&suite)), (Some("inconclusive"), 1));
    assert!(found["notes"][0].as_str().unwrap().contains("workload-changed"), "{found:#}");
}

#[test]
fn a_metric_that_was_not_measured_is_an_error() {
    let (suite, _repository) = history(&[0, 1200]);
    let ends = ["--good", "main", "--bad", "change", "--observe", "peak-device-memory"];
    let (_, outcome) = bisect(&suite, &ends, 20);
    assert!(is_one_error(&outcome) && outcome.stderr.contains("peak-device-memory"), "{}", outcome.stderr);
    assert_eq!(visits(&suite), 1);
}

#[test]
fn a_visit_that_was_copied_is_not_taken_over() {
    let (suite, _repository) = history(&[0, 1100]);
    let ends = ["--good", "main", "--bad", "change"];
    bisect(&suite, &ends, 0);
    let searches = suite.world.work().join(".benchgate/bisect");
    let search = std::fs::read_dir(searches).unwrap().next().unwrap().unwrap().path();
    std::fs::copy(search.join("visit-0-2-0.json"), search.join("visit-0-2-9.json")).unwrap();
    let (_, outcome) = bisect(&suite, &ends, 20);
    assert!(is_one_error(&outcome) && outcome.stderr.contains("the same session"), "{}", outcome.stderr);
}

#[test]
fn every_format_names_the_culprit() {
    let (suite, repository) = history(&[0, 1200]);
    let culprit = repository.head().unwrap().target().unwrap().to_string();
    for (format, begins) in
        [("terminal", "latency of"), ("markdown", "### Bisection"), ("html", "<!DOCTYPE html>")]
    {
        let outcome = suite.world.run([
            "bisect",
            "--good",
            "main",
            "--bad",
            "change",
            "--max-blocks",
            "24",
            "--format",
            format,
        ]);
        let outcome = outcome.expect_code(0);
        assert!(
            outcome.stdout.starts_with(begins) && outcome.stdout.contains(&culprit[..12]),
            "{}",
            outcome.stdout
        );
    }
    assert_eq!(visits(&suite), visits(&suite).min(4), "the later formats measured nothing");
}
