//! How lower layers report progress without knowing who displays it.

use std::time::Duration;

use super::{BenchmarkName, Stage, Verdict};

/// The state of a row during measurement. It has no effect between looks.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    pub benchmark: BenchmarkName,
    pub verdict: Verdict,
    pub blocks: u32,
    /// head / base.
    pub ratio: f64,
    /// Both ends of the interval of the ratio.
    pub interval: Option<(f64, f64)>,
    /// It is measured further.
    pub open: bool,
}

/// The next time that open rows are judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NextLook {
    pub blocks: u32,
    /// Rows that are measured until then.
    pub rows: usize,
    /// About how long that takes.
    pub wait: Duration,
    /// How long measuring continues at most: until the last look, with every row that is open now.
    pub most: Duration,
}

/// A message for the user who waits.
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
    /// A step that takes long goes on; `note` says how far it is: `1.2 GB of 8.0 GB`.
    StepContinues {
        stage: Stage,
        what: &'a str,
        note: &'a str,
    },
    /// A step ended. `note` says how: `cached`, `FAIL`, `12.3 ms`.
    StepFinished {
        stage: Stage,
        what: &'a str,
        note: &'a str,
        took: Duration,
    },
    StageFinished {
        stage: Stage,
    },
    /// The state of paired rows. `look`: they were judged now, by the declared plan; otherwise it is only shown.
    Standings {
        rows: &'a [Standing],
        next: Option<NextLook>,
        look: bool,
    },
    /// A message for the user.
    Warning(&'a str),
    /// Detail for those who wait.
    Note(&'a str),
}

/// Listens to progress. The terminal, plain lines in CI, or nothing.
pub trait Progress: Send + Sync {
    fn on(&self, event: Event<'_>);
}

/// No listener.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quiet;

impl Progress for Quiet {
    fn on(&self, _event: Event<'_>) {}
}
