//! Shows the wait: bars that move where a person watches, plain lines in CI and pipes, else nothing.

use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::model::{Event, Progress, Quiet, Stage};
use crate::report::{clean, duration};

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

/// How often a spinner turns. Ten times a second looks alive and costs nothing measurable.
const TICK: Duration = Duration::from_millis(100);

/// One bar a stage; the step that runs longest stands beside it.
struct Bars {
    all: MultiProgress,
    stages: Mutex<Vec<StageBar>>,
}

struct StageBar {
    stage: Stage,
    bar: ProgressBar,
    running: Vec<String>,
}

impl Bars {
    fn new(target: ProgressDrawTarget) -> Self {
        Self { all: MultiProgress::with_draw_target(target), stages: Mutex::new(Vec::new()) }
    }

    fn add(&self, stage: Stage, steps: usize) {
        let bar = self.all.add(ProgressBar::new(steps as u64));
        // The template is a constant, so it is either right or found by the first test.
        let style =
            ProgressStyle::with_template("{spinner} {prefix:10} {bar:24} {pos}/{len} {elapsed} {wide_msg}")
                .unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style);
        bar.set_prefix(stage.as_str());
        bar.enable_steady_tick(TICK);
        lock(&self.stages).push(StageBar { stage, bar, running: Vec::new() });
    }

    fn say(&self, line: &str) {
        // The draw target may be gone; then nobody reads.
        drop(self.all.println(line));
    }
}

impl Progress for Bars {
    fn on(&self, event: Event<'_>) {
        match event {
            Event::StageStarted { stage, steps } => self.add(stage, steps),
            Event::StepStarted { stage, what } => {
                if let Some(stage) = of(&mut lock(&self.stages), stage) {
                    stage.running.push(clean(what));
                    stage.show();
                }
            }
            Event::StepFinished { stage, what, note, .. } => {
                // A failure stays in sight; the bar it belongs to moves on.
                if note.starts_with("failed") {
                    self.say(&format!("{stage} {}: {}", clean(what), clean(note)));
                }
                if let Some(stage) = of(&mut lock(&self.stages), stage) {
                    let what = clean(what);
                    if let Some(at) = stage.running.iter().position(|running| *running == what) {
                        stage.running.remove(at);
                    }
                    stage.bar.inc(1);
                    stage.show();
                }
            }
            Event::StepsAdded { stage, steps } => {
                if let Some(stage) = of(&mut lock(&self.stages), stage) {
                    stage.bar.inc_length(steps as u64);
                }
            }
            Event::StageFinished { stage } => {
                let mut stages = lock(&self.stages);
                if let Some(at) = stages.iter().position(|known| known.stage == stage) {
                    let done = stages.remove(at);
                    done.bar.finish_with_message("done");
                }
            }
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
    }
}

fn of(stages: &mut [StageBar], stage: Stage) -> Option<&mut StageBar> {
    stages.iter_mut().find(|known| known.stage == stage)
}

/// One line for everything that ended, with the time since the start: a log has no cursor.
struct Lines<W> {
    began: Instant,
    state: Mutex<LineState<W>>,
}

struct LineState<W> {
    out: W,
    /// Steps of each running stage, and how many ended.
    stages: Vec<(Stage, usize, usize)>,
}

impl<W: Write + Send> Lines<W> {
    fn new(out: W) -> Self {
        Self { began: Instant::now(), state: Mutex::new(LineState { out, stages: Vec::new() }) }
    }
}

impl<W: Write + Send> Progress for Lines<W> {
    fn on(&self, event: Event<'_>) {
        let mut state = lock(&self.state);
        let line = match event {
            Event::StageStarted { stage, steps } => {
                state.stages.retain(|(known, ..)| *known != stage);
                state.stages.push((stage, steps, 0));
                let noun = if steps == 1 { "step" } else { "steps" };
                format!("{stage}: {steps} {noun}")
            }
            Event::StepsAdded { stage, steps } => {
                if let Some((_, all, _)) = state.stages.iter_mut().find(|(known, ..)| *known == stage) {
                    *all += steps;
                }
                return;
            }
            Event::StepStarted { .. } => return,
            Event::StepFinished { stage, what, note, took } => {
                let count = match state.stages.iter_mut().find(|(known, ..)| *known == stage) {
                    Some((_, steps, done)) => {
                        *done += 1;
                        format!(" {done}/{steps}")
                    }
                    None => String::new(),
                };
                let note = if note.is_empty() { String::new() } else { format!(": {}", clean(note)) };
                format!("{stage}{count} {}{note} ({})", clean(what), duration(took))
            }
            Event::StageFinished { stage } => {
                state.stages.retain(|(known, ..)| *known != stage);
                return;
            }
            Event::Warning(text) => format!("warning: {}", clean(text)),
            Event::Note(text) => clean(text),
        };
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

    fn said(events: &[Event<'_>]) -> Vec<String> {
        let lines = Lines::new(Vec::new());
        for event in events {
            lines.on(event.clone());
        }
        let text = String::from_utf8(lines.state.into_inner().unwrap().out).unwrap();
        text.lines().map(|line| line.split_once("] ").unwrap().1.to_owned()).collect()
    }

    #[test]
    fn a_log_gets_one_line_for_every_step_that_ended() {
        let compile = Stage::Compile;
        let took = Duration::from_millis(1250);
        let lines = said(&[
            Event::StageStarted { stage: compile, steps: 2 },
            Event::StepStarted { stage: compile, what: "vit/cpu head" },
            Event::StepFinished { stage: compile, what: "vit/cpu head", note: "", took },
            Event::StepFinished {
                stage: compile,
                what: "mlp/cpu head",
                note: "cached",
                took: Duration::ZERO,
            },
            Event::StepsAdded { stage: compile, steps: 1 },
            Event::StepFinished { stage: compile, what: "vit/cpu base", note: "", took },
            Event::StageFinished { stage: compile },
            Event::Warning("little room on the disk"),
        ]);
        assert_eq!(
            lines,
            [
                "compile: 2 steps",
                "compile 1/2 vit/cpu head (1.250 s)",
                "compile 2/2 mlp/cpu head: cached (0 s)",
                "compile 3/3 vit/cpu base (1.250 s)",
                "warning: little room on the disk"
            ]
        );
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
        bars.on(Event::StageFinished { stage: Stage::Verify });
        bars.on(Event::StageFinished { stage: Stage::Verify });
        assert!(lock(&bars.stages).is_empty());
    }
}
