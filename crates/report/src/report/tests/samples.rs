//! Handmade comparisons for the renderers' tests, with every verdict and every reason.

use std::collections::BTreeMap;

use benchgate_core::exit_code::ExitCode;
use benchgate_core::model::{
    BenchmarkName, Calibration, Context, Divergence, Lint, LintCode, Metric, Outcome, OutputCheck, SideName,
    Spread, Stage, Testbed, Toolchain, Verdict, Verification, VerifyCode,
};
use benchgate_gate::noise::{NoiseReport, NoiseRow, PowerPoint, Share};
use benchgate_gate::{
    Comparison, Estimate, Floor, Geomean, Interval, Method, MetricPolicy, Policy, Reason, Row, RunSummary,
    ShownSides, SideStats, TooLittle, WaiverUse,
};

pub(super) fn side(mean: f64, cv: f64) -> SideStats {
    SideStats {
        processes: 24,
        samples: 192,
        location: mean,
        mean,
        stddev: Some(mean * cv),
        cv: Some(cv),
        min: mean * (1.0 - 2.0 * cv),
        max: mean * (1.0 + 2.0 * cv),
    }
}

pub(super) fn bare(name: &str, verdict: Verdict, reason: Reason) -> Row {
    Row { target: Some("cpu".into()), ..Row::new(BenchmarkName::new(name), verdict, reason) }
}

/// Returns the row with the values that the gate would show.
fn shown(mut row: Row) -> Row {
    row.typical = row.values_to_show(ShownSides::Together);
    row
}

/// Returns a latency row that was measured in 12 blocks; the interval around `ratio` extends by one percent
/// on either side.
pub(super) fn measured(name: &str, verdict: Verdict, reason: Reason, base: f64, ratio: f64) -> Row {
    shown(Row {
        metric: Some(Metric::LATENCY),
        estimate: Some(Estimate {
            method: Method::Paired,
            ratio,
            interval: Some(Interval { low: ratio * 0.993, high: ratio * 1.007, level: 0.9975 }),
            p_worse: Some(0.0001),
            p_adjusted: Some(0.0006),
            q_value: Some(0.0002),
            p_stability: Some(0.4),
            p_tail: Some(0.5),
            blocks: 12,
            minimum_detectable: Some(0.018),
            sessions: None,
            p_runs: None,
        }),
        base: Some(side(base, 0.0124)),
        head: Some(side(base * ratio, 0.0211)),
        policy: Some(MetricPolicy {
            floor: Floor { relative: 0.01, absolute: 0.0 },
            tolerance: 0.03,
            fatal: true,
            better: None,
        }),
        ..bare(name, verdict, reason)
    })
}

fn exact(name: &str, metric: Metric, verdict: Verdict, base: f64, head: f64) -> Row {
    let value = |value: f64| SideStats {
        processes: 1,
        samples: 1,
        location: value,
        mean: value,
        min: value,
        max: value,
        ..SideStats::default()
    };
    shown(Row {
        metric: Some(metric),
        fatal: false,
        estimate: Some(Estimate::unjudged(Method::Exact, head / base)),
        base: Some(value(base)),
        head: Some(value(head)),
        policy: Some(MetricPolicy {
            floor: Floor { relative: 0.01, absolute: 0.0 },
            tolerance: 0.01,
            fatal: false,
            better: None,
        }),
        ..bare(name, verdict, Reason::Exact)
    })
}

pub(super) fn wrong(index: usize) -> Verification {
    Verification {
        outputs: vec![OutputCheck {
            index,
            code: VerifyCode::Fail,
            divergence: Some(Divergence {
                max_abs: f64::NAN,
                max_rel: f64::INFINITY,
                max_ulp: f64::INFINITY,
                cosine: 0.713,
                rmse: 0.25,
                mismatched: 700,
                elements: 1000,
                non_finite: 7,
                ..Divergence::default()
            }),
            why: Some("7 elements are NaN, but the reference is finite".into()),
        }],
        ..Verification::bare(VerifyCode::Fail, None)
    }
}

pub(super) fn of_rows(verdict: Verdict, rows: Vec<Row>) -> Comparison {
    let run = |label: &str, version: &str, commit: &str| RunSummary {
        label: label.into(),
        format: "benchgate/run/v1".into(),
        commit: Some("0123456789abcdef0123456789abcdef01234567".into()),
        toolchain: Some(Toolchain {
            version: version.into(),
            compiler_commit: commit.into(),
            runtime_commit: commit.into(),
            source: "pypi".into(),
        }),
        testbed: Some(Testbed {
            id: "9c1f0e57".into(),
            facts: BTreeMap::from([
                ("cpu-model".into(), "Example CPU @ 2.20GHz".into()),
                ("processors".into(), "2".into()),
            ]),
            notes: BTreeMap::new(),
        }),
        context: Context {
            date: Some("2026-11-20T21:00:05+00:00".into()),
            host_name: Some("runner-1".into()),
            num_cpus: Some(2),
            load_avg: vec![0.5, 0.25, 0.1],
            ..Context::default()
        },
        benchmarks: 4,
    };
    Comparison {
        suite: Some("quickstart".into()),
        verdict,
        exit_code: ExitCode::for_verdict(verdict),
        base: run("run.json#base", "3.9.0", "1a6681936a78138f7ae2b0fd9309d28dfe01ac5b"),
        head: run("run.json#head", "3.13.0", "89ece87b89852100c0a4ac3d515e14842d090967"),
        rows,
        geomeans: Vec::new(),
        policy: Policy::default(),
        lints: Vec::new(),
        notes: Vec::new(),
        method: Vec::new(),
    }
}

/// Returns a comparison like the quickstart suite's.
pub(super) fn quickstart() -> Comparison {
    let mut attention =
        measured("attention/cpu/main", Verdict::Regressed, Reason::BeyondFloor, 22_150_000.0, 1.441);
    attention.lints.push(Lint::new(LintCode::HighCv, "CV 12 % in block 3"));
    let rows = vec![
        measured("conv/cpu/main", Verdict::Improved, Reason::BelowFloor, 9_204_000.0, 0.1141),
        attention,
        measured("mlp/cpu/main", Verdict::Pass, Reason::WithinTolerance, 121_034.0, 1.0031),
        measured("transformer/cpu/main", Verdict::Inconclusive, Reason::Open, 90_100_000.0, 1.021),
        exact("conv/cpu/main", Metric::DISPATCH_COUNT, Verdict::Improved, 1204.0, 17.0),
        exact("mlp/cpu/main", Metric::VMFB_SIZE, Verdict::Pass, 51_234.0, 51_234.0),
    ];
    let mut comparison = of_rows(Verdict::Regressed, rows);
    comparison.geomeans.push(Geomean {
        target: Some("cpu".into()),
        metric: Metric::LATENCY,
        ratio: 0.64,
        interval: Some(Interval { low: 0.63, high: 0.65, level: 0.99 }),
        rows: 4,
        left_out: Vec::new(),
    });
    comparison.lints.push(Lint::new(LintCode::ToolchainMismatch, "base 3.9.0, head 3.13.0"));
    comparison.method.push("Blocks are paired: base and head ran side by side in one session.".into());
    comparison
}

/// Returns every reason once, with its usual verdict.
pub(super) fn every_reason() -> Comparison {
    let why = || "iree-compile ended with 1: error: failed to legalize operation 'torch.aten.foo'".to_owned();
    let fails = |reason: fn(Stage, String) -> Reason| reason(Stage::Compile, why());
    let mut diverged = bare("wrong", Verdict::Diverged, Reason::WrongOutput);
    diverged.head_verification = Some(wrong(0));
    let mut both_wrong = bare("wrong-at-base", Verdict::Error, Reason::WrongOutputOnBase);
    both_wrong.base_verification = Some(wrong(2));
    let mut waived = measured("waived", Verdict::Regressed, Reason::BeyondFloor, 1e6, 1.05);
    waived.fatal = false;
    waived.waiver = Some(WaiverUse {
        owner: "kim".into(),
        reason: "slower on purpose, issue 12".into(),
        expires: "2027-01-31".into(),
        expired: false,
    });
    let mut expired = measured("waiver-expired", Verdict::Regressed, Reason::BeyondFloor, 1e6, 1.05);
    expired.waiver = Some(WaiverUse {
        owner: "kim".into(),
        reason: "until the fix lands".into(),
        expires: "2026-10-01".into(),
        expired: true,
    });
    let mut welch = measured("welch", Verdict::Inconclusive, Reason::Open, 1e6, 1.02);
    if let Some(estimate) = &mut welch.estimate {
        (estimate.method, estimate.blocks, estimate.minimum_detectable) = (Method::Welch, 0, None);
    }
    let rows = vec![
        measured("slower", Verdict::Regressed, Reason::BeyondFloor, 22_150_000.0, 1.441),
        measured("faster", Verdict::Improved, Reason::BelowFloor, 9_204_000.0, 0.1141),
        measured("within", Verdict::Pass, Reason::WithinTolerance, 121_034.0, 1.0031),
        measured("open", Verdict::Inconclusive, Reason::Open, 90_100_000.0, 1.021),
        bare("identical", Verdict::Pass, Reason::Identical),
        measured("unstable", Verdict::Regressed, Reason::Stability, 1e6, 1.001),
        measured("stalls", Verdict::Regressed, Reason::Tail, 1e6, 1.001),
        exact("fewer-dispatches", Metric::DISPATCH_COUNT, Verdict::Improved, 1204.0, 17.0),
        exact("same-size", Metric::VMFB_SIZE, Verdict::Pass, 51_234.0, 51_234.0),
        bare("gone", Verdict::Missing, Reason::OnlyOn(SideName::Base)),
        Row { fatal: false, ..bare("new", Verdict::Missing, Reason::OnlyOn(SideName::Head)) },
        bare("new-and-broken", Verdict::Error, fails(|stage, why| Reason::FailsAtHead { stage, why })),
        Row {
            metric: Some(Metric::CPU_TIME),
            fatal: false,
            ..bare("no-cpu-time", Verdict::Missing, Reason::MetricOnlyOn(SideName::Head))
        },
        bare("broken", Verdict::Regressed, fails(|stage, why| Reason::FailsAtHead { stage, why })),
        Row {
            fatal: false,
            ..bare("mended", Verdict::Missing, fails(|stage, why| Reason::FailsAtBase { stage, why }))
        },
        bare("never-worked", Verdict::Error, fails(|stage, why| Reason::FailsOnBoth { stage, why })),
        bare(
            "unsupported",
            Verdict::Missing,
            Reason::NotMeasured(Outcome::Unsupported { reason: "no convolution on this target".into() }),
        ),
        bare(
            "skipped",
            Verdict::Missing,
            Reason::NotMeasured(Outcome::Skipped { reason: "not selected".into() }),
        ),
        diverged,
        both_wrong,
        bare(
            "zero",
            Verdict::Error,
            Reason::Unusable(Lint::new(LintCode::ZeroTime, "0 ns in repetition 3 of process 1")),
        ),
        bare(
            "one-sample",
            Verdict::Inconclusive,
            Reason::TooLittle(TooLittle {
                short: "too few samples",
                why: "one process with one repetition".into(),
            }),
        ),
        bare("units", Verdict::Error, Reason::UnitMismatch { base: "ns".into(), head: "items/s".into() }),
        waived,
        expired,
        welch,
    ];
    of_rows(Verdict::Error, rows)
}

/// Returns hostile names and messages, which try to make the report do something.
pub(super) fn hostile() -> Comparison {
    let names = [
        "a|b\\|c @everyone #1 https://evil.example/?q=1",
        "`` ` ``</details><script>alert(1)</script>",
        "::add-mask::name\n::error::second line\u{1b}[2J\u{1b}[31mred",
        "\u{202e}desrever\u{202c} zero\u{200b}width ##[error]x",
        "=HYPERLINK(\"https://evil.example\")",
        "![image](https://evil.example/a.png) [link](https://evil.example) www.evil.example",
    ];
    let mut rows: Vec<Row> =
        names.iter().map(|name| measured(name, Verdict::Regressed, Reason::BeyondFloor, 1e6, 1.2)).collect();
    rows.extend(names.iter().map(|name| {
        let why = format!("first line of a log\n{name}");
        bare(name, Verdict::Regressed, Reason::FailsAtHead { stage: Stage::Export, why })
    }));
    let mut comparison = of_rows(Verdict::Regressed, rows);
    comparison.lints.push(Lint::new(LintCode::Unmatched, names[0]));
    comparison.notes.push(format!("A note that quotes {}", names[0]));
    comparison.notes.push("- A note like a list. See gh-12 and ftp://evil.example".into());
    comparison.base.label = names[0].into();
    comparison
}

/// Returns a calibration of two benchmarks, one of which has a hostile name.
pub(in crate::report) fn noise_report() -> NoiseReport {
    let points = |shares: [u64; 3]| -> Vec<PowerPoint> {
        [0.03, 0.05, 0.10]
            .into_iter()
            .zip(shares)
            .map(|(slowdown, hits)| PowerPoint { slowdown, seen: Share { hits, of: 1000 }, blocks: 5.25 })
            .collect()
    };
    let row = |name: &str, spread: f64, least, shares| NoiseRow {
        benchmark: BenchmarkName::new(name),
        spread: Spread {
            within_process: Some(spread),
            between_processes: Some(2.0 * spread),
            between_blocks: Some(spread),
            between_sessions: None,
        },
        least,
        green: Share { hits: 990, of: 1000 },
        power: points(shares),
    };
    NoiseReport {
        rounds: 12,
        rows: vec![
            row("vit/cpu/main", 0.004, 0.006, [700, 990, 1000]),
            row("<b>&\u{1b}[31m/gpu/main", 0.03, f64::NAN, [20, 200, 810]),
        ],
        red_suites: Share { hits: 1, of: 1000 },
        green_rows: Share { hits: 1980, of: 2000 },
        inconclusive_rows: Share { hits: 19, of: 2000 },
        blocks: 4.5,
        power: points([360, 595, 905]),
        others: None,
        calibration: Calibration { source: "A/A session".to_owned(), spreads: Default::default() },
    }
}
