//! Compares each command of head with base's after everything is measured: its outputs, the files that its lines
//! name, what one more process of each side reads, and what its processes leave for later ones.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::PipelineError;
use crate::candidates::PreparedSide;
use crate::host::Host;
use crate::journal::Journal;
use crate::trace::file_state;
use benchgate_core::model::{BenchmarkName, Event, Lint, LintCode, SideName, Stage, is_of_command};
use benchgate_core::record::RunFile;

use super::built_from::BuiltFrom;
use super::observed::{ObservedProcess, kept_state, moved_work, other_work, shown};
use super::outputs::{changed_sources, check_alone, compared};
use super::{CommandRows, PreparedCommand, fallback, leftovers, others_sources};

/// Runs one more process of each command that both sides have, and stores the findings with head's command.
pub(crate) async fn observe(
    host: &Host<'_>,
    sides: &[PreparedSide<'_>],
    journal: &Journal,
) -> Result<(), PipelineError> {
    let of = |name| sides.iter().find(|side| side.input.name == name);
    let (Some(base), Some(head)) = (of(SideName::Base), of(SideName::Head)) else { return Ok(()) };
    let pairs = head.commands.iter().filter_map(|command| {
        let name = &command.spec.name;
        let reference = base.commands.iter().find(|base| base.spec.name == *name)?;
        let is_measured = [command, reference].iter().all(|side| side.can_run())
            && !journal.has_failed(&BenchmarkName::new(name));
        // The commands of `pair` are different programs, so they are left out.
        (is_measured && command.rows == CommandRows::BelowCommand).then_some((reference, command))
    });
    let pairs: Vec<(&PreparedCommand, &PreparedCommand)> = pairs.collect();
    let stage = Stage::Verify;
    if !pairs.is_empty() {
        host.progress.on(Event::StageStarted { stage, steps: 2 * pairs.len() });
    }
    for (reference, command) in &pairs {
        let mut observed = Vec::new();
        let mut there = BTreeSet::new();
        for (side, process) in [(SideName::Base, reference), (SideName::Head, command)] {
            let what = format!("{} {side}", command.spec.name);
            host.progress.on(Event::StepStarted { stage, what: &what });
            let started = Instant::now();
            let [output, log] = ["raw", "log"].map(|ending| journal.trial_file(side, ending));
            let guard = process.guard()?;
            observed.push(process.observe(host, reference.began, &log, &output).await?);
            guard.check()?;
            if side == SideName::Base {
                there = observed[0].opened.used.iter().filter(|path| path.exists()).cloned().collect();
            }
            host.progress.on(Event::StepFinished { stage, what: &what, note: "", took: started.elapsed() });
        }
        if let [of_base, of_head] = observed.as_slice() {
            let since = reference.began;
            let prepared = [of_base, of_head].map(|observed| observed.prepared_with.clone());
            let set_up = [reference, command]
                .map(|side| side.setup_files.get().map(|opened| side.read_sources(host, opened, since)));
            let mut lints = Vec::new();
            lints.extend(other_preparation(host, "prepare", prepared, [reference, command]).await);
            lints.extend(other_preparation(host, "setup", set_up, [reference, command]).await);
            lints.extend(moved_work(reference, command));
            lints.extend(fallback::new_errors(reference, command));
            lints.extend(fallback::older_program(host, (reference, of_base), (command, of_head)).await);
            lints.extend(kept_state(of_base, of_head));
            let by_base = [("build", reference.build_files.as_ref()), ("setup", reference.setup_files.get())];
            let by_base = by_base.into_iter().filter_map(|(what, files)| Some((what, files?)));
            for used in by_base.chain([("processes", &of_base.opened)]) {
                lints.extend(others_sources::read_by_base(host, (reference, used), command).await);
            }
            lints.extend(others_sources::made_by_head((reference, of_base), of_head, &head.commands));
            lints.extend(taken_from_base(host, (reference, of_base), command, &there));
            let built_from = BuiltFrom { host, base: (reference, of_base), head: (command, of_head) };
            lints.extend(built_from.lints(&base.commands).await);
            lints.extend(changed_reads(host, (reference, of_base), (command, of_head)).await);
            command.observed.get_or_init(|| lints);
        }
    }
    if !pairs.is_empty() {
        host.progress.on(Event::StageFinished { stage });
    }
    Ok(())
}

/// The finding that head's line `key` reads different source files than base's. `read` contains the names of the source
/// files that each side's line read, if they could be observed.
async fn other_preparation(
    host: &Host<'_>,
    key: &str,
    read: [Option<BTreeSet<String>>; 2],
    [base, head]: [&PreparedCommand; 2],
) -> Option<Lint> {
    let has_line = |side: &PreparedCommand| match key {
        "setup" => side.spec.setup.is_some(),
        _ => side.spec.prepare.is_some(),
    };
    let [with_base, with_head] = read;
    let Some(with_base) = with_base else {
        let why = format!("the files that base's `{key}` reads can't be observed");
        return has_line(base).then(|| Lint::new(LintCode::Unobserved, why));
    };
    let Some(with_head) = with_head else {
        let why = || format!("head's `{key}` can't be observed, but base's can");
        return has_line(head).then(why).and_then(other_work);
    };
    for name in with_base.union(&with_head) {
        let [first, second] = [base, head].map(|side| side.sources[0].join(name));
        if file_state(&first, &host.digests).await != file_state(&second, &host.digests).await {
            return other_work(format!("`{key}` reads `{}`, which differs from base's", shown(name)));
        }
    }
    None
}

/// The finding that a file outside both sides which base's processes used is gone, such as a cache of tuned kernels:
/// without it, base would be slow, which would hide a slower head. `there` contains the files that existed after
/// base's observed process, which ran before head's.
fn taken_from_base(
    host: &Host<'_>,
    (base, observed): (&PreparedCommand, &ObservedProcess),
    head: &PreparedCommand,
    there: &BTreeSet<PathBuf>,
) -> Option<Lint> {
    let late = &observed.opened;
    let is_outside = |path: &Path| {
        let is_source = base.sources.iter().any(|sources| path.starts_with(sources));
        !is_source && !base.is_built(path) && !host.sources.is_own(path)
    };
    let removed = head.build_files.iter().flat_map(|files| &files.removed);
    let by_build = removed.filter(|path| late.read.contains(*path) && !path.exists());
    let by_build = by_build.map(|path| (path, "but head's build removed it"));
    let first = base.first_files.get();
    let by_itself =
        |path: &PathBuf| late.removed.contains(path) || first.is_some_and(|it| it.removed.contains(path));
    let missed =
        |path: &&PathBuf| late.read.contains(*path) && !late.found.contains_key(*path) && !by_itself(path);
    let missed = first.iter().flat_map(|first| &first.used).filter(missed);
    let missed = missed.map(|path| (path, "but later ones, after processes of head, don't find it"));
    let gone = there.iter().filter(|path| !path.exists());
    let gone = gone.map(|path| (path, "but it is gone after a process of head"));
    let mut found = by_build.chain(missed).chain(gone).filter(|(path, _)| is_outside(path));
    let (path, why) = found.next()?;
    other_work(format!("base's processes read `{}`, {why}", shown(&path.to_string_lossy())))
}

/// The note that the processes read source files that differ between the sides and that no line of the command names:
/// the program, or what it works on.
async fn changed_reads(
    host: &Host<'_>,
    (base, of_base): (&PreparedCommand, &ObservedProcess),
    (head, of_head): (&PreparedCommand, &ObservedProcess),
) -> Option<Lint> {
    let names = |command: &PreparedCommand, observed: &ObservedProcess| -> BTreeSet<String> {
        observed.opened.read.iter().filter_map(|path| command.name_in_sources(host, path)).collect()
    };
    let mut differing = Vec::new();
    for name in names(base, of_base).union(&names(head, of_head)) {
        let [first, second] = [base, head].map(|side| side.sources[0].join(name));
        // Files of one side alone are those that its tools made, such as a virtual environment.
        if !first.is_file() || !second.is_file() {
            continue;
        }
        let is_named = || head.named.keys().any(|(_, word)| head.folder.join(word) == second);
        let [of_base, of_head] =
            [file_state(&first, &host.digests).await, file_state(&second, &host.digests).await];
        if of_base != of_head && !is_named() {
            differing.push(format!("`{}`", shown(name)));
        }
    }
    let count = differing.len();
    differing.truncate(MOST_NAMED);
    let more = if count > MOST_NAMED { format!(" and {} more", count - MOST_NAMED) } else { String::new() };
    let differ = if count == 1 { "differs" } else { "differ" };
    let detail = format!("the processes read {}{more}, which {differ} from base's", differing.join(", "));
    (count > 0).then(|| Lint::new(LintCode::ScriptChanged, detail))
}

/// Maximum number of files that a finding names.
const MOST_NAMED: usize = 3;

/// Compares each command of head with base's after all processes: its outputs, the files that its lines name,
/// and what its processes leave for later ones. Adds the results to head's benchmarks.
pub(crate) fn compare_outputs(sides: &[PreparedSide<'_>], file: &mut RunFile) -> Result<(), PipelineError> {
    if let [side] = sides {
        side.commands.iter().for_each(|command| check_alone(side.input.name, command, file));
        return Ok(());
    }
    let of = |name| sides.iter().find(|side| side.input.name == name);
    let (Some(base), Some(head)) = (of(SideName::Base), of(SideName::Head)) else { return Ok(()) };
    for command in &head.commands {
        let name = command.spec.name.as_str();
        let Some(reference) = base.commands.iter().find(|base| base.spec.name == name) else { continue };
        let (found, vacuous) = compared(reference, command, &head.input.config.numerics).unzip();
        let mut lints: Vec<Lint> = vacuous.flatten().into_iter().collect();
        lints.extend(leftovers::lint(reference, command)?);
        lints.extend(changed_sources(reference, command));
        lints.extend(command.observed.get().into_iter().flatten().cloned());
        let records = file.sides.iter_mut().filter(|side| side.name == SideName::Head);
        for record in records.flat_map(|side| &mut side.benchmarks) {
            if is_of_command(&record.name, name) {
                record.verification = found.clone().or(record.verification.take());
                record.lints.extend(lints.clone());
            }
        }
    }
    Ok(())
}
