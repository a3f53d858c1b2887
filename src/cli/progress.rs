//! Shows progress: bars on a terminal, plain lines in CI and pipes.

mod lines;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::model::{Event, NextLook, Progress, Quiet, Stage, Standing, Verdict, counted};
use crate::report::{change, clean, interval};

use super::terminal::{Terminal, fitted_to_stderr};
use lines::Lines;

impl Terminal {
    /// The listener for progress: bars on a terminal, lines in logs, and nothing with `--quiet`.
    pub fn progress(&self) -> Box<dyn Progress> {
        if self.quiet {
            Box::new(Quiet)
        } else if self.interactive {
            Box::new(Bars::new(ProgressDrawTarget::stderr()))
        } else {
            let lines = Lines::new(std::io::stderr());
            lines.speak_in_silence();
            Box::new(lines)
        }
    }
}

/// Interval of the spinner: smooth to the eye, and without measurable cost.
const TICK: Duration = Duration::from_millis(100);

/// Turns a bar's spinner in a thread until the bar is finished. indicatif's own function panics if no thread
/// can be started (`ulimit -u`).
fn turn(bar: &ProgressBar) {
    let bar = bar.downgrade();
    let turning = std::thread::Builder::new().spawn(move || {
        while let Some(bar) = bar.upgrade().filter(|bar| !bar.is_finished()) {
            bar.tick();
            drop(bar);
            std::thread::sleep(TICK);
        }
    });
    // If the thread can't be started, the spinner only advances with the steps.
    drop(turning);
}

/// A progress bar for a single wait, hidden unless `shown`.
pub fn waiting_bar(shown: bool, what: &'static str) -> ProgressBar {
    let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(1000), target);
    let style = ProgressStyle::with_template("{spinner} {prefix:10} {bar:24} {wide_msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_prefix(what);
    if shown {
        turn(&bar);
    }
    bar
}

/// Moves a bar to a share of its wait, and shows `count` and an estimate of the remaining time. Returns the
/// text that is shown.
pub fn advance(bar: &ProgressBar, count: &str, share: f64, passed: Duration) -> String {
    let share = share.clamp(0.0, 1.0);
    bar.set_position((1000.0 * share) as u64);
    let mut text = count.to_owned();
    if share > 0.0 {
        let left = Duration::try_from_secs_f64(passed.as_secs_f64() * (1.0 - share) / share);
        text.push_str(&format!("; {} left", coarse(left.unwrap_or_default())));
    }
    bar.set_message(text.clone());
    text
}

/// One bar per stage, which names the step that has been running longest.
struct Bars {
    all: MultiProgress,
    stages: Mutex<Vec<StageBar>>,
}

struct StageBar {
    stage: Stage,
    bar: ProgressBar,
    running: Vec<String>,
    /// One line for each row that is still being measured.
    rows: Vec<ProgressBar>,
    /// The next interim look, and when the time until this look was estimated.
    next: Option<(NextLook, Instant)>,
    look: Option<ProgressBar>,
}

/// The maximum number of open rows to show; more would push the bars off the screen.
const ROWS_SHOWN: usize = 12;

impl Bars {
    fn new(target: ProgressDrawTarget) -> Self {
        Self { all: MultiProgress::with_draw_target(target), stages: Mutex::new(Vec::new()) }
    }

    fn add(&self, stage: Stage, steps: usize) {
        let bar = self.all.add(ProgressBar::new(steps as u64));
        // The number of processes is decided while measuring, so the bar has no fixed total.
        let template = if stage == Stage::Benchmark {
            "{spinner} {prefix:10} {bar:24} {pos} {elapsed} {wide_msg}"
        } else {
            "{spinner} {prefix:10} {bar:24} {pos}/{len} {elapsed} {wide_msg}"
        };
        // The template is constant, so a mistake in it would show in the first test.
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style);
        bar.set_prefix(stage.as_str());
        turn(&bar);
        lock(&self.stages).push(StageBar {
            stage,
            bar,
            running: Vec::new(),
            rows: Vec::new(),
            next: None,
            look: None,
        });
    }

    /// Shows the state of undecided rows below the bar of their stage.
    fn stand(&self, rows: &[Standing], next: Option<NextLook>) {
        let mut stages = lock(&self.stages);
        let Some(stage) = bar_of(&mut stages, Stage::Benchmark) else { return };
        let open: Vec<&Standing> = rows.iter().filter(|row| row.open).collect();
        while stage.rows.len() > open.len().min(ROWS_SHOWN) {
            if let Some(row) = stage.rows.pop() {
                row.finish_and_clear();
            }
        }
        while stage.rows.len() < open.len().min(ROWS_SHOWN) {
            stage.rows.push(self.line());
        }
        for (bar, row) in stage.rows.iter().zip(open) {
            bar.set_message(standing(row));
        }
        stage.next = next.map(|next| (next, Instant::now()));
        if let Some(look) = stage.look.take() {
            look.finish_and_clear();
        }
        stage.look = stage.next.is_some().then(|| self.line());
        stage.show();
    }

    /// A line of text below the bars.
    fn line(&self) -> ProgressBar {
        let line = self.all.add(ProgressBar::new_spinner());
        let style = ProgressStyle::with_template("  {wide_msg}");
        line.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        line
    }

    fn say(&self, line: &str) {
        // If the draw target no longer exists, nobody can read the text.
        drop(self.all.println(fitted_to_stderr(line.to_owned())));
    }
}

impl Progress for Bars {
    fn on(&self, event: Event<'_>) {
        match event {
            Event::StageStarted { stage, steps } => self.add(stage, steps),
            Event::StepStarted { stage, what } => {
                if let Some(stage) = bar_of(&mut lock(&self.stages), stage) {
                    stage.running.push(clean(what));
                    stage.show();
                }
            }
            Event::StepFinished { stage, what, note, .. } => {
                // A failure stays on the screen while the bar moves on.
                if note.starts_with("failed") {
                    self.say(&format!("{stage} {}: {}", clean(what), clean(note)));
                }
                if let Some(stage) = bar_of(&mut lock(&self.stages), stage) {
                    let what = clean(what);
                    if let Some(at) = stage.running.iter().position(|running| *running == what) {
                        stage.running.remove(at);
                    }
                    stage.bar.inc(1);
                    stage.show();
                }
            }
            Event::StepContinues { stage, what, note } => {
                if let Some(stage) = bar_of(&mut lock(&self.stages), stage) {
                    stage.bar.set_message(format!("{}: {}", clean(what), clean(note)));
                }
            }
            Event::StepsAdded { stage, steps } => {
                if let Some(stage) = bar_of(&mut lock(&self.stages), stage) {
                    stage.bar.inc_length(steps as u64);
                }
            }
            Event::StageFinished { stage } => {
                let mut stages = lock(&self.stages);
                if let Some(at) = stages.iter().position(|known| known.stage == stage) {
                    let done = stages.remove(at);
                    done.rows.iter().chain(&done.look).for_each(ProgressBar::finish_and_clear);
                    done.bar.finish_with_message("done");
                }
            }
            Event::Standings { rows, next, .. } => self.stand(rows, next),
            Event::Warning(text) => self.say(&format!("warning: {}", clean(text))),
            Event::Note(text) => self.say(&clean(text)),
        }
    }
}

impl StageBar {
    fn show(&self) {
        let first = self.running.first().cloned().unwrap_or_default();
        let more = self.running.len().saturating_sub(1);
        self.bar.set_message(if more == 0 { first } else { format!("{first} and {more} more") });
        if let (Some((next, since)), Some(look)) = (&self.next, &self.look) {
            look.set_message(left(next, *since));
        }
    }
}

fn bar_of(stages: &mut [StageBar], stage: Stage) -> Option<&mut StageBar> {
    stages.iter_mut().find(|known| known.stage == stage)
}

/// Locks despite poisoning: a listener that panicked has at worst printed half a line, which is no reason to
/// stop.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The remaining time, from an estimate made at `since`: `next look in about 20 s; at most 95 s left`.
fn left(next: &NextLook, since: Instant) -> String {
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
fn moved(row: &Standing) -> String {
    match row.interval {
        Some((low, high)) if row.open && high / low > SAYS_NOTHING => "unclear yet".to_owned(),
        _ => change(row.ratio),
    }
}

/// The state of a row: `mlp/cpu/main  +0.4 % (−0.8 … +1.7 %)  6 blocks  open`.
fn standing(row: &Standing) -> String {
    let mut change = moved(row);
    if let (Some((low, high)), true) = (row.interval, change != "unclear yet") {
        change = format!("{change} ({})", interval(low, high, row.ratio));
    }
    let state = if row.open { "open" } else { row.verdict.as_str() };
    format!("{}  {change}  {}  {state}", clean(row.benchmark.as_str()), counted(row.blocks as usize, "block"))
}

/// A duration in whole seconds or minutes, because an estimate is not more precise.
fn coarse(wait: Duration) -> String {
    const MINUTE: u64 = 60;
    match wait.as_secs_f64().round().max(1.0) as u64 {
        seconds if seconds < 2 * MINUTE => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(MINUTE)),
    }
}

/// The state of all rows at a look:
/// `6 blocks: 1 of 2 rows open (mlp/cpu +0.4 %); next look after 8 blocks, in about 20 s`.
fn outlook(rows: &[Standing], next: Option<NextLook>) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{BenchmarkName, Verdict};

    pub(super) fn row(name: &str, open: bool) -> Standing {
        Standing {
            benchmark: BenchmarkName::new(name),
            verdict: if open { Verdict::Inconclusive } else { Verdict::Pass },
            blocks: 6,
            ratio: 1.004,
            interval: Some((0.992, 1.017)),
            open,
        }
    }

    #[test]
    fn a_wait_shows_its_count_and_from_then_on_the_remaining_time() {
        let bar = waiting_bar(false, "resample");
        let said = |count: &str, share: f64| advance(&bar, count, share, Duration::from_secs(60));
        assert_eq!(said("0 of 400 sessions", 0.0), "0 of 400 sessions");
        assert_eq!(said("40 of 400 sessions", 0.1), "40 of 400 sessions; 9 min left");
        assert_eq!(bar.position(), 100);
    }

    #[test]
    fn bars_take_every_event_in_any_order() {
        let bars = Bars::new(ProgressDrawTarget::hidden());
        bars.on(Event::StepFinished { stage: Stage::Verify, what: "a", note: "", took: Duration::ZERO });
        bars.on(Event::StageStarted { stage: Stage::Verify, steps: 1 });
        bars.on(Event::StepStarted { stage: Stage::Verify, what: "a" });
        bars.on(Event::Warning("w"));
        bars.on(Event::StageStarted { stage: Stage::Benchmark, steps: 1 });
        for rows in [vec![row("a", true), row("b", true)], vec![row("a", true), row("b", false)], Vec::new()]
        {
            bars.on(Event::Standings { rows: &rows, next: None, look: false });
        }
        bars.on(Event::StageFinished { stage: Stage::Benchmark });
        bars.on(Event::StageFinished { stage: Stage::Verify });
        bars.on(Event::StageFinished { stage: Stage::Verify });
        assert!(lock(&bars.stages).is_empty());
    }
}
