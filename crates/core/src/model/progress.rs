//! Progress reports from lower layers, which don't know who displays them.

use std::time::Duration;

use super::{BenchmarkName, Stage, Verdict};

/// The state of a row during measurement. The state decides something only at a look.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    pub benchmark: BenchmarkName,
    pub verdict: Verdict,
    pub blocks: u32,
    /// head / base.
    pub ratio: f64,
    /// Both ends of the ratio's interval.
    pub interval: Option<(f64, f64)>,
    /// True if measuring continues for the row.
    pub open: bool,
}

/// The next time that undecided rows are judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NextLook {
    pub blocks: u32,
    /// Number of rows that are measured until then.
    pub rows: usize,
    /// Estimated time until then.
    pub wait: Duration,
    /// Longest time that measuring can still take: until the last look, with every row that is undecided now.
    pub most: Duration,
}

/// A message for the user who is waiting.
#[derive(Debug, Clone, PartialEq)]
pub enum Event<'a> {
    /// A stage begins with this many steps.
    StageStarted {
        stage: Stage,
        steps: usize,
    },
    /// A stage turned out to have this many more steps.
    StepsAdded {
        stage: Stage,
        steps: usize,
    },
    /// A step of a stage begins; `what` names it (`vit-block/cpu head`).
    StepStarted {
        stage: Stage,
        what: &'a str,
    },
    /// A long step is still running; `note` states its progress: `1.2 GB of 8.0 GB`.
    StepContinues {
        stage: Stage,
        what: &'a str,
        note: &'a str,
    },
    /// A step ended. `note` states the result: `cached`, `FAIL`, `12.3 ms`.
    StepFinished {
        stage: Stage,
        what: &'a str,
        note: &'a str,
        took: Duration,
    },
    StageFinished {
        stage: Stage,
    },
    /// The state of paired rows. If `look` is true, this is a planned look at which they were judged;
    /// otherwise the state is only displayed.
    Standings {
        rows: &'a [Standing],
        next: Option<NextLook>,
        look: bool,
    },
    /// A message for the user.
    Warning(&'a str),
    /// Detail for a user who is waiting.
    Note(&'a str),
}

/// A listener for progress: a terminal, plain lines in CI, or none.
pub trait Progress: Send + Sync {
    fn on(&self, event: Event<'_>);
}

/// A listener that ignores everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quiet;

impl Progress for Quiet {
    fn on(&self, _event: Event<'_>) {}
}
