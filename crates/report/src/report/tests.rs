//! Snapshots of reports for people and for programs, and properties of every report.

mod open;
pub(super) mod samples;

use benchgate_core::exit_code::ExitCode;
use benchgate_core::model::{Lint, LintCode, Metric, SideName, Verdict, VerifyCode};
use benchgate_core::record::ComparisonFile;
use benchgate_gate::{Estimate, Method, Reason, Row, ShownSides, SideStats, Typical, WaiverUse};

use super::document::{cell, code, markdown_text as text};
use super::{
    MarkdownOptions, TerminalOptions, View, clean, comparison_file, csv, harmless, json, junit, markdown,
    terminal,
};
use samples::{bare, every_reason, hostile, measured, of_rows, quickstart, wrong};

const NARROW: TerminalOptions = TerminalOptions { width: 80, color: false, all: false };
const WIDE: TerminalOptions = TerminalOptions { width: 160, color: false, all: true };

#[test]
fn the_quickstart_in_every_format() {
    let comparison = quickstart();
    let view = View::new(&comparison, Some("benchgate compare run.json".into()));
    insta::assert_snapshot!("quickstart-narrow", terminal(&view, NARROW));
    insta::assert_snapshot!("quickstart-wide", terminal(&view, WIDE));
    insta::assert_snapshot!("quickstart-markdown", markdown(&view, MarkdownOptions::default()));
    let version = format!("\"benchgate\": \"{}\"", benchgate_core::VERSION);
    insta::assert_snapshot!("quickstart-json", json(&view).replace(&version, "\"benchgate\": \"[VERSION]\""));
    insta::assert_snapshot!("quickstart-csv", csv(&view));
    insta::assert_snapshot!("quickstart-junit", junit(&view));
}

#[test]
fn every_reason_in_words() {
    let comparison = every_reason();
    let view = View::new(&comparison, None);
    insta::assert_snapshot!("reasons-narrow", terminal(&view, TerminalOptions { all: true, ..NARROW }));
    insta::assert_snapshot!("reasons-wide", terminal(&view, WIDE));
    insta::assert_snapshot!("reasons-markdown", markdown(&view, MarkdownOptions::default()));
    insta::assert_snapshot!("reasons-csv", csv(&view));
    insta::assert_snapshot!("reasons-junit", junit(&view));
}

#[test]
fn hostile_names_stay_names() {
    let comparison = hostile();
    let view = View::new(&comparison, None);
    insta::assert_snapshot!("hostile-terminal", terminal(&view, NARROW));
    insta::assert_snapshot!("hostile-markdown", markdown(&view, MarkdownOptions::default()));
    insta::assert_snapshot!("hostile-csv", csv(&view));
    insta::assert_snapshot!("hostile-junit", junit(&view));
}

#[test]
fn a_finding_about_two_metrics_of_a_benchmark_counts_it_once() {
    let mut comparison = quickstart();
    for row in &mut comparison.rows {
        row.lints = vec![Lint::new(LintCode::HighCv, "")];
    }
    let view = View::new(&comparison, None);
    let group = view.lints.iter().find(|group| group.code == LintCode::HighCv).unwrap();
    assert_eq!((group.found.len(), group.benchmarks.len()), (6, 4));
}

#[test]
fn a_narrow_report_fits_its_terminal() {
    for comparison in [quickstart(), every_reason()] {
        let view = View::new(&comparison, None);
        for line in terminal(&view, TerminalOptions { all: true, ..NARROW }).lines() {
            assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
        }
        for line in terminal(&view, WIDE).lines() {
            assert!(line.chars().count() <= 160, "{} columns: {line}", line.chars().count());
        }
    }
}

#[test]
fn a_row_takes_one_line_of_80_columns_and_the_end_that_all_names_share_stands_in_the_title() {
    let of = |names: &[&str]| -> Vec<String> {
        let rows = names
            .iter()
            .zip([2.345, 0.0806, 0.658, 1.0, 11.5])
            .map(|(name, ratio)| measured(name, Verdict::Inconclusive, Reason::Open, 1_234_567.0, ratio));
        let comparison = of_rows(Verdict::Inconclusive, rows.collect());
        let text = terminal(&View::new(&comparison, None), NARROW);
        text.lines().take_while(|line| !line.starts_with('─')).map(str::to_owned).collect()
    };
    let suite = ["pairwise-l1", "vit-block", "conv-block", "mlp", "transformer-layer"];
    let names = suite.map(|name| format!("{name}/cpu/main"));
    let table = of(&names.each_ref().map(String::as_str));
    assert_eq!(table.len(), 2 + suite.len(), "{table:#?}");
    assert!(table[0].starts_with("…/cpu/main "), "{table:#?}");
    assert!(table.iter().all(|line| line.chars().count() <= 80), "{table:#?}");
    // If names share no ending, or if there is only one row, names are not shortened.
    for names in [&["one/cpu/main", "two/gpu/main2"][..], &["one-name/cpu/main"]] {
        let table = of(names);
        assert!(names.iter().all(|name| table.iter().any(|line| line.starts_with(name))), "{table:#?}");
    }
}

/// Every run of letters in a name or a word must appear unbroken on some line.
#[test]
fn no_word_is_split_at_any_width() {
    let mut comparison = every_reason();
    let name = "transformer-layer/peak-device-memory/single_repetition";
    comparison.rows.push(measured(name, Verdict::Regressed, Reason::BeyondFloor, 1e6, 1.3));
    let view = View::new(&comparison, None);
    let words = ["transformer", "layer", "device", "memory", "repetition", "inconclusive"];
    for width in (50..170).step_by(3) {
        let text = terminal(&view, TerminalOptions { width, color: false, all: true });
        let missing: Vec<&&str> = words.iter().filter(|word| !text.contains(**word)).collect();
        assert!(missing.is_empty(), "{width}: {missing:?}\n{text}");
        for line in text.lines().filter(|line| line.contains('─') || line.contains(" % ")) {
            assert!(line.chars().count() <= usize::from(width), "{width}: {line}");
        }
    }
}

#[test]
fn a_page_counts_open_rows_and_not_the_reasons_that_they_share() {
    let rows = ["one", "two"].map(|name| measured(name, Verdict::Inconclusive, Reason::Open, 1e6, 1.02));
    let comparison = of_rows(Verdict::Inconclusive, rows.to_vec());
    let text = markdown(&View::new(&comparison, None), MarkdownOptions::default());
    assert!(text.contains("<summary>Inconclusive (2)</summary>"), "{text}");
}

#[test]
fn an_open_row_says_what_its_processor_time_shows() {
    let open = measured("sort", Verdict::Inconclusive, Reason::Open, 1e6, 1.04);
    let mut cpu = measured("sort", Verdict::Regressed, Reason::BeyondFloor, 1e6, 1.05);
    (cpu.metric, cpu.fatal) = (Some(Metric::CPU_TIME), false);
    let comparison = of_rows(Verdict::Inconclusive, vec![open, cpu]);
    for options in [NARROW, WIDE, TerminalOptions { all: true, ..NARROW }] {
        let text = terminal(&View::new(&comparison, None), options);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            text.contains("its cpu-time, which does not decide the verdict, changed by +5.0 % ("),
            "{text}"
        );
    }
}

#[test]
fn the_processor_times_of_rows_with_one_reason_are_listed_with_their_names() {
    let rows = ["sort", "sum"].into_iter().flat_map(|name| {
        let mut cpu = measured(name, Verdict::Regressed, Reason::BeyondFloor, 1e6, 1.05);
        (cpu.metric, cpu.fatal) = (Some(Metric::CPU_TIME), false);
        [measured(name, Verdict::Inconclusive, Reason::Open, 1e6, 1.04), cpu]
    });
    let comparison = of_rows(Verdict::Inconclusive, rows.collect());
    let text = terminal(&View::new(&comparison, None), NARROW);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let named = "; cpu-time, which does not decide the verdict, changed: sort +5.0 % (";
    assert!(text.contains(named), "{text}");
}

#[test]
fn an_estimate_at_an_end_of_its_interval_is_explained() {
    let mut row = measured("sort", Verdict::Inconclusive, Reason::Open, 1e6, 1.58);
    if let Some(bounds) = row.estimate.as_mut().and_then(|estimate| estimate.interval.as_mut()) {
        (bounds.low, bounds.high) = (1.542, 1.5803);
    }
    let comparison = of_rows(Verdict::Inconclusive, vec![row]);
    let text = terminal(&View::new(&comparison, None), WIDE);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("nearly all others are smaller, so it may be too high"), "{text}");
}

/// `host-overloaded (no verdict)` next to a pass would be contradictory.
#[test]
fn a_finding_that_withheld_no_verdict_is_a_note() {
    let words = |verdict: Verdict, reason: Reason| {
        let mut comparison = of_rows(verdict, vec![measured("mlp", verdict, reason, 1e6, 1.0)]);
        let busy = Lint::new(LintCode::HostOverloaded, "load average 9.0 on 2 processors");
        comparison.lints.push(busy);
        let text = terminal(&View::new(&comparison, None), NARROW);
        text.lines().find(|line| line.contains("host-overloaded")).unwrap().to_owned()
    };
    assert!(words(Verdict::Pass, Reason::Identical).starts_with("notes: host-overloaded;"));
    assert!(words(Verdict::Inconclusive, Reason::Open).starts_with("host-overloaded (no verdict): "));
}

#[test]
fn identical_programs_have_no_effect_and_no_direction() {
    let mut row = measured("same", Verdict::Pass, Reason::Identical, 13_470.0, 1.0);
    if let Some(estimate) = &mut row.estimate {
        (estimate.method, estimate.interval) = (Method::Identical, None);
    }
    let comparison = of_rows(Verdict::Pass, vec![row]);
    let view = View::new(&comparison, None);
    let row = &view.unchanged[0];
    assert_eq!((row.effect(), row.interval()), (None, None));
    assert_eq!(row.values(), "13.47 µs");
    for report in [terminal(&view, NARROW), markdown(&view, MarkdownOptions::default())] {
        assert!(report.contains("identical") && !report.contains("slower") && !report.contains("faster"));
    }
}

#[test]
fn of_many_rows_a_terminal_lists_what_moved_and_counts_the_rest() {
    let names: Vec<String> = (0..1200).map(|at| format!("m{at}/cpu/main")).collect();
    let row = |(at, name): (usize, &String)| match at {
        7 => measured(name, Verdict::Regressed, Reason::BeyondFloor, 1e6, 1.3),
        8 | 9 => measured(name, Verdict::Pass, Reason::WithinTolerance, 1e6, 1.0),
        _ => measured(name, Verdict::Pass, Reason::Identical, 1e6, 1.0),
    };
    let comparison = of_rows(Verdict::Regressed, names.iter().enumerate().map(row).collect());
    let view = View::new(&comparison, None);
    let text = terminal(&view, NARROW);
    assert!(text.contains("m7/cpu/main") && !text.contains("m9/cpu/main"), "{text}");
    assert!(text.contains("1,199 rows pass, 1,197 of them identical (--all)"), "{text}");
    let all = terminal(&view, WIDE);
    assert!(all.contains("m1199/cpu/main") && !all.contains("rows pass"), "{all}");
    // A short table includes the rows that pass.
    let short = of_rows(Verdict::Pass, names[..3].iter().enumerate().map(row).collect());
    assert!(terminal(&View::new(&short, None), NARROW).contains("m2"));
}

#[test]
fn a_wrong_output_is_the_first_row_and_its_time_is_not_called_open() {
    let wrong = bare("wrong/cpu/main", Verdict::Diverged, Reason::WrongOutput);
    let mut time = measured("wrong/cpu/main", Verdict::Inconclusive, Reason::Open, 1e6, 1.02);
    time.target = None;
    let slow = measured("slow/cpu/main", Verdict::Regressed, Reason::BeyondFloor, 1e6, 1.3);
    let comparison = of_rows(Verdict::Diverged, vec![slow, time, wrong]);
    let view = View::new(&comparison, None);
    let shown: Vec<(&str, Verdict)> = view.deciding().iter().map(|row| (row.name, row.row.verdict)).collect();
    assert_eq!(shown, [("wrong/cpu/main", Verdict::Diverged), ("slow/cpu/main", Verdict::Regressed)]);
    assert_eq!(view.deciding()[0].values(), "1.000 → 1.020 ms");
    assert!(view.open.is_empty());
}

#[test]
fn a_green_names_the_tolerance_that_judged() {
    let mut row = measured("m/cpu/main", Verdict::Pass, Reason::WithinTolerance, 1e5, 1.1);
    assert_eq!(super::words::reason(&row).short, "within 3 %");
    row.policy.as_mut().unwrap().floor.absolute = 5e4;
    assert_eq!(super::words::reason(&row).short, "within 50 %");
}

#[test]
fn every_report_shows_the_values_that_the_gate_computed() {
    let mut row = measured("m/cpu/main", Verdict::Improved, Reason::BelowFloor, 13_470.0, 0.932);
    // The medians may be in the opposite order.
    for (side, location) in [(&mut row.base, 13_470.0), (&mut row.head, 14_650.0)] {
        let (min, max) = (location * 0.9, location * 1.1);
        *side = Some(SideStats { location, mean: location, min, max, ..side.clone().unwrap() });
    }
    row.typical = row.values_to_show(ShownSides::Together);
    let comparison = of_rows(Verdict::Improved, vec![row]);
    let view = View::new(&comparison, None);
    let values = "14.55 → 13.56 µs";
    assert_eq!(view.changed[0].values(), values);
    let markdown = markdown(&view, MarkdownOptions::default()).replace('\u{a0}', " ");
    for report in [terminal(&view, NARROW), terminal(&view, WIDE), markdown] {
        assert!(report.contains(values), "{report}");
    }
    let record = comparison_file(&view).rows.remove(0);
    let (typical, estimate) = (record.typical.unwrap(), record.estimate.unwrap());
    assert!((typical.head.unwrap() / typical.base.unwrap() - estimate.ratio).abs() < 1e-9);
}

#[test]
fn what_explains_a_red_stands_next_to_the_first_table() {
    let mut slow = measured("vit/cpu/main", Verdict::Regressed, Reason::BeyondFloor, 1e6, 1.3);
    let moved = "main_dispatch_9 takes 2.00 times as long: 53 % of the change in kernel time";
    slow.lints.push(Lint::new(LintCode::KernelMoved, moved));
    let mut count = bare("vit/cpu/main", Verdict::Regressed, Reason::Exact);
    count.metric = Some(Metric::DISPATCH_COUNT);
    count.fatal = false;
    count.estimate =
        slow.estimate.clone().map(|estimate| Estimate { method: Method::Exact, ratio: 1.5, ..estimate });
    count.typical = Typical { base: Some(16.0), head: Some(24.0) };
    let comparison = of_rows(Verdict::Regressed, vec![slow, count]);
    let view = View::new(&comparison, None);
    let cause = &view.causes[0];
    assert_eq!(
        (cause.kernel, cause.changes.as_slice()),
        (Some(moved), &["dispatch-count 16 → 24".to_owned()][..])
    );
    let markdown = markdown(&view, MarkdownOptions::default());
    let (kernel, table) = (markdown.find("main_dispatch_9"), markdown.find("| benchmark"));
    assert!(kernel.is_some() && kernel < table, "{markdown}");
    // A terminal's report ends with the verdict, so there it is the first line below the table.
    let text = terminal(&view, NARROW);
    let below = text.split_once("\n\n").unwrap().1;
    assert!(below.starts_with("vit/cpu/main: main_dispatch_9"), "{text}");
}

#[test]
fn a_finding_repeats_no_detail_that_stands_above() {
    let kernels = "12 kernels: 11 identical, 1 changed: main_dispatch_9";
    let mut slow = measured("vit/cpu/main", Verdict::Regressed, Reason::BeyondFloor, 1e6, 1.3);
    let mut open = measured("mlp/cpu/main", Verdict::Inconclusive, Reason::Open, 1e6, 1.02);
    slow.lints.push(Lint::new(LintCode::KernelCode, kernels));
    let alone = of_rows(Verdict::Regressed, vec![slow.clone()]);
    for text in [terminal(&View::new(&alone, None), WIDE), terminal(&View::new(&alone, None), NARROW)] {
        assert_eq!(text.matches("11 identical").count(), 1, "{text}");
    }
    // The finding has the same text, but no paragraph names its benchmark.
    open.lints.push(Lint::new(LintCode::KernelCode, kernels));
    let both = of_rows(Verdict::Regressed, vec![slow, open]);
    let text = markdown(&View::new(&both, None), MarkdownOptions::default());
    assert_eq!(text.matches("11 identical").count(), 2, "{text}");
}

#[test]
fn outputs_that_only_differ_from_bases_are_not_called_wrong() {
    let why = "3 of 3 elements beyond the tolerance, largest |a − b| 3.000e-2";
    let mut found = wrong(0);
    found.code = VerifyCode::VerifierSkipped;
    found.against_base = std::mem::take(&mut found.outputs);
    found.against_base[0].why = Some(why.to_owned());
    let mut row = bare("a/cpu/main", Verdict::Diverged, Reason::WrongOutput);
    row.head_verification = Some(found);
    row.lints.push(Lint::new(LintCode::ReferenceChanged, format!("output 0: {why}")));
    let comparison = of_rows(Verdict::Diverged, vec![row]);
    let view = View::new(&comparison, None);
    assert_eq!(view.headline, "Diverged: 1 of 1 benchmark has different outputs than base.");
    for text in [terminal(&view, WIDE), markdown(&view, MarkdownOptions::default())] {
        assert_eq!(text.matches("3 of 3 elements").count(), 1, "{text}");
        assert!(!text.to_lowercase().contains("wrong"), "{text}");
    }
}

#[test]
fn no_line_of_a_log_is_a_command() {
    let comparison = hostile();
    let view = View::new(&comparison, None);
    for width in [40, 60, 80, 160] {
        obeys_nothing(&terminal(&view, TerminalOptions { width, ..WIDE }));
    }
    for report in [markdown(&view, MarkdownOptions::default()), json(&view), csv(&view), junit(&view)] {
        obeys_nothing(&report);
    }
}

fn obeys_nothing(report: &str) {
    assert!(!report.contains('\u{1b}') && !report.contains("##["), "{report}");
    for line in report.lines() {
        assert!(!line.trim_start().starts_with("::"), "{line}");
    }
}

#[test]
fn colors_appear_only_when_asked_for() {
    let comparison = quickstart();
    let view = View::new(&comparison, None);
    let colored = terminal(&view, TerminalOptions { color: true, ..NARROW });
    assert!(colored.contains('\u{1b}'));
    assert!(!terminal(&view, NARROW).contains('\u{1b}'));
}

#[test]
fn every_verdict_starts_the_report_with_its_word() {
    let words: Vec<String> = Verdict::ALL
        .iter()
        .map(|verdict| {
            let rows = vec![
                measured("a", *verdict, Reason::Open, 1e6, 1.0),
                measured("b", Verdict::Pass, Reason::WithinTolerance, 1e6, 1.0),
            ];
            let comparison = of_rows(*verdict, rows);
            View::new(&comparison, None).headline
        })
        .collect();
    insta::assert_snapshot!(words.join("\n"), @"
    Pass: 2 of 2 benchmarks passed.
    Improved: 1 of 2 benchmarks improved, 1 passed.
    Regressed: 1 of 2 benchmarks regressed, 1 passed.
    Diverged: 1 of 2 benchmarks has wrong outputs, 1 passed.
    Inconclusive: 1 of 2 benchmarks is inconclusive, 1 passed.
    Missing: 1 of 2 benchmarks is missing, 1 passed.
    Error: 1 of 2 benchmarks could not be judged, 1 passed.
    ");
    let mut excused = measured("c", Verdict::Regressed, Reason::BeyondFloor, 1e6, 1.1);
    excused.fatal = false;
    excused.waiver = Some(WaiverUse {
        owner: "kim".into(),
        reason: "on purpose".into(),
        expires: "2027-01-31".into(),
        expired: false,
    });
    let alone = of_rows(Verdict::Pass, vec![excused.clone()]);
    assert_eq!(View::new(&alone, None).headline, "Pass: 1 of 1 benchmark is waived.");
    let new = Row { fatal: false, ..bare("d", Verdict::Missing, Reason::OnlyOn(SideName::Head)) };
    let good = measured("e", Verdict::Pass, Reason::WithinTolerance, 1e6, 1.0);
    let mut reported = measured("f", Verdict::Regressed, Reason::BeyondFloor, 1e6, 1.1);
    reported.fatal = false;
    let excused = of_rows(Verdict::Pass, vec![excused, new, good, reported]);
    assert_eq!(
        View::new(&excused, None).headline,
        "Pass: 1 of 4 benchmarks passed, 1 is waived, 1 was not compared, 1 has no gating metric."
    );
    let nothing = of_rows(Verdict::Error, Vec::new());
    assert_eq!(View::new(&nothing, None).headline, "Error: nothing was compared.");
}

#[test]
fn an_open_row_is_never_worded_as_no_change() {
    let rows = vec![measured("a", Verdict::Inconclusive, Reason::Open, 1e6, 1.001)];
    let comparison = of_rows(Verdict::Inconclusive, rows);
    let view = View::new(&comparison, None);
    for report in [
        terminal(&view, NARROW),
        markdown(&view, MarkdownOptions::default()),
        json(&view),
        csv(&view),
        junit(&view),
    ] {
        let lower = report.to_lowercase();
        for claim in ["no change", "unchanged", "passed", "no difference", "within"] {
            assert!(!lower.contains(claim), "{claim}: {report}");
        }
        assert!(lower.contains("inconclusive") || lower.contains("open"), "{report}");
    }
}

#[test]
fn what_changed_most_is_first_also_among_open_rows() {
    let rows = [("a", 1.0), ("b", 0.99), ("c", 100.0), ("d", 0.5)];
    let rows = rows.map(|(name, ratio)| measured(name, Verdict::Inconclusive, Reason::Open, 1e6, ratio));
    let comparison = of_rows(Verdict::Inconclusive, rows.into());
    let view = View::new(&comparison, None);
    let names: Vec<&str> = view.deciding().iter().map(|row| row.name).collect();
    assert_eq!(names, ["c", "d", "b", "a"]);
}

#[test]
fn rows_that_are_open_for_one_reason_share_one_paragraph() {
    let single = |detail: &str| Reason::Unusable(Lint::new(LintCode::SingleRepetition, detail));
    let mut rows: Vec<Row> = (1..=5u8)
        .map(|n| {
            let reason = single(&format!("case {n}"));
            measured(&format!("single-{n}"), Verdict::Inconclusive, reason, 1e6, 1.0 + f64::from(n) / 10.0)
        })
        .collect();
    rows.push(measured("wide", Verdict::Inconclusive, Reason::Open, 1e6, 1.01));
    let comparison = of_rows(Verdict::Inconclusive, rows);
    let view = View::new(&comparison, None);
    let groups: Vec<usize> = view.open_groups().iter().map(|group| group.rows.len()).collect();
    assert_eq!(groups, [5, 1]);
    insta::assert_snapshot!("grouped-80", terminal(&view, NARROW));
    insta::assert_snapshot!("grouped-160", terminal(&view, TerminalOptions { width: 160, ..NARROW }));
    let markdown = markdown(&view, MarkdownOptions::default());
    assert_eq!(markdown.matches("the spread inside a process is unknown").count(), 1, "{markdown}");
}

#[test]
fn a_terminal_shows_fifty_rows_and_counts_the_others() {
    let rows = (0..5000).map(|at| {
        measured(&format!("m{at}"), Verdict::Inconclusive, Reason::Open, 1e6, 1.0 + f64::from(at) / 1e5)
    });
    let comparison = of_rows(Verdict::Inconclusive, rows.collect());
    let view = View::new(&comparison, None);
    let text = terminal(&view, NARROW);
    assert!(text.contains("… and 4,950 more (--all)"), "{text}");
    assert!(text.lines().count() < 130, "{text}");
    assert!(text.contains("m4999 ") && !text.contains("m4000 "), "{text}");
    let all = terminal(&view, TerminalOptions { all: true, ..NARROW });
    assert!(all.contains("m4000 ") && !all.contains("(--all)"));
}

#[test]
fn a_geometric_mean_says_which_way_and_how_sure() {
    let said = |ratio: f64, low: f64, high: f64| {
        let metric = Metric {
            better: benchgate_core::model::Better::Higher,
            unit: benchgate_core::model::Unit::PerSecond,
            ..Metric::LATENCY
        };
        let interval = Some(benchgate_gate::Interval { low, high, level: 0.99 });
        let mean =
            benchgate_gate::Geomean { target: None, metric, ratio, interval, rows: 2, left_out: Vec::new() };
        super::view::geomean(&mean).replace('\u{a0}', " ")
    };
    assert_eq!(said(0.4, 0.37, 0.43), "2.50× slower (2.33 … 2.70×, 99 % confidence)");
    assert_eq!(said(2.2, 2.0, 2.4), "2.20× faster (2.00 … 2.40×, 99 % confidence)");
    assert_eq!(said(0.72, 0.52, 0.98), "−28.0 % (−48.0 … −2.0 %, 99 % confidence)");
    assert_eq!(said(1.01, 0.98, 1.03), "+1.0 % (−2.0 … +3.0 %, 99 % confidence)");
}

#[test]
fn a_geometric_mean_says_why_it_leaves_rows_out() {
    let said = |reasons: [Reason; 3]| {
        let rows: Vec<_> = ["a", "b", "c"].into_iter().zip(reasons).collect();
        let rows = rows.into_iter().map(|(name, reason)| measured(name, Verdict::Pass, reason, 1e6, 1.0));
        let mut comparison = of_rows(Verdict::Pass, rows.collect());
        let left_out = comparison.rows.iter().map(|row| row.benchmark.clone()).collect();
        let (metric, target) = (Metric::LATENCY, comparison.rows[0].target.clone());
        comparison.geomeans =
            vec![benchgate_gate::Geomean { target, metric, ratio: 1.0, interval: None, rows: 2, left_out }];
        let text = terminal(&View::new(&comparison, None), WIDE);
        let sentence = text.split("2 of 5 rows, without ").nth(1).unwrap().split(':').next().unwrap();
        sentence.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let (same, open) = (Reason::Identical, Reason::Open);
    assert_eq!(said([same.clone(), same.clone(), same.clone()]), "the identical ones");
    assert_eq!(said([open.clone(), open.clone(), open.clone()]), "those that could not be judged");
    assert_eq!(said([same.clone(), open, same]), "those that are identical or could not be judged");
}

#[test]
fn json_reads_back_and_names_the_exit_code() {
    for comparison in [quickstart(), every_reason(), hostile()] {
        let view = View::new(&comparison, None);
        let file = ComparisonFile::from_slice(json(&view).as_bytes()).unwrap();
        assert_eq!(file.rows.len(), comparison.rows.len());
        assert_eq!(file.exit_code, ExitCode::for_verdict(comparison.verdict).code());
        // The bytes are compared, because a NaN is not equal to itself.
        assert_eq!(file.to_json(), comparison_file(&view).to_json());
    }
}

#[test]
fn a_comparison_keeps_to_its_bytes_and_counts_what_it_left_out() {
    let rows = (0..2000)
        .map(|at| {
            measured(&format!("model-{at}/cpu/main"), Verdict::Regressed, Reason::BeyondFloor, 1e6, 1.1)
        })
        .collect();
    let comparison = of_rows(Verdict::Regressed, rows);
    let view = View::new(&comparison, None);
    let text = markdown(&view, MarkdownOptions { max_bytes: Some(60_000) });
    assert!(text.len() <= 60_000 && text.len() > 55_000, "{} bytes", text.len());
    assert!(text.starts_with("### 🔴 Regressed · `quickstart`\n\n**2000 of 2000 benchmarks regressed.**\n"));
    assert!(text.contains("more, in the JSON report."));
}

#[test]
fn a_code_span_is_longer_than_any_fence_inside() {
    assert_eq!(code("a`b``c"), "```a`b``c```");
    assert_eq!(code("`a`"), "`` `a` ``");
    assert_eq!(code(""), "(empty)");
    assert_eq!(cell("a|b"), "`a│b`");
    assert_eq!(code("a\nb"), "`a b`");
}

#[test]
fn text_outside_code_links_to_nothing() {
    assert_eq!(text("@me #12"), "&#64;&#8203;me &#35;&#8203;12");
    assert_eq!(text("see https://a.b and www.c.d"), "see https&#58;&#8203;//a.b and www&#46;&#8203;c.d");
    assert_eq!(text("<b>*x*</b>"), "&#60;b&#62;&#42;x&#42;&#60;/b&#62;");
    assert_eq!(text("12.5 %, +1 (both)"), "12.5 %, +1 (both)");
}

#[test]
fn a_message_keeps_its_lines_and_no_command() {
    assert_eq!(harmless("one\n  ::error::two\u{1b}[0m"), "one\n  ∷ error::two\u{fffd}[0m");
}

#[test]
fn cleaned_text_moves_no_cursor() {
    assert_eq!(clean("a\u{1b}[2Jb\r\nc\u{202e}"), "a\u{fffd}[2Jb\u{fffd}\u{fffd}c\u{fffd}");
}

#[test]
fn a_reader_of_junit_sees_every_character_of_a_name() {
    let comparison = hostile();
    let text = junit(&View::new(&comparison, None));
    let hidden = text.chars().find(|letter| *letter != '\n' && benchgate_core::model::is_hidden(*letter));
    assert_eq!(hidden, None, "{text}");
}
