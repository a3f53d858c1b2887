//! Adds a session to a baseline, and copies a baseline from one place to another.

use std::collections::{BTreeMap, BTreeSet};

use benchgate_core::model::{MetricKind, MetricSeries, Run, Series, SideName, Summary};
use benchgate_core::record::{
    BaselineBenchmark, BaselineFile, Number, QuarantineCause, QuarantineRecord, RunFile,
};
use benchgate_gate::{self, CompareOptions, Comparison, Policy};

use super::select::{History, Missing, Selection, history_for_gate};
use super::{
    BaselineFolder, Change, Fault, Files, HistoryQuery, RunName, StoreError, Stored, baseline_folders,
    quarantine, summarise,
};

/// Number of names to try for one run. If two sessions have the same second, the second name contains a hash;
/// a third is needed only if another process interferes.
const TRIES: usize = 3;

/// Tolerated difference between the clocks of two machines. A session in the future would remain the newest
/// one, and would hide that measuring has stopped.
const CLOCK_SKEW: jiff::SignedDuration = jiff::SignedDuration::from_mins(10);

/// Options for storing a run.
pub struct UpdateOptions<'a> {
    /// The maximum number of stored sessions to compare the run with.
    pub sessions: usize,
    pub side: SideName,
    /// The policy for comparing the run with the stored sessions.
    pub policy: &'a Policy,
    pub options: CompareOptions,
    /// Tells how a stored commit is related to the run's commit.
    pub lineage: &'a dyn Fn(&str) -> super::Lineage,
    pub now: jiff::Timestamp,
}

/// The result of storing a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Updated {
    /// Path of the file in the baseline.
    pub path: String,
    /// The reasons why the run, or benchmarks of it, are quarantined; empty if there is no
    /// quarantine.
    pub quarantine: Vec<QuarantineRecord>,
    /// True if the run was stored before, so that nothing was written.
    pub already: bool,
    /// The comparison with the stored sessions, if there were any.
    pub comparison: Option<Comparison>,
    /// Benchmarks that have regressed since earlier sessions, with the first of them; `None` stands for all of them
    /// together.
    pub red_since: BTreeMap<Option<String>, RunName>,
    /// Baseline files that can't be used.
    pub faults: Vec<Fault>,
    /// The reasons why stored sessions were left out, if none could be compared with.
    pub notes: Vec<String>,
}

/// Stores a side of a run. Storing the same run again changes nothing.
///
/// # Errors
/// The run has no suite, testbed or valid time, this shallow clone does not reach the commits of stored sessions, or the
/// baseline can't be read or written.
pub fn update(
    files: &mut dyn Files,
    run: &RunFile,
    writing: &UpdateOptions<'_>,
) -> Result<Updated, StoreError> {
    let side = writing.side;
    let unusable = |what: &str| StoreError::Unusable(what.to_owned());
    let head = judged_side(run, side, "run.json", writing.policy);
    let head = head.ok_or_else(|| StoreError::Unusable(format!("it has no side {side}")))?;
    let testbed = run.testbed.clone();
    if testbed.id.is_empty() {
        return Err(unusable("its testbed has no fingerprint, so nothing could be compared with it"));
    }
    if let Some(shard) = &run.shard {
        return Err(StoreError::Unusable(format!(
            "it is only shard {} of a suite (`benchgate merge` joins all shards)",
            shard.shard
        )));
    }
    if run.suite.is_empty() {
        return Err(unusable("its suite has no name"));
    }
    let record = run.side(side).ok_or_else(|| unusable("it has no such side"))?;
    let name = RunName::new(&run.created, record.commit.as_deref())
        .ok_or_else(|| unusable("its commit is not a valid commit"))?;
    let created: Option<jiff::Timestamp> = run.created.parse().ok();
    if created.is_some_and(|created| created.duration_since(writing.now) > CLOCK_SKEW) {
        return Err(unusable(&format!(
            "it was measured at {}, which is in the future; correct the clock of that machine",
            run.created
        )));
    }
    let baseline = BaselineFolder::open(files, &run.suite, &testbed.id)?;
    let query = HistoryQuery {
        suite: &run.suite,
        testbed: &testbed,
        sessions: writing.sessions,
        // Staleness does not matter here, because this session ends it.
        stale_days: u32::MAX,
        lineage: writing.lineage,
        now: writing.now,
    };
    if let Some((path, stored)) = find_stored(files, &baseline, run, &name)? {
        let again = summarise(run, side, head.anchor.as_ref(), Vec::new());
        let again = again.ok_or_else(|| unusable("it has no such side"))?;
        let quarantine = same_result(&path, stored, &again)?.quarantine;
        // An unreadable history only means that later commands start with this session.
        let red_since = match history_for_gate(files, &query) {
            Ok(Selection::Found(history)) => history.red,
            Ok(Selection::Missing(_)) | Err(_) => BTreeMap::new(),
        };
        return Ok(Updated {
            path,
            quarantine,
            already: true,
            comparison: None,
            red_since,
            faults: baseline.faults,
            notes: Vec::new(),
        });
    }
    let (comparison, red, still_red, unknown, faults, notes) = match history_for_gate(files, &query)? {
        // Nothing is stored, so that the run can be stored once the history is complete.
        Selection::Found(History { unknown, .. }) | Selection::Missing(Missing { unknown, .. })
            if unknown > 0 =>
        {
            return Err(StoreError::Shallow(unknown));
        }
        Selection::Found(history) => {
            let earlier = history.earlier.iter().flat_map(|sessions| &sessions.runs);
            let stored = history.runs.iter().chain(&history.slow).chain(&history.before).chain(earlier);
            let ours = summarise(run, side, None, Vec::new()).map(|file| file.run(""));
            if let Some(why) = ours.and_then(|ours| replayed(&ours, stored)) {
                return Err(StoreError::Unusable(why));
            }
            let sessions = history.sessions(true);
            let comparison =
                benchgate_gate::compare_with_history(&head, sessions, writing.policy, &writing.options);
            (Some(comparison), history.red, history.still_red, None, history.faults, Vec::new())
        }
        Selection::Missing(missing) => {
            let unknown = uncompared(&missing);
            (None, BTreeMap::new(), missing.still_red, unknown, missing.faults, missing.notes)
        }
    };
    let mut quarantine = quarantine::reasons(run, side, comparison.as_ref(), &red, &still_red);
    quarantine.extend(unknown);
    let file = summarise(run, side, head.anchor.as_ref(), quarantine)
        .ok_or_else(|| unusable("it has no such side"))?;
    let (path, already) = append(files, &baseline, &name, &file)?;
    let quarantine = file.quarantine;
    Ok(Updated { path, quarantine, already, comparison, red_since: red, faults, notes })
}

/// The reason to quarantine a run if stored sessions could not be compared with it, because they are
/// unreadable. These sessions could show that the run is slower.
fn uncompared(missing: &Missing) -> Option<QuarantineRecord> {
    let why = "the stored sessions can't be used (`benchgate baseline verify` lists them)";
    let reason = QuarantineRecord { cause: QuarantineCause::Undecided, why: why.to_owned(), benchmark: None };
    (!missing.faults.is_empty()).then_some(reason)
}

/// The file of this session, if it is already stored. Storing it again would count it twice.
fn find_stored(
    files: &dyn Files,
    baseline: &BaselineFolder,
    run: &RunFile,
    name: &RunName,
) -> Result<Option<(String, BaselineFile)>, StoreError> {
    for candidate in baseline.runs_like(files, name)? {
        if let Ok(stored) = baseline.load(files, &candidate)?
            && stored.file.session == run.session
        {
            return Ok(Some((baseline.run_path(&candidate), stored.file)));
        }
    }
    Ok(None)
}

/// Returns the stored file if it contains this result. Only measured values are compared, because another
/// version of benchgate may describe the same result differently.
fn same_result(path: &str, stored: BaselineFile, file: &BaselineFile) -> Result<BaselineFile, StoreError> {
    let is_same = stored.commit == file.commit
        && stored.benchmarks.len() == file.benchmarks.len()
        && file.benchmarks.iter().all(|one| {
            let other = stored.benchmarks.iter().find(|other| other.name == one.name);
            other.is_some_and(|other| is_same_measurement(one, other))
        });
    if is_same {
        return Ok(stored);
    }
    Err(StoreError::Unusable(format!("{path} is another result of the same session, {:?}", file.session)))
}

/// Returns whether the metrics that both files contain have the same values.
fn is_same_measurement(one: &BaselineBenchmark, other: &BaselineBenchmark) -> bool {
    let processes = |of: &BaselineBenchmark| -> BTreeMap<(usize, String), (u64, Number)> {
        let all = of.processes.iter().enumerate().flat_map(|(at, process)| {
            process.summaries.iter().map(move |(metric, it)| ((at, metric.clone()), (it.n, it.median)))
        });
        all.collect()
    };
    let values = |of: &BaselineBenchmark| -> BTreeMap<String, Number> {
        of.values.iter().map(|record| (record.metric.clone(), record.value)).collect()
    };
    one.outcome.status == other.outcome.status
        && one.processes.len() == other.processes.len()
        && agree(&processes(one), &processes(other))
        && agree(&values(one), &values(other))
}

fn agree<K: Ord, V: PartialEq>(one: &BTreeMap<K, V>, other: &BTreeMap<K, V>) -> bool {
    one.iter().all(|(key, value)| other.get(key).is_none_or(|known| known == value))
}

/// Writes a session under a free name. Returns its path, and whether it existed already.
pub(super) fn append(
    files: &mut dyn Files,
    baseline: &BaselineFolder,
    name: &RunName,
    file: &BaselineFile,
) -> Result<(String, bool), StoreError> {
    let bytes = baseline.encoding.write(file).map_err(|error| StoreError::Unusable(error.to_string()))?;
    let mut name = name.clone();
    let mut tries = 0;
    loop {
        let path = baseline.run_path(&name);
        let message = format!("baseline: {} on {}, {name}", file.suite, file.testbed.id);
        let change = Change { add: vec![(path.clone(), bytes.clone())], remove: Vec::new(), message };
        tries += 1;
        match files.apply(&change) {
            Ok(()) => return Ok((path, false)),
            Err(StoreError::Exists { .. }) if tries < TRIES => {
                // Another process stored this session, or the request was repeated because its
                // response was lost.
                if let Ok(stored) = baseline.load(files, &name)?
                    && stored.file.session == file.session
                {
                    same_result(&path, stored.file, file)?;
                    return Ok((path, true));
                }
                // Another session of the same second and commit exists; keep both.
                name = name.with_hash(&file.sha256);
            }
            Err(error) => return Err(error),
        }
    }
}

/// A side of a run for the gate, with its ratios to the reference toolchain if the reference was
/// measured. `None` if the run has no such side. `label` is the name of the file for messages.
pub fn judged_side(run: &RunFile, side: SideName, label: &str, policy: &Policy) -> Option<Run> {
    let (_, head) = run.runs(label).into_iter().find(|(name, _)| *name == side)?;
    Some(match run.anchor(label) {
        Some(anchor) => benchgate_gate::anchored(&anchor, head, policy),
        None => head,
    })
}

/// Number of different fractions that two sessions don't have in common by chance, in one order.
const ENOUGH_FRACTIONS: usize = 8;

/// Describes the benchmark of a session of which a stored session has exactly the values. Such a copy under another name
/// or commit is not a measurement: it would show that a change has no effect.
fn replayed<'a>(session: &Run, stored: impl IntoIterator<Item = &'a Run>) -> Option<String> {
    let measured = session.benchmarks.iter().flat_map(|benchmark| {
        let noisy = benchmark.metrics.iter().filter(|series| series.metric.kind == MetricKind::Noisy);
        noisy.map(move |series| (benchmark, series, values(series)))
    });
    let telling: Vec<_> = measured.filter(|(.., values)| is_telling(values)).collect();
    stored.into_iter().find_map(|stored| {
        let known = stored.by_name();
        let (benchmark, series, _) = telling.iter().find(|(benchmark, series, ours)| {
            let theirs = known.get(&benchmark.name).and_then(|known| known.metric(&series.metric.name));
            theirs.is_some_and(|theirs| values(theirs) == *ours)
        })?;
        Some(format!(
            "its values of {} ({}) are exactly those of {}, so one of the two was not measured",
            benchmark.name, series.metric.name, stored.origin.label
        ))
    })
}

/// Returns the bits of the values that a stored session keeps of each process.
fn values(series: &MetricSeries) -> Vec<u64> {
    let Series::Summaries(summaries) = &series.series else { return Vec::new() };
    let of_process = |it: &Summary| [it.median, it.q1, it.q3, it.stddev, it.min, it.max];
    summaries.iter().flat_map(of_process).flatten().map(f64::to_bits).collect()
}

/// Returns whether equal values are not chance: sizes and counts repeat, and so do the times of a coarse clock or a
/// simulator.
fn is_telling(values: &[u64]) -> bool {
    let fractions = values.iter().filter(|bits| f64::from_bits(**bits).fract() != 0.0);
    fractions.collect::<BTreeSet<_>>().len() >= ENOUGH_FRACTIONS
}

/// Numbers of copied files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExportedSessions {
    pub sessions: usize,
    pub acceptances: usize,
    /// Number of sessions and acceptances that existed already.
    pub already: usize,
    /// Files that can't be used, and are therefore not copied.
    pub faults: Vec<Fault>,
}

/// Number of sessions that are written together.
const AT_ONCE: usize = 64;

/// Copies every session and acceptance that `to` lacks, under the same names, for example from a branch to an object
/// store. The next call continues an interrupted copy.
pub fn export(from: &dyn Files, to: &mut dyn Files) -> Result<ExportedSessions, StoreError> {
    let mut exported = ExportedSessions::default();
    for (suite, testbed) in baseline_folders(from)? {
        let folder = format!("{suite}/{testbed}");
        let baseline = BaselineFolder::open_folder(from, folder.clone())?;
        let runs = baseline.runs(from)?;
        exported.faults.extend(baseline.faults.iter().chain(&runs.faults).cloned());
        let there = BaselineFolder::open_folder(to, folder)?;
        let known: BTreeSet<RunName> = there.runs(to)?.names.into_iter().collect();
        let (old, new): (Vec<RunName>, Vec<RunName>) =
            runs.names.into_iter().partition(|name| known.contains(name));
        exported.already += old.len();
        for batch in new.chunks(AT_ONCE) {
            let mut sessions = Vec::new();
            for loaded in baseline.load_all(from, batch) {
                match loaded? {
                    Ok(stored) => sessions.push(stored),
                    Err(fault) => exported.faults.push(fault),
                }
            }
            let (written, known) = copy(to, &there, &sessions)?;
            exported.sessions += written;
            exported.already += known;
        }
        // Acceptances are written after the sessions, because each names a session.
        for (file, acceptance) in &baseline.acceptances {
            let path = there.path(file);
            let message = format!("baseline: copy {path}");
            let add = vec![(path, there.encoding.write_acceptance(acceptance))];
            match to.apply(&Change { add, remove: Vec::new(), message }) {
                Ok(()) => exported.acceptances += 1,
                Err(StoreError::Exists { .. }) => exported.already += 1,
                Err(error) => return Err(error),
            }
        }
    }
    Ok(exported)
}

/// Writes sessions. Returns how many were written, and how many another process wrote at the same time.
fn copy(
    to: &mut dyn Files,
    there: &BaselineFolder,
    sessions: &[Stored],
) -> Result<(usize, usize), StoreError> {
    let mut add = Vec::new();
    for stored in sessions {
        let bytes = there.encoding.write(&stored.file);
        let bytes = bytes.map_err(|error| StoreError::Unusable(error.to_string()))?;
        add.push((there.run_path(&stored.name), bytes));
    }
    let message = format!(
        "baseline: copy {} of {}",
        benchgate_core::model::counted(sessions.len(), "session"),
        there.folder
    );
    match to.apply(&Change { add, remove: Vec::new(), message }) {
        Ok(()) => return Ok((sessions.len(), 0)),
        // Another process stored one of the sessions, so they are written one by one.
        Err(StoreError::Exists { .. }) => {}
        Err(error) => return Err(error),
    }
    let mut known = 0;
    for stored in sessions {
        let (_, already) = append(to, there, &stored.name, &stored.file)?;
        known += usize::from(already);
    }
    Ok((sessions.len() - known, known))
}
