//! Measures: starts fresh processes in the order of the schedule, until every row is decided or the budget is
//! spent. No other part of benchgate runs meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use benchgate_config::Measure;
use benchgate_core::model::{
    BenchmarkName, BlockSlot, Event, Metric, NextLook, Run, SideName, Stage, Standing,
};
use benchgate_gate::{CompareOptions, Comparison, Outlook};
use benchgate_stats::multiplicity::Looks;

use super::PipelineError;
use super::argv::Timing;
use super::candidates::{BenchmarkCandidate, TimedProgram, Unchanged};
use super::commands::GuardedFiles;
use super::host::Host;
use super::journal::{Journal, JournalEntry};
use super::schedule::{self, ScheduledProcess, Want};
use super::stage::in_words;
use super::timed::{Start, latency_in_words};

/// Number of blocks after which measuring stops even if the gate wants more. The limit is far above any
/// useful number, and guards against a policy that never ends.
const MOST_ROUNDS: u32 = 10_000;

/// The pause after showing intermediate results, as a multiple of the time that it took to show them.
const SHOWING: u32 = 100;

/// The time of the last display of intermediate results, and its duration.
struct Shown {
    at: Instant,
    took: Duration,
}

impl Default for Shown {
    fn default() -> Self {
        Self { at: Instant::now(), took: Duration::ZERO }
    }
}

impl Shown {
    fn is_due(&self) -> bool {
        self.at.elapsed() >= self.took.saturating_mul(SHOWING)
    }

    fn took(&mut self, began: Instant) {
        *self = Self { at: Instant::now(), took: began.elapsed() };
    }
}

pub(super) struct Measuring<'a, 'b> {
    pub(super) host: &'a Host<'b>,
    pub(super) settings: &'a Measure,
    pub(super) policy: &'a benchgate_gate::Policy,
    pub(super) candidates: &'a [BenchmarkCandidate<'a>],
    /// Number of blocks of a row whose sides are identical.
    pub(super) identical_blocks: u32,
    /// Number of fatal rows in the whole suite, if this run is one of its shards.
    pub(super) suite_rows: Option<u32>,
    pub(super) journal: &'a mut Journal,
    pub(super) clock_held: bool,
    /// Files that must not change after they were verified.
    pub(super) unchanged: &'a Unchanged,
    pub(super) seed: u64,
    /// For each command that can filter, the rows that need more blocks.
    pub(super) asked: BTreeMap<usize, BTreeSet<String>>,
    /// Builds the two runs for a look from the journal.
    pub(super) look: &'a dyn Fn(&Journal) -> (Run, Run),
}

impl Measuring<'_, '_> {
    /// Measures every candidate.
    pub(super) async fn run(mut self) -> Result<(), PipelineError> {
        let steps = self.candidates.iter().map(|c| c.sides.len()).sum::<usize>();
        if steps == 0 {
            return Ok(());
        }
        self.set_cut_blocks_aside()?;
        // A resumed run does not repeat the processes that it measured before, so these are not counted as
        // steps.
        let steps = self.expected_processes().saturating_sub(self.journal.len());
        self.host.progress.on(Event::StageStarted { stage: Stage::Benchmark, steps });
        self.choose_timings().await?;
        self.paired().await?;
        self.single().await?;
        self.host.progress.on(Event::StageFinished { stage: Stage::Benchmark });
        Ok(())
    }

    /// Chooses how long the processes of each benchmark measure. One short trial per side decides the
    /// settings that the configuration leaves open. If a trial fails, its benchmark fails, as with a measured
    /// process.
    async fn choose_timings(&mut self) -> Result<(), PipelineError> {
        let fixed = schedule::fixed(self.settings);
        for (benchmark, candidate) in self.candidates.iter().enumerate() {
            let name = &candidate.name;
            if candidate.sides.is_empty() || self.journal.has_failed(name) {
                continue;
            }
            if let Some(TimedProgram::Command(_)) = candidate.sides.values().next() {
                let processes = self.warm_up(candidate).await?;
                if self.journal.timings.get(name).is_none() {
                    self.journal.set_timing(name, &Timing { repetitions: processes, ..schedule::TIMING })?;
                }
                continue;
            }
            if self.journal.timings.get(name).is_some() {
                continue;
            }
            if let Some(timing) = &fixed {
                self.journal.set_timing(name, timing)?;
                continue;
            }
            let mut found = Vec::new();
            for (slot, (side, program)) in (0..).zip(&candidate.sides) {
                let what = format!("{name} {side} trial");
                let began = Instant::now();
                let stage = Stage::Benchmark;
                self.host.progress.on(Event::StepsAdded { stage, steps: 1 });
                self.host.progress.on(Event::StepStarted { stage, what: &what });
                let step = ScheduledProcess { benchmark, side: *side, slot: BlockSlot { block: 0, slot } };
                let files = ["raw", "log"].map(|ending| self.journal.trial_file(*side, ending));
                let entry = self.start(program, step, schedule::TIMING, files).run(self.host).await?;
                self.unchanged.check(program)?;
                let note = match &entry.process.failure {
                    None => {
                        found.extend(schedule::read_trial(&entry.process));
                        String::new()
                    }
                    Some(why) => {
                        let note = in_words("failed", why, entry.process.log.as_deref().map(Path::new));
                        self.journal.add(*side, entry)?;
                        note
                    }
                };
                let took = began.elapsed();
                self.host.progress.on(Event::StepFinished { stage, what: &what, note: &note, took });
            }
            self.journal.set_timing(name, &schedule::chosen(self.settings, &found))?;
        }
        Ok(())
    }

    /// Sets up a command on both sides. A resumed session does this again, because caches may be gone.
    /// Returns the number of processes per slot of the schedule. Base alone determines it, because head must
    /// not choose how it is measured.
    async fn warm_up(&self, candidate: &BenchmarkCandidate<'_>) -> Result<u32, PipelineError> {
        let (mut processes, mut base) = (None, None);
        for (side, program) in &candidate.sides {
            let TimedProgram::Command(command) = program else { continue };
            let [output, log] = ["raw", "log"].map(|ending| self.journal.trial_file(*side, ending));
            let guard = command.guard()?;
            let warmed = command.warm_up(base, self.host, &log, &output).await?;
            guard.check()?;
            base.get_or_insert(*command);
            if processes.is_none() {
                processes = Some(command.processes_per_slot(self.host, &log, &output, warmed).await?);
            }
        }
        Ok(processes.unwrap_or(1))
    }

    /// Returns whether a row belongs to this candidate. A command has several rows.
    fn owns(&self, index: usize, row: &BenchmarkName) -> bool {
        let candidate = &self.candidates[index];
        candidate.name == *row || self.journal.has_printed(&candidate.name, row)
    }

    fn looks(&self) -> Looks {
        benchgate_gate::looks(self.policy, &Metric::LATENCY)
    }

    fn expected_processes(&self) -> usize {
        let processes =
            |candidate: &BenchmarkCandidate<'_>| match (candidate.is_paired(), candidate.identical) {
                (true, true) => 4 * self.identical_blocks,
                (true, false) => 4 * self.looks().first(),
                (false, _) if candidate.sides.is_empty() => 0,
                (false, _) => self.settings.processes,
            };
        self.candidates.iter().map(|candidate| processes(candidate) as usize).sum()
    }

    /// Removes blocks that a kill interrupted, so that they are measured again from the start. Otherwise
    /// their halves would be from different times, which pairing must avoid.
    fn set_cut_blocks_aside(&mut self) -> Result<(), PipelineError> {
        for candidate in self.candidates.iter().filter(|candidate| candidate.is_paired()) {
            if self.journal.has_failed(&candidate.name) {
                continue;
            }
            let mut found: BTreeMap<u32, usize> = BTreeMap::new();
            for side in SideName::BOTH {
                for entry in self.journal.processes(&candidate.name, side) {
                    *found.entry(entry.block).or_default() += 1;
                }
            }
            for (block, _) in found.into_iter().filter(|(_, processes)| *processes < 4) {
                self.journal.drop_partial_block(&candidate.name, block)?;
            }
        }
        Ok(())
    }

    /// Measures rounds of blocks. Looks decide which rows need more blocks.
    async fn paired(&mut self) -> Result<(), PipelineError> {
        let paired: Vec<usize> =
            (0..self.candidates.len()).filter(|&index| self.candidates[index].is_paired()).collect();
        let mut open: BTreeSet<usize> =
            paired.iter().copied().filter(|&index| !self.candidates[index].identical).collect();
        let mut identical: Vec<usize> =
            paired.iter().copied().filter(|&index| self.candidates[index].identical).collect();
        let mut round = 0;
        let mut until = self.looks().first();
        let mut shown = Shown::default();
        while round < MOST_ROUNDS {
            let mut now: Vec<usize> = if round < until { open.iter().copied().collect() } else { Vec::new() };
            if round < self.identical_blocks {
                now.extend(&identical);
            }
            if now.is_empty() {
                break;
            }
            if self.out_of_time(round) {
                return Ok(());
            }
            let steps = schedule::paired_round(&now, self.candidates.len(), round, self.seed);
            for step in steps {
                self.step(step).await?;
            }
            open.retain(|&index| !self.journal.has_failed(&self.candidates[index].name));
            identical.retain(|&index| !self.journal.has_failed(&self.candidates[index].name));
            round += 1;
            if round == self.identical_blocks {
                let doubted = self.doubted(&identical, round, until);
                identical.retain(|index| !doubted.contains(index));
                open.extend(doubted);
            }
            if open.is_empty() {
                continue;
            }
            if round == until {
                until = self.look_at(&mut open, round);
            } else if shown.is_due() {
                let began = Instant::now();
                let (_, standings) = self.standings(&open);
                if standings.is_empty() {
                    continue;
                }
                let next = self.next_look(&open, round, until);
                self.host.progress.on(Event::Standings { rows: &standings, next: Some(next), look: false });
                shown.took(began);
            }
        }
        Ok(())
    }

    /// Identical rows whose times differ so much that they have to be measured like the other rows.
    fn doubted(&self, identical: &[usize], round: u32, until: u32) -> Vec<usize> {
        if identical.is_empty() || round >= until {
            return Vec::new();
        }
        let open = self.open_rows(&self.standings(&BTreeSet::new()).0).open;
        let doubted: Vec<usize> =
            identical.iter().copied().filter(|&index| open.iter().any(|row| self.owns(index, row))).collect();
        if !doubted.is_empty() {
            let steps = 4 * doubted.len() * (until - round) as usize;
            self.host.progress.on(Event::StepsAdded { stage: Stage::Benchmark, steps });
        }
        doubted
    }

    /// The rows that need more blocks according to the gate, which judges them as part of the whole suite.
    fn open_rows(&self, comparison: &Comparison) -> benchgate_gate::OpenRows {
        match self.suite_rows {
            None => benchgate_gate::open_in(comparison, self.policy),
            Some(rows) => {
                let (base, head) = (self.look)(self.journal);
                benchgate_gate::open_in_shard(&base, &head, self.policy, rows)
            }
        }
    }

    /// Judges the measurements so far. Keeps in `open` only the undecided benchmarks for which the time
    /// budget is enough until the next look, and returns the number of blocks at that look.
    fn look_at(&mut self, open: &mut BTreeSet<usize>, round: u32) -> u32 {
        let (comparison, _) = self.standings(open);
        let answer = self.open_rows(&comparison);
        open.retain(|&index| answer.open.iter().any(|row| self.owns(index, row)));
        for &index in open.iter() {
            let mut programs = self.candidates[index].sides.values();
            if programs.all(|side| matches!(side, TimedProgram::Command(command) if command.can_filter())) {
                let rows = answer.open.iter().filter(|row| self.owns(index, row));
                self.asked.insert(index, rows.map(ToString::to_string).collect());
            }
        }
        // All open rows have `round` blocks, including rows whose blocks could not be used.
        let until = self.looks().after(round).filter(|_| !open.is_empty()).unwrap_or(round);
        let outlooks = benchgate_gate::outlook(&comparison);
        let needed = |index: usize| {
            let rows = outlooks.iter().filter(|outlook| {
                let row = &outlook.standing.benchmark;
                answer.open.contains(row) && self.owns(index, row)
            });
            // A command is measured until all of its rows are decided.
            let needed: Option<Vec<f64>> = rows.map(|outlook| outlook.blocks_needed).collect();
            Some(needed?.into_iter().reduce(f64::max)? - f64::from(round))
        };
        let rows: Vec<usize> = open.iter().copied().collect();
        let want = |&index: &usize| Want {
            block: self.block_time(index),
            to_look: until - round,
            to_verdict: needed(index),
        };
        let wants: Vec<Want> = rows.iter().map(want).collect();
        let kept = schedule::affordable(&wants, self.time_left());
        let (asked, kept) = (open.len(), kept.into_iter().map(|at| rows[at]).collect::<BTreeSet<usize>>());
        *open = kept;
        if open.len() < asked && until > round {
            let text = format!(
                "the time budget is enough for {} of {asked} undecided rows up to {until} blocks",
                open.len()
            );
            self.host.progress.on(Event::Warning(&text));
        }
        let standings = self.standings_of(&outlooks, open);
        let next = (!open.is_empty() && until > round).then(|| {
            let steps = 4 * open.len() * (until - round) as usize;
            self.host.progress.on(Event::StepsAdded { stage: Stage::Benchmark, steps });
            self.next_look(open, round, until)
        });
        self.host.progress.on(Event::Standings { rows: &standings, next, look: true });
        until
    }

    /// The gate's judgment of everything measured so far.
    fn standings(&self, open: &BTreeSet<usize>) -> (Comparison, Vec<Standing>) {
        let (base, head) = (self.look)(self.journal);
        let suite_rows = self.suite_rows.unwrap_or_default();
        let options = CompareOptions { suite_rows, ..CompareOptions::at_look() };
        let comparison = benchgate_gate::compare(&base, &head, self.policy, &options);
        let standings = self.standings_of(&benchgate_gate::outlook(&comparison), open);
        (comparison, standings)
    }

    fn standings_of(&self, outlooks: &[Outlook], open: &BTreeSet<usize>) -> Vec<Standing> {
        let is_open = |row: &Standing| open.iter().any(|&index| self.owns(index, &row.benchmark));
        let rows = outlooks.iter().map(|outlook| &outlook.standing);
        rows.map(|row| Standing { open: is_open(row), ..row.clone() }).collect()
    }

    fn next_look(&self, open: &BTreeSet<usize>, round: u32, until: u32) -> NextLook {
        let blocks = until.saturating_sub(round);
        let all = self.looks().last().saturating_sub(round);
        let taking =
            |blocks: u32| open.iter().map(|&index| self.block_time(index).saturating_mul(blocks)).sum();
        let most: Duration = taking(all);
        let most = self.time_left().map_or(most, |left| left.min(most));
        NextLook { blocks: until, rows: open.len(), wait: taking(blocks), most }
    }

    /// The mean time of this benchmark's measured blocks.
    fn block_time(&self, index: usize) -> Duration {
        let name = &self.candidates[index].name;
        let processes: Vec<&JournalEntry> =
            SideName::BOTH.into_iter().flat_map(|side| self.journal.processes(name, side)).collect();
        let seconds: f64 = processes.iter().map(|entry| entry.process.seconds.0).sum();
        let count = u32::try_from(processes.len()).unwrap_or(u32::MAX).max(1);
        Duration::try_from_secs_f64(seconds * 4.0 / f64::from(count)).unwrap_or_default()
    }

    /// The rest of the time budget; `None` if there is no budget.
    fn time_left(&self) -> Option<Duration> {
        let spent = Duration::try_from_secs_f64(self.journal.measured_seconds()).unwrap_or_default();
        self.settings.time_budget.map(|budget| budget.saturating_sub(spent))
    }

    /// Measures benchmarks that only one side has. Their results are shown but not compared.
    async fn single(&mut self) -> Result<(), PipelineError> {
        for side in SideName::BOTH {
            let mut alone: Vec<usize> = (0..self.candidates.len())
                .filter(|&index| {
                    let sides = &self.candidates[index].sides;
                    sides.len() == 1 && sides.contains_key(&side)
                })
                .collect();
            for round in 0..self.settings.processes {
                alone.retain(|&index| !self.journal.has_failed(&self.candidates[index].name));
                if alone.is_empty() || self.out_of_time(round) {
                    break;
                }
                for step in schedule::single_round(&alone, side, round, self.seed) {
                    self.step(step).await?;
                }
            }
        }
        Ok(())
    }

    /// Returns whether the time budget is spent. The budget is checked between rounds, so that all rows of a
    /// round have the same number of blocks. The first round is always measured, because a run without any
    /// measurement is useless.
    fn out_of_time(&self, round: u32) -> bool {
        let over = round > 0 && self.time_left().is_some_and(|left| left.is_zero());
        if over {
            let text = format!(
                "the time budget ran out after {}; undecided rows stay inconclusive",
                benchgate_core::model::counted(round as usize, "round")
            );
            self.host.progress.on(Event::Warning(&text));
        }
        over
    }

    /// Starts the benchmark tool once, if that can add information.
    async fn step(&mut self, step: ScheduledProcess) -> Result<(), PipelineError> {
        let candidate = &self.candidates[step.benchmark];
        if self.journal.contains(&candidate.name, step.side, step.slot)
            || self.journal.is_settled(&candidate.name, step.side)
        {
            return Ok(());
        }
        let Some(program) = candidate.sides.get(&step.side) else { return Ok(()) };
        let what = format!("{} {} block {}", candidate.name, step.side, step.slot.block + 1);
        self.host.progress.on(Event::StepStarted { stage: Stage::Benchmark, what: &what });
        let started = Instant::now();
        let chosen = self.journal.timings.get(&candidate.name);
        let timing = chosen.unwrap_or_else(|| schedule::chosen(self.settings, &[]));
        let order = self.journal.next_order();
        let files = ["raw", "log"].map(|ending| self.journal.file(order, ending));
        let guard = program.guard()?;
        let entry = self.start(program, step, timing, files).run(self.host).await?;
        // Files are checked before the journal stores the process, because a resumed session must not contain
        // a process that ran with a changed file.
        self.unchanged.check(program)?;
        guard.map(GuardedFiles::check).transpose()?;
        let note = match &entry.process.failure {
            Some(why) => in_words("failed", why, entry.process.log.as_deref().map(Path::new)),
            None if entry.printed.is_some() => entry.process_note(),
            None => {
                let samples = entry.process.samples.get(Metric::LATENCY.name.as_ref());
                samples.and_then(latency_in_words).unwrap_or_default()
            }
        };
        self.journal.add(step.side, entry)?;
        self.host.progress.on(Event::StepFinished {
            stage: Stage::Benchmark,
            what: &what,
            note: &note,
            took: started.elapsed(),
        });
        Ok(())
    }

    fn start<'s>(
        &'s self,
        program: &'s TimedProgram<'s>,
        step: ScheduledProcess,
        timing: Timing,
        [raw, log]: [PathBuf; 2],
    ) -> Start<'s> {
        Start {
            candidate: &self.candidates[step.benchmark],
            program: *program,
            step,
            asked: self.asked.get(&step.benchmark).cloned(),
            format: self.journal.format(&self.candidates[step.benchmark].name),
            order: self.journal.next_order(),
            timing,
            timeout: self.settings.timeout,
            raw,
            log,
            clock_held: self.clock_held,
        }
    }
}
