//! Shows progress as lines in a log or a pipe.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::model::{Event, NextLook, Progress, Stage, counted};
use crate::report::{clean, duration};

use super::{coarse, left, lock, outlook};

/// Prints one line per stage, and occasional lines if a stage takes long, with the time since the start.
/// Unlike bars, lines need no cursor.
pub(super) struct Lines<W> {
    state: Arc<Mutex<LineState<W>>>,
}

struct LineState<W> {
    out: W,
    began: Instant,
    stages: Vec<StageCount>,
    /// The time at which the last line was printed.
    said: Instant,
}

/// The progress of a running stage.
struct StageCount {
    stage: Stage,
    steps: usize,
    done: usize,
    began: Instant,
    /// Steps that are not done, each with its progress, such as `1.2 GB of 8.0 GB`.
    running: Vec<(String, String)>,
    /// The next interim look, and when the time until this look was estimated.
    next: Option<(NextLook, Instant)>,
    /// The outcomes of finished steps, in words without numbers, with the count of each.
    notes: BTreeMap<String, usize>,
    /// The state of the stage's rows once all of them are decided.
    decided: Option<String>,
}

impl StageCount {
    /// Returns true if the stage had nothing to do, because every model already is MLIR or the tools are
    /// installed.
    fn says_nothing(&self) -> bool {
        let all = |note| self.notes.get(note) == Some(&self.done);
        self.done == 0 || all("already MLIR") || all("verified")
    }

    /// The line for a finished stage: `compile: 10 steps, 8 cached (1.250 s)`.
    fn said(&self) -> String {
        let notes: String = self.notes.iter().map(|(note, count)| format!(", {count} {note}")).collect();
        let (stage, steps) = (self.stage, counted(self.done, "step"));
        let decided = self.decided.as_ref().map(|rows| format!("; {rows}")).unwrap_or_default();
        format!("{stage}: {steps}{notes}{decided} ({})", duration(self.began.elapsed()))
    }

    /// The line for a running stage: `compile 3/12: vit/cpu head and 1 more`, or
    /// `benchmark 37/96: mlp/cpu head block 4; next look in about 20 s; …`.
    fn so_far(&self) -> String {
        let mut text = format!("{} {}/{}", self.stage, self.done, self.steps);
        if let Some((what, note)) = self.running.first() {
            let note = if note.is_empty() { String::new() } else { format!(": {note}") };
            let more = self.running.len() - 1;
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            text.push_str(&format!(": {what}{note}{more}"));
        }
        match &self.next {
            Some((next, since)) => text.push_str(&format!("; {}", left(next, *since))),
            // All steps of this stage take a similar time, unlike those of other stages, so the rest can be
            // estimated.
            None if self.stage == Stage::Benchmark && self.done > 0 => {
                let rest = self.steps.saturating_sub(self.done) as f64 / self.done as f64;
                text.push_str(&format!(
                    "; first look in about {}",
                    coarse(self.began.elapsed().mul_f64(rest))
                ));
            }
            None => {}
        }
        text
    }
}

/// Shortest time without a line after which the running stage is reported, so that a log shows signs of life.
const NOW_AND_THEN: Duration = Duration::from_secs(30);
/// Longest such time. CI systems that end silent jobs wait for ten minutes.
const AT_MOST: Duration = Duration::from_secs(300);
/// Time without a line after which a look is reported. In a small suite, looks follow each other quickly.
const BETWEEN_LOOKS: Duration = Duration::from_secs(20);

impl<W: Write + Send + 'static> Lines<W> {
    pub(super) fn new(out: W) -> Self {
        let now = Instant::now();
        Self { state: Arc::new(Mutex::new(LineState { out, began: now, stages: Vec::new(), said: now })) }
    }

    /// Reports the running stage after each period without a line, until this value is dropped.
    pub(super) fn speak_in_silence(&self) {
        const CHECK: Duration = Duration::from_secs(1);
        let state = Arc::downgrade(&self.state);
        let speaking = std::thread::Builder::new().spawn(move || {
            while let Some(state) = state.upgrade() {
                lock(&state).say_how_far();
                drop(state);
                std::thread::sleep(CHECK);
            }
        });
        // If the thread can't be started, long steps print nothing.
        drop(speaking);
    }
}

impl<W: Write> LineState<W> {
    fn say(&mut self, line: &str) {
        self.said = Instant::now();
        let seconds = self.began.elapsed().as_secs_f64();
        // A reader that closed the pipe is not an error.
        drop(writeln!(self.out, "[{seconds:8.1} s] {line}").and_then(|()| self.out.flush()));
    }

    fn say_how_far(&mut self) {
        // A long run is reported less often, so that its result isn't buried.
        let now = Instant::now();
        let [silence, so_far] = [self.said, self.began].map(|since| now.duration_since(since));
        if silence < (so_far / 2).clamp(NOW_AND_THEN, AT_MOST) {
            return;
        }
        // Stages overlap, and a stage begins before its first step can start. Stages with running steps are
        // reported.
        let is_busy = |stage: &&StageCount| !stage.running.is_empty();
        let busy: Vec<String> = self.stages.iter().filter(is_busy).map(StageCount::so_far).collect();
        let line =
            if busy.is_empty() { self.stages.last().map(StageCount::so_far) } else { Some(busy.join("; ")) };
        if let Some(line) = line {
            self.say(&line);
        }
    }

    fn stage(&mut self, stage: Stage) -> Option<&mut StageCount> {
        self.stages.iter_mut().find(|known| known.stage == stage)
    }

    /// The line for an event, if any.
    fn line(&mut self, event: &Event<'_>) -> Option<String> {
        match *event {
            Event::StageStarted { stage, steps } => {
                self.stages.retain(|known| known.stage != stage);
                let (began, notes) = (Instant::now(), BTreeMap::new());
                let running = Vec::new();
                let (next, decided) = (None, None);
                self.stages.push(StageCount { stage, steps, done: 0, began, running, next, notes, decided });
                None
            }
            Event::StepsAdded { stage, steps } => {
                if let Some(known) = self.stage(stage) {
                    known.steps += steps;
                }
                None
            }
            Event::StepStarted { stage, what } => {
                self.stage(stage)?.running.push((clean(what), String::new()));
                None
            }
            Event::StepContinues { stage, what, note } => {
                let running = &mut self.stage(stage)?.running;
                running.retain(|(known, _)| *known != clean(what));
                running.insert(0, (clean(what), clean(note)));
                None
            }
            Event::StepFinished { stage, what, note, took } => {
                let mut count = String::new();
                if let Some(known) = self.stage(stage) {
                    known.done += 1;
                    known.running.retain(|(running, _)| *running != clean(what));
                    count = format!(" {}/{}", known.done, known.steps);
                    if !note.is_empty() && !note.contains(|c: char| c.is_ascii_digit() || c == ':') {
                        *known.notes.entry(clean(note)).or_default() += 1;
                    }
                }
                let line = || format!("{stage}{count} {}: {} ({})", clean(what), clean(note), duration(took));
                note.starts_with("failed").then(line)
            }
            Event::StageFinished { stage } => {
                let at = self.stages.iter().position(|known| known.stage == stage)?;
                let done = self.stages.remove(at);
                (!done.says_nothing()).then(|| done.said())
            }
            Event::Standings { rows, next, look } => {
                let text = outlook(rows, next);
                if let Some(stage) = self.stage(Stage::Benchmark) {
                    stage.next = next.map(|next| (next, Instant::now()));
                }
                if next.is_none()
                    && rows.iter().all(|row| !row.open)
                    && let Some(stage) = self.stage(Stage::Benchmark)
                {
                    // This event is reported with the end of the stage, which follows immediately. Identical
                    // sides have no rows.
                    stage.decided = Some(text).filter(|_| !rows.is_empty());
                    return None;
                }
                (look && self.said.elapsed() >= BETWEEN_LOOKS).then_some(text)
            }
            Event::Warning(text) => Some(format!("warning: {}", clean(text))),
            Event::Note(text) => Some(clean(text)),
        }
    }
}

impl<W: Write + Send> Progress for Lines<W> {
    fn on(&self, event: Event<'_>) {
        let mut state = lock(&self.state);
        if let Some(line) = state.line(&event) {
            state.say(&line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::row;
    use super::*;
    use crate::model::Standing;

    fn said(events: &[Event<'_>]) -> Vec<String> {
        said_after(Duration::ZERO, events)
    }

    /// The lines that are printed for these events if this much silence precedes each event and the end.
    fn said_after(silence: Duration, events: &[Event<'_>]) -> Vec<String> {
        let lines = Lines::new(Vec::new());
        for event in events {
            lock(&lines.state).said -= silence;
            lines.on(event.clone());
        }
        let mut state = lock(&lines.state);
        state.said -= silence;
        state.say_how_far();
        let text = String::from_utf8(std::mem::take(&mut state.out)).unwrap();
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
    fn a_silence_of_half_a_minute_ends_with_how_far_the_stage_is() {
        let stage = Stage::Compile;
        let started = |what| Event::StepStarted { stage, what };
        let began =
            [Event::StageStarted { stage, steps: 12 }, started("vit/cpu head"), started("mlp/cpu head")];
        assert_eq!(said(&began), Vec::<String>::new());
        assert_eq!(said_after(NOW_AND_THEN, &began), ["compile 0/12: vit/cpu head and 1 more"]);
        let verify = [Event::StageStarted { stage: Stage::Verify, steps: 4 }];
        let line = "compile 0/12: vit/cpu head and 1 more";
        assert_eq!(said_after(NOW_AND_THEN, &[&began[..], &verify].concat()), [line], "nothing is verified");
        let stage = Stage::Toolchain;
        let (what, note) = ("artifacts/w.irpa", "1.2 GB of 8.0 GB");
        let download = [
            Event::StageStarted { stage, steps: 1 },
            Event::StepStarted { stage, what },
            Event::StepContinues { stage, what, note },
        ];
        let line = "toolchain 0/1: artifacts/w.irpa: 1.2 GB of 8.0 GB";
        assert_eq!(said_after(NOW_AND_THEN, &download), [line]);
        let finished = [Event::StageFinished { stage }];
        assert_eq!(said_after(NOW_AND_THEN, &[&download[..2], &finished].concat()), Vec::<String>::new());
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
                "6 blocks: 1 of 2 rows open (mlp/cpu +0.4 %); next look after 8 blocks, in about 20 s; at most 95 s left"
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
    fn a_log_of_hundreds_of_processes_has_a_line_for_each_failure_and_one_after_each_silence() {
        let stage = Stage::Benchmark;
        let finished = |note| Event::StepFinished { stage, what: "a", note, took: Duration::ZERO };
        let mut events = vec![Event::StageStarted { stage, steps: 400 }];
        events.extend((0..50).map(|_| finished("1 ms")));
        events.push(finished("failed: no device"));
        let rows = [row("a", true)];
        events.extend((0..50).map(|_| Event::Standings { rows: &rows, next: None, look: false }));
        assert_eq!(said(&events), ["benchmark 51/400 a: failed: no device (0 s)"]);
        let silent = [
            Event::StageStarted { stage, steps: 4 },
            finished("1 ms"),
            Event::StepStarted { stage, what: "a head block 1" },
        ];
        assert_eq!(
            said_after(NOW_AND_THEN, &silent),
            ["benchmark 1/4: a head block 1; first look in about 1 s"]
        );
        let (wait, most) = (Duration::from_millis(20_400), Duration::from_secs(95));
        let next = Some(NextLook { blocks: 8, rows: 1, wait, most });
        let standing = [Event::Standings { rows: &rows, next, look: false }];
        assert_eq!(
            said_after(NOW_AND_THEN, &[&silent[..], &standing].concat()),
            ["benchmark 1/4: a head block 1; next look in about 20 s; at most 95 s left"]
        );
    }

    #[test]
    fn a_run_of_hours_is_reported_less_often() {
        let lines = Lines::new(Vec::new());
        let stage = Stage::Benchmark;
        lines.on(Event::StageStarted { stage, steps: 4 });
        lines.on(Event::StepStarted { stage, what: "a head block 1" });
        let printed = |so_far: Duration, silence: Duration| {
            let mut state = lock(&lines.state);
            let now = Instant::now();
            (state.began, state.said) = (now - so_far, now - silence);
            state.say_how_far();
            !std::mem::take(&mut state.out).is_empty()
        };
        let minutes = |count: u64| Duration::from_secs(60 * count);
        assert!(!printed(minutes(4), minutes(1)));
        assert!(printed(minutes(4), minutes(2)));
        assert!(!printed(minutes(180), minutes(4)));
        assert!(printed(minutes(180), minutes(5)));
    }

    #[test]
    fn a_hostile_name_can_t_give_the_log_a_command() {
        let lines = said(&[Event::Note("a\n::error::b ##[error]c\u{1b}[2J")]);
        assert_eq!(lines, ["a\u{fffd}::error::b # #[error]c\u{fffd}[2J"]);
    }
}
