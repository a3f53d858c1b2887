//! A pull request's configuration that affects both sides.

use super::{FAIL_ON, Greens};
use crate::harness::lint_codes;
use crate::harness::row;
use crate::pull_request::{commit, policy_on_main, repository};
use crate::suite::{Suite, npy, npy_of};

/// Gates a pull request whose head is changed by `change`.
fn gated(change: impl FnOnce(&Suite)) -> (Suite, crate::harness::Outcome) {
    let (suite, repository) = repository();
    change(&suite);
    commit(&repository, "a change");
    let outcome = suite.world.run(["gate", "--base", "main", "--fail-on", FAIL_ON, "--format", "json"]);
    (suite, outcome)
}

fn gate_main(suite: &Suite, more: &[&str]) -> crate::harness::Outcome {
    let arguments = ["gate", "--base", "main", "--fail-on", FAIL_ON, "--format", "json"];
    suite.world.run(arguments.iter().chain(more).copied())
}

fn edit(suite: &Suite, from: &str, to: &str) {
    let toml = suite.world.read("benchgate.toml");
    assert!(toml.contains(from), "{from} is not in\n{toml}");
    suite.world.write("benchgate.toml", toml.replacen(from, to, 1));
}

#[test]
fn the_settings_of_a_measurement_are_those_of_the_base() {
    let (suite, outcome) = gated(|suite| {
        suite.source("a", &["latency-us=1000", "revision=2"]);
        edit(suite, "timeout = \"20s\"", "cpus = [0]\njobs = 1\nlock-clocks = \"base\"\ntimeout = \"19s\"");
        edit(suite, "repetitions = 4", "repetitions = 5");
    });
    let comparison = outcome.expect_no_failure().json();
    assert_eq!(suite.run_json()["measure"]["repetitions"], 4);
    let notes: Vec<&str> =
        comparison["notes"].as_array().unwrap().iter().filter_map(|note| note.as_str()).collect();
    let settings = notes.iter().find(|note| note.contains("settings that the base chooses")).unwrap();
    insta::assert_snapshot!(crate::harness::without_digests(settings), @"this change edits settings that the base chooses; the change was measured with those of [DIGEST], without these edits: [measure] repetitions: 4 → 5; [measure] timeout: 20s → 19s; [measure] cpus: not set → [0]; [measure] lock-clocks: not set → base; [measure] jobs: not set → 1");
}

#[test]
fn an_fp64_reference_that_head_adds_does_not_excuse_a_wrong_output() {
    let mut greens = Greens::default();
    let wrong = |suite: &Suite| {
        suite.source("a", &["latency-us=1000", "output=1.5,3,4.5"]);
        suite.world.write("data/z.npy", npy(&[10.0, 20.0, 30.0]));
        edit(
            suite,
            "expected = [\"data/y.npy\"]",
            "expected = [\"data/y.npy\"]\nexpected-f64 = [\"data/z.npy\"]",
        );
    };
    let (_, outcome) = gated(wrong);
    greens.check("an fp64 reference far from both", &outcome);
    let (_, outcome) = gated(|suite| {
        wrong(suite);
        suite.world.write("data/y.npy", npy(&[1.0, 2.0, 3.000_001]));
    });
    greens.check("an fp64 reference together with another reference", &outcome);
    let (suite, repository) = repository();
    repository.set_head("refs/heads/main").unwrap();
    edit(&suite, "backend = \"llvm-cpu\"", "backend = \"llvm-cpu\"\njudge = \"outputs\"");
    commit(&repository, "outputs decide");
    let main = repository.head().unwrap().peel_to_commit().unwrap();
    repository.branch("change", &main, true).unwrap();
    repository.set_head("refs/heads/change").unwrap();
    wrong(&suite);
    commit(&repository, "a change");
    greens.check("an fp64 reference where outputs decide", &gate_main(&suite, &[]));
    greens.none(3);
}

#[test]
fn a_reference_made_of_a_wrong_output_is_not_green() {
    let mut greens = Greens::default();
    // The program is unchanged, but a flag makes the compiler compute something else.
    let flag = "[side.head]\nflags = [\"--fake=output=2,4,6\"]\n";
    let (_, outcome) = gated(|suite| {
        suite.world.write("data/y.npy", npy(&[2.0, 4.0, 6.0]));
        edit(suite, "[side.head]\n", flag);
    });
    greens.check("a changed reference", &outcome);
    let (suite, repository) = repository();
    edit(&suite, "expected = [\"data/y.npy\"]", "");
    repository.set_head("refs/heads/main").unwrap();
    commit(&repository, "no reference");
    let main = repository.head().unwrap().peel_to_commit().unwrap();
    repository.branch("change", &main, true).unwrap();
    repository.set_head("refs/heads/change").unwrap();
    suite.world.write("data/y.npy", npy(&[2.0, 4.0, 6.0]));
    edit(&suite, "[side.head]\n", flag);
    edit(&suite, "inputs = ", "expected = [\"data/y.npy\"]\ninputs = ");
    greens.check("an added reference", &suite.world.run(["gate", "--base", "main", "--fail-on", FAIL_ON]));
    greens.none(2);
}

#[test]
fn a_count_of_repeated_dispatches_in_a_file_of_flags_is_refused() {
    let cases: [(&str, &[(&str, &str)]); 9] = [
        ("a file", &[("more.txt", "--iree-hal-benchmark-dispatch-repeat-count=1\n")]),
        ("one dash", &[("more.txt", "-iree-hal-benchmark-dispatch-repeat-count=1\n")]),
        ("two words", &[("more.txt", "--iree-hal-benchmark-dispatch-repeat-count 1\n")]),
        ("quotes", &[("more.txt", "--iree-hal-benchmark-\"dispatch\"-repeat-count=1\n")]),
        ("a backslash", &[("more.txt", "--iree-hal-benchmark-\\dispatch-repeat-count=1\n")]),
        ("what looks like a comment", &[("more.txt", "# --iree-hal-benchmark-dispatch-repeat-count=1\n")]),
        ("a phase after the repeating one", &[("more.txt", "--compile-from=hal\n")]),
        ("no known phase", &[("more.txt", "-compile-from=999\n")]),
        (
            "a file in a file",
            &[("more.txt", "@data/b.txt"), ("data/b.txt", "--iree-hal-benchmark-dispatch-repeat-count=1\n")],
        ),
    ];
    let mut greens = Greens::default();
    for (case, files) in cases {
        let (suite, repository) = repository();
        edit(&suite, "inputs = ", "dispatch-repeats = 10\ninputs = ");
        repository.set_head("refs/heads/main").unwrap();
        commit(&repository, "short kernels");
        let main = repository.head().unwrap().peel_to_commit().unwrap();
        repository.branch("change", &main, true).unwrap();
        repository.set_head("refs/heads/change").unwrap();
        suite.source("a", &["latency-us=5000"]);
        for (name, text) in files {
            suite.world.write(name, text);
        }
        edit(&suite, "[side.head]\n", "[side.head]\nflags = [\"@more.txt\"]\n");
        commit(&repository, "five times the work, repeated once");
        let outcome = suite.world.run(["gate", "--base", "main", "--fail-on", FAIL_ON]);
        greens.check(case, &outcome);
        assert!(outcome.stdout.contains("dispatch-repeats"), "{case}: {}", outcome.stdout);
    }
    greens.none(7);
}

#[test]
fn a_program_that_keeps_state_is_not_green_by_its_first_call() {
    let with = |line: &'static str| {
        gated(move |suite| {
            suite.source("a", &["latency-us=1000", "revision=2"]);
            let source = suite.world.read("models/a.mlir");
            suite.world.write("models/a.mlir", format!("{source}{line}\n"));
        })
        .1
    };
    with("// it has no util.global.store").expect_no_failure();
    let comparison = with("util.global.store %state, @state : i32").expect_code(11).json();
    let row = row(&comparison, "a/cpu/main", Some("latency"));
    assert!(lint_codes(row).contains(&"stateful"), "{comparison:#}");
}

#[test]
fn a_file_that_puts_state_into_the_program_is_not_green_either() {
    let with = |line: &'static str| {
        gated(move |suite| {
            suite.source("a", &["latency-us=1000", "revision=2", "reads=models/spec.mlir"]);
            suite.world.write("models/spec.mlir", format!("// fake latency-us=500\n{line}\n"));
        })
        .1
    };
    with("// it has no util.global.store").expect_no_failure();
    let said = with("util.global.store %state, @state : i32").expect_code(11).stdout;
    assert!(said.contains("spec.mlir`, which the compiler reads, contains `global.store`"), "{said}");
}

#[test]
fn a_program_is_judged_by_the_results_of_its_second_call_too() {
    let quicker = ["latency-us=500", "revision=2"];
    let with = |directive: &'static str| {
        gated(move |suite| suite.source("a", &[&quicker[..], &[directive]].concat())).1
    };
    let wrong = with("second-output=4,5,6").expect_code(13).json();
    let row_of = |comparison: &_| row(comparison, "a/cpu/main", None).clone();
    assert_eq!(row_of(&wrong)["verdict"], "diverged", "{wrong:#}");
    let counting = with("changes-input=always").expect_code(11).json();
    let latency = row(&counting, "a/cpu/main", Some("latency"));
    assert!(lint_codes(latency).contains(&"stateful"), "{counting:#}");
    // A function that writes the same values into its inputs in every call does the same work in all later
    // calls. This differs from base's work unless base does it too.
    let filled = with("changes-input=once").expect_code(11).json();
    let latency = row(&filled, "a/cpu/main", Some("latency"));
    assert!(lint_codes(latency).contains(&"workload-changed"), "{filled:#}");
    let (suite, repository) = repository();
    suite.source("a", &["latency-us=1000", "changes-input=once"]);
    policy_on_main(&suite, &repository, "");
    suite.source("a", &["latency-us=500", "revision=2", "changes-input=once"]);
    gate_main(&suite, &[]).expect_code(0);
}

#[test]
fn a_program_that_remembers_its_result_is_not_green() {
    let (suite, repository) = repository();
    let honest = ["revision=2", "latency-us=500", "other-output=4,5,6"];
    suite.source("a", &["latency-us=1000", "other-output=4,5,6"]);
    policy_on_main(&suite, &repository, "");
    suite.source("a", &honest);
    gate_main(&suite, &[]).expect_code(0);
    for dishonest in ["remembers=1", "rejects-other-inputs=1", "late-output=7,8,9"] {
        suite.source("a", &[&honest[..], &[dishonest]].concat());
        let said = gate_main(&suite, &[]).expect_code(11).stdout;
        assert!(said.contains("stateful"), "{dishonest}: {said}");
    }
}

#[test]
fn a_program_that_contains_its_results_is_not_green() {
    for reference in ["expected = [\"data/y.npy\"]", ""] {
        let (suite, repository) = repository();
        edit(&suite, "expected = [\"data/y.npy\"]", reference);
        suite.source("a", &["latency-us=1000", "other-output=4,5,6"]);
        policy_on_main(&suite, &repository, "");
        let with = |other: &str| {
            suite.source("a", &["revision=2", "latency-us=500", &format!("other-output={other}")]);
            gate_main(&suite, &[])
        };
        for honest in ["4,5,6", "4,5.00001,6"] {
            with(honest).expect_code(0);
        }
        // Inputs that only base accepts.
        with("4,5,NaN").expect_code(11);
        for dishonest in ["1,2,3", "4,5,3"] {
            let comparison = with(dishonest).expect_code(13).json();
            let row = row(&comparison, "a/cpu/main", None);
            assert_eq!(row["verdict"], "diverged", "{dishonest}: {comparison:#}");
            let (_, text) = crate::harness::reason(row);
            assert!(text.contains("called with other inputs"), "{text}");
        }
    }
    // The compiler turns the same model into a constant.
    let (suite, repository) = repository();
    let main = ["latency-us=1000", "other-output=4,5,6", "reads=models/spec.mlir"];
    suite.source("a", &main);
    policy_on_main(&suite, &repository, "");
    suite.world.write("models/spec.mlir", "// fake latency-us=500\n// fake other-output=1,2,3\n");
    let comparison = gate_main(&suite, &[]).expect_code(13).json();
    let (_, text) = crate::harness::reason(row(&comparison, "a/cpu/main", None));
    insta::assert_snapshot!(text, @"
    head's outputs differ: output 0 differs from base's
    called with other inputs: 3 of 3 elements beyond the tolerance, largest |a − b| 3.000e0, first at [0], all over the output; the output is base's output plus -3.000e0
    ");
    // Base's model is not defined for the other inputs.
    let (suite, repository) = self::repository();
    suite.source("a", &["latency-us=1000", "other-output=NaN,5,6"]);
    policy_on_main(&suite, &repository, "");
    suite.source("a", &["latency-us=500", "revision=2", "other-output=NaN,5,7"]);
    gate_main(&suite, &[]).expect_code(0);
}

#[test]
fn outputs_that_can_not_be_compared_with_bases_are_not_green() {
    let (suite, repository) = repository();
    edit(&suite, "expected = [\"data/y.npy\"]", "");
    suite.source("a", &["latency-us=1000"]);
    policy_on_main(&suite, &repository, "");
    suite.source("a", &["latency-us=500", "revision=2"]);
    gate_main(&suite, &[]).expect_code(0);
    let mut reasons = Vec::new();
    for dishonest in ["no-output=1", "random-output=1"] {
        suite.source("a", &["latency-us=500", "revision=2", dishonest]);
        let comparison = gate_main(&suite, &[]).expect_code(13).json();
        let (_, text) = crate::harness::reason(row(&comparison, "a/cpu/main", None));
        reasons.push(text.lines().last().unwrap_or_default().to_owned());
    }
    insta::assert_snapshot!(reasons.join("\n"), @"
    head has 0 outputs, base has 1
    head's outputs can't be compared with base's: two calls with the same inputs return different ones
    ");
}

#[test]
fn outputs_of_a_type_without_a_reference_are_compared_or_not_green() {
    let floats = |values: [f32; 4]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>();
    let [right, conjugate] = [floats([1.0, 2.0, -3.0, 0.5]), floats([1.0, -2.0, -3.0, -0.5])];
    let mut codes = Vec::new();
    for (descr, shape, head) in [
        ("<c8", "(2,)", npy_of("<c8", "(2,)", &right)),
        ("<c8", "(2,)", npy_of("<c8", "(2,)", &conjugate)),
        ("<c8", "(2,)", npy_of("<f4", "(4,)", &right)),
        ("|V1", "(16,)", npy_of("|V1", "(16,)", &conjugate)),
    ] {
        let (suite, repository) = repository();
        edit(&suite, "expected = [\"data/y.npy\"]", "");
        suite.source("a", &["latency-us=1000", "output-file=data/out.npy"]);
        suite.world.write("data/out.npy", npy_of(descr, shape, &right));
        policy_on_main(&suite, &repository, "");
        suite.source("a", &["latency-us=500", "output-file=data/out.npy", "revision=2"]);
        suite.world.write("data/out.npy", head);
        codes.push(gate_main(&suite, &[]).code);
    }
    assert_eq!(codes, [0, 13, 13, 11].map(Some));
}

#[test]
fn outputs_that_prove_nothing_are_not_green() {
    let mut codes = Vec::new();
    for (base, head) in [
        ("no-output=1", "no-output=1"),
        ("random-output=1", "random-output=1"),
        ("random-output=1", "output=1,2,3"),
        ("output=NaN,NaN,NaN", "output=NaN,NaN,NaN"),
        ("output=NaN,NaN,NaN", "output=1,2,3"),
    ] {
        let (suite, repository) = repository();
        edit(&suite, "expected = [\"data/y.npy\"]", "");
        suite.source("a", &["latency-us=1000", base]);
        policy_on_main(&suite, &repository, "");
        suite.source("a", &["latency-us=500", "revision=2", head]);
        codes.push(gate_main(&suite, &[]).code);
    }
    assert_eq!(codes, [11, 11, 11, 11, 13].map(Some));
}

#[test]
fn an_output_without_a_number_does_not_excuse_the_others() {
    let floats = |values: [f32; 3]| npy(&values);
    for (head, code) in [([1.0, 2.0, 3.0], 0), ([1.0, 2.5, 3.0], 13)] {
        let (suite, repository) = repository();
        edit(&suite, "expected = [\"data/y.npy\"]", "");
        let outputs = "output-file=data/nan.npy,data/out.npy";
        suite.world.write("data/nan.npy", floats([f32::NAN; 3]));
        suite.world.write("data/out.npy", floats([1.0, 2.0, 3.0]));
        suite.source("a", &["latency-us=1000", outputs]);
        policy_on_main(&suite, &repository, "");
        suite.source("a", &["latency-us=500", "revision=2", outputs]);
        suite.world.write("data/out.npy", floats(head));
        gate_main(&suite, &[]).expect_code(code);
    }
}

#[test]
fn a_side_without_flags_that_head_declares_is_no_other_work() {
    let (suite, repository) = repository();
    suite.source("a", &["latency-us=1000"]);
    policy_on_main(&suite, &repository, "");
    suite.source("a", &["latency-us=1000", "revision=2"]);
    let toml = suite.world.read("benchgate.toml");
    suite.world.write("benchgate.toml", format!("{toml}\n[side.base]\n"));
    gate_main(&suite, &[]).expect_code(0);
}

#[test]
fn a_file_of_the_working_tree_is_not_part_of_the_base() {
    let (suite, repository) = repository();
    let absolute = suite.world.work().join("more.txt");
    suite.world.write("more.txt", "--fake=latency-us=1000\n");
    edit(&suite, "[side.head]\n", &format!("[side.head]\nflags = [\"@{}\"]\n", absolute.display()));
    repository.set_head("refs/heads/main").unwrap();
    commit(&repository, "flags in a file");
    let main = repository.head().unwrap().peel_to_commit().unwrap();
    repository.branch("change", &main, true).unwrap();
    repository.set_head("refs/heads/change").unwrap();
    suite.world.write("more.txt", "--fake=latency-us=5000\n");
    commit(&repository, "slower on both sides");
    let outcome = suite.world.run(["gate", "--base", "main", "--fail-on", FAIL_ON]).expect_code(2);
    assert!(outcome.stderr.contains("by an absolute path"), "{}", outcome.stderr);
}

#[test]
fn tools_that_a_change_builds_in_the_working_tree_are_not_those_of_its_base() {
    let (suite, repository) = repository();
    repository.set_head("refs/heads/main").unwrap();
    suite.world.write(".gitignore", "/build\n");
    let [outside, built] = [suite.world.locks().join("tools"), suite.world.work().join("build")];
    edit(&suite, outside.to_str().unwrap(), built.to_str().unwrap());
    crate::suite::install_fake_tools(&built);
    commit(&repository, "tools of a build folder");
    let main = repository.head().unwrap().peel_to_commit().unwrap();
    repository.branch("change", &main, true).unwrap();
    repository.set_head("refs/heads/change").unwrap();
    suite.source("a", &["latency-us=1000", "revision=2"]);
    let outcome = gate_main(&suite, &[]).expect_code(2);
    assert!(outcome.stderr.contains("by an absolute path"), "{}", outcome.stderr);
}

#[test]
fn a_link_of_the_working_tree_does_not_lead_the_base_to_its_own_files() {
    let (suite, repository) = repository();
    let elsewhere = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(suite.world.work(), elsewhere.path().join("tree")).unwrap();
    suite.world.write("more.txt", "--fake=latency-us=1000\n");
    let linked = elsewhere.path().join("tree/more.txt");
    let library = format!("--iree-codegen-transform-dialect-library={}@name", linked.display());
    suite.world.write("flags.txt", format!("@{}\n", linked.display()));
    let toml = suite.world.read("benchgate.toml");
    repository.set_head("refs/heads/main").unwrap();
    for flag in [format!("@{}", linked.display()), library, "@flags.txt".to_owned()] {
        let flags = format!("[side.head]\nflags = [{flag:?}]\n");
        suite.world.write("benchgate.toml", toml.replacen("[side.head]\n", &flags, 1));
        commit(&repository, "a flag that names a file");
        let outcome = gate_main(&suite, &[]).expect_code(2);
        assert!(outcome.stderr.contains("by an absolute path"), "{}", outcome.stderr);
    }
}

#[test]
fn a_configuration_that_head_turns_into_a_link_is_compared_with_bases_own() {
    let (suite, repository) = repository();
    repository.set_head("refs/heads/main").unwrap();
    let toml = suite.world.read("benchgate.toml");
    for folder in ["loose", "loose/models", "loose/data"] {
        std::fs::create_dir_all(suite.world.work().join(folder)).unwrap();
    }
    suite.world.write("loose/benchgate.toml", format!("{toml}\n[gate]\nfail-on = [\"error\"]\n"));
    for file in ["models/a.mlir", "data/y.npy"] {
        let work = suite.world.work();
        std::fs::copy(work.join(file), work.join("loose").join(file)).unwrap();
    }
    commit(&repository, "a loose suite");
    let main = repository.head().unwrap().peel_to_commit().unwrap();
    repository.branch("change", &main, true).unwrap();
    repository.set_head("refs/heads/change").unwrap();
    std::fs::remove_file(suite.world.work().join("benchgate.toml")).unwrap();
    std::os::unix::fs::symlink("loose/benchgate.toml", suite.world.work().join("benchgate.toml")).unwrap();
    suite.source("a", &["latency-us=2000"]);
    commit(&repository, "a link");
    suite.world.run(["gate", "--base", "main"]).expect_code(10);
}

#[test]
fn a_link_to_the_folder_of_the_configuration_that_head_turns_is_compared_with_bases_own() {
    let (suite, repository) = repository();
    repository.set_head("refs/heads/main").unwrap();
    let work = suite.world.work();
    let toml = suite.world.read("benchgate.toml");
    let loose = format!("{toml}\n[gate]\nfail-on = [\"error\"]\n");
    for (folder, toml) in [("strict", &toml), ("loose", &loose)] {
        for file in ["models/a.mlir", "data/y.npy"] {
            suite.world.write(&format!("{folder}/{file}"), std::fs::read(work.join(file)).unwrap());
        }
        suite.world.write(&format!("{folder}/benchgate.toml"), toml);
    }
    let link = work.join("bench");
    std::os::unix::fs::symlink("strict", &link).unwrap();
    commit(&repository, "two suites and a link");
    let main = repository.head().unwrap().peel_to_commit().unwrap();
    repository.branch("change", &main, true).unwrap();
    repository.set_head("refs/heads/change").unwrap();
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink("loose", &link).unwrap();
    for folder in ["strict", "loose"] {
        suite.world.write(&format!("{folder}/models/a.mlir"), "// a\n// fake latency-us=2000\n");
    }
    commit(&repository, "a turned link");
    let mut command = suite.world.command(["gate", "--base", "main"]);
    // The command starts like one from a shell that entered the folder through the link.
    command.current_dir(&link).env("PWD", &link);
    suite.world.finish(command).expect_code(10);
}

#[test]
fn a_waiver_of_the_latency_does_not_cover_other_work_or_kept_state() {
    let mut greens = Greens::default();
    for (case, directives, inputs) in [
        ("other inputs", &["latency-us=1000", "revision=2"][..], "inputs = [\"3xf32=2\"]"),
        ("state", &["latency-us=1000", "revision=2", "changes-input=always"], "inputs = [\"3xf32=1\"]"),
    ] {
        let (suite, repository) = repository();
        let expires = jiff::Zoned::now().date().saturating_add(jiff::Span::new().days(9));
        let waiver = format!(
            "\n[[waiver]]\nbenchmark = \"a/*\"\nmetric = \"latency\"\nowner = \"@o\"\nreason = \"known\"\nexpires = \"{expires}\"\n"
        );
        policy_on_main(&suite, &repository, &waiver);
        // The waiver covers the slowdown that was reviewed.
        suite.source("a", &["latency-us=3000", "revision=2"]);
        gate_main(&suite, &[]).expect_code(0);
        suite.source("a", directives);
        edit(&suite, "inputs = [\"3xf32=1\"]", inputs);
        greens.check(case, &gate_main(&suite, &[]));
    }
    greens.none(2);
}

#[test]
fn a_head_that_leaves_other_values_in_its_input_is_never_green() {
    for (left, code) in [("1,2,3", 0), ("1,2,3.0000001", 0), ("1,2,4", 11)] {
        let (suite, repository) = repository();
        suite.source("a", &["latency-us=1000", "changes-input=1,2,3"]);
        policy_on_main(&suite, &repository, "");
        suite.source("a", &["latency-us=500", "revision=2", &format!("changes-input={left}")]);
        let outcome = gate_main(&suite, &[]).expect_code(code);
        let is_found =
            outcome.stdout.contains("head's first call leaves other values in input 0 than base's");
        assert_eq!(is_found, code != 0, "{left}: {}", outcome.said());
    }
}

#[test]
fn a_number_of_repeated_dispatches_is_that_of_the_base() {
    let (_, outcome) = gated(|suite| {
        suite.source("a", &["latency-us=5000"]);
        edit(suite, "inputs = ", "dispatch-repeats = 5\ninputs = ");
    });
    let comparison = outcome.expect_code(10).json();
    assert!(lint_codes(row(&comparison, "a/cpu/main", Some("latency"))).is_empty(), "{comparison:#}");
}

#[test]
fn work_that_no_dispatch_repeats_is_not_divided_by_the_repeats() {
    let (suite, repository) = repository();
    repository.set_head("refs/heads/main").unwrap();
    edit(&suite, "inputs = ", "dispatch-repeats = 5\ninputs = ");
    commit(&repository, "repeats");
    let main = repository.head().unwrap().peel_to_commit().unwrap();
    repository.branch("change", &main, true).unwrap();
    repository.set_head("refs/heads/change").unwrap();
    for count in ["dispatch-count=0", "dispatch-count=null"] {
        suite.source("a", &["latency-us=500", count]);
        commit(&repository, "work on the host");
        let comparison = gate_main(&suite, &[]).expect_code(11).json();
        let lints = lint_codes(row(&comparison, "a/cpu/main", Some("latency")));
        assert!(lints.contains(&"workload-changed"), "{count}: {comparison:#}");
    }
}

#[test]
fn a_tag_named_like_the_remote_branch_is_not_taken_for_it() {
    let (suite, repository) = repository();
    let main = repository.head().unwrap().peel_to_commit().unwrap();
    repository.reference("refs/remotes/origin/main", main.id(), true, "").unwrap();
    suite.source("a", &["latency-us=5000"]);
    commit(&repository, "slow");
    let gate = || suite.world.run(["gate", "--base", "origin/main", "--fail-on", FAIL_ON]);
    gate().expect_code(10);
    let head = repository.head().unwrap().peel_to_commit().unwrap();
    repository.reference("refs/tags/origin/main", head.id(), true, "").unwrap();
    let outcome = gate().expect_code(2);
    insta::assert_snapshot!(outcome.messages(), @"error: failed to resolve `origin/main`: several commits have this name; give more digits of the commit, or the full name of the ref (`refs/remotes/origin/main`, `refs/tags/origin/main`)");
    for place in ["refs/heads/origin/main", "refs/origin/main"] {
        repository.find_reference("refs/tags/origin/main").map(|mut tag| tag.delete().unwrap()).ok();
        repository.reference(place, head.id(), true, "").unwrap();
        gate().expect_code(2);
        repository.find_reference(place).unwrap().delete().unwrap();
    }
    // Several names of the same commit are not ambiguous.
    repository.reference("refs/tags/origin/main", main.id(), true, "").unwrap();
    gate().expect_code(10);
}
