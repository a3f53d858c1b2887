//! Renders a calibration for people and for programs.

use std::time::Duration;

use serde_json::{Value, json};

use benchgate_core::model::counted;
use benchgate_gate::noise::{NoiseReport, NoiseRow, PowerPoint, Share};

use super::document::{self, Block, Cell, Column, Rules, Table, TerminalOptions, Text};
use super::{clean, duration, percent};

/// Returns one line for each benchmark: how much it varies at each level.
pub fn spread_lines(rows: &[NoiseRow]) -> Vec<String> {
    let line = |row: &NoiseRow| {
        let spread = |value: Option<f64>| percent(value.unwrap_or(f64::NAN));
        format!(
            "{}: {} inside a process, {} between processes",
            clean(row.benchmark.as_str()),
            spread(row.spread.within_process),
            spread(row.spread.between_processes)
        )
    };
    rows.iter().map(line).collect()
}

/// Minimum power with which a gate reliably detects a slowdown.
const ENOUGH_POWER: f64 = 0.9;
/// Smallest lower bound of that power: the simulated sessions must show that the power is not below it.
const SURE_POWER: f64 = 0.8;

/// Returns the conclusion for a gate on this machine, if there are enough simulated sessions for one; `block`
/// is the time of a block of one row.
fn conclusion(report: &NoiseReport, block: Option<Duration>) -> Option<String> {
    let seen =
        |point: &&PowerPoint| point.seen.value() >= ENOUGH_POWER && point.seen.interval().0 >= SURE_POWER;
    let smallest = report.power.iter().filter(seen).min_by(|a, b| a.slowdown.total_cmp(&b.slowdown));
    let largest = report.power.iter().max_by(|a, b| a.slowdown.total_cmp(&b.slowdown))?;
    let (_, false_reds) = report.red_suites.interval();
    if let Some(point) = smallest {
        let took = block.map(|block| format!(", {}", duration(block.mul_f64(point.blocks))));
        return Some(format!(
            "This machine can gate slowdowns of {} and more: with 95 % confidence, such slowdowns turn red \
            in at least {} of sessions (after {:.1} blocks per row{}), and unchanged code turns red in at \
            most {}.",
            percent(point.slowdown),
            percent(point.seen.interval().0),
            point.blocks,
            took.unwrap_or_default(),
            percent(false_reds)
        ));
    }
    let (low, high) = largest.seen.interval();
    let slowdown = percent(largest.slowdown);
    Some(if high < ENOUGH_POWER {
        format!(
            "This machine can't gate slowdowns of {slowdown} yet: such slowdowns turned red in {} of the simulated \
            sessions, and with 95 % confidence do in at most {} of all. Stop other programs, let each process measure \
            for longer (`min-time`, or the options of a `[[command]]`), or raise `max-blocks`.",
            percent(largest.seen.value()),
            percent(high)
        )
    } else {
        format!(
            "Too few sessions were simulated to say whether this machine can gate slowdowns of {slowdown}: {} of {} turned \
             red, so with 95 % confidence {} to {} of all sessions do. `--no-measure --resamples {}` simulates more \
             from the same measurements.",
            largest.seen.hits,
            largest.seen.of,
            percent(low),
            percent(high),
            largest.seen.of.saturating_mul(4).max(100)
        )
    })
}

/// A share whose 95 % interval is this wide or wider is unknown.
const UNKNOWN: f64 = 0.5;

/// Formats a share, if there are enough simulated sessions for it.
fn known(share: Share) -> String {
    let (low, high) = share.interval();
    percent(if high - low < UNKNOWN { share.value() } else { f64::NAN })
}

/// Renders a calibration as a table of benchmarks, with the error rates of the suite; `block` is the time of
/// a block of one row.
pub fn noise_table(report: &NoiseReport, width: u16, block: Option<Duration>) -> String {
    let numbers = ["inside", "processes", "blocks", "least", "green"];
    let mut table = Table::new(&["benchmark"], &numbers, Rules::Ends);
    let slowdowns = report.power.iter().map(|point| format!("+{}", percent(point.slowdown)));
    table.columns.extend(slowdowns.map(Column::number));
    table.rows.extend(report.rows.iter().map(|row| {
        let spread = |value: Option<f64>| percent(value.unwrap_or(f64::NAN));
        let mut cells: Vec<Cell<'_>> = vec![Text::named(row.benchmark.as_str()).into()];
        let levels = [row.spread.within_process, row.spread.between_processes, row.spread.between_blocks];
        cells.extend(levels.map(|level| spread(level).into()));
        cells.extend([percent(row.least), known(row.green)].map(Cell::from));
        cells.extend(row.power.iter().map(|point| Cell::from(known(point.seen))));
        cells
    }));
    let legend = "inside, processes, blocks: the spread inside a process, between processes and between blocks. least: the \
                  slowdown that turns the row red in 90 % of sessions. green: unchanged sessions in \
                  which the row passed. +N %: sessions slowed by N % in which it turned red. ?: too few sessions to tell.";
    let (low, high) = report.red_suites.interval();
    let false_reds = format!(
        "false positives: {}; {} to {} with 95 % confidence, drawn from {} blocks",
        share_text(report.red_suites, "unchanged suites"),
        percent(low),
        percent(high),
        report.rounds
    );
    let rows = format!(
        "rows: {} green, {} inconclusive, {:.1} blocks each",
        known(report.green_rows),
        known(report.inconclusive_rows),
        report.blocks
    );
    let power = report.power.iter().map(|point| {
        format!(
            "power at +{}: {}, {:.1} blocks a row",
            percent(point.slowdown),
            share_text(point.seen, "slowed sessions"),
            point.blocks
        )
    });
    let figures = [false_reds, rows].into_iter().chain(power).map(Text::from);
    let mut blocks = vec![Block::Table(vec![table]), Block::Prose(legend.into()), Block::Break];
    blocks.push(Block::list(figures));
    if let Some(conclusion) = conclusion(report, block) {
        blocks.extend([Block::Break, Block::Prose(conclusion.into())]);
    }
    if let Some(others) = report.others {
        let share = match others.share {
            0.0 => String::new(),
            share => format!(" and used {} of the measured processors on average", percent(share)),
        };
        let (disturbed, of) = (others.disturbed, counted(others.processes, "process"));
        blocks.extend([
            Block::Break,
            Block::Prose(
                format!(
                    "Other programs ran during {disturbed} of {of}{share}; on a quiet machine, the figures would be \
                     better."
                )
                .into(),
            ),
        ]);
    }
    document::terminal(&blocks, TerminalOptions { width, all: true, ..TerminalOptions::default() })
}

/// Renders JSON for programs. Unknown values are null.
pub fn noise_json(report: &NoiseReport) -> String {
    let rows: Vec<Value> = report
        .rows
        .iter()
        .map(|row| {
            json!({
                "benchmark": row.benchmark.as_str(),
                "within_process": row.spread.within_process,
                "between_processes": row.spread.between_processes,
                "between_blocks": row.spread.between_blocks,
                "least": row.least,
                "green": share(row.green),
                "power": row.power.iter().map(power).collect::<Vec<_>>(),
            })
        })
        .collect();
    let (low, high) = report.red_suites.interval();
    let whole = json!({
        "source": report.source(),
        "rows": rows,
        "rounds": report.rounds,
        "false_reds": share(report.red_suites),
        "false_reds_interval": [low, high],
        "green_rows": share(report.green_rows),
        "inconclusive_rows": share(report.inconclusive_rows),
        "blocks": report.blocks,
        "power": report.power.iter().map(power).collect::<Vec<_>>(),
        "other_programs": report.others.map(|others| json!({
            "disturbed": others.disturbed, "processes": others.processes, "share": others.share,
        })),
    });
    document::json(&whole)
}

fn power(point: &PowerPoint) -> Value {
    json!({ "slowdown": point.slowdown, "seen": share(point.seen), "blocks": point.blocks })
}

fn share(share: Share) -> Value {
    json!({ "hits": share.hits, "of": share.of })
}

fn share_text(share: Share, what: &str) -> String {
    format!("{} of {what} ({} of {})", percent(share.value()), share.hits, share.of)
}

#[cfg(test)]
mod tests {
    use benchgate_gate::OtherPrograms;

    use super::*;
    use crate::report::tests::samples::noise_report;

    #[test]
    fn a_calibration_fits_eighty_columns_and_obeys_no_name() {
        let text = noise_table(&noise_report(), 80, Some(Duration::from_millis(750)));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(!text.contains('\u{1b}'));
        insta::assert_snapshot!("noise-table", text);
    }

    #[test]
    fn a_conclusion_says_no_more_than_the_simulated_sessions_show() {
        let said = |hits, of| {
            let mut report = noise_report();
            report.power.retain(|point| point.slowdown == 0.10);
            report.power[0].seen = Share { hits, of };
            report.red_suites = Share { hits: 0, of };
            conclusion(&report, None).unwrap()
        };
        for (hits, of, parts) in [
            (
                9,
                9,
                [
                    "Too few sessions were simulated",
                    "9 of 9 turned red, so with 95 % confidence 66.4 % to 100 % of all sessions do",
                ],
            ),
            (3, 4, ["Too few sessions were simulated", "`--no-measure --resamples 100`"]),
            (100, 100, ["This machine can gate slowdowns of 10 %", "at least 96.4 % of sessions"]),
            (2, 40, ["This machine can't gate slowdowns of 10 % yet", "at most 16.9 % of all"]),
        ] {
            let said = said(hits, of);
            assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        }
    }

    #[test]
    fn a_calibration_of_a_busy_machine_ends_with_that() {
        let mut report = noise_report();
        report.others = Some(OtherPrograms { disturbed: 37, processes: 48, share: 0.63 });
        let text = noise_table(&report, 80, None);
        insta::assert_snapshot!(text.rsplit("\n\n").next().unwrap(), @"
        Other programs ran during 37 of 48 processes and used 63 % of the measured
            processors on average; on a quiet machine, the figures would be better.
        ");
        let read: Value = serde_json::from_str(&noise_json(&report)).unwrap();
        assert_eq!(read["other_programs"]["share"], 0.63);
        assert_eq!(
            serde_json::from_str::<Value>(&noise_json(&noise_report())).unwrap()["other_programs"],
            Value::Null
        );
    }

    #[test]
    fn a_share_of_too_few_sessions_is_unknown() {
        let mut report = noise_report();
        for row in &mut report.rows {
            row.green = Share { hits: 0, of: 3 };
            row.power.iter_mut().for_each(|point| point.seen = Share { hits: 1, of: 1 });
        }
        let text = noise_table(&report, 80, None);
        let row = text.lines().find(|line| line.starts_with("vit/cpu/main")).unwrap();
        assert_eq!(row.matches('?').count(), 4, "{row}");
        assert!(!row.contains("100 %"), "{row}");
    }

    #[test]
    fn a_program_reads_shares_as_counts_and_the_unknown_as_null() {
        let read: Value = serde_json::from_str(&noise_json(&noise_report())).unwrap();
        assert_eq!(read["false_reds"], json!({ "hits": 1, "of": 1000 }));
        assert_eq!(read["rows"][1]["least"], Value::Null);
        assert_eq!(read["power"][2]["seen"]["hits"], 905);
    }
}
