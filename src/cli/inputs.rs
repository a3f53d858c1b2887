//! Reads results from files: finds the files, selects a side, and joins several files into one side.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs;
use std::path::Path;

use crate::gate::{Policy, SequentialPolicy};
use crate::ingest::{self, ExportFormat, FileContent, Format, Joiner, MOST_BENCHMARKS};
use crate::model::{Benchmark, BenchmarkName, Lint, Run, SideName, counted};
use crate::record::{BisectionFile, RunFile, RunSchema};

use super::numbered::{self, Numbered};
use super::{CliError, beside, guesses, paths, reading};

/// The name that stands for stdin.
const STDIN: &str = "-";

/// One input as the user named it: `PATH`, `PATH#base`, `PATH#head` or `-`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    path: String,
    side: Option<SideName>,
    /// The folder that the user named, if the file was found in one. Its files need not all be results.
    folder: Option<String>,
}

impl Input {
    /// The path of the file, or `-`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Keeps only the requested side.
    fn keep_side(&self, file: &mut RunFile) -> Result<(), CliError> {
        let Some(wanted) = self.side else { return Ok(()) };
        file.sides.retain(|side| side.name == wanted);
        if file.sides.is_empty() { Err(self.no_side(wanted)) } else { Ok(()) }
    }

    fn no_side(&self, wanted: SideName) -> CliError {
        CliError::input(format!("{} has no side {wanted}", self.path))
    }

    /// Parses an input. `exists` checks whether a file has exactly this name, because a name can end in
    /// `#head`.
    fn parse(text: &str, exists: impl Fn(&str) -> bool) -> Self {
        for side in SideName::BOTH {
            if let Some(path) = text.strip_suffix(side.as_str()).and_then(|rest| rest.strip_suffix('#'))
                && !exists(text)
            {
                return Self { path: path.to_owned(), side: Some(side), folder: None };
            }
        }
        Self { path: text.to_owned(), side: None, folder: None }
    }

    /// The input itself, or the results in it if it is a folder.
    fn results(self) -> Result<Vec<Self>, CliError> {
        if !Path::new(&self.path).is_dir() {
            return Ok(vec![self]);
        }
        let Self { path: folder, side, .. } = self;
        let found = reading::results(Path::new(&folder))?.into_iter();
        Ok(found.map(|path| Self { path, side, folder: Some(folder.clone()) }).collect())
    }
}

/// A run, with notes about the files that it was read from.
#[derive(Debug, Clone)]
pub struct LoadedRun {
    pub run: Run,
    /// The files that contain its results.
    pub files: Vec<String>,
    pub notes: Vec<String>,
    /// The policy that judged the run when it was measured. Only a run.json with both sides has one.
    pub recorded: Option<Recorded>,
}

/// The policy in a run.json, and the number of blocks that the measurement was allowed.
#[derive(Debug, Clone)]
pub struct Recorded {
    pub policy: Policy,
    pub blocks: Option<SequentialPolicy>,
}

/// The files that these names, folders and globs stand for, in a stable order.
///
/// # Errors
/// A glob that is invalid or matches nothing; a folder with no files or too many.
pub fn expand(names: &[String]) -> Result<Vec<Input>, CliError> {
    let mut inputs = Vec::new();
    for name in names {
        let input = Input::parse(name, |text| Path::new(text).exists());
        if input.path == STDIN || Path::new(&input.path).exists() || !paths::is_glob(&input.path) {
            inputs.extend(input.results()?);
            continue;
        }
        for path in paths::matches(&input.path)? {
            inputs.extend(Input { path, side: input.side, folder: None }.results()?);
        }
    }
    Ok(inputs)
}

/// Reads one side from its files. Several files are joined as processes of that side.
///
/// # Errors
/// Input that can't be read, is incomplete, or does not belong together.
pub fn load_side(inputs: &[Input], format: Option<Format>) -> Result<LoadedRun, CliError> {
    refuse_repeated(inputs)?;
    let mut joiner = Joiner::new();
    let (mut notes, mut files) = (Vec::new(), Vec::new());
    let mut first: Option<Run> = None;
    let mut session: Option<SessionOfFiles> = None;
    let (mut joined, mut sessions, mut unknown) = (0, Vec::new(), Vec::new());
    let (mut extensions, mut families) = (HashSet::new(), Numbered::default());
    let paths: HashSet<&str> = inputs.iter().map(|input| input.path.as_str()).collect();
    let mut written: HashSet<BenchmarkName> = HashSet::new();
    for input in inputs {
        let is_marked = inputs.len() > 1 && numbered::is_of_failed_run(&input.path);
        // The printed results of a run that also wrote them to a file would count twice.
        let is_text = numbered::is_text_of_result(&input.path, &paths);
        let loaded = if is_marked { Ok(None) } else { load_one(input, format) };
        let loaded = match loaded {
            // Such a text may be cut.
            Err(_) if is_text => None,
            loaded => loaded?,
        };
        let is_known = |run: &Run| run.benchmarks.iter().all(|it| written.contains(&it.name));
        let Some(mut run) = loaded.filter(|run| !(is_text && is_known(run))) else {
            unknown.push(&input.path);
            continue;
        };
        joined += 1;
        written.extend(run.benchmarks.iter().map(|benchmark| benchmark.name.clone()));
        extensions.insert(Path::new(&input.path).extension());
        families.add(&input.path);
        files.push(input.path.clone());
        if inputs.len() > 1 {
            if run.session.take().is_some() {
                forget_blocks(&mut run);
            }
            if let Some(first) = &first {
                belongs_together(first, &run)?;
            } else {
                first = Some(Run { benchmarks: Vec::new(), ..run.clone() });
            }
        }
        if let Some(next) = SessionOfFiles::add(&mut session, run, input)
            && let Some(ended) = session.replace(next)
        {
            sessions.push(ended.run.origin.label.clone());
            joiner.push(ended.run).map_err(|error| unreadable(&error))?;
        }
    }
    if let Some(last) = session {
        sessions.push(last.run.origin.label.clone());
        joiner.push(last.run).map_err(|error| unreadable(&error))?;
    }
    let Some(mut run) = joiner.finish() else {
        return Err(match inputs.first() {
            Some(input) => CliError::input(format!(
                "failed to find a result among {}, beginning with {}",
                counted(unknown.len(), "file"),
                input.path
            ))
            .hint(
                match unknown.iter().all(|path| fs::metadata(path).is_ok_and(|found| found.len() == 0)) {
                    true => FileContent::Empty.hint(),
                    false => "`--format-in` names the format of files that can't be recognized",
                },
            ),
            None => CliError::usage("no file was given for one side"),
        });
    };
    let count = sessions.len();
    if count > 1 {
        run.origin.label = format!("{} and {} more", run.origin.label, count - 1);
        run.origin.sessions = sessions;
    }
    if count < joined {
        let benchmarks = counted(run.benchmarks.len(), "benchmark");
        notes.push(format!("{joined} files of criterion: {benchmarks}, {}", counted(count, "session")));
    } else if joined > 1 {
        notes.push(format!("{joined} files, each read as one session"));
    }
    for path in &unknown {
        let bytes = read_contents(path)?;
        run.lints.extend(beside::said(path, &bytes, &paths));
        if families.contains(path)
            || reading::may_be_result(Path::new(path), ingest::content(&bytes), &extensions)
        {
            return Err(unreadable(&ingest::unrecognised(&bytes, path)));
        }
    }
    // A pattern for the results leaves out what lies next to them.
    let named = inputs.iter().filter(|input| input.folder.is_none()).map(|input| input.path.as_str());
    run.lints.extend(named.flat_map(|result| beside::of_result(result, &paths)));
    run.lints.sort_by(|one, two| one.detail.cmp(&two.detail));
    run.lints.dedup();
    let is_empty = |path: &str| fs::metadata(path).is_ok_and(|found| found.len() == 0);
    let others = unknown.iter().map(|path| path.as_str());
    let logs: Vec<&str> = others.filter(|path| numbered::is_log(path) || is_empty(path)).collect();
    if let Some(log) = numbered::of_lost_run(&files, &logs) {
        return Err(CliError::input(format!("failed to find the result of the run that wrote {log}"))
            .hint("the other runs of this side have results: measure this one again, or remove its files"));
    }
    if !unknown.is_empty() {
        notes.push(match unknown.len() {
            1 => "1 other file of the folder is not a result and was left out".to_owned(),
            count => format!("{count} other files of the folder are not results and were left out"),
        });
    }
    Ok(LoadedRun { run, files, notes, recorded: None })
}

/// The files of one session. Most formats have one file per session; criterion has one per benchmark.
struct SessionOfFiles {
    run: Run,
    folder: Option<String>,
    benchmarks: HashSet<BenchmarkName>,
}

impl SessionOfFiles {
    /// Adds a file to the session. A file that does not belong to it is returned as the first one of the next
    /// session.
    fn add(session: &mut Option<Self>, run: Run, input: &Input) -> Option<Self> {
        let has_one = run.origin.format.starts_with("criterion");
        let names = run.benchmarks.iter().map(|benchmark| benchmark.name.clone());
        let continues = |known: &&mut Self| {
            let is_new = |benchmark: &Benchmark| !known.benchmarks.contains(&benchmark.name);
            let is_same = known.folder == input.folder && known.run.origin.format == run.origin.format;
            has_one && is_same && run.benchmarks.iter().all(is_new)
        };
        let Some(known) = session.as_mut().filter(continues) else {
            return Some(Self { benchmarks: names.collect(), folder: input.folder.clone(), run });
        };
        known.benchmarks.extend(names);
        known.run.benchmarks.extend(run.benchmarks);
        if let Some(folder) = &known.folder {
            known.run.origin.label.clone_from(folder);
        }
        None
    }
}

/// Rejects a file that is given twice, because its measurements would count twice.
fn refuse_repeated(inputs: &[Input]) -> Result<(), CliError> {
    let mut known = HashSet::new();
    // A missing file is reported later, when it is read.
    let file = |input: &Input| fs::canonicalize(&input.path).unwrap_or_else(|_| input.path.as_str().into());
    match inputs.iter().find(|input| !known.insert((file(input), input.side))) {
        None => Ok(()),
        Some(twice) => Err(CliError::usage(format!("{} was given twice for one side", twice.path))
            .hint("each file of a side counts as separate processes: give every file once")),
    }
}

/// Reads base and head. A single name is a run with both sides; otherwise each name is one side.
pub fn load_pair(
    base: &[String],
    head: &[String],
    format: Option<Format>,
) -> Result<(LoadedRun, LoadedRun), CliError> {
    let (base, head) = (expand(base)?, expand(head)?);
    refuse_shared_stdin(&[&base, &head])?;
    if let ([both], []) = (base.as_slice(), head.as_slice()) {
        return load_both(both, format);
    }
    std::thread::scope(|scope| {
        // Reading takes most of the time when two large files are compared, so both sides are read at once.
        let load_base = || load_side(&base, format);
        let started = std::thread::Builder::new().spawn_scoped(scope, load_base);
        let head = load_side(&head, format);
        let base = match started {
            Ok(thread) => {
                thread.join().map_err(|_| CliError::internal("reading the base side stopped unexpectedly"))?
            }
            // The thread could not be started, for example because of `ulimit -u`.
            Err(_) => load_base(),
        };
        // If both sides fail, the base's error is reported, no matter which side was faster.
        let (base, mut head) = (base?, head?);
        head.run.lints.extend(lost_files(&base, &head));
        Ok((base, head))
    })
}

/// The finding that head lacks some of base's numbered files.
pub fn lost_files(base: &LoadedRun, head: &LoadedRun) -> Option<Lint> {
    let [base, head] = [base, head].map(|side| side.files.iter().map(String::as_str).collect::<Vec<_>>());
    numbered::lost_files(&base, &head)
}

/// Removes block numbers. They are unique only within a session, so blocks of different sessions must not be
/// paired.
fn forget_blocks(run: &mut Run) {
    for metric in run.benchmarks.iter_mut().flat_map(|benchmark| &mut benchmark.metrics) {
        if let crate::model::Series::Processes(processes) = &mut metric.series {
            for process in processes {
                process.slot = None;
            }
        }
    }
}

fn belongs_together(first: &Run, next: &Run) -> Result<(), CliError> {
    let differs = if first.toolchain != next.toolchain {
        Some("different tools")
    } else if first.commit != next.commit {
        Some("different commits")
    } else if first.testbed.as_ref().map(|testbed| &testbed.id)
        != next.testbed.as_ref().map(|testbed| &testbed.id)
    {
        Some("different machines")
    } else {
        None
    };
    match differs {
        None => Ok(()),
        Some(what) => Err(CliError::failed(format!(
            "{} and {} come from {what}",
            first.origin.label, next.origin.label
        ))
        .hint("files of one side must be sessions of one program on one machine; compare these with each other instead")),
    }
}

/// Reads both sides of a single two-sided run.json.
pub fn load_both(input: &Input, format: Option<Format>) -> Result<(LoadedRun, LoadedRun), CliError> {
    let bytes = read_contents(&input.path)?;
    if input.side.is_some() || !is_run_json(&bytes, format) {
        let split = match load_foreign(&bytes, input, format)? {
            Some(run) => guesses::split_command(&input.path, &run),
            None => None,
        };
        let hint = match split {
            Some(command) => format!("to compare its two benchmarks: `{command}`"),
            None => "give a second result: `benchgate compare BASE HEAD`".to_owned(),
        };
        let what = format!("{} alone has nothing to be compared with", input.path);
        return Err(CliError::usage(what).hint(hint));
    }
    let file = complete(run_file(bytes, &input.path)?, &input.path)?;
    let recorded = recorded(&file);
    let (base, head) = both_sides(file, &input.path)?;
    let loaded = |run, recorded| LoadedRun { run, files: Vec::new(), notes: Vec::new(), recorded };
    Ok((loaded(base, None), loaded(head, Some(recorded))))
}

/// The policy that judged a run when it was measured.
fn recorded(file: &RunFile) -> Recorded {
    Recorded { policy: file.policy(), blocks: file.blocks() }
}

/// The base and the head of a two-sided run.
pub fn both_sides(file: RunFile, label: &str) -> Result<(Run, Run), CliError> {
    let mut runs = file.into_runs(label);
    match (runs.pop(), runs.pop()) {
        (Some((SideName::Head, head)), Some((SideName::Base, base))) => Ok((base, head)),
        _ => Err(CliError::usage(format!("{label} has only one side"))
            .hint("give a second result: `benchgate compare BASE HEAD`")),
    }
}

/// Reads a file that must be a complete run.json.
pub fn load_run(path: &Path) -> Result<RunFile, CliError> {
    complete_run(reading::file(path)?, &path.to_string_lossy())
}

/// Reads the result that `benchgate bisect --format json` wrote. The file may be untrusted.
pub fn load_bisection(path: &Path) -> Result<BisectionFile, CliError> {
    BisectionFile::from_slice(&reading::file(path)?).map_err(|error| {
        CliError::input(format!("failed to read {}: {error}", path.display()))
            .hint("`benchgate bisect --format json --output FILE` writes such a file")
    })
}

/// Parses a complete run.json. No other format is accepted, because the format of an untrusted file must not
/// be guessed.
pub fn complete_run(bytes: Vec<u8>, label: &str) -> Result<RunFile, CliError> {
    complete(run_file(bytes, label)?, label)
}

/// Reads one file. Returns `None` for a file of a folder that no format recognizes.
fn load_one(input: &Input, format: Option<Format>) -> Result<Option<Run>, CliError> {
    if input.path != STDIN
        && input.side.is_none()
        && format.is_none_or(|format| format == Format::GoogleBenchmarkJson)
        && let Some(run) = reading::in_pieces(Path::new(&input.path))
    {
        return Ok(Some(run));
    }
    let bytes = read_contents(&input.path)?;
    if is_run_json(&bytes, format) {
        let file = complete(run_file(bytes, &input.path)?, &input.path)?;
        return pick(file.into_runs(&input.path), input).map(Some);
    }
    load_foreign(&bytes, input, format)
}

/// Reads a result, complete or not, as the record from which reports are made. Returns `None` for a file of a
/// folder that no format recognizes.
pub fn load_record(input: &Input, format: Option<Format>) -> Result<Option<RunFile>, CliError> {
    let bytes = read_contents(&input.path)?;
    if is_run_json(&bytes, format) {
        let mut file = run_file(bytes, &input.path)?;
        input.keep_side(&mut file)?;
        return Ok(Some(file));
    }
    let Some(run) = load_foreign(&bytes, input, format)? else { return Ok(None) };
    let exported = ingest::export(&run, ExportFormat::RunJson, &jiff::Timestamp::now().to_string());
    run_file(exported.bytes, &input.path).map(Some)
}

/// Returns true if the bytes are a run.json, or if the user requested that format.
fn is_run_json(bytes: &[u8], asked: Option<Format>) -> bool {
    format_of(bytes, asked) == Some(Format::RunJson)
}

/// Reads a file of any format except run.json, like [`load_one`].
fn load_foreign(bytes: &[u8], input: &Input, format: Option<Format>) -> Result<Option<Run>, CliError> {
    let run = match format_of(bytes, format) {
        None if input.folder.is_some()
            && !matches!(ingest::content(bytes), FileContent::CutJson | FileContent::FailedCommand) =>
        {
            return Ok(None);
        }
        Some(_) if input.side.is_some() => Err(CliError::usage(format!(
            "{} is not a run.json, so it has no sides to choose from",
            input.path
        ))),
        Some(format) => {
            let run = ingest::read(bytes, format, &input.path).map_err(|error| unreadable(&error))?;
            return reading::named_by_criterion(run, format, Path::new(&input.path)).map(Some);
        }
        None => ingest::read_detected(bytes, &input.path).map_err(|error| unreadable(&error)),
    };
    run.map(Some)
}

/// The requested format, or the detected one.
fn format_of(bytes: &[u8], asked: Option<Format>) -> Option<Format> {
    let shown = || ingest::detect(bytes).or_else(|| is_record(bytes).then_some(Format::RunJson));
    asked.or_else(shown)
}

/// Returns true if these bytes are a benchgate record, complete or not. Its `schema` key can be anywhere,
/// because some tools sort keys.
fn is_record(bytes: &[u8]) -> bool {
    const MARK: &[u8] = b"\"benchgate/";
    bytes.trim_ascii_start().first() == Some(&b'{') && bytes.windows(MARK.len()).any(|window| window == MARK)
}

/// Parses a run.json. The bytes are freed before the result is processed, to save memory.
pub fn run_file(bytes: Vec<u8>, label: &str) -> Result<RunFile, CliError> {
    let file = RunFile::from_slice(&bytes).map_err(|error| {
        use crate::record::RecordError;
        let hint = match &error {
            RecordError::Truncated { .. } => {
                "the file is incomplete, because copying or writing it was interrupted: copy it again, or run the suite again (it resumes)"
            }
            RecordError::Version { .. } => "it was written by a newer benchgate: upgrade this one",
            RecordError::TooDense { .. } => "split the suite, or measure more in each process",
            RecordError::Syntax { .. }
            | RecordError::Shape { .. }
            | RecordError::Inconsistent { .. }
            | RecordError::Parquet(_) => {
                "run files are written by `benchgate run` and described by schemas/run.json"
            }
        };
        let sort = if error.place().is_some() { format!(" as {},", RunSchema::NAME) } else { ":".to_owned() };
        CliError::input(format!("failed to read {label}{sort} {error}")).hint(hint)
    })?;
    drop(bytes);
    let benchmarks: usize = file.sides.iter().map(|side| side.benchmarks.len()).sum();
    if benchmarks > MOST_BENCHMARKS {
        return Err(CliError::input(format!(
            "failed to read {label}: it has {benchmarks} benchmarks (the limit is {MOST_BENCHMARKS})"
        ))
        .hint("split the suite"));
    }
    Ok(file)
}

/// Refuses an interrupted run, and a shard of a run.
fn complete(file: RunFile, label: &str) -> Result<RunFile, CliError> {
    if let Some(shard) = &file.shard {
        return Err(CliError::failed(format!(
            "{label} is only shard {} of a suite; it can't be judged alone",
            shard.shard
        ))
        .hint("join all shards of its plan with `benchgate merge`"));
    }
    if file.complete {
        return Ok(file);
    }
    Err(CliError::failed(format!("{label} is an interrupted run; it can't be judged"))
        .hint("run the suite again: it resumes where it stopped"))
}

/// The requested side, or the only one that there is.
fn pick(mut runs: Vec<(SideName, Run)>, input: &Input) -> Result<Run, CliError> {
    let path = &input.path;
    let several = runs.len() > 1;
    let at = match input.side {
        Some(wanted) => {
            runs.iter().position(|(side, _)| *side == wanted).ok_or_else(|| input.no_side(wanted))?
        }
        None if !several => 0,
        None => {
            return Err(CliError::usage(format!("{path} has both sides")).hint(format!(
                "choose one: {path}#base or {path}#head; alone, `benchgate compare {path}` compares them"
            )));
        }
    };
    let (side, mut run) = runs.swap_remove(at);
    if several {
        run.origin.label = format!("{path}#{side}");
    }
    Ok(run)
}

fn unreadable(error: &ingest::IngestError) -> CliError {
    let hint = match error {
        ingest::IngestError::Unrecognised { content, .. } => content.hint().to_owned(),
        ingest::IngestError::TooManyBenchmarks { .. } => {
            "compare parts of the result: have the tool run fewer benchmarks at a time (`--benchmark_filter` \
            of Google Benchmark) or split the file"
                .to_owned()
        }
        ingest::IngestError::NoResults { .. } => "look at the tool's log: it measured no benchmark, and a result without benchmarks can't be judged".to_owned(),
        _ => "look at that line; if a tool wrote the file, let the tool finish and write the file \
            again".to_owned(),
    };
    CliError::input(format!("failed to {error}")).hint(hint)
}

/// The bytes, decompressed if they are compressed.
pub fn contents<'a>(bytes: &'a [u8], path: &str) -> Result<Cow<'a, [u8]>, CliError> {
    ingest::decompressed(bytes, path).map_err(|error| {
        CliError::input(format!("failed to {error}"))
            .hint("check the file with `gzip -t` or `zstd -t`, or decompress it")
    })
}

/// The bytes of a file, or of stdin if it is `-`.
pub fn read(path: &str) -> Result<Vec<u8>, CliError> {
    if path == STDIN { reading::stdin() } else { reading::file(Path::new(path)) }
}

/// Reads like [`read`], and decompresses the content.
pub fn read_contents(path: &str) -> Result<Vec<u8>, CliError> {
    let bytes = read(path)?;
    let unpacked = match contents(&bytes, path)? {
        Cow::Owned(unpacked) => Some(unpacked),
        Cow::Borrowed(_) => None,
    };
    Ok(unpacked.unwrap_or(bytes))
}

/// Refuses to read stdin for more than one input.
pub fn refuse_shared_stdin(sides: &[&[Input]]) -> Result<(), CliError> {
    let asked = sides.iter().flat_map(|side| side.iter()).filter(|input| input.path == STDIN).count();
    if asked < 2 {
        return Ok(());
    }
    Err(CliError::usage("stdin (-) was given more than once").hint("write one of the results to a file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_is_chosen_after_the_hash_unless_that_is_the_files_name() {
        let side = Input::parse("run.json#head", |_| false);
        assert_eq!(side, Input { path: "run.json".into(), side: Some(SideName::Head), folder: None });
        let name = Input::parse("run.json#head", |_| true);
        assert_eq!(name, Input { path: "run.json#head".into(), side: None, folder: None });
        assert_eq!(Input::parse("a#b.json", |_| false).path, "a#b.json");
    }

    #[test]
    fn a_record_is_recognised_by_its_mark_anywhere() {
        assert!(is_record(b" {\"a\": 1, \"schema\": \"benchgate/run/v9\"}"));
        assert!(!is_record(b"{\"context\": {}}"));
        assert!(!is_record(b"\"benchgate/run/v1\""));
    }
}
