//! Configurations and options that disable a check.

use super::{FAIL_ON, Greens, Sides};

/// Configurations under which a head that is three times slower must not pass.
const LOOSENED: &[(&str, &str)] = &[
    ("a floor without a percent sign", "[gate]\nfloor = 3\n"),
    ("a tolerance without a percent sign", "[gate]\ntolerance = 3\n"),
    ("a floor of a metric without a percent sign", "[gate.metric.latency]\nfloor = 300\n"),
    ("a floor of 400 %", "[gate.metric.latency]\nfloor = \"400%\"\n"),
    ("a tolerance of 400 %", "[gate.metric.latency]\ntolerance = \"400%\"\n"),
    ("a floor that is not a number", "[gate.metric.latency]\nfloor = nan\n"),
    ("an infinite floor", "[gate.metric.latency]\nfloor = inf\n"),
    ("an alpha of zero", "[gate]\nalpha = 0.0\n"),
    ("an alpha of 1e-30", "[gate]\nalpha = 1e-30\n"),
    ("an alpha of 1e-300", "[gate]\nalpha = 1e-300\n"),
    ("a negative alpha", "[gate]\nalpha = -0.01\n"),
    ("a verdict that does not exist", "[gate]\nfail-on = [\"regresed\"]\n"),
    ("a misspelled key", "[gate]\nfail-onn = [\"regressed\"]\n"),
    ("an override for all rows", "[[gate.override]]\nbenchmark = \"*\"\nfloor = \"400%\"\n"),
    ("a spread that hides everything", "[gate]\nbetween-cv = 9\n"),
    ("an absolute floor of an hour", "[gate.metric.latency]\nfloor-absolute = \"1h\"\n"),
    ("an absolute floor of a year", "[gate.metric.latency]\nfloor-absolute = \"8000h\"\n"),
    (
        "an absolute floor of all rows",
        "[[gate.override]]\nbenchmark = \"*\"\nmetric = \"latency\"\nfloor-absolute = \"1s\"\n",
    ),
    (
        "an expired waiver",
        "[[waiver]]\nbenchmark = \"*\"\nmetric = \"latency\"\nowner = \"@o\"\nreason = \"r\"\nexpires = \"2020-01-01\"\n",
    ),
    (
        "a waiver of another benchmark",
        "[[waiver]]\nbenchmark = \"other/*\"\nmetric = \"latency\"\nowner = \"@o\"\nreason = \"r\"\nexpires = \"SOON\"\n",
    ),
    (
        "a waiver that never ends",
        "[[waiver]]\nbenchmark = \"*\"\nmetric = \"latency\"\nowner = \"@o\"\nreason = \"r\"\nexpires = \"2999-01-01\"\n",
    ),
];

#[test]
fn no_configuration_turns_a_threefold_slowdown_green() {
    let mut greens = Greens::default();
    let soon = jiff::Zoned::now().date().saturating_add(jiff::Span::new().days(9)).to_string();
    for (case, extra) in LOOSENED {
        let sides = Sides::new();
        sides.head(&["latency-us=3000"]);
        sides.configuration(&extra.replace("SOON", &soon));
        greens.check(case, &sides.gate());
    }
    greens.none(20);
}

#[test]
fn no_option_turns_a_threefold_slowdown_green() {
    let cases: &[&[&str]] = &[
        &["--floor", "3"],
        &["--floor", "400%"],
        &["--floor", "0.5"],
        &["--floor", "nan"],
        &["--tolerance", "inf"],
        &["--tolerance", "-1%"],
        &["--alpha", "0"],
        &["--alpha", "1e-30"],
        &["--alpha", "1e-250"],
        &["--alpha", "nan"],
        &["--between-cv", "9"],
        &["--filter", "nothing-has-this-name"],
        &["--fail-on", "regresed"],
        &["--fail-on", "pass"],
        &["--max-blocks", "0"],
        &["--max-blocks", "1"],
        &["--test", "none"],
    ];
    let mut greens = Greens::default();
    for options in cases {
        let sides = Sides::new();
        sides.head(&["latency-us=3000"]);
        let on: &[&str] = if options[0] == "--fail-on" { &[] } else { &["--fail-on", FAIL_ON] };
        let args = [&["gate"], on, options].concat();
        greens.check(&options.join(" "), &sides.world.run(args));
    }
    greens.none(16);
}

#[test]
fn no_suite_in_which_nothing_is_measured_is_green() {
    let cases: &[(&str, &str, &str)] = &[
        (
            "no device for the only target",
            "backend = \"llvm-cpu\"\ndevice = \"local-task\"",
            "backend = \"cuda\"",
        ),
        ("no model", "[[model]]", "[[side.base.model]]"),
        ("no target", "[[target]]", "[[side.base.target]]"),
        (
            "a model of no target",
            "source = \"models/a.mlir\"",
            "source = \"models/a.mlir\"\ntargets = [\"gpu\"]",
        ),
        ("no reference", "expected = [\"data/y.npy\"]", "expected = [\"data/z.npy\"]"),
        ("no repetitions", "repetitions = 4", "repetitions = 0"),
        ("a source that is not there", "models/a.mlir", "models/none.mlir"),
        ("a source outside of the suite", "models/a.mlir", "../../models/a.mlir"),
    ];
    let mut greens = Greens::default();
    for (case, from, to) in cases {
        let sides = Sides::new();
        sides.edit(from, to);
        greens.check(case, &sides.gate());
    }
    greens.none(8);
}
