//! Shows progress: bars on a terminal, plain lines in CI and pipes.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::model::{Event, NextLook, Progress, Quiet, Stage, Standing, Verdict, counted};
use crate::report::{change, clean, duration, interval};

/// Shows progress as moving bars or as plain lines, or not at all.
pub fn listener(quiet: bool, interactive: bool) -> Box<dyn Progress> {
    if quiet {
        Box::new(Quiet)
    } else if interactive {
        Box::new(Bars::new(ProgressDrawTarget::stderr()))
    } else {
        Box::new(Lines::new(std::io::stderr()))
    }
}

/// Interval of the spinner. Ten times a second looks smooth and has no measurable cost.
const TICK: Duration = Duration::from_millis(100);

/// Turns the spinner of a bar in a thread, until the bar is finished. indicatif's own way of doing that panics if no
/// thread can be started (`ulimit -u`).
fn turn(bar: &ProgressBar) {
    let bar = bar.downgrade();
    let turning = std::thread::Builder::new().spawn(move || {
        while let Some(bar) = bar.upgrade().filter(|bar| !bar.is_finished()) {
            bar.tick();
            drop(bar);
            std::thread::sleep(TICK);
        }
    });
    // Without a total the spinner advances with the steps.
    drop(turning);
}

/// A bar of one wait, hidden if no person watches.
pub fn waiting_bar(shown: bool, what: &'static str) -> ProgressBar {
    let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(1000), target);
    let style = ProgressStyle::with_template("{spinner} {prefix:10} {bar:24} {wide_msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_prefix(what);
    bar
}

/// Moves a bar to a share of its wait, and shows the remaining time at this speed.
pub fn advance(bar: &ProgressBar, share: f64, passed: Duration) {
    let share = share.clamp(0.0, 1.0);
    bar.set_position((1000.0 * share) as u64);
    if share > 0.0 {
        let left = Duration::try_from_secs_f64(passed.as_secs_f64() * (1.0 - share) / share);
        bar.set_message(format!("{} left", coarse(left.unwrap_or_default())));
    }
}

/// One bar per stage, with the step that has run longest.
struct Bars {
    all: MultiProgress,
    stages: Mutex<Vec<StageBar>>,
}

struct StageBar {
    stage: Stage,
    bar: ProgressBar,
    running: Vec<String>,
    /// One line for each row that is still measured.
    rows: Vec<ProgressBar>,
    /// The time of the next look, and its line.
    next: Option<(NextLook, Instant)>,
    look: Option<ProgressBar>,
}

/// Open rows that are shown while measuring; more would push the bars off the screen.
const ROWS_SHOWN: usize = 12;

impl Bars {
    fn new(target: ProgressDrawTarget) -> Self {
        Self { all: MultiProgress::with_draw_target(target), stages: Mutex::new(Vec::new()) }
    }

    fn add(&self, stage: Stage, steps: usize) {
        let bar = self.all.add(ProgressBar::new(steps as u64));
        // The number of processes is determined during measurement, so there is no fixed total.
        let template = if stage == Stage::Benchmark {
            "{spinner} {prefix:10} {bar:24} {pos} {elapsed} {wide_msg}"
        } else {
            "{spinner} {prefix:10} {bar:24} {pos}/{len} {elapsed} {wide_msg}"
        };
        // The template is a constant, so it is either right or found by the first test.
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

    /// Shows the state of undecided rows, below the bar of their stage.
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
        // The draw target may be gone; then the text has no reader.
        drop(self.all.println(line));
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
                // A failure stays visible while its bar continues.
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
            let left = next.wait.saturating_sub(since.elapsed());
            let most = coarse(next.most.saturating_sub(since.elapsed()));
            look.set_message(if left.is_zero() {
                format!("next look now; {most} left at most")
            } else {
                format!("next look in about {}; {most} left at most", coarse(left))
            });
        }
    }
}

fn bar_of(stages: &mut [StageBar], stage: Stage) -> Option<&mut StageBar> {
    stages.iter_mut().find(|known| known.stage == stage)
}

/// A wider interval is not shown yet.
const SAYS_NOTHING: f64 = 1.5;

/// Open rows that a line names.
const NAMED: usize = 2;

/// The change of a row, if it is known already.
fn moved(row: &Standing) -> String {
    match row.interval {
        Some((low, high)) if row.open && high / low > SAYS_NOTHING => "unclear yet".to_owned(),
        _ => change(row.ratio),
    }
}

/// `mlp/cpu/main  +0.4 % (−0.8 … +1.7 %)  6 blocks  open`.
fn standing(row: &Standing) -> String {
    let mut change = moved(row);
    if let (Some((low, high)), true) = (row.interval, change != "unclear yet") {
        change = format!("{change} ({})", interval(low, high, row.ratio));
    }
    let state = if row.open { "open" } else { row.verdict.as_str() };
    format!("{}  {change}  {}  {state}", clean(row.benchmark.as_str()), counted(row.blocks as usize, "block"))
}

/// Whole seconds, because an estimate is not precise to the millisecond.
fn coarse(wait: Duration) -> String {
    const MINUTE: u64 = 60;
    match wait.as_secs_f64().round().max(1.0) as u64 {
        seconds if seconds < 2 * MINUTE => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(MINUTE)),
    }
}

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
            "; next look after {} blocks, in about {}; {} left at most",
            next.blocks,
            coarse(next.wait),
            coarse(next.most)
        ));
    }
    text
}

/// One line per stage, and one now and then if a stage takes long, with the time since the start: a log has no cursor.
struct Lines<W> {
    began: Instant,
    state: Mutex<LineState<W>>,
}

struct LineState<W> {
    out: W,
    stages: Vec<StageCount>,
    /// When the last line was printed.
    said: Instant,
}

/// How far a running stage is.
struct StageCount {
    stage: Stage,
    steps: usize,
    done: usize,
    began: Instant,
    /// How its steps ended, in words without numbers, and how many of them did.
    notes: BTreeMap<String, usize>,
    /// The state of its rows when all are decided.
    decided: Option<String>,
}

impl StageCount {
    /// Whether there was nothing to do, because every model is MLIR already or the tools are installed.
    fn says_nothing(&self) -> bool {
        let all = |note| self.notes.get(note) == Some(&self.done);
        self.done == 0 || all("already MLIR") || all("verified")
    }

    /// `compile: 10 steps, 8 cached (1.250 s)`.
    fn said(&self) -> String {
        let notes: String = self.notes.iter().map(|(note, count)| format!(", {count} {note}")).collect();
        let (stage, steps) = (self.stage, counted(self.done, "step"));
        let decided = self.decided.as_ref().map(|rows| format!("; {rows}")).unwrap_or_default();
        format!("{stage}: {steps}{notes}{decided} ({})", duration(self.began.elapsed()))
    }
}

/// Silence after which a step is reported, so that a log shows that something happens.
const NOW_AND_THEN: Duration = Duration::from_secs(60);
/// Silence after which a look is reported. Looks follow each other quickly in a small suite.
const BETWEEN_LOOKS: Duration = Duration::from_secs(20);

impl<W: Write + Send> Lines<W> {
    fn new(out: W) -> Self {
        let state = LineState { out, stages: Vec::new(), said: Instant::now() };
        Self { began: Instant::now(), state: Mutex::new(state) }
    }
}

impl<W> LineState<W> {
    fn stage(&mut self, stage: Stage) -> Option<&mut StageCount> {
        self.stages.iter_mut().find(|known| known.stage == stage)
    }

    /// The line for an event, if any.
    fn line(&mut self, event: &Event<'_>) -> Option<String> {
        match *event {
            Event::StageStarted { stage, steps } => {
                self.stages.retain(|known| known.stage != stage);
                let (began, notes) = (Instant::now(), BTreeMap::new());
                self.stages.push(StageCount { stage, steps, done: 0, began, notes, decided: None });
                None
            }
            Event::StepsAdded { stage, steps } => {
                if let Some(known) = self.stage(stage) {
                    known.steps += steps;
                }
                None
            }
            Event::StepStarted { .. } => None,
            Event::StepContinues { stage, what, note } => (self.said.elapsed() >= NOW_AND_THEN)
                .then(|| format!("{stage} {}: {}", clean(what), clean(note))),
            Event::StepFinished { stage, what, note, took } => {
                let mut count = String::new();
                if let Some(known) = self.stage(stage) {
                    known.done += 1;
                    count = format!(" {}/{}", known.done, known.steps);
                    if !note.is_empty() && !note.contains(|c: char| c.is_ascii_digit() || c == ':') {
                        *known.notes.entry(clean(note)).or_default() += 1;
                    }
                }
                // A failure always has its line.
                if !note.starts_with("failed") && self.said.elapsed() < NOW_AND_THEN {
                    return None;
                }
                let note = if note.is_empty() { String::new() } else { format!(": {}", clean(note)) };
                Some(format!("{stage}{count} {}{note} ({})", clean(what), duration(took)))
            }
            Event::StageFinished { stage } => {
                let at = self.stages.iter().position(|known| known.stage == stage)?;
                let done = self.stages.remove(at);
                (!done.says_nothing()).then(|| done.said())
            }
            Event::Standings { rows, next, look } => {
                let text = outlook(rows, next);
                if next.is_none()
                    && rows.iter().all(|row| !row.open)
                    && let Some(stage) = self.stage(Stage::Benchmark)
                {
                    // Reported with the end of the stage, which follows. Sides that are identical have no rows.
                    stage.decided = Some(text).filter(|_| !rows.is_empty());
                    return None;
                }
                let silence = if look { BETWEEN_LOOKS } else { NOW_AND_THEN };
                (self.said.elapsed() >= silence).then_some(text)
            }
            Event::Warning(text) => Some(format!("warning: {}", clean(text))),
            Event::Note(text) => Some(clean(text)),
        }
    }
}

impl<W: Write + Send> Progress for Lines<W> {
    fn on(&self, event: Event<'_>) {
        let mut state = lock(&self.state);
        let Some(line) = state.line(&event) else { return };
        state.said = Instant::now();
        let seconds = self.began.elapsed().as_secs_f64();
        // A reader that went away is not our failure.
        drop(writeln!(state.out, "[{seconds:8.1} s] {line}").and_then(|()| state.out.flush()));
    }
}

/// A listener that panicked while it held the lock has printed half a line, which is no reason to stop.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::BenchmarkName;

    fn said(events: &[Event<'_>]) -> Vec<String> {
        said_after(Duration::ZERO, events)
    }

    /// The lines of events that follow this long a silence each.
    fn said_after(silence: Duration, events: &[Event<'_>]) -> Vec<String> {
        let lines = Lines::new(Vec::new());
        for event in events {
            lock(&lines.state).said -= silence;
            lines.on(event.clone());
        }
        let text = String::from_utf8(lines.state.into_inner().unwrap().out).unwrap();
        let bare = |line: &str| line.split_once("] ").map_or(line.trim_start(), |(_, rest)| rest).to_owned();
        text.lines().map(bare).collect()
    }

    #[test]
    fn a_log_gets_one_line_a_stage_and_one_for_each_failure() {
        let compile = Stage::Compile;
        let took = Duration::from_millis(1250);
        let finished = |what, note| Event::StepFinished { stage: compile, what, note, took };
        let lines = said(&[
            Event::StageStarted { stage: compile, steps: 2 },
            Event::StepStarted { stage: compile, what: "vit/cpu head" },
            finished("vit/cpu head", ""),
            finished("mlp/cpu head", "cached"),
            Event::StepsAdded { stage: compile, steps: 2 },
            finished("vit/cpu base", "cached"),
            finished("conv/cpu base", "failed: exit status 1"),
            Event::StageFinished { stage: compile },
            Event::StageStarted { stage: Stage::Export, steps: 0 },
            Event::StageFinished { stage: Stage::Export },
            Event::StageStarted { stage: Stage::Export, steps: 1 },
            Event::StepFinished { stage: Stage::Export, what: "vit/cpu head", note: "already MLIR", took },
            Event::StageFinished { stage: Stage::Export },
            Event::StageStarted { stage: Stage::Toolchain, steps: 1 },
            Event::StepFinished { stage: Stage::Toolchain, what: "IREE 3.13.0", note: "verified", took },
            Event::StageFinished { stage: Stage::Toolchain },
            Event::Warning("little room on the disk"),
        ]);
        assert_eq!(lines[0], "compile 4/4 conv/cpu base: failed: exit status 1 (1.250 s)");
        assert!(lines[1].starts_with("compile: 4 steps, 2 cached ("), "{lines:?}");
        assert_eq!(lines[2..], ["warning: little room on the disk"]);
    }

    #[test]
    fn a_long_download_is_reported_after_a_minute_of_silence() {
        let event = Event::StepContinues {
            stage: Stage::Toolchain,
            what: "artifacts/w.irpa",
            note: "1.2 GB of 8.0 GB",
        };
        assert!(said(std::slice::from_ref(&event)).is_empty());
        assert_eq!(said_after(NOW_AND_THEN, &[event]), ["toolchain artifacts/w.irpa: 1.2 GB of 8.0 GB"]);
    }

    fn row(name: &str, open: bool) -> Standing {
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
    fn a_look_says_where_each_row_stands_and_when_the_next_one_is() {
        let next = NextLook {
            blocks: 8,
            rows: 1,
            wait: Duration::from_millis(20_400),
            most: Duration::from_secs(95),
        };
        let rows = [row("mlp/cpu", true), row("vit/cpu", false)];
        let look = Event::Standings { rows: &rows, next: Some(next), look: true };
        let lines = said_after(BETWEEN_LOOKS, std::slice::from_ref(&look));
        assert_eq!(
            lines,
            [
                "6 blocks: 1 of 2 rows open (mlp/cpu +0.4 %); next look after 8 blocks, in about 20 s; 95 s left at most"
            ]
        );
        assert_eq!(said(&[look]), Vec::<String>::new(), "looks follow each other quickly");
        let last = [Event::Standings { rows: &[row("vit/cpu", false)], next: None, look: true }];
        assert_eq!(said_after(BETWEEN_LOOKS, &last), ["1 of 1 row decided after 6 blocks"]);
        let stage = Stage::Benchmark;
        let lines = said(&[
            Event::StageStarted { stage, steps: 24 },
            Event::StepFinished { stage, what: "a", note: "1 ms", took: Duration::ZERO },
            Event::Standings { rows: &[row("vit/cpu", false)], next: None, look: true },
            Event::StageFinished { stage },
        ]);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].starts_with("benchmark: 1 step; 1 of 1 row decided after 6 blocks ("), "{lines:?}");
        let wide = Standing { interval: Some((0.018, 54.6)), ..row("mlp/cpu", true) };
        let look = Event::Standings { rows: &[wide], next: None, look: true };
        let lines = said_after(BETWEEN_LOOKS, &[look]);
        assert_eq!(lines, ["6 blocks: 1 of 1 row open (mlp/cpu unclear yet)"]);
    }

    #[test]
    fn a_log_of_hundreds_of_processes_has_a_line_for_each_failure_and_one_after_a_minute_of_silence() {
        let stage = Stage::Benchmark;
        let finished = |note| Event::StepFinished { stage, what: "a", note, took: Duration::ZERO };
        let mut events = vec![Event::StageStarted { stage, steps: 400 }];
        events.extend((0..50).map(|_| finished("1 ms")));
        events.push(finished("failed: no device"));
        let rows = [row("a", true)];
        events.extend((0..50).map(|_| Event::Standings { rows: &rows, next: None, look: false }));
        assert_eq!(said(&events), ["benchmark 51/400 a: failed: no device (0 s)"]);
        let silent = [Event::StageStarted { stage, steps: 400 }, finished("1 ms")];
        assert_eq!(said_after(NOW_AND_THEN, &silent), ["benchmark 1/400 a: 1 ms (0 s)"]);
    }

    #[test]
    fn a_hostile_name_can_t_give_the_log_a_command() {
        let lines = said(&[Event::Note("a\n::error::b ##[error]c\u{1b}[2J")]);
        assert_eq!(lines, ["a\u{fffd}::error::b # #[error]c\u{fffd}[2J"]);
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
