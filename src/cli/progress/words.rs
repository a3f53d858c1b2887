//! Descriptions of the progress of measuring.

use std::time::{Duration, Instant};

use crate::model::{NextLook, Standing, Verdict, counted};
use crate::report::{change, clean, interval};

/// The remaining time, from an estimate made at `since`: `next look in about 20 s; at most 95 s left`.
pub(super) fn left(next: &NextLook, since: Instant) -> String {
    let left = next.wait.saturating_sub(since.elapsed());
    let most = coarse(next.most.saturating_sub(since.elapsed()));
    if left.is_zero() {
        format!("next look now; at most {most} left")
    } else {
        format!("next look in about {}; at most {most} left", coarse(left))
    }
}

/// Ratio of the interval's ends above which the change is not shown yet.
const SAYS_NOTHING: f64 = 1.5;

/// The number of open rows that a line names.
const NAMED: usize = 2;

/// The change of a row, or `unclear yet`.
pub(super) fn moved(row: &Standing) -> String {
    match row.interval {
        Some((low, high)) if row.open && high / low > SAYS_NOTHING => "unclear yet".to_owned(),
        _ => change(row.ratio),
    }
}

/// The state of a row: `mlp/cpu/main  +0.4 % (−0.8 … +1.7 %)  6 blocks  open`.
pub(super) fn standing(row: &Standing) -> String {
    let mut change = moved(row);
    if let (Some((low, high)), true) = (row.interval, change != "unclear yet") {
        change = format!("{change} ({})", interval(low, high, row.ratio));
    }
    let state = if row.open { "open" } else { row.verdict.as_str() };
    format!("{}  {change}  {}  {state}", clean(row.benchmark.as_str()), counted(row.blocks as usize, "block"))
}

/// A duration in whole seconds or minutes, because an estimate is not more precise.
pub(super) fn coarse(wait: Duration) -> String {
    const MINUTE: u64 = 60;
    match wait.as_secs_f64().round().max(1.0) as u64 {
        seconds if seconds < 2 * MINUTE => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(MINUTE)),
    }
}

/// The state of all rows at a look:
/// `6 blocks: 1 of 2 rows open (mlp/cpu +0.4 %); next look after 8 blocks, in about 20 s`.
pub(super) fn outlook(rows: &[Standing], next: Option<NextLook>) -> String {
    let blocks = counted(rows.iter().map(|row| row.blocks).max().unwrap_or_default() as usize, "block");
    let open: Vec<&Standing> = rows.iter().filter(|row| row.open).collect();
    let mut text = if open.is_empty() {
        let decided = rows.iter().filter(|row| row.verdict != Verdict::Inconclusive).count();
        format!("{decided} of {} decided after {blocks}", counted(rows.len(), "row"))
    } else {
        let named =
            open.iter().take(NAMED).map(|row| format!("{} {}", clean(row.benchmark.as_str()), moved(row)));
        let named = named.collect::<Vec<_>>().join(", ");
        let more = if open.len() > NAMED { ", …" } else { "" };
        format!("{blocks}: {} of {} open ({named}{more})", open.len(), counted(rows.len(), "row"))
    };
    if let Some(next) = next {
        text.push_str(&format!(
            "; next look after {} blocks, in about {}; at most {} left",
            next.blocks,
            coarse(next.wait),
            coarse(next.most)
        ));
    }
    text
}
