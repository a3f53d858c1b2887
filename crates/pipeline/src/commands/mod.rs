//! Commands that print their own measurements or are timed as a whole. They use the same schedule, journal
//! and verdicts as compiled modules. A command is a single candidate, but its processes can print the rows of
//! several benchmarks.

mod build;
mod built_from;
mod comparison;
mod fallback;
mod filter;
mod leftovers;
mod observed;
mod others_sources;
mod outputs;
mod reading;
mod records;
mod said;
mod slot;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use benchgate_config::{CommandLine, CommandSpec};
use benchgate_core::model::{BenchmarkName, Lint, Metric, shell_word};
use benchgate_core::record::{CommandRecord, OutcomeRecord, SampleMap};
use benchgate_host::files::{Scratch, Stamp};
use benchgate_host::process::{Command, Exit, Finished, Opened, ProcessError};
use benchgate_ingest::Format;

use super::PipelineError;
use super::cache::{Digests, KeyBuilder};
use super::compile::failure;
use super::host::Host;
use super::plan::SideInput;
use super::stage::StageFailure;
use super::targets::{self, Presence};
use super::trace::clean;

pub(super) use build::built;
pub(super) use comparison::{compare_outputs, observe};
use filter::EVERYTHING;
pub(super) use leftovers::{GuardedFiles, GuardedFolders, LONGEST_NAME};
use observed::observed_process;
pub(super) use others_sources::holds_tools;
use outputs::{KeptOutputs, NamedFiles};
pub(super) use reading::{CommandOutput, read};
pub(super) use records::{metrics, records};
pub(super) use slot::{joined, together};

/// Output of one process of a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Printed {
    /// The format of the output; absent if the process itself was timed.
    #[serde(with = "format_name")]
    pub(super) format: Option<Format>,
    /// The requested benchmarks, if not all were requested.
    pub(super) asked: Option<BTreeSet<String>>,
    /// The metrics of the rows, each once.
    pub(super) metrics: Vec<Metric>,
    pub(super) rows: Vec<PrintedRow>,
}

/// Serializes a format by its name, for the journal.
mod format_name {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    use benchgate_ingest::Format;

    pub(super) fn serialize<S: Serializer>(
        format: &Option<Format>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        format.map(|format| format.to_string()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Format>, D::Error> {
        let name = Option::<String>::deserialize(deserializer)?;
        name.map(|name| name.parse().map_err(D::Error::custom)).transpose()
    }
}

/// The measurements of one benchmark that a process printed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct PrintedRow {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) outcome: OutcomeRecord,
    pub(super) lints: Vec<Lint>,
    pub(super) iterations: Option<u64>,
    /// The statistic that the latency values represent.
    pub(super) statistic: PrintedStatistic,
    pub(super) samples: SampleMap,
}

/// The statistic that a printed value represents. Values of different statistics can't be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "lowercase")]
pub(super) enum PrintedStatistic {
    /// The values of the individual repetitions.
    Repetitions,
    Median,
    Mean,
}

/// The naming of the benchmarks that a command prints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CommandRows {
    AsPrinted,
    /// `COMMAND/ROW`, because several commands of a suite may use tools that print the same names.
    #[default]
    BelowCommand,
}

/// A line of a command that is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub(super) enum Line {
    Build,
    Setup,
    Prepare,
    Run,
}

/// A command of one side, ready to be started.
#[derive(Debug)]
pub(super) struct PreparedCommand {
    pub(super) spec: CommandSpec,
    rows: CommandRows,
    folder: PathBuf,
    /// The folder that `build` fills; removed after the run.
    build_folder: Option<(Scratch, PathBuf)>,
    /// The reason why the command could not be built; `None` if it was built.
    pub(super) failure: Option<StageFailure>,
    /// The presence of its device: without it, a program might run on a processor instead.
    device: Presence,
    /// Outputs that existed before the first process, created by base's build or `setup` (or by those of the
    /// only side).
    given: OnceLock<Vec<PathBuf>>,
    /// Outputs that the command's processes wrote.
    kept: Mutex<KeptOutputs>,
    /// The state of the build folder before the first process.
    built: OnceLock<BTreeMap<PathBuf, Stamp>>,
    /// The folder of the side's sources, as named and with links resolved.
    sources: [PathBuf; 2],
    /// True if the sources are a checkout that benchgate made.
    is_checked_out: bool,
    /// The time at which building of this side began.
    began: SystemTime,
    /// The time at which it ended.
    built_by: SystemTime,
    /// The files that `build` used. `None` if they could not be observed.
    build_files: Option<Opened>,
    /// The files that base's first process used, before any process of head, if it could be observed.
    first_files: OnceLock<Opened>,
    /// The files that `setup` used, if they could be observed.
    setup_files: OnceLock<Opened>,
    /// Source files that the command lines name.
    named: NamedFiles,
    /// The times at which `setup` began and ended.
    setup_began: OnceLock<SystemTime>,
    set_up: OnceLock<SystemTime>,
    /// The times at which its processes began and ended.
    ran: Mutex<Vec<Range<SystemTime>>>,
    /// The processor time that the code of each line took, without that of the kernel.
    busy: Mutex<BTreeMap<Line, Vec<Duration>>>,
    /// The errors that the logs of lines state although the lines ended with success, by what they have in common with those of
    /// the other side.
    errors: Mutex<BTreeMap<(Line, String), String>>,
    /// Findings about the process that is observed after everything was measured.
    observed: OnceLock<Vec<Lint>>,
    /// The command as written in the configuration, with its placeholders, because `{build}` is a different folder
    /// on each side.
    configured: CommandSpec,
    /// Folders that must not change while its processes run.
    guarded: GuardedFolders,
    program_sha256: Option<String>,
    /// The program and the files that the command names, such as a script for an interpreter. None of them
    /// may change while the sides are measured.
    pub(super) files: Vec<PathBuf>,
    /// Digest of everything that determines the executed program, as far as the command names it.
    digest: String,
}

impl PreparedCommand {
    /// Creates a command of a side. If it has a build step, it gets an empty build folder.
    fn new(
        host: &Host<'_>,
        side: &SideInput,
        spec: &CommandSpec,
        rows: CommandRows,
        guarded: GuardedFolders,
    ) -> Result<Self, PipelineError> {
        let mut command = Self {
            spec: spec.clone(),
            rows,
            folder: side.side.sources.join(&spec.folder),
            build_folder: None,
            failure: None,
            device: targets::presence_for_command(host, &spec.device),
            given: OnceLock::new(),
            kept: Mutex::default(),
            built: OnceLock::new(),
            sources: [clean(&side.side.sources), real(&side.side.sources)],
            is_checked_out: side.checkout.is_some(),
            began: SystemTime::now(),
            built_by: SystemTime::now(),
            build_files: Some(Opened::default()),
            first_files: OnceLock::new(),
            setup_files: OnceLock::new(),
            named: NamedFiles::new(),
            setup_began: OnceLock::new(),
            set_up: OnceLock::new(),
            ran: Mutex::default(),
            busy: Mutex::default(),
            errors: Mutex::default(),
            observed: OnceLock::new(),
            configured: spec.clone(),
            guarded,
            program_sha256: None,
            files: Vec::new(),
            digest: String::new(),
        };
        if !spec.build.is_empty() || !spec.outputs.is_empty() {
            let scratch =
                Scratch::new_in(&host.builds, "").map_err(PipelineError::io("write in", &host.builds))?;
            // Both names have the same length, because the length of a path can change the memory layout of a
            // program.
            let folder = scratch.path().join(side.name.as_str());
            std::fs::create_dir(&folder).map_err(PipelineError::io("create", &folder))?;
            command.spec = spec.built_in(&folder);
            command.build_folder = Some((scratch, folder));
        }
        Ok(command)
    }

    /// Returns whether its processes can be measured: it was built, and its device is there.
    pub(super) fn can_run(&self) -> bool {
        self.failure.is_none() && self.device == Presence::Present
    }

    fn build_folder(&self) -> Option<&Path> {
        self.build_folder.as_ref().map(|(_, folder)| folder.as_path())
    }

    /// Hashes the files that the command names. It may read other files too, so equal digests on both sides
    /// don't mean that the commands are identical.
    async fn look_at_files(&mut self, digests: &Digests) -> Result<(), PipelineError> {
        let (spec, folder) = (&self.spec, &self.folder);
        let program = match &spec.run {
            CommandLine::Words(words) => words.first().and_then(|word| executable(word, folder, spec)),
            CommandLine::Shell(_) => None,
        };
        let program_sha256 = match &program {
            Some(program) => digests.readable(program).await,
            None => None,
        };
        let mut files: Vec<PathBuf> = program.into_iter().collect();
        let mut named = Vec::new();
        for word in spec.run.words_read() {
            let path = folder.join(word);
            if let Some(sha256) = digests.readable(&path).await {
                named.push(sha256);
                files.push(path);
            }
        }
        self.digest = KeyBuilder::new("command/1")
            .text("run", &format!("{:?}", (&spec.run, &spec.prepare, &spec.setup, &spec.reading)))
            .text("folder", &folder.to_string_lossy())
            .json("environment", &spec.env)?
            .list("files", program_sha256.iter().chain(&named))
            .finish();
        (self.program_sha256, self.files) = (program_sha256, files);
        self.named = self.look_at_named(digests).await;
        Ok(())
    }

    /// Returns whether a checkout of the base is compared with head, so that its lines are observed.
    fn is_compared(&self) -> bool {
        self.is_checked_out || !self.guarded.is_empty()
    }

    /// Returns whether the command has a line that runs before its first process and could create its
    /// program.
    fn is_prepared(&self) -> bool {
        !self.spec.build.is_empty() || self.spec.setup.is_some() || self.spec.prepare.is_some()
    }

    /// The name of the command's program if that program does not exist.
    fn absent_program(&self) -> Option<PathBuf> {
        let CommandLine::Words(words) = &self.spec.run else { return None };
        let word = words.first()?;
        let is_there = executable(word, &self.folder, &self.spec).is_some()
            || word.contains('/') && self.folder.join(word).exists();
        (self.folder.is_dir() && !is_there).then(|| PathBuf::from(word))
    }

    /// The current state of files that must not change while this command runs.
    pub(super) fn guard(&self) -> Result<GuardedFiles<'_>, PipelineError> {
        self.guarded.look()
    }

    /// The benchmark name for a name that the command prints.
    fn row_name(&self, printed: &str) -> String {
        match self.rows {
            CommandRows::AsPrinted => printed.to_owned(),
            CommandRows::BelowCommand => BenchmarkName::of_command(&self.spec.name, printed).to_string(),
        }
    }

    /// The pattern that makes the command's tool run these benchmarks, or all.
    pub(super) fn pattern(&self, format: Option<Format>, asked: Option<&BTreeSet<String>>) -> String {
        let prefix = self.row_name("");
        let printed = |name| str::strip_prefix(name, prefix.as_str()).unwrap_or(name);
        let rows: Option<Vec<&str>> =
            asked.map(|asked| asked.iter().map(String::as_str).map(printed).collect());
        filter::pattern(format, rows.as_deref())
    }

    pub(super) fn digest(&self) -> &str {
        &self.digest
    }

    /// The command line of one of its processes, which writes its results to `output` if the line contains
    /// that placeholder.
    pub(super) fn start(&self, output: &Path, filter: &str) -> Command {
        self.line(&self.spec.run, output, filter)
    }

    /// Returns whether the command can run some of its benchmarks alone.
    pub(super) fn can_filter(&self) -> bool {
        self.spec.run.names(CommandLine::FILTER)
    }

    fn line(&self, line: &CommandLine, output: &Path, filter: &str) -> Command {
        // All placeholders are replaced in one pass, so that a replacement that looks like a placeholder is
        // not replaced again.
        let filled = |text: &str, output: &str, filter: &str| -> String {
            let parts = text.split(CommandLine::OUTPUT).map(|part| part.replace(CommandLine::FILTER, filter));
            parts.collect::<Vec<_>>().join(output)
        };
        let (program, args): (PathBuf, Vec<OsString>) = match line {
            CommandLine::Words(words) => {
                let output = output.to_string_lossy();
                let mut words = words.iter().map(|word| filled(word, &output, filter));
                (words.next().unwrap_or_default().into(), words.map(OsString::from).collect())
            }
            CommandLine::Shell(text) => {
                let text = filled(text, &shell_word(output), &shell_word(filter));
                ("sh".into(), vec!["-c".into(), text.into()])
            }
        };
        Command::new(program, self.spec.timeout).args(args).cwd(&self.folder).envs(&self.spec.env)
    }

    /// Runs the `prepare` line that precedes each measured process. Returns the failure, if it failed.
    pub(super) async fn prepare(
        &self,
        host: &Host<'_>,
        log: &Path,
    ) -> Result<Option<Finished>, PipelineError> {
        self.remove_outputs()?;
        let Some(line) = &self.spec.prepare else { return Ok(None) };
        let finished = host.run(&self.line(line, Path::new(""), EVERYTHING).log(log)).await?;
        self.note_end(&finished);
        self.note_busy(Line::Prepare, &finished);
        if finished.exit == Exit::Success {
            self.note_errors(Line::Prepare, &finished.stderr_tail);
        }
        Ok((finished.exit != Exit::Success).then_some(finished))
    }

    fn note_busy(&self, line: Line, finished: &Finished) {
        if finished.exit == Exit::Success {
            let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
            busy.entry(line).or_default().push(finished.user);
        }
    }

    fn note_errors(&self, line: Line, log: &str) {
        let stated = benchgate_ingest::build_errors(log).into_iter().map(|(key, error)| ((line, key), error));
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).extend(stated);
    }

    /// The typical processor time that the code of a line took.
    pub(super) fn typically_busy(&self, line: Line) -> Option<Duration> {
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner).get(&line)?.clone();
        busy.sort_unstable();
        busy.get(busy.len() / 2).copied()
    }

    /// Notes when a process that has just ended was running.
    fn note_end(&self, finished: &Finished) {
        /// The times of files may be so much older than the clock.
        const TICK: Duration = Duration::from_millis(10);
        let now = SystemTime::now();
        let mut ran = self.ran.lock().unwrap_or_else(PoisonError::into_inner);
        ran.push(now.checked_sub(finished.wall + TICK).unwrap_or(now)..now);
    }

    /// Returns whether its build or `setup` was running at this time.
    fn was_prepared(&self, at: SystemTime) -> bool {
        let set_up = self.setup_began.get().zip(self.set_up.get()).filter(|_| self.spec.setup.is_some());
        set_up.is_some_and(|(began, ended)| (*began..*ended).contains(&at)) || self.was_building(at)
    }

    /// Returns whether its build was running at this time.
    fn was_building(&self, at: SystemTime) -> bool {
        (self.began..self.built_by).contains(&at)
    }

    /// Returns whether one of its processes was running at this time.
    fn was_running(&self, at: SystemTime) -> bool {
        let ran = self.ran.lock().unwrap_or_else(PoisonError::into_inner);
        ran.iter().any(|ran| ran.contains(&at))
    }

    /// Runs `setup` and the warm-up processes, and returns the last of these. A failure of `setup` stops the
    /// whole run. Other failures are ignored here, because they also appear in the first measured process.
    /// `base` is the other side's command, which was set up before this one.
    pub(super) async fn warm_up(
        &self,
        base: Option<&Self>,
        host: &Host<'_>,
        log: &Path,
        output: &Path,
    ) -> Result<Option<Finished>, PipelineError> {
        self.setup_began.get_or_init(SystemTime::now);
        if let Some(line) = &self.spec.setup {
            let line = self.line(line, Path::new(""), EVERYTHING).log(log);
            let is_observed = self.is_compared();
            let first = if is_observed { observed_process(line.clone()) } else { line.clone() };
            let mut finished = host.run(&first).await?;
            // An observed process can't gain privileges (`sudo`).
            if is_observed && matches!(finished.exit, Exit::Code(_)) {
                finished = host.run(&line).await?;
            }
            if let Some(opened) = finished.opened.take() {
                self.setup_files.get_or_init(|| opened);
            }
            self.note_busy(Line::Setup, &finished);
            self.note_errors(Line::Setup, &finished.stderr_tail);
            if finished.exit != Exit::Success {
                let why = failure(&finished, None).why;
                return Err(PipelineError::Setup { command: self.spec.name.clone(), why });
            }
        }
        self.set_up.get_or_init(SystemTime::now);
        self.expect_given(base);
        let built = self.built_files()?;
        self.built.get_or_init(|| built);
        let mut last = None;
        for number in 0..self.spec.warmup {
            let is_observed = number == 0 && self.is_checked_out;
            let finished = self.unmeasured(host, log, output, is_observed).await?;
            // Observing takes time.
            last = (!is_observed).then_some(finished);
        }
        Ok(last)
    }

    /// Runs a process that does not count as a measurement.
    async fn unmeasured(
        &self,
        host: &Host<'_>,
        log: &Path,
        output: &Path,
        is_observed: bool,
    ) -> Result<Finished, PipelineError> {
        if let Some(failed) = self.prepare(host, log).await? {
            return Ok(failed);
        }
        let start = self.start(output, EVERYTHING).capture_stdout().log(log);
        let start = if is_observed { observed_process(start) } else { start };
        let mut finished = host.run(&start.cpus(host.cpus_for(&self.spec.device))).await?;
        self.keep_outputs(&finished, true)?;
        if let Some(opened) = finished.opened.take() {
            self.first_files.get_or_init(|| opened);
        }
        Ok(finished)
    }

    /// The description of the command in the record.
    pub(super) fn record(&self) -> CommandRecord {
        let text = |line: &CommandLine| match line {
            CommandLine::Words(words) => words.iter().map(shell_word).collect::<Vec<_>>().join(" "),
            CommandLine::Shell(text) => text.clone(),
        };
        let CommandSpec { build, run, setup, prepare, folder, env, .. } = &self.configured;
        let mut configured = BTreeMap::new();
        // The environment of `pair` is the user's own, which must not become part of a result.
        if self.rows == CommandRows::BelowCommand {
            let keys = [("run", text(run)), ("folder", folder.display().to_string())];
            configured.extend(keys.map(|(key, value)| (key.to_owned(), value)));
            let lines: Vec<String> = build.iter().map(text).collect();
            configured.extend((!lines.is_empty()).then(|| ("build".to_owned(), lines.join("; "))));
            configured.extend(env.iter().map(|(name, value)| (format!("env.{name}"), value.clone())));
        }
        CommandRecord {
            name: self.spec.name.clone(),
            command: text(&self.spec.run),
            shell: matches!(self.spec.run, CommandLine::Shell(_)),
            setup: setup.as_ref().map(text),
            prepare: prepare.as_ref().map(text),
            program_sha256: self.program_sha256.clone(),
            warmup: self.spec.warmup,
            configured,
        }
    }
}

/// Fails if a program is missing that no build or preparation could create. This is checked before waiting
/// for other jobs.
pub(super) fn find_programs<'a>(
    mut commands: impl Iterator<Item = &'a PreparedCommand> + Clone,
) -> Result<(), PipelineError> {
    if commands.clone().any(PreparedCommand::is_prepared) {
        return Ok(());
    }
    match commands.find_map(PreparedCommand::absent_program) {
        Some(program) => Err(ProcessError::NotFound { program }.into()),
        None => Ok(()),
    }
}

/// The path of a folder with links resolved.
fn real(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| clean(folder))
}

/// The file that a program's name refers to in this folder and environment.
fn executable(word: &str, folder: &Path, spec: &CommandSpec) -> Option<PathBuf> {
    if word.contains('/') {
        let path = folder.join(word);
        return path.is_file().then_some(path);
    }
    // The folders that the C library searches if PATH is not set.
    let default = || OsString::from("/bin:/usr/bin");
    let named = spec.env.get("PATH").map(OsString::from).or_else(|| std::env::var_os("PATH"));
    let path = named.unwrap_or_else(default);
    // The program is started in `folder`, so relative entries of PATH are relative to it.
    std::env::split_paths(&path).map(|place| folder.join(place).join(word)).find(|path| path.is_file())
}
