//! Checks that a result was measured by the reported run: its commits, times, tools, base benchmarks and
//! schedule must agree with trusted sources.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::config::{Config, Pin};
use crate::gate::{CompareOptions, Comparison, Expected, Policy, compare_untrusted};
use crate::github::{GitHubEvent, Job, WorkflowRun};
use crate::model::{
    BenchmarkName, Divergence, OutputCheck, RENAMED_FROM, SideName, VerifyCode, counted, excerpt, is_hex,
    is_of_command,
};
use crate::numerics::TensorFile;
use crate::pipeline;
use crate::record::{BenchmarkRecord, RunFile, SideRecord};

use super::{CliError, inputs};

/// The allowed clock error of the machine that measured.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_secs(60);

/// The highest plausible block number. benchgate never measures more blocks.
const MOST_BLOCKS: u32 = 10_000;

/// The commits that a result may be about.
#[derive(Debug, Default)]
pub struct Commits {
    /// The allowed head commits; empty if unknown.
    pub head: Vec<String>,
    pub base: Vec<String>,
}

impl Commits {
    /// The commits that the event itself names. A workflow_run event names neither the measured merge nor its
    /// base, so those are requested from GitHub.
    pub fn from_job(job: &Job) -> Self {
        let known = |sha: &crate::github::Sha| sha.as_str().to_owned();
        let own = || vec![known(&job.commit)];
        let (head, base) = match &job.event {
            GitHubEvent::PullRequest(pull) | GitHubEvent::PullRequestTarget(pull) => {
                (vec![known(&pull.head), known(&job.commit)], Vec::new())
            }
            GitHubEvent::MergeGroup { head, base, .. } => (vec![known(head)], vec![known(base)]),
            GitHubEvent::Push { before } => (own(), before.iter().map(known).collect()),
            GitHubEvent::Schedule | GitHubEvent::WorkflowDispatch | GitHubEvent::Other(_) => {
                (own(), Vec::new())
            }
            GitHubEvent::WorkflowRun(_) => (Vec::new(), Vec::new()),
        };
        Self { head, base }
    }
}

/// Facts that are known from trusted sources.
#[derive(Debug)]
pub struct TrustedInputs<'a> {
    /// The configuration of the default branch.
    pub config: &'a Config,
    pub policy: &'a Policy,
    pub commits: &'a Commits,
    /// The run that measured, if the event is workflow_run.
    pub reported: Option<&'a WorkflowRun>,
    /// The current date as `YYYY-MM-DD`.
    pub today: String,
}

/// Judges a complete result that untrusted code could have written. Does no IO.
///
/// # Errors
/// A result of another suite or with only one side, or one that contradicts the trusted facts.
pub fn judge(file: RunFile, label: &str, known: &TrustedInputs<'_>) -> Result<Comparison, CliError> {
    let TrustedInputs { config, policy, commits, reported, today } = known;
    if file.suite != config.suite {
        let (found, here) = (&file.suite, config.file.display());
        return Err(CliError::input(format!(
            "{label} is a result of the suite {found:?}, but {here} describes {:?}",
            config.suite
        )));
    }
    if let Some(command) = config.commands.iter().find(|command| command.benchmarks().is_none()) {
        return Err(refused(format!(
            "the base's configuration does not say which benchmarks the [[command]] {:?} prints, so one could be left out",
            command.name
        ))
        .hint("add `rows` or `format = \"whole\"` to the command, and merge this change first"));
    }
    let expected = renamed(pipeline::expected(config), &file)?;
    check(&file, config, &expected, commits, *reported)?;
    let (base, head) = inputs::both_sides(file, label)?;
    let options = CompareOptions { today: today.clone(), whole_suite: true, ..CompareOptions::default() };
    Ok(compare_untrusted(&base, &head, &expected, policy, &options))
}

/// Describes the settings of head's commands that differ from base's: arguments and variables can reduce the
/// work. The text is bounded, because a hostile result must not fill the comment.
pub fn command_changes(file: &RunFile) -> Option<String> {
    /// Maximum number of changes.
    const MOST: usize = 10;
    let short = |text: &str| excerpt(text, 200);
    let [of_base, of_head] =
        SideName::BOTH.map(|name| file.side(name).map_or(&[][..], |side| &side.commands));
    let mut changes = Vec::new();
    for head in of_head {
        let Some(base) = of_base.iter().find(|base| base.name == head.name) else { continue };
        let keys: BTreeSet<&String> = base.configured.keys().chain(head.configured.keys()).collect();
        for key in keys {
            let values = [base, head].map(|side| side.configured.get(key));
            if values[0] != values[1] {
                let [old, new] = values.map(|value| value.map_or("none".to_owned(), |text| short(text)));
                changes.push(format!("[[command]] {} {}: {old} → {new}", short(&head.name), short(key)));
            }
        }
    }
    let more = changes.len().saturating_sub(MOST);
    changes.truncate(MOST);
    changes.extend((more > 0).then(|| format!("{more} more")));
    (!changes.is_empty()).then(|| format!("this change sets: {}", changes.join("; ")))
}

/// The benchmarks that the base's configuration declares, under the names that the head gives them. Only a model of the base
/// can be renamed, only once, only to a name that the base does not have, and only if head no longer has the old name.
/// Otherwise a benchmark could choose which policy judges it, or replace the one that got slower.
fn renamed(mut expected: Vec<Expected>, file: &RunFile) -> Result<Vec<Expected>, CliError> {
    let known: BTreeSet<BenchmarkName> = expected.iter().map(|one| one.benchmark.clone()).collect();
    for record in file.side(SideName::Base).into_iter().flat_map(|base| &base.benchmarks) {
        let Some(from) = record.labels.get(RENAMED_FROM).map(BenchmarkName::new) else { continue };
        let name = BenchmarkName::new(&record.name);
        let of_head = file.side(SideName::Head).into_iter().flat_map(|head| &head.benchmarks);
        let is_gone = !of_head.into_iter().any(|head| head.name == from.as_str());
        let one = expected.iter_mut().find(|one| one.benchmark == from && one.printed.is_none());
        let one = one.filter(|_| is_gone && !known.contains(&name));
        let Some(one) = one else {
            return Err(refused(format!(
                "it says that {name} was renamed from {from}, which the base's configuration contradicts"
            )));
        };
        one.benchmark = name;
    }
    Ok(expected)
}

/// Rejects a result that contradicts the trusted facts.
fn check(
    file: &RunFile,
    config: &Config,
    expected: &[Expected],
    commits: &Commits,
    reported: Option<&WorkflowRun>,
) -> Result<(), CliError> {
    if let Some(reported) = reported {
        measured_by(file, reported)?;
    }
    for (side, known) in [(SideName::Base, &commits.base), (SideName::Head, &commits.head)] {
        same_commit(file.side(side), side, known)?;
    }
    if let Some(head) = file.side(SideName::Head).filter(|head| head.dirty == Some(true)) {
        return Err(edited(head.commit.as_deref()));
    }
    if let Some(base) = file.side(SideName::Base) {
        pinned_tools(base, config)?;
        declared(base, expected)?;
    }
    for side in &file.sides {
        identified_tools(side)?;
        for benchmark in &side.benchmarks {
            let expected = expected.iter().find(|expected| expected.benchmark.as_str() == benchmark.name);
            expected.map_or(Ok(()), |expected| agrees(side.name, benchmark, expected, config))?;
        }
    }
    one_bound(file)?;
    if let Some(seed) = config.measure.seed.filter(|seed| *seed != file.seed) {
        return Err(refused(format!("its seed is {}, but the base's configuration sets {seed}", file.seed)));
    }
    on_schedule(file)
}

fn refused(what: String) -> CliError {
    CliError::failed(format!("failed to accept the result: {what}"))
        .hint("run the measuring workflow again; its log and docs/security.md say more")
}

/// The error for a head that was measured with changes that its commit, which gets the verdict, does not contain.
pub fn edited(commit: Option<&str>) -> CliError {
    CliError::failed(format!(
        "failed to accept the result: tracked files of head differed from {} when it was measured",
        commit.map_or_else(|| "its commit".to_owned(), |commit| format!("commit {commit}"))
    ))
    .hint(
        "`git status` before benchgate in the measuring job lists them: a step patches, formats or generates these files, or a \
        submodule is out of date; commit the change, or undo it before measuring (`git restore .`)",
    )
}

/// Rejects a result that was measured outside the reported run's time, since it belongs to another run.
fn measured_by(file: &RunFile, reported: &WorkflowRun) -> Result<(), CliError> {
    let time = |text: &str| text.parse::<Timestamp>().ok();
    // With several machines, a later attempt only repeats the failed shards, so the first attempt's start
    // counts.
    let started = if file.shards.is_empty() { &reported.started } else { &reported.created };
    let (Some(start), Some(end)) =
        (started.as_deref().and_then(time), reported.updated.as_deref().and_then(time))
    else {
        return Err(refused("the event does not state when the reported run started and ended".to_owned()));
    };
    let (Ok(earliest), Ok(latest)) = (start.checked_sub(CLOCK_SKEW), end.checked_add(CLOCK_SKEW)) else {
        return Err(refused("the event's times are out of range".to_owned()));
    };
    let processes = file.sides.iter().flat_map(|side| &side.benchmarks).flat_map(|row| &row.processes);
    let times = std::iter::once(&file.created).chain(processes.map(|process| &process.started));
    for text in times {
        if !time(text).is_some_and(|at| earliest <= at && at <= latest) {
            return Err(refused(format!(
                "it was measured at {text}, but the reported run lasted from {start} to {end}"
            )));
        }
    }
    Ok(())
}

fn same_commit(side: Option<&SideRecord>, name: SideName, known: &[String]) -> Result<(), CliError> {
    let Some(side) = side.filter(|_| !known.is_empty()) else { return Ok(()) };
    match &side.commit {
        Some(commit) if known.contains(commit) && side.dirty != Some(false) => Err(refused(format!(
            "it does not state that its {name} was measured without changes to commit {commit}"
        ))),
        Some(commit) if known.contains(commit) => Ok(()),
        Some(commit) => {
            Err(refused(format!("its {name} is {commit}, but the event is about {}", known.join(" or "))))
        }
        None => Err(refused(format!("it does not name the commit of its {name}"))),
    }
}

/// Checks that the base was measured with the tools that its configuration pins.
fn pinned_tools(base: &SideRecord, config: &Config) -> Result<(), CliError> {
    let pins = || [Some(&config.head), config.base.as_ref()].into_iter().flatten().map(|side| &side.pin);
    let is = |pin: &Pin| {
        base.toolchain.as_ref().is_some_and(|tools| {
            tools.version == pin.version
                && [&tools.compiler_commit, &tools.runtime_commit] == [&pin.commit; 2]
        })
    };
    if pins().any(is) || (config.models.is_empty() && base.toolchain.is_none()) {
        return Ok(());
    }
    let found = base.toolchain.as_ref().map_or_else(
        || "without tools".to_owned(),
        |tools| format!("with tools {} ({}, {})", tools.version, tools.compiler_commit, tools.runtime_commit),
    );
    let pin = &config.head.pin;
    Err(refused(format!("its base was measured {found}, but the base pins {} ({})", pin.version, pin.commit)))
}

/// Checks that a side's tools have a version and that compiler and runtime have the same commit. benchgate
/// requires this of tools before it measures.
fn identified_tools(side: &SideRecord) -> Result<(), CliError> {
    let name = side.name;
    let Some(tools) = &side.toolchain else {
        let missing = side.has_models();
        return if missing {
            Err(refused(format!("it does not name the tools of its {name}")))
        } else {
            Ok(())
        };
    };
    let is_commit = tools.compiler_commit.len() == 40 && is_hex(&tools.compiler_commit);
    if !is_commit || tools.runtime_commit != tools.compiler_commit || tools.version.trim().is_empty() {
        return Err(refused(format!(
            "the tools of its {name} are not from a single commit: {} ({}, {})",
            tools.version, tools.compiler_commit, tools.runtime_commit
        )));
    }
    Ok(())
}

/// Checks that a benchmark of the base's configuration was measured on the right device and in a plausible
/// time, and that its outputs were checked with the bounds of the base's policy.
fn agrees(
    side: SideName,
    record: &BenchmarkRecord,
    expected: &Expected,
    config: &Config,
) -> Result<(), CliError> {
    let wrong = |what: String| Err(refused(format!("{:?} on {side} {what}", record.name)));
    let workload = record.artifact.as_ref().and_then(|artifact| artifact.workload.as_ref());
    if let Some((workload, device)) = workload.zip(expected.device.as_ref())
        && workload.device != *device
    {
        let found = &workload.device;
        return wrong(format!("was measured on {found:?}, but the base's configuration says {device:?}"));
    }
    if record.processes.iter().any(|process| process.seconds.0 <= 0.0) {
        return wrong("has a process that took no time".to_owned());
    }
    let passed = record.verification.as_ref().filter(|found| found.code == VerifyCode::Pass);
    let command = config.commands.iter().find(|it| is_of_command(expected.judged_as.as_str(), &it.name));
    if let Some((command, found)) = command.zip(passed).filter(|_| side == SideName::Head) {
        let checked: BTreeSet<usize> = found.outputs.iter().map(|check| check.index).collect();
        let wanted = command.outputs.len();
        if wanted > 0 && (found.outputs.len() != wanted || !checked.into_iter().eq(0..wanted)) {
            return wrong(format!(
                "passed without a comparison of each of its {}",
                counted(wanted, "output")
            ));
        }
    }
    let bounds = config.numerics.for_benchmark(&expected.judged_as);
    let types = declared_types(&expected.judged_as, config);
    let is_allowed = |check: &OutputCheck, found: &Divergence| {
        let declared = types.get(check.index).and_then(Option::as_ref);
        let mut bounds =
            bounds.iter().filter(|bound| declared.is_none_or(|declared| bound.dtype == *declared));
        match found.allowed_error {
            Some(allowed) => bounds.any(|bound| bound.max_error == allowed),
            // Integers have no bound for the whole output, and no error is accepted unless the policy allows
            // some.
            None => bounds.any(|bound| {
                let allows = [bound.atol, bound.rtol, bound.stol].iter().any(|it| *it > 0.0);
                bound.max_error == f64::MAX && (allows || found.error.is_none_or(|error| error == 0.0))
            }),
        }
    };
    let unknown = checks(record).find_map(|check| {
        check.divergence.filter(|found| check.code == VerifyCode::Pass && !is_allowed(check, found))
    });
    unknown.map_or(Ok(()), |found| {
        let allowed =
            found.allowed_error.map_or("any error".to_owned(), |allowed| format!("an error of {allowed:e}"));
        wrong(format!("was allowed {allowed}, which is not a bound of the base's policy"))
    })
}

/// All comparisons of a benchmark's outputs.
fn checks(record: &BenchmarkRecord) -> impl Iterator<Item = &OutputCheck> {
    record.verification.iter().flat_map(|found| found.outputs.iter().chain(&found.against_base))
}

/// The element types of a benchmark's expected outputs, as far as the configuration names them. A `.npy` file
/// contains its type itself.
fn declared_types(benchmark: &BenchmarkName, config: &Config) -> Vec<Option<String>> {
    let stated = |file: &TensorFile| file.dtype().map(|dtype| dtype.to_string());
    let named = |name: &str| is_of_command(benchmark.as_str(), name);
    if let Some(model) = config.models.iter().find(|model| named(&model.name)) {
        return model.expected.iter().map(stated).collect();
    }
    let command = config.commands.iter().find(|command| named(&command.name));
    let outputs = command.into_iter().flat_map(|command| &command.outputs);
    outputs.map(|output| TensorFile::parse(output).as_ref().and_then(stated)).collect()
}

/// Checks that each output was always compared with the same bound. An output has one element type and
/// therefore one bound on both sides; the bound of a coarser type would accept a larger error. (If the head
/// has changed the type, the comparison with the base has already failed.)
fn one_bound(file: &RunFile) -> Result<(), CliError> {
    let mut benchmarks: BTreeMap<&str, Vec<&OutputCheck>> = BTreeMap::new();
    for record in file.sides.iter().flat_map(|side| &side.benchmarks) {
        benchmarks.entry(&record.name).or_default().extend(checks(record));
    }
    benchmarks.retain(|_, checks| checks.iter().all(|check| check.code == VerifyCode::Pass));
    for (name, checks) in benchmarks {
        let mut bounds: BTreeMap<usize, Option<f64>> = BTreeMap::new();
        for (index, found) in checks.iter().filter_map(|check| Some((check.index, check.divergence?))) {
            if *bounds.entry(index).or_insert(found.allowed_error) != found.allowed_error {
                return Err(refused(format!(
                    "output {index} of {name:?} was judged with the tolerances of two element types"
                )));
            }
        }
    }
    Ok(())
}

/// Checks that the base's benchmarks are declared in its configuration, in the same order. A missing one
/// becomes a row of the comparison.
fn declared(base: &SideRecord, expected: &[Expected]) -> Result<(), CliError> {
    let mut names = expected.iter().map(|expected| expected.benchmark.as_str());
    for benchmark in &base.benchmarks {
        if !names.any(|name| name == benchmark.name) {
            return Err(refused(format!(
                "its base has the benchmark {:?}, which the base's configuration does not declare there",
                benchmark.name
            )));
        }
    }
    Ok(())
}

/// Checks that each process ran on the side to which the schedule assigned its slot. If the sides were
/// exchanged, a regression would look like an improvement.
fn on_schedule(file: &RunFile) -> Result<(), CliError> {
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    // The pipeline counts the head's benchmarks first, then those that only the base has. A command counts as
    // one benchmark.
    for name in [SideName::Head, SideName::Base] {
        for benchmark in file.side(name).into_iter().flat_map(|side| &side.benchmarks) {
            let next = names.len();
            names.entry(file.declared_name(&benchmark.name)).or_insert(next);
        }
    }
    let measured = |side: &SideName, name: &str| {
        let mut benchmarks = file.side(*side).into_iter().flat_map(|side| &side.benchmarks);
        benchmarks.any(|benchmark| benchmark.name == name && !benchmark.processes.is_empty())
    };
    let mut drawn: BTreeMap<u32, Vec<[SideName; 4]>> = BTreeMap::new();
    for side in &file.sides {
        for benchmark in &side.benchmarks {
            let at = names.get(file.declared_name(&benchmark.name)).copied().unwrap_or_default();
            let unscheduled = benchmark.processes.iter().any(|process| process.slot.is_none());
            if unscheduled && SideName::BOTH.iter().all(|side| measured(side, &benchmark.name)) {
                return Err(refused(format!(
                    "processes of {:?} have no block and slot, so missing processes would not be noticed",
                    benchmark.name
                )));
            }
            for slot in benchmark.processes.iter().filter_map(|process| process.slot) {
                if slot.block >= MOST_BLOCKS {
                    return Err(refused(format!("block {} is not one that benchgate measures", slot.block)));
                }
                let round = drawn
                    .entry(slot.block)
                    .or_insert_with(|| pipeline::sides_of_round(names.len(), slot.block, file.seed));
                let expected = round.get(at).and_then(|sides| sides.get(usize::from(slot.slot)));
                if expected != Some(&side.name) {
                    return Err(refused(format!(
                        "block {} of {:?} is not in the order that the seed gives: the sides were exchanged",
                        slot.block, benchmark.name
                    )));
                }
            }
        }
    }
    Ok(())
}
