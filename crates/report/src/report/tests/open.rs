//! Rows without a verdict, and what other programs hide.

use super::samples::{measured, of_rows};
use super::{NARROW, WIDE};
use crate::report::{MarkdownOptions, View, markdown, terminal};
use benchgate_core::model::{Lint, LintCode, Metric, Verdict};
use benchgate_gate::{Comparison, Reason, Row};

#[test]
fn an_open_row_says_that_its_code_is_identical() {
    let kernels = "12 kernels: all identical";
    let open = |name: &str| {
        let mut row = measured(name, Verdict::Inconclusive, Reason::Open, 1e6, 1.04);
        row.lints.push(Lint::new(LintCode::KernelCode, kernels));
        row.same_code = true;
        row
    };
    let said = |rows: Vec<Row>| {
        let comparison = of_rows(Verdict::Inconclusive, rows);
        let view = View::new(&comparison, None);
        let texts = [terminal(&view, NARROW), markdown(&view, MarkdownOptions::default())];
        texts.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    for text in said(vec![open("sort")]) {
        assert_eq!(text.matches("; 12 kernels: all identical").count(), 1, "{text}");
        assert_eq!(text.matches("12 kernels").count(), 1, "{text}");
    }
    let mut other = open("search");
    other.lints[0].detail = "12 kernels: 11 identical, 1 changed: identical".to_owned();
    other.same_code = false;
    for text in said(vec![open("sort"), other]) {
        assert!(text.replace('`', "").contains("; identical code: sort"), "{text}");
    }
}

#[test]
fn rows_without_a_verdict_say_which_side_was_disturbed() {
    let row = |name: &str, side: &str| {
        let lint =
            Lint::new(LintCode::ForeignProcess, format!("{side}: 5 of 8 processes, first in process 2"));
        measured(name, Verdict::Inconclusive, Reason::Unusable(lint), 1e6, 1.1)
    };
    let rows = vec![
        row("sort", "while head was measured"),
        row("search", "while head was measured"),
        row("sum", "in the newest stored session"),
    ];
    let comparison = of_rows(Verdict::Inconclusive, rows);
    let text = terminal(&View::new(&comparison, None), WIDE);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("sort, search (inconclusive): another process used"), "{text}");
    assert!(text.contains("both sides alike: while head was measured sum (inconclusive)"), "{text}");
    assert!(text.contains("both sides alike: in the newest stored session"), "{text}");
}

#[test]
fn rows_share_a_reason_even_if_one_estimate_is_at_an_end_of_its_interval() {
    let open = |name: &str, high: f64| {
        let mut row = measured(name, Verdict::Inconclusive, Reason::Open, 1e6, 1.08);
        let bounds = row.estimate.as_mut().and_then(|estimate| estimate.interval.as_mut()).unwrap();
        (bounds.low, bounds.high) = (0.9, high);
        row
    };
    let comparison = of_rows(Verdict::Inconclusive, vec![open("sort", 1.0801), open("search", 1.2)]);
    let text = terminal(&View::new(&comparison, None), NARROW);
    assert_eq!(text.matches("the interval reaches").count(), 1, "{text}");
    let text = markdown(&View::new(&comparison, None), MarkdownOptions::default());
    assert!(text.contains("at an end of the interval: `sort`"), "{text}");
}

#[test]
fn a_time_that_passes_on_a_busy_machine_is_said_with_the_change_of_its_processor_time() {
    let passed = measured("sort", Verdict::Pass, Reason::WithinTolerance, 1e6, 1.01);
    let mut cpu = measured("sort", Verdict::Regressed, Reason::BeyondFloor, 1e6, 1.10);
    (cpu.metric, cpu.fatal) = (Some(Metric::CPU_TIME), false);
    let mut comparison = of_rows(Verdict::Pass, vec![passed, cpu]);
    let said = |comparison: &Comparison| {
        let text = terminal(&View::new(comparison, None), WIDE);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(!said(&comparison).contains("by processor time"), "{}", said(&comparison));
    comparison.lints.push(Lint::new(LintCode::HostBusy, "other programs ran during most processes"));
    assert!(said(&comparison).contains("by processor time: sort +10.0 %."), "{}", said(&comparison));
}
