//! Compares output files of a command, which have to agree between the sides, because a program that computes
//! something else can't be called faster.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use benchgate_core::model::{
    BenchmarkName, Lint, LintCode, OutputCheck, SideName, Verification, VerifyCode, excerpt, is_of_command,
};
use benchgate_core::numerics::{self, NumericsTolerance, Tensor, TensorFile, check};
use benchgate_core::record::RunFile;
use benchgate_gate::NumericsPolicy;
use benchgate_host::files;
use benchgate_host::process::{Exit, Finished};

use super::leftovers::LONGEST_NAME;
use super::{CommandRows, Line, PreparedCommand};
use crate::PipelineError;
use crate::cache::Digests;
use crate::trace::file_state;
use benchgate_config::CommandLine;

/// Maximum size of an output, and of all kept outputs of a side.
const MOST: u64 = 1 << 30;

/// The outputs of a command's processes. After each process they are moved from the build folder into memory,
/// so that no later process of either side finds them.
#[derive(Debug, Default)]
pub(super) struct KeptOutputs {
    /// The different contents that each output had.
    contents: Vec<Vec<Vec<u8>>>,
    /// The reason why an output could not be taken; `None` if all were taken.
    missing: Option<String>,
}

impl KeptOutputs {
    fn add(&mut self, index: usize, output: &str, bytes: Vec<u8>) {
        if self.contents.len() <= index {
            self.contents.resize_with(index + 1, Vec::new);
        }
        if self.contents[index].contains(&bytes) {
            return;
        }
        let held: usize = self.contents.iter().flatten().map(Vec::len).sum();
        if (held + bytes.len()) as u64 > MOST {
            let why = format!("wrote more than 1 GiB of different outputs, and could not keep `{output}`");
            self.missing.get_or_insert(why);
            return;
        }
        self.contents[index].push(bytes);
    }

    fn of(&self, index: usize) -> &[Vec<u8>] {
        self.contents.get(index).map_or(&[], Vec::as_slice)
    }
}

impl PreparedCommand {
    /// The output files on which base and head must agree, in the build folder.
    fn outputs(&self) -> impl Iterator<Item = (usize, &String, PathBuf)> {
        let named = self.build_folder().map(|folder| {
            let outputs = self.spec.outputs.iter().enumerate();
            outputs.map(move |(index, output)| (index, output, folder.join(file_of(output))))
        });
        named.into_iter().flatten()
    }

    /// The output files that the processes write, without those that existed before the first process.
    fn written(&self) -> impl Iterator<Item = (usize, &String, PathBuf)> {
        let given = self.given.get().map_or(&[][..], Vec::as_slice);
        self.outputs().filter(move |(_, output, _)| !given.contains(&file_of(output)))
    }

    /// Records which outputs exist before the first process. Base decides which outputs have to be computed;
    /// otherwise head's build could provide them.
    pub(super) fn expect_given(&self, base: Option<&Self>) {
        let found = |side: &Self| {
            let there = side.outputs().filter(|(_, _, path)| path.exists());
            there.map(|(_, output, _)| file_of(output)).collect()
        };
        self.given
            .get_or_init(|| base.and_then(|base| base.given.get().cloned()).unwrap_or_else(|| found(self)));
    }

    /// Removes existing outputs, because a process that finds them could skip the work to measure.
    pub(super) fn remove_outputs(&self) -> Result<(), PipelineError> {
        for (_, _, path) in self.written() {
            remove(&path)?;
        }
        Ok(())
    }

    /// Moves the outputs of a process that has just ended from the build folder into memory. If `all` is false, because the
    /// process ran only some benchmarks, outputs may be missing.
    pub(crate) fn keep_outputs(&self, finished: &Finished, all: bool) -> Result<(), PipelineError> {
        self.note_end(finished);
        if all && finished.opened.is_none() {
            self.note_busy(Line::Run, finished);
        }
        let Some(folder) = self.build_folder().filter(|_| finished.exit == Exit::Success) else {
            return Ok(());
        };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        for (index, output, path) in self.written() {
            if !all && std::fs::symlink_metadata(&path).is_err() {
                continue;
            }
            match check_not_linked(output, &path).and_then(|()| read(folder, output, &path)) {
                Ok(bytes) => kept.add(index, output, bytes),
                Err(why) => {
                    kept.missing.get_or_insert(why);
                }
            }
            remove(&path)?;
        }
        Ok(())
    }

    /// All contents that an output had.
    ///
    /// # Errors
    /// The reason why there is none, or why a process did not write it.
    fn contents(&self, side: SideName, index: usize, output: &str) -> Result<Vec<Vec<u8>>, String> {
        let folder = self
            .build_folder()
            .ok_or_else(|| format!("{side} has no build folder to leave its outputs in"))?;
        let of_side = |why: String| format!("{side} {why}");
        let path = folder.join(file_of(output));
        if self.given.get().is_some_and(|given| given.contains(&file_of(output))) {
            return Ok(vec![read(folder, output, &path).map_err(of_side)?]);
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match (kept.missing.clone(), kept.of(index)) {
            (Some(why), _) => Err(of_side(why)),
            (None, []) => Err(of_side(format!("left no file `{output}` in its build folder"))),
            (None, _) => Ok(std::mem::take(&mut kept.contents[index])),
        }
    }
}

fn remove(path: &Path) -> Result<(), PipelineError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(PipelineError::io("remove", path)(error)),
        _ => Ok(()),
    }
}

/// Refuses links, because the file behind one can be the result of an earlier process.
fn check_not_linked(output: &str, path: &Path) -> Result<(), String> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => {
            Err(format!("left a symbolic link instead of the file `{output}`"))
        }
        Ok(found) if found.is_file() && found.nlink() > 1 => {
            Err(format!("left `{output}` as a hard link to another file"))
        }
        _ => Ok(()),
    }
}

/// Reads an output.
///
/// # Errors
/// A description of what the side did instead of writing a readable file.
fn read(folder: &Path, output: &str, path: &Path) -> Result<Vec<u8>, String> {
    // A link could lead to a file of the other side, so it is resolved and checked.
    let real = path
        .canonicalize()
        .ok()
        .filter(|real| folder.canonicalize().is_ok_and(|folder| real.starts_with(folder)));
    let real = real.ok_or_else(|| format!("left no file `{output}` in its build folder"))?;
    files::read_bounded(&real, MOST).map_err(|error| format!("left an unreadable `{output}`: {error}"))
}

/// Checks that the processes of the only side wrote all outputs, and states that nothing else was checked: stored
/// sessions have no outputs.
pub(super) fn check_alone(side: SideName, command: &PreparedCommand, file: &mut RunFile) {
    if command.spec.outputs.is_empty() || !command.can_run() {
        return;
    }
    let mut outputs = command.spec.outputs.iter().enumerate();
    let missing = outputs.find_map(|(index, output)| command.contents(side, index, output).err());
    for record in file.sides.iter_mut().flat_map(|side| &mut side.benchmarks) {
        if !is_of_command(&record.name, &command.spec.name) {
            continue;
        }
        if let Some(why) = &missing {
            record.verification = Some(Verification::bare(VerifyCode::VerifierDidntRun, Some(why.clone())));
        } else {
            let why = "the outputs exist, but there are none of another side to compare them with";
            record.lints.push(Lint::new(LintCode::Unverified, why));
        }
    }
}

/// Compares the outputs. Also returns a finding if the comparison proves nothing. `None` if there is nothing
/// to compare, because the configuration names no outputs or a side could not be built or run.
pub(super) fn compared(
    base: &PreparedCommand,
    head: &PreparedCommand,
    numerics: &NumericsPolicy,
) -> Option<(Verification, Option<Lint>)> {
    // Base's configuration determines which outputs are compared.
    let wanted = &base.spec.outputs;
    if wanted.is_empty() || !base.can_run() || !head.can_run() {
        return None;
    }
    let tolerances = numerics.for_benchmark(&BenchmarkName::new(&head.spec.name));
    let (mut checks, mut vacuous) = (Vec::new(), Vec::new());
    for (index, output) in wanted.iter().enumerate() {
        let contents = |side: &PreparedCommand, name| {
            let place = side.spec.outputs.iter().position(|it| file_of(it) == file_of(output));
            side.contents(name, place.unwrap_or(usize::MAX), output)
        };
        let both =
            contents(base, SideName::Base).and_then(|of_base| Ok((of_base, contents(head, SideName::Head)?)));
        let both = both.and_then(|(base, head)| {
            let check = compared_file(index, output, &base, &head, &tolerances)?;
            Ok((check, vacuous_output(output, &base, &tolerances)))
        });
        match both {
            Ok((check, why)) => {
                checks.push(check);
                vacuous.push(why);
            }
            Err(why) => return Some((Verification::bare(VerifyCode::VerifierDidntRun, Some(why)), None)),
        }
    }
    let differs = checks.iter().find(|check| check.code == VerifyCode::Fail);
    // One meaningful output is enough, because another may legitimately be constant, such as a mask of ones.
    let vacuous: Option<Vec<String>> = vacuous.into_iter().collect();
    if let Some(why) = vacuous.filter(|_| differs.is_none()).and_then(|all| all.into_iter().next()) {
        let verification = Verification::bare(VerifyCode::VerifierSkipped, Some(why.clone()));
        return Some((verification, Some(Lint::new(LintCode::VacuousReference, why))));
    }
    let why = differs.map(|check| {
        format!("`{}`: {}", wanted[check.index], check.why.as_deref().unwrap_or("differs from base's"))
    });
    let code = differs.map_or(VerifyCode::Pass, |check| check.code);
    Some((Verification { outputs: checks, ..Verification::bare(code, why) }, None))
}

/// The reason why agreement with an output of base would prove nothing; `None` if it proves something.
fn vacuous_output(output: &str, base: &[Vec<u8>], tolerances: &[NumericsTolerance]) -> Option<String> {
    let bytes = base.first()?;
    let why = match TensorFile::parse(output) {
        Some(file) => {
            let tensor = file.read(bytes).ok()?;
            if is_finite(&tensor) {
                numerics::vacuous(&tensor, tolerances).or_else(|| numerics::equal_rows(&tensor))
            } else {
                Some(NOT_FINITE.to_owned())
            }
        }
        None if bytes.is_empty() => Some("the reference has no byte".to_owned()),
        None if bytes.iter().all(|byte| *byte == 0) => Some("the reference has only zero bytes".to_owned()),
        None => std::str::from_utf8(bytes).ok().and_then(vacuous_text).map(str::to_owned),
    };
    why.map(|why| format!("base's `{output}` proves nothing: {why}"))
}

const NOT_FINITE: &str = "the reference has no finite element";

/// Printed numbers prove as little as the same numbers in a tensor.
fn vacuous_text(text: &str) -> Option<&'static str> {
    let words = text.split(|letter: char| letter.is_whitespace() || ",;[]()".contains(letter));
    let mut numbers = words.filter(|word| !word.is_empty()).map(|word| word.parse::<f64>().ok());
    let Some(first) = numbers.next() else { return Some("the reference has only white space") };
    let (first, mut count) = (first?, 1);
    for number in numbers {
        let number = number?;
        if number != first && (number.is_finite() || first.is_finite()) {
            return None;
        }
        count += 1;
    }
    match first {
        0.0 => Some("the reference has only zeros"),
        _ if !first.is_finite() => Some("the reference has no finite number"),
        _ => (count > 1).then_some("the reference has only one number, repeated"),
    }
}

/// Returns whether a tensor has a finite element, or no elements at all.
fn is_finite(tensor: &Tensor) -> bool {
    tensor.is_empty() || tensor.to_f64().iter().any(|value| value.is_finite())
}

/// The file name of an output, without the shape and type if the output is declared as a tensor.
fn file_of(output: &str) -> PathBuf {
    TensorFile::parse(output).map_or_else(|| output.into(), |tensor| tensor.path)
}

/// Compares all contents of one file on both sides: tensors by their tolerances, others byte by byte.
///
/// # Errors
/// The file can't be compared, because it can't be read or base's processes disagree.
fn compared_file(
    index: usize,
    output: &str,
    base: &[Vec<u8>],
    head: &[Vec<u8>],
    tolerances: &[NumericsTolerance],
) -> Result<OutputCheck, String> {
    let pass = || OutputCheck { index, code: VerifyCode::Pass, why: None, divergence: None };
    let (Some((reference, others)), Some(first)) = (base.split_first(), head.first()) else {
        return Err(format!("`{output}` was not written"));
    };
    let disagree = || Err(format!("base's processes wrote different contents to `{output}`"));
    let Some(tensor) = TensorFile::parse(output) else {
        if !others.is_empty() {
            return disagree();
        }
        let why = if head.len() > 1 {
            Some(format!("the bytes of `{output}` change from process to process"))
        } else {
            (first != reference).then(|| format!("the bytes of `{output}` differ from base's"))
        };
        let code = if why.is_some() { VerifyCode::Fail } else { VerifyCode::Pass };
        return Ok(OutputCheck { code, why, ..pass() });
    };
    let tensor = |side: SideName, bytes: &[u8]| {
        tensor.read(bytes).map_err(|error| format!("`{output}` of {side}: {error}"))
    };
    let reference = tensor(SideName::Base, reference)?;
    let is_finite = is_finite(&reference);
    let compared = |side: SideName, bytes: &[u8]| {
        let check = check(index, &tensor(side, bytes)?, &reference, None, tolerances);
        let why = check.why.map(|why| format!("`{output}`: {why}"));
        let check = OutputCheck { why, ..check };
        let agrees = !is_finite && check.divergence.is_some_and(|found| found.mismatched == 0);
        // No element could be verified, but none differs either.
        let skipped =
            || OutputCheck { code: VerifyCode::VerifierSkipped, why: Some(NOT_FINITE.to_owned()), ..pass() };
        Ok::<_, String>(if agrees { skipped() } else { check })
    };
    for other in others {
        if compared(SideName::Base, other)?.code == VerifyCode::Fail {
            return disagree();
        }
    }
    let mut checks = Vec::new();
    for content in head {
        checks.push(compared(SideName::Head, content)?);
    }
    let wrong = checks.iter().position(|check| check.code == VerifyCode::Fail).unwrap_or(0);
    Ok(checks.into_iter().nth(wrong).unwrap_or_else(pass))
}

/// The state of each file. The key consists of the configuration key whose line names the file, and the
/// file's name.
pub(super) type NamedFiles = BTreeMap<(&'static str, String), Option<String>>;

impl PreparedCommand {
    /// Records the state of the files before any process of the command can change them.
    pub(super) async fn look_at_named(&self, digests: &Digests) -> NamedFiles {
        let mut found = NamedFiles::new();
        let keys = [("setup", &self.spec.setup), ("prepare", &self.spec.prepare)];
        let prepared = keys.into_iter().filter_map(|(key, line)| Some((key, line.as_ref()?)));
        for (key, line) in prepared.chain([("run", &self.spec.run)]) {
            for word in words(line) {
                let path = self.folder.join(&word);
                // An absolute path names the same file on both sides, or one in the build folder, so it is
                // left out.
                if Path::new(&word).is_relative() && path.is_file() {
                    found.insert((key, word), file_state(&path, digests).await);
                }
            }
        }
        found
    }
}

/// The words of a line, including those of a nested line (`sh -c "…"`) and the values of options
/// (`--config=FILE`).
fn words(line: &CommandLine) -> Vec<String> {
    let mut words = line.words_read();
    let nested = words.iter().filter(|word| word.contains(char::is_whitespace));
    let nested: Vec<String> = nested.flat_map(|word| CommandLine::Shell(word.clone()).words_read()).collect();
    words.extend(nested);
    let values: Vec<String> =
        words.iter().filter_map(|word| Some(word.split_once('=')?.1.to_owned())).collect();
    words.extend(values);
    words
}

/// Compares source files that the lines of a command name: scripts and data that are not built. Such files
/// define the benchmark rather than the program under test.
///
/// Findings about named files that differ between the sides. A different file for `setup` or `prepare` means
/// that work may have moved out of the measured processes. The file that `run` names may be the program under
/// test itself, so a difference there is only pointed out.
pub(super) fn changed_sources(base: &PreparedCommand, head: &PreparedCommand) -> Vec<Lint> {
    // The commands of `pair` are different programs anyway.
    if head.rows == CommandRows::AsPrinted {
        return Vec::new();
    }
    let names = base.named.keys().chain(head.named.keys());
    let mut differing: Vec<&(&str, String)> =
        names.filter(|name| base.named.get(*name) != head.named.get(*name)).collect();
    differing.dedup();
    let of_kind = |is_run: bool, code: LintCode| {
        let mut found = differing.iter().filter(move |(key, _)| (*key == "run") == is_run);
        let (key, name) = found.next()?;
        let name = excerpt(&PathBuf::from(name).to_string_lossy(), LONGEST_NAME);
        Some(Lint::new(code, format!("`{name}`, named in `{key}`, differs from base's")))
    };
    let work = of_kind(false, LintCode::WorkloadChanged);
    work.into_iter().chain(of_kind(true, LintCode::ScriptChanged)).collect()
}
