//! Measures the pairs that the search requests, and passes the results to the search.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use regex::Regex;

use crate::gate::bisect::{BisectOptions, Ends, Found, Next, Observed, Pair, Search, SearchProgress};
use crate::gate::{CompareOptions, Reason, SequentialPolicy, compare};
use crate::model::{Artifact, Benchmark, Lint, Outcome, Run, SideName, Stage, Verdict, counted};
use crate::pipeline::SideInput;
use crate::record::{BisectionFile, PartKind};
use crate::report::{self, BisectionFacts};

use super::super::run_args::BackendArgs;
use super::super::{CliError, ErrorKind, Terminal};
use super::candidates::{Candidates, Unusable};
use super::visits::{Visit, VisitJournal, joined};
use super::{BisectArgs, MAX_BLOCKS, candidates};

pub struct Driver<'a> {
    args: &'a BisectArgs,
    terminal: &'a Terminal,
    candidates: Candidates,
    options: BisectOptions,
    search: Search,
    journal: VisitJournal,
    visits: Vec<Visit>,
    skipped: BTreeMap<usize, String>,
    /// Each program that was measured, with the first candidate that compiles to it.
    artifacts: Vec<(Artifact, usize)>,
    /// Candidates whose tools this attempt has verified.
    verified: BTreeSet<usize>,
    /// Flags, by candidate, for which the candidate's tools use another name.
    renamed: BTreeMap<usize, Vec<(String, String)>>,
    /// The benchmark to search, which is chosen once the ends have been measured.
    benchmark: Option<String>,
    notes: Vec<String>,
}

impl<'a> Driver<'a> {
    pub fn new(
        args: &'a BisectArgs,
        candidates: Candidates,
        terminal: &'a Terminal,
    ) -> Result<Self, CliError> {
        let policy = args.measure.limit(candidates.config.policy.clone());
        let options = args.observe.options(&policy, args.measure.schedule.max_blocks.unwrap_or(MAX_BLOCKS));
        let work = args.measure.prepared_work_dir(&candidates.config.root)?;
        let journal = VisitJournal::open(&work, &identity(args, &candidates)?)?;
        let search = Search::new(candidates.list.len(), options.clone());
        let mut driver = Self {
            args,
            terminal,
            candidates,
            options,
            search,
            journal,
            visits: Vec::new(),
            skipped: BTreeMap::new(),
            artifacts: Vec::new(),
            verified: BTreeSet::new(),
            renamed: BTreeMap::new(),
            benchmark: None,
            notes: Vec::new(),
        };
        driver.resume()?;
        Ok(driver)
    }

    /// Takes over the results of earlier attempts.
    fn resume(&mut self) -> Result<(), CliError> {
        self.skipped = self.journal.skipped()?;
        for (at, why) in &self.skipped {
            self.search.skip(*at, why.clone());
        }
        let mut visits = self.journal.visits()?;
        // The ends come first, because they determine which benchmark is searched.
        let whole = Pair { base: 0, head: self.last() };
        visits.sort_by_key(|visit| visit.pair != whole);
        if !visits.is_empty() {
            self.terminal.note(&format!(
                "resuming: reusing {} of an earlier attempt",
                counted(visits.len(), "measurement")
            ));
        }
        for visit in visits {
            if !self.rename_flags(&visit)? {
                self.learn(visit)?;
            }
        }
        Ok(())
    }

    fn last(&self) -> usize {
        self.candidates.list.len() - 1
    }

    /// Returns true if this candidate is measured as an end: it is one, or it is the first candidate with the
    /// same program as the bad end.
    fn is_end(&self, at: usize) -> bool {
        at == 0 || at == self.last() || at == self.search.program(self.last())
    }

    fn name(&self, at: usize) -> &str {
        &self.candidates.list[at].name
    }

    /// Runs the search until it ends.
    pub fn drive(mut self) -> Result<BisectionFile, CliError> {
        let mut unfinished = false;
        let mut asked = None;
        while let Next::Measure { pair, blocks } = self.search.next() {
            // The search decides from its results, so without a new one it would request the same pair
            // forever.
            let renamed: usize = self.renamed.values().map(Vec::len).sum();
            let looked = if self.args.observe.is_exact() { self.visits.len() } else { 0 };
            let known = (pair, blocks, self.search.blocks(pair), self.skipped.len(), renamed, looked);
            if asked.replace(known) == Some(known) {
                return Err(CliError::failed(format!(
                    "failed to compare {} with {}: measuring them again produced no new data",
                    self.name(pair.head),
                    self.name(pair.base)
                )));
            }
            let spent = Duration::from_secs_f64(self.seconds());
            if self.args.measure.schedule.time_budget.is_some_and(|budget| spent >= budget)
                && !self.visits.is_empty()
            {
                unfinished = true;
                break;
            }
            self.announce();
            if self.args.observe.is_exact() { self.value(pair)? } else { self.measure(pair, blocks)? }
        }
        let found = self.search.found();
        self.note_undecided(&found);
        let facts = BisectionFacts {
            suite: self.candidates.config.suite.clone(),
            benchmark: self.benchmark.clone().unwrap_or_default(),
            observed: self.args.observe.name().to_owned(),
            candidates: self.candidates.list.iter().map(|c| (c.name.clone(), c.title.clone())).collect(),
            same: self.search.duplicates().collect(),
            seconds: self.seconds(),
            unfinished,
            notes: self.notes.clone(),
        };
        Ok(report::bisection_file(&found, &facts))
    }

    /// Notes why nothing was searched, and why parts are undecided, unless their intervals are only too wide.
    fn note_undecided(&mut self, found: &Found) {
        if let Ends::NotWorse(_) = found.ends {
            self.notes.push(format!(
                "nothing was searched: choose a good end before {} or a bad end after {}",
                self.name(0),
                self.name(self.last())
            ));
        }
        let ends = match &found.ends {
            Ends::Open(observed) => Some((0, self.last(), observed)),
            Ends::NotWorse(_) | Ends::Worse(_) | Ends::Unknown => None,
        };
        let parts = found.parts.iter().filter(|part| part.kind == PartKind::Open);
        let parts = parts.map(|part| (part.after, part.upto, &part.observed));
        for (after, upto, observed) in ends.into_iter().chain(parts) {
            let why = match &observed.reason {
                Reason::Unusable(Lint { code, detail }) => format!("{code}: {detail}"),
                Reason::TooLittle(lacking) => lacking.why.clone(),
                Reason::Stability => "its processes are slow more often, or vary more".to_owned(),
                Reason::Tail => "rare repetitions stall, so that the mean is worse".to_owned(),
                _ => continue,
            };
            self.notes.push(format!(
                "{} compared with {} is undecided: {why}",
                self.name(upto),
                self.name(after)
            ));
        }
    }

    fn seconds(&self) -> f64 {
        self.visits.iter().map(|visit| visit.seconds).sum()
    }

    /// Reports the remaining range and the approximate remaining time.
    fn announce(&self) {
        let found = self.search.found();
        let Some(SearchProgress { after, upto, posterior, likely, bits }) = found.progress else { return };
        let mut likeliest: Vec<(usize, f64)> = posterior.iter().copied().enumerate().collect();
        likeliest.sort_by(|x, y| y.1.total_cmp(&x.1));
        let shown: Vec<String> = (likeliest.iter().take(3))
            .map(|(at, p)| format!("{} {}", self.name(after + at + 1), report::percent(*p)))
            .collect();
        // The neighbors of the culprit and the ranges before and after it must also be compared, hence 3
        // more.
        let probes = bits.ceil() + 3.0;
        let each = self.seconds() / found.probes.len().max(1) as f64;
        let wait = Duration::from_secs_f64((each * probes).clamp(0.0, 1e9));
        self.terminal.note(&format!(
            "bisecting {}..{}: the change is in {}..{} with 95 % probability, most likely {}; about {probes} \
            more comparisons ({})",
            self.name(after + 1),
            self.name(upto),
            self.name(likely.0 + 1),
            self.name(likely.1),
            shown.join(", "),
            report::duration(wait)
        ));
    }

    /// Leaves a candidate out of the search. Fails for an end, which can't be left out.
    fn skip(&mut self, at: usize, why: String) -> Result<(), CliError> {
        if self.is_end(at) {
            let end = if at == 0 { "good" } else { "bad" };
            return Err(CliError::failed(format!(
                "failed to measure the {end} end {}: {why}",
                self.name(at)
            ))
            .hint(format!(
                "choose another {end} end{}",
                if at == 0 { "" } else { ", or find the first failure with --observe failure" }
            )));
        }
        self.terminal.warn(&format!("skipping {}: {why}", self.name(at)));
        self.search.skip(at, why.clone());
        self.skipped.insert(at, why);
        self.journal.skip(&self.skipped)
    }

    /// The candidate as a side with verified tools; `None` if it had to be skipped.
    fn side(&mut self, at: usize, name: SideName) -> Result<Option<SideInput>, CliError> {
        let side = self.candidates.side(at, name, self.terminal);
        let side = side.and_then(|side| {
            if !self.verified.contains(&at) {
                self.candidates.tools(&side, self.terminal)?;
            }
            Ok(side)
        });
        match side {
            Ok(mut side) => {
                self.verified.insert(at);
                for (flag, other) in self.renamed.get(&at).into_iter().flatten() {
                    candidates::rename(&mut side, flag, other);
                }
                Ok(Some(side))
            }
            Err(Unusable::Skipped(why)) => self.skip(at, why).map(|()| None),
            Err(Unusable::Stop(error)) => Err(error),
        }
    }

    /// Measures a pair until it has as many blocks as the search requests.
    fn measure(&mut self, pair: Pair, blocks: u32) -> Result<(), CliError> {
        let (Some(mut base), Some(mut head)) =
            (self.side(pair.base, SideName::Base)?, self.side(pair.head, SideName::Head)?)
        else {
            return Ok(());
        };
        let more = blocks.saturating_sub(self.search.blocks(pair)).max(1);
        for side in [&mut base, &mut head] {
            side.config.policy = self.options.policy.clone();
            side.config.policy.sequential = SequentialPolicy { min_blocks: more, max_blocks: more };
        }
        self.terminal.note(&format!(
            "comparing {} with {}: {}",
            self.name(pair.head),
            self.name(pair.base),
            counted(more as usize, "block")
        ));
        self.visit(pair, &mut [base, head])
    }

    /// Measures the candidate of a pair whose exact value isn't known yet.
    fn value(&mut self, pair: Pair) -> Result<(), CliError> {
        let unknown = [pair.base, pair.head]
            .into_iter()
            .find(|at| !self.visits.iter().any(|visit| visit.pair == Pair { base: *at, head: *at }));
        let Some(at) = unknown else {
            // Both values are known, but the pair has not been compared.
            return self.compare_values(pair);
        };
        let Some(mut side) = self.side(at, SideName::Head)? else { return Ok(()) };
        // One short process is enough, because the observed value doesn't vary.
        let measure = &mut side.config.measure;
        (measure.processes, measure.repetitions) = (1, Some(1));
        self.terminal.note(&format!("looking at {}", self.name(at)));
        self.visit(Pair { base: at, head: at }, &mut [side])?;
        if self.skipped.contains_key(&at) { Ok(()) } else { self.compare_values(pair) }
    }

    fn compare_values(&mut self, pair: Pair) -> Result<(), CliError> {
        let name = self.benchmark.clone().unwrap_or_default();
        let value = |at: usize| {
            let visit = self.visits.iter().find(|visit| visit.pair == Pair { base: at, head: at })?;
            let benchmark = self.searched(&visit.head, &name)?;
            self.args.observe.value(benchmark).ok()
        };
        if let (Some(base), Some(head)) = (value(pair.base), value(pair.head)) {
            self.search.observe(pair, self.args.observe.compare(base, head, &self.options));
        }
        Ok(())
    }

    /// Measures the sides, and adds the result to the search.
    fn visit(&mut self, pair: Pair, sides: &mut [SideInput]) -> Result<(), CliError> {
        let mut measure = self.args.measure.clone();
        if let Some(name) = &self.benchmark {
            measure.filter = vec![only(self.candidates.config.declared_name(name))?];
        }
        for side in sides.iter_mut() {
            // The time budget applies to the whole search, not to a single measurement.
            side.config.measure.time_budget = None;
        }
        let output = self.journal.next(pair);
        match measure.measure(sides, &output, None, &BackendArgs::default(), self.terminal) {
            Ok(_) => {}
            // A usage error means that the filter selected nothing, because the candidate lacks the
            // benchmark.
            Err(error) => match self.inner(pair).filter(|_| error.kind() == ErrorKind::Usage) {
                Some(at) => return self.skip(at, error.to_string()),
                None => return Err(error),
            },
        }
        let visit = self.journal.read(pair)?;
        if self.rename_flags(&visit)? {
            return Ok(());
        }
        self.learn(visit)
    }

    /// The benchmark of this name in a run. If its command was not started, the run has an entry for the
    /// command instead of the benchmarks that it prints.
    fn searched<'r>(&self, run: &'r Run, name: &str) -> Option<&'r Benchmark> {
        let named = |name: &str| run.benchmarks.iter().find(|benchmark| benchmark.name.as_str() == name);
        named(name).or_else(|| named(self.candidates.config.declared_name(name)))
    }

    /// The candidate of a pair that is not an end. Only such a candidate can be left out.
    fn inner(&self, pair: Pair) -> Option<usize> {
        [pair.head, pair.base].into_iter().find(|at| !self.is_end(*at))
    }

    /// Looks up other names for flags that a candidate's compiler doesn't know. Returns true if it found any,
    /// which means that the pair must be measured again.
    fn rename_flags(&mut self, visit: &Visit) -> Result<bool, CliError> {
        let mut again = false;
        for (at, run) in [(visit.pair.base, &visit.base), (visit.pair.head, &visit.head)] {
            let failures = run.benchmarks.iter().filter_map(|benchmark| match &benchmark.outcome {
                Outcome::Failed { stage: Stage::Compile, why } => candidates::unknown(why),
                _ => None,
            });
            for flag in failures.collect::<BTreeSet<String>>() {
                let Some(other) = candidates::other_name(&self.candidates.config.aliases, &flag) else {
                    let name = self.name(at).to_owned();
                    self.terminal.warn(&format!(
                        "{name} does not know the flag {flag}; if the flag has another name there, add that name to [aliases] in {}: \
                         \"{flag}\" = \"--its-other-name\"",
                        self.candidates.config.file.display()
                    ));
                    continue;
                };
                let pair = (flag.clone(), other.to_owned());
                let known = self.renamed.entry(at).or_default();
                if !known.contains(&pair) {
                    known.push(pair);
                    again = true;
                }
            }
        }
        Ok(again)
    }

    /// Evaluates a visit: skips candidates that failed, finds identical programs, and passes the pair's
    /// result to the search.
    fn learn(&mut self, visit: Visit) -> Result<(), CliError> {
        let pair = visit.pair;
        if pair == (Pair { base: 0, head: self.last() }) && self.benchmark.is_none() {
            self.choose(&visit.base, &visit.head);
        }
        let exact = self.args.observe.is_exact();
        if exact && self.benchmark.is_none() {
            self.benchmark = visit.head.benchmarks.first().map(|benchmark| benchmark.name.to_string());
        }
        let Some(name) = self.benchmark.clone() else {
            return Err(CliError::failed("failed to compare the ends: no benchmark has a result on both")
                .hint("--filter is matched against model/target/function"));
        };
        let mut usable = true;
        let sides = [(pair.base, &visit.base), (pair.head, &visit.head)];
        for (at, run) in sides.into_iter().skip(usize::from(exact)) {
            let found = self.searched(run, &name);
            let problem = match found {
                None => Some(format!("the candidate has no benchmark {name}")),
                Some(benchmark) if exact => self.args.observe.value(benchmark).err(),
                Some(benchmark) => problem(benchmark),
            };
            if let Some(why) = problem {
                usable = false;
                self.skip(at, why)?;
            }
            if let Some(artifact) = found.and_then(|benchmark| benchmark.artifact.as_ref()).filter(|_| !exact)
            {
                match self.artifacts.iter().find(|(known, _)| known == artifact) {
                    Some((_, same)) => self.search.same(at, *same),
                    None => self.artifacts.push((artifact.clone(), at)),
                }
            }
        }
        if usable {
            self.visits.push(visit);
            if !exact {
                return self.observe(pair);
            }
        }
        Ok(())
    }

    /// Passes the combined result of all visits to a pair to the search. If the pair can't be judged, one of
    /// its candidates is left out.
    fn observe(&mut self, pair: Pair) -> Result<(), CliError> {
        if self.search.program(pair.base) == self.search.program(pair.head) {
            // Differences between runs of the same program only show the state of the machine.
            return Ok(());
        }
        match self.observed(pair) {
            None => {}
            Some(Ok(observed)) => self.search.observe(pair, observed),
            Some(Err(Lint { code, detail })) => {
                let why = format!("the measurements can't be used: {code}: {detail}");
                let Some(at) = self.inner(pair) else {
                    return Err(CliError::failed(format!("failed to compare the ends: {why}")));
                };
                self.skip(at, why)?;
            }
        }
        Ok(())
    }

    /// The combined result of all visits to the programs of a pair.
    fn observed(&self, pair: Pair) -> Option<Result<Observed, Lint>> {
        let programs = |pair: Pair| (self.search.program(pair.base), self.search.program(pair.head));
        let visits: Vec<&Visit> =
            self.visits.iter().filter(|visit| programs(visit.pair) == programs(pair)).collect();
        let name = self.benchmark.as_ref().filter(|_| !visits.is_empty())?;
        let (base, head) = joined(&visits, name);
        Some(Observed::paired(&base, &head, &self.options.metric, &self.options.policy))
    }

    /// Chooses, among the filtered benchmarks, the one that most clearly got worse.
    fn choose(&mut self, base: &Run, head: &Run) {
        let comparison = compare(base, head, &self.options.policy, &CompareOptions::default());
        let metric = &self.options.metric;
        let mut rows: Vec<_> =
            comparison.rows.iter().filter(|row| row.metric.as_ref() == Some(metric)).collect();
        let p = |row: &crate::gate::Row| {
            row.estimate.as_ref().and_then(|estimate| estimate.p_worse).unwrap_or(1.0)
        };
        rows.sort_by(|x, y| p(x).total_cmp(&p(y)));
        let chosen = rows.first().map(|row| row.benchmark.to_string());
        // If no benchmark has a row, the failure of the first one is reported.
        self.benchmark =
            chosen.or_else(|| head.benchmarks.first().map(|benchmark| benchmark.name.to_string()));
        let others: Vec<String> = (rows.iter().skip(1))
            .filter(|row| row.verdict == Verdict::Regressed)
            .map(|row| row.benchmark.to_string())
            .collect();
        if !others.is_empty() {
            self.notes.push(format!(
                "these benchmarks are worse at the bad end too; bisect them with --filter: {}",
                others.join(", ")
            ));
        }
    }
}

/// The reason why a benchmark's times can't be used, if there is one.
fn problem(benchmark: &Benchmark) -> Option<String> {
    match &benchmark.outcome {
        Outcome::Ok => None,
        Outcome::Failed { stage, why } => Some(format!("{stage}: {why}")),
        Outcome::Unsupported { reason } | Outcome::Skipped { reason } => Some(reason.clone()),
    }
}

/// A filter that selects exactly one benchmark.
pub fn only(name: &str) -> Result<Regex, CliError> {
    Regex::new(&format!("^{}$", regex::escape(name)))
        .map_err(|error| CliError::internal(format!("failed to select {name}: {error}")))
}

/// The identity of a search: its candidates, the observed value and the settings.
fn identity(args: &BisectArgs, candidates: &Candidates) -> Result<Vec<String>, CliError> {
    let mut identity: Vec<String> = candidates.list.iter().map(|candidate| candidate.id.clone()).collect();
    let config = &candidates.config;
    identity.push(format!("observe {}", args.observe.name()));
    identity.extend(candidates.builds().map(|folder| format!("builds {}", folder.display())));
    identity.extend(args.measure.filter.iter().map(|filter| format!("filter {filter}")));
    // Changing the suite starts another search. Commits have their own configuration, but measurement
    // settings and policy come from this one.
    let suite = (&config.head.flags, &config.models, &config.targets);
    // The time budget and the number of parallel compilations don't affect the measured values.
    let measure = crate::config::Measure { time_budget: None, jobs: None, ..config.measure.clone() };
    let policy = (&config.policy.metrics, &config.policy.overrides);
    let stored = serde_json::to_string(&(suite, measure, policy));
    identity.push(stored.map_err(|error| CliError::failed(format!("failed to name the search: {error}")))?);
    identity.extend(config.commands.iter().map(|command| format!("{command:?}")));
    Ok(identity)
}
