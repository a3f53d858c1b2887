//! Tools that fail, report wrong results or contradict themselves.

use crate::harness::World;
use crate::suite::{COMMIT, npy};

use super::{Greens, Sides};

/// Manipulations that head's tools make. The left side names the case.
const OF_HEAD: &[(&str, &[&str])] = &[
    ("head does not compile", &["compile-error=no such op"]),
    ("the compiler prints an error and exits 0", &["compile-stderr=a.mlir:1:1: error: no such op"]),
    ("the compiler writes no module and exits 0", &["compile-no-output=1"]),
    ("the compiler writes a module and fails", &["compile-exit=1"]),
    ("the compiler never ends", &["compile-hang=1"]),
    ("head can't be run", &["run-error=expected 2 arguments"]),
    (
        "the runtime prints an error and exits 0",
        &["run-stderr=fake.c:1: INVALID_ARGUMENT; expected 2 arguments"],
    ),
    ("the benchmark prints an error and exits 0", &["benchmark-stderr=error: no such device"]),
    ("the runtime writes no output and exits 0", &["run-no-output=1"]),
    ("the runtime writes its outputs and fails", &["run-exit=1"]),
    ("head's output is wrong", &["output=1,2,4"]),
    ("head's output is not a number", &["output=1,2,NaN"]),
    ("head's output is infinite", &["output=1,2,inf"]),
    ("head's output has another shape", &["output=1,2,3,4"]),
    ("head has one output too many", &["output-file=data/y.npy,data/y.npy"]),
    ("head's output is shorter", &["output=1,2"]),
    ("head's output differs from call to call", &["random-output=1"]),
    ("head's output is all zeros", &["output=0,0,0"]),
    ("the benchmark reports a failed row and exits 0", &["error-occurred=invalid shape"]),
    ("the benchmark aborts", &["crash=1"]),
    ("the benchmark is killed", &["benchmark-kill=KILL"]),
    ("the benchmark is terminated", &["benchmark-kill=TERM"]),
    ("the benchmark never ends", &["benchmark-hang=1"]),
    ("the benchmark finds no room on the disk", &["disk-full=1"]),
    ("the benchmark writes no result and exits 0", &["benchmark-no-output=1"]),
    ("the benchmark writes a result and fails", &["benchmark-exit=1"]),
    ("the result is cut off", &["json-cut=300"]),
    ("the result is empty", &["json-cut=0"]),
    ("head takes no time", &["latency-us=0"]),
    ("head takes negative time", &["latency-us=-1000"]),
    (
        "head takes an infinite time",
        &[
            "json-replace=\"iterations\": 10, \"real_time\": =>\"iterations\": 10, \"real_time\": 1e999, \"x\": ",
        ],
    ),
    (
        "head's time is not a number",
        &[
            "json-replace=\"iterations\": 10, \"real_time\": =>\"iterations\": 10, \"real_time\": NaN, \"x\": ",
        ],
    ),
    (
        "head's time is null",
        &[
            "json-replace=\"iterations\": 10, \"real_time\": =>\"iterations\": 10, \"real_time\": null, \"x\": ",
        ],
    ),
    (
        "head's time is text",
        &[
            "json-replace=\"iterations\": 10, \"real_time\": =>\"iterations\": 10, \"real_time\": \"1\", \"x\": ",
        ],
    ),
    ("head's time is missing", &["json-replace=\"real_time\"=>\"reel_time\""]),
    ("head's time is too small to be one", &["latency-us=1e-320"]),
    ("one repetition takes no time", &["json-replace-last=\"real_time\": =>\"real_time\": 0.0, \"x\": "]),
    (
        "every repetition of a slower head has its time twice",
        &["latency-us=1300", "json-replace=\"real_time\": =>\"real_time\": 1.0, \"real_time\": "],
    ),
    (
        "one repetition is in another unit",
        &["json-replace-last=\"time_unit\": \"ms\"=>\"time_unit\": \"us\""],
    ),
    ("the result stands there twice", &["json-twice=1"]),
    (
        "the list of rows stands there twice",
        &["json-replace=\"benchmarks\": [=>\"benchmarks\": [], \"benchmarks\": ["],
    ),
    (
        "head is slower and its clock is years ahead",
        &["latency-us=1100", "json-replace=\"date\": \"2026-=>\"date\": \"2099-"],
    ),
    (
        "head is slower and its clock says nothing",
        &["latency-us=1100", "json-replace=\"date\": \"2026-=>\"date\": \"x"],
    ),
    ("the unit is unknown", &["json-replace=\"time_unit\": \"ms\"=>\"time_unit\": \"fortnights\""]),
    ("the unit is missing", &["json-replace=\"time_unit\": \"ms\"=>\"time_units\": \"ms\""]),
    (
        "one repetition failed",
        &[
            "json-replace-last=\"iterations\": 10=>\"error_occurred\": true, \"error_message\": \"x\", \"iterations\": 10",
        ],
    ),
    (
        "one repetition was skipped",
        &[
            "json-replace-last=\"iterations\": 10=>\"skipped\": true, \"skip_message\": \"x\", \"iterations\": 10",
        ],
    ),
    ("the benchmark ran another function", &["json-replace=BM_main=>BM_other"]),
    ("half of the rows belong to another function", &["json-replace-last=BM_main=>BM_other"]),
    (
        "the rows are only aggregates",
        &[
            "json-replace=\"run_type\": \"iteration\"=>\"run_type\": \"aggregate\", \"aggregate_name\": \"cv\"",
        ],
    ),
    ("head is 10 % slower", &["latency-us=1100"]),
    ("head is ten times as slow", &["latency-us=10000"]),
    ("every second of head's processes is slower by half", &["slow-every=2", "slow-by=50"]),
];

/// Failures of both sides in the same way, so that the sides don't differ.
const OF_BOTH: &[(&str, &[&str])] = &[
    ("neither side compiles", &["compile-error=no such op"]),
    ("neither compiler run writes a module", &["compile-no-output=1"]),
    ("neither side can be run", &["run-error=expected 2 arguments"]),
    ("both outputs are wrong", &["output=1,2,4"]),
    ("both outputs are not a number", &["output=NaN,NaN,NaN"]),
    ("both benchmarks report a failed row", &["error-occurred=invalid shape"]),
    ("both benchmarks crash", &["crash=1"]),
    ("both benchmarks write nothing", &["benchmark-no-output=1"]),
    ("both sides take no time", &["latency-us=0"]),
    (
        "both sides' times are not a number",
        &[
            "json-replace=\"iterations\": 10, \"real_time\": =>\"iterations\": 10, \"real_time\": NaN, \"x\": ",
        ],
    ),
    ("both sides' units are unknown", &["json-replace=\"time_unit\": \"ms\"=>\"time_unit\": \"fortnights\""]),
];

/// A function that damages the tools. Its second argument is a commit that is not pinned.
type SpoilTools = fn(&World, &str);
type SpoilReference = fn(&World);

#[test]
fn an_honest_pair_of_sides_passes() {
    Sides::new().gate().expect_code(0);
}

#[test]
fn no_failure_of_heads_tools_is_green() {
    let mut greens = Greens::default();
    for (case, directives) in OF_HEAD {
        let sides = Sides::new();
        sides.head(directives);
        greens.check(case, &sides.gate());
    }
    greens.none(47);
}

#[test]
fn no_failure_that_both_sides_share_is_green() {
    let mut greens = Greens::default();
    for (case, directives) in OF_BOTH {
        let sides = Sides::new();
        sides.both(directives);
        greens.check(case, &sides.gate());
    }
    greens.none(11);
}

#[test]
fn no_failure_of_one_model_hides_behind_another() {
    let mut greens = Greens::default();
    let honest = |sides: &Sides| {
        for side in ["base", "head"] {
            sides.model(side, "b", &["latency-us=500", &format!("revision={side}")]);
        }
        sides.configuration(
            "[[model]]\nname = \"b\"\nsource = \"models/b.mlir\"\ninputs = [\"3xf32=1\"]\nexpected = [\"data/y.npy\"]\n",
        );
    };
    let control = Sides::new();
    honest(&control);
    control.gate().expect_code(0);
    for (case, directives) in OF_HEAD.iter().step_by(6) {
        let sides = Sides::new();
        honest(&sides);
        sides.head(directives);
        greens.check(case, &sides.gate());
    }
    greens.none(8);
}

#[test]
fn no_tool_that_is_not_the_pinned_one_is_green() {
    let other = "2222222222222222222222222222222222222222";
    let cases: &[(&str, SpoilTools)] = &[
        ("the compiler is of another commit", |world, other| {
            world.write("tools/COMMIT", other);
        }),
        ("the runtime is of another commit", |world, other| {
            world.write("tools/version.py", format!("REVISIONS = {{\"IREE\": \"{other}\"}}\n"));
        }),
        ("the runtime does not say its commit", |world, _| {
            world.write("tools/version.py", "REVISIONS = {}\n");
        }),
        ("the compiler is missing", |world, _| {
            std::fs::remove_file(world.work().join("tools/iree-compile")).unwrap();
        }),
        ("the benchmark tool is missing", |world, _| {
            std::fs::remove_file(world.work().join("tools/iree-benchmark-module")).unwrap();
        }),
        ("the benchmark tool is not a program", |world, _| {
            std::fs::remove_file(world.work().join("tools/iree-benchmark-module")).unwrap();
            world.write("tools/iree-benchmark-module", "not a program");
        }),
        ("the compiler is an empty script", |world, _| {
            std::fs::remove_file(world.work().join("tools/iree-compile")).unwrap();
            let path = world.write("tools/iree-compile", "#!/bin/sh\n");
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(path, mode).unwrap();
        }),
    ];
    let mut greens = Greens::default();
    for (case, spoil) in cases {
        let sides = Sides::new();
        assert_ne!(other, COMMIT);
        spoil(&sides.world, other);
        greens.check(case, &sides.gate());
    }
    greens.none(7);
}

#[test]
fn no_reference_that_proves_nothing_is_green() {
    let cases: &[(&str, &str, SpoilReference)] = &[
        ("the reference is missing", "output=1,2,3", |world| {
            std::fs::remove_file(world.work().join("head/data/y.npy")).unwrap();
        }),
        ("the reference is empty", "output=1,2,3", |world| {
            world.write("head/data/y.npy", b"");
        }),
        ("the reference has no element", "output=", |world| {
            world.write("head/data/y.npy", npy(&[]));
        }),
        ("the reference is not a number", "output=NaN,NaN,NaN", |world| {
            world.write("head/data/y.npy", npy(&[f32::NAN; 3]));
        }),
        ("the reference is another array", "output=1,2,3", |world| {
            world.write("head/data/y.npy", npy(&[3.0, 2.0, 1.0]));
        }),
        ("the reference is a pickle", "output=1,2,3", |world| {
            world.write("head/data/y.npy", crate::suite::npy_of("|O", "(1,)", b"cos\nsystem\n."));
        }),
        ("the reference is larger than its data", "output=1,2,3", |world| {
            world.write("head/data/y.npy", crate::suite::npy_of("<f4", "(1000000000000,)", &[0; 12]));
        }),
    ];
    let mut greens = Greens::default();
    for (case, output, spoil) in cases {
        let sides = Sides::new();
        sides.head(&[output]);
        spoil(&sides.world);
        greens.check(case, &sides.gate());
    }
    greens.none(6);
}
