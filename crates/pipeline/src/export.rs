//! Exports Torch models to MLIR, parameters, inputs and reference outputs, with the embedded export package.
//!
//! A model that crashes its interpreter only fails itself: the next one gets a fresh interpreter.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use benchgate_config::{Exporter, Model, ModelSource};
use benchgate_core::model::{Event, Stage, VerifyCode};
use benchgate_core::numerics::TensorFile;
use benchgate_host::process::Reply;
use benchgate_toolchain::Environment;

use super::argv::InputArg;
use super::cache::{CacheEntry, KeyBuilder, Made, once};
use super::host::Host;
use super::interpreters::{ExporterSource, Exporters, crashed};
use super::plan::PlannedBenchmark;
use super::slots::Priority;
use super::stage::{PreparedSource, StageFailure, Staged, ended};
use super::trace::{Heard, TracePlace, clean, relative};
use super::verify::add_inputs;
use super::{PipelineError, generated, trace};

const KIND: &str = "export";
const TRACES: &str = "export-trace";

/// The interpreter's answer, which is its last line about a model.
#[derive(Debug, Deserialize)]
struct ExportAnswer {
    status: String,
    stage: Option<String>,
    code: Option<String>,
    error: Option<String>,
    #[serde(rename = "traceback")]
    trace: Option<String>,
    mlir: Option<PathBuf>,
    #[serde(default)]
    inputs: Vec<WrittenTensor>,
    #[serde(default)]
    expected: Vec<WrittenTensor>,
    expected64: Option<Vec<WrittenTensor>>,
    #[serde(rename = "expected64-error")]
    expected64_error: Option<String>,
    /// Names of what a call leaves in the model, which the export leaves out.
    #[serde(rename = "left-out", default)]
    left_out: Vec<String>,
    #[serde(default)]
    parameters: Vec<WrittenArchive>,
    #[serde(rename = "output-type")]
    output_type: Option<String>,
    /// Duration of each step, and `total`, without the time spent waiting for an interpreter.
    #[serde(default)]
    seconds: BTreeMap<String, f64>,
    /// The files that it read.
    #[serde(rename = "trace")]
    heard: Option<Heard>,
    /// Duration measured on this side of the pipe, because failures report no total.
    #[serde(skip)]
    took: Duration,
}

#[derive(Debug, Deserialize)]
struct WrittenTensor {
    path: PathBuf,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct WrittenArchive {
    scope: String,
    path: PathBuf,
}

/// The data that a cache entry stores in addition to its files.
#[derive(Debug, Serialize, Deserialize)]
struct ExportMeta {
    seconds: f64,
    mlir: String,
    inputs: Vec<String>,
    expected: Vec<String>,
    expected64: Vec<String>,
    expected64_problem: Option<String>,
    left_out: Vec<String>,
    /// Each scope with its file.
    parameters: Vec<(String, String)>,
    output_type: Option<String>,
    /// A verification code and a reason, if the reference can't be used.
    reference_problem: Option<(String, String)>,
    /// Files that were read or looked for, relative to the sources.
    read: Vec<String>,
    /// Those that did not exist at first.
    absent: Vec<String>,
    /// Files that only the kernel saw it open; `None` if it could not be observed.
    observed: Option<Vec<String>>,
}

fn source(entry: CacheEntry<ExportMeta>) -> PreparedSource {
    let all = |names: &[String]| -> Vec<_> {
        names.iter().map(|name| TensorFile::named(entry.path(name))).collect()
    };
    let meta = &entry.meta;
    let parameters = meta.parameters.iter().map(|(scope, name)| (scope.clone(), entry.path(name)));
    let problem = meta.reference_problem.as_ref();
    PreparedSource {
        mlir: entry.path(&meta.mlir),
        mlir_sha256: entry.files.get(&meta.mlir).cloned().unwrap_or_default(),
        inputs: all(&meta.inputs).into_iter().map(InputArg::File).collect(),
        expected: all(&meta.expected),
        expected64: all(&meta.expected64),
        expected64_problem: meta.expected64_problem.clone(),
        left_out: meta.left_out.clone(),
        parameters: parameters.collect(),
        reference_problem: problem.and_then(|(code, why)| Some((VerifyCode::parse(code)?, why.clone()))),
        report: ended(Stage::Export, entry.status(), meta.seconds),
        lowering: meta.output_type.clone(),
        read: meta.read.clone(),
        absent: meta.absent.clone(),
        observed: meta.observed.clone(),
        damaged: entry.damaged,
    }
}

/// The inputs of one export: the source and its exporter.
#[derive(Clone, Copy)]
pub(super) struct ExportJob<'a> {
    pub(super) planned: PlannedBenchmark<'a>,
    pub(super) exporter: Exporter,
    pub(super) environment: Environment,
    pub(super) exporters: &'a Exporters,
}

impl ExportJob<'_> {
    fn sources(&self) -> &Path {
        &self.planned.side.side.sources
    }

    /// Folders in the sources from which models import code.
    fn path(&self) -> &[PathBuf] {
        &self.planned.side.config.python.path
    }
}

/// The digest of everything about an export that is known in advance: the package, the environment, how the
/// model is constructed, and the whole tree of the side's sources. Other files that the export reads are
/// recorded in its [`Trace`].
async fn key(host: &Host<'_>, job: ExportJob<'_>) -> Staged<String> {
    let model = job.planned.model;
    let sources = job.sources();
    let mut key = KeyBuilder::new("export/6")
        .text("package", &ExporterSource::digest())
        .text("environment", &job.exporters.environment(job.environment)?.digest)
        .text("exporter", job.exporter.into_str())
        .text("function", &model.function)
        .list("preset", &model.preset)
        .list("dtype", &model.dtype)
        .list("option", model.options.iter().map(|(name, value)| format!("{name}={value}")))
        .list("output-type", model.output_types.iter().map(|output| output.into_str()));
    match &model.source {
        ModelSource::Zoo(name) => key = key.text("zoo", name),
        ModelSource::Python { file, symbol } => {
            let tree = host.sources.digest(sources, &host.digests).await?;
            key = key.text("sources", &tree).text("file", &file.to_string_lossy()).text("symbol", symbol);
            key = key.text("rest", &host.sources.digest_of_rest(sources, &host.digests).await?);
            key = key.list("path", job.path().iter().map(|path| path.to_string_lossy()));
        }
        ModelSource::Torchbench { name, checkout } => {
            // Files that Python reads from the rest of the checkout are recorded in the trace.
            let folder = checkout.folder.join("torchbenchmark/models").join(name);
            if !folder.is_dir() {
                let written = checkout.written.display();
                let why = format!(
                    "the checkout {written} of [torchbench] has no model {name}: {} is not a folder; a \
                    checkout outside the repository needs an absolute path, because each side has its own \
                    copy",
                    folder.display()
                );
                return Err(StageFailure::new(why).into());
            }
            let tree = host.sources.digest(&folder, &host.digests).await?;
            key = key.text("torchbench", name).text("tree", &tree);
        }
        // Files with external data are recorded in the trace.
        ModelSource::Onnx(path) | ModelSource::Pt2(path) => {
            key = key.text("saved", &host.digests.sha256(&sources.join(path)).await?);
            key = key.text("file", &path.to_string_lossy());
        }
        ModelSource::Mlir(path) => key = key.text("mlir", &path.to_string_lossy()),
    }
    key = add_inputs(key, &generated::inputs(host, job.planned).await?, &host.digests).await?;
    // The value of an option may name a file or folder of weights, which may be outside the sources.
    for value in model.options.values() {
        let path = sources.join(value);
        if path.is_file() {
            key = key.text("weights", &host.digests.sha256(&path).await?);
        } else if path.is_dir() && !value.is_empty() {
            let unknown = |why| StageFailure::new(format!("the option `{value}` can't be hashed: {why}"));
            key =
                trace::add_tree(key, &trace::files_below(&path, &|_| false).map_err(unknown)?, &host.digests)
                    .await?;
        }
    }
    Ok(key.finish())
}

/// Exports a model, or returns the export of an earlier run.
pub(super) async fn export(host: &Host<'_>, job: ExportJob<'_>) -> Staged<PreparedSource> {
    let key = key(host, job).await?;
    // A failure on one side is not reused for the other, because files outside the sources can differ.
    let attempt = KeyBuilder::new("attempt")
        .text("key", &key)
        .text("sources", &job.sources().to_string_lossy())
        .finish();
    let find = async || {
        let place = TracePlace::of_sources(job.sources());
        Ok(host.sources.entry(&host.cache, (TRACES, &key), &place, &host.digests).await)
    };
    let make = async |staged: &Path| make(host, job, &key, staged).await;
    Ok(source(host.cache.keep(KIND, &key, &attempt, find, make).await?))
}

async fn make(host: &Host<'_>, job: ExportJob<'_>, key: &str, staged: &Path) -> Staged<Made<ExportMeta>> {
    let answer = ask(host, job, staged).await?;
    if answer.status == "unsupported" {
        let took = Some(answer.took);
        return Err(StageFailure { took, ..StageFailure::unsupported(first_line(&answer)) }.into());
    }
    let reference_problem = reference_problem(&answer);
    let Some(mlir) = answer.mlir.as_deref().filter(|_| answer.status == "ok" || reference_problem.is_some())
    else {
        return Err(failure(host, &answer, key)?.into());
    };
    let names = |tensors: &[WrittenTensor]| tensors.iter().map(|t| file_name(&t.path)).collect::<Vec<_>>();
    let parameters =
        answer.parameters.iter().map(|archive| (archive.scope.clone(), file_name(&archive.path)));
    let heard = answer.heard.as_ref();
    let [read, absent] = [heard.map(|heard| &heard.read), heard.map(|heard| &heard.absent)]
        .map(|files| files.map_or_else(Vec::new, |files| names_of(job.sources(), files)));
    let observed = heard.and_then(|heard| Some(names_of(job.sources(), heard.observed.as_deref()?)));
    let key = traced(host, job, key, answer.heard.as_ref(), staged).await?;
    let meta = ExportMeta {
        seconds: answer.seconds.get("total").copied().unwrap_or_default(),
        mlir: file_name(mlir),
        inputs: names(&answer.inputs),
        expected: names(&answer.expected),
        expected64: answer.expected64.as_deref().map(names).unwrap_or_default(),
        expected64_problem: answer.expected64_error,
        left_out: answer.left_out,
        parameters: parameters.collect(),
        output_type: answer.output_type,
        reference_problem,
        read,
        absent,
        observed,
    };
    let files = std::iter::once(&meta.mlir)
        .chain(&meta.inputs)
        .chain(&meta.expected)
        .chain(&meta.expected64)
        .chain(meta.parameters.iter().map(|(_, name)| name))
        .cloned()
        .collect();
    Ok(Made { key, files, meta })
}

/// The key of a cache entry: the key of the request, combined with the files that the export read. If these
/// could not be recorded completely, the entry is stored for this run only.
async fn traced(
    host: &Host<'_>,
    job: ExportJob<'_>,
    key: &str,
    heard: Option<&Heard>,
    staged: &Path,
) -> Result<String, PipelineError> {
    let followed = match heard {
        Some(Heard { opaque: Some(why), .. }) => Err(format!("the model {why}")),
        Some(heard) => Ok(heard),
        None => Err("the exporter does not report which files it read".to_owned()),
    };
    let heard = match followed {
        Ok(heard) => heard,
        Err(why) => {
            let text = format!("{}: exported again in every run, because {why}", job.planned.name());
            host.progress.on(Event::Note(&text));
            return Ok(once(key, staged));
        }
    };
    let place = TracePlace::of_sources(job.sources());
    // The request's key already contains the files in the sources.
    let sources = clean(job.sources());
    let listed = heard.listed.iter().filter(|path| !path.starts_with(&sources));
    let read = heard.read.iter().chain(heard.observed.iter().flatten());
    let trace = host.sources.record(read, listed, &place, &host.digests).await;
    trace.keep(&host.cache, TRACES, key)?;
    Ok(trace.entry_key(key))
}

/// The names of files relative to the sources, because the entry may be used for another checkout.
fn names_of(sources: &Path, files: &[PathBuf]) -> Vec<String> {
    let sources = clean(sources);
    files.iter().map(|path| relative(path, &sources)).collect()
}

/// The file name of a path, because an exporter's answer must not lead out of the folder that it was given.
fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn reference_problem(answer: &ExportAnswer) -> Option<(String, String)> {
    let code = VerifyCode::parse(answer.code.as_deref()?)?;
    Some((code.as_str().to_owned(), answer.error.clone().unwrap_or_default()))
}

fn first_line(answer: &ExportAnswer) -> &str {
    let error = answer.error.as_deref().unwrap_or("the exporter gave no reason");
    error.lines().next().unwrap_or_default()
}

fn failure(host: &Host<'_>, answer: &ExportAnswer, key: &str) -> Result<StageFailure, PipelineError> {
    let stage = answer.stage.as_deref().unwrap_or("export");
    let why = format!("{stage}: {}", first_line(answer));
    let mut failure = StageFailure { took: Some(answer.took), ..StageFailure::new(why) };
    if let Some(trace) = &answer.trace {
        let kept = host.scratch()?;
        let path = kept.path().join("export.log");
        fs::write(&path, trace).map_err(PipelineError::io("write", &path))?;
        failure.log = Some(host.keep_log(&path, "export", key)?);
    }
    Ok(failure)
}

/// Sends the request and waits for the final answer. The lines before it report the interpreter's progress,
/// so that it is known even after a crash.
async fn ask(host: &Host<'_>, job: ExportJob<'_>, out: &Path) -> Staged<ExportAnswer> {
    let lease = job.exporters.lease(host, job.environment).await?;
    // Like a compilation, an export needs a processor.
    let _slot = host.slot(Priority::Now).await?;
    let timeout = job.planned.side.config.measure.export_timeout;
    fs::create_dir_all(&host.logs).map_err(PipelineError::io("create", &host.logs))?;
    let log = host.logs.join(format!("exporter-{}.log", job.environment.name()));
    let mut interpreter = lease.interpreter(host, job.sources(), &log, timeout).await?;
    let started = Instant::now();
    let inputs = generated::inputs(host, job.planned).await?;
    interpreter.session.send(&request(job, inputs, out)?.to_string()).await;
    let mut stage = "start".to_owned();
    loop {
        let line = match interpreter.session.receive(host.cancel).await? {
            Reply::Line(line) => line,
            Reply::Interrupted => return Err(PipelineError::Interrupted.into()),
            lost => {
                let failure = crashed(interpreter.session, lost, &stage).await;
                return Err(StageFailure { log: Some(log), took: Some(started.elapsed()), ..failure }.into());
            }
        };
        let unreadable = |error: serde_json::Error| {
            StageFailure::new(format!("the exporter's answer can't be read: {error}"))
        };
        // After an unreadable answer, the state of the interpreter is unknown, so it is not reused.
        let message: serde_json::Value = serde_json::from_str(&line).map_err(unreadable)?;
        if matches!(message["status"].as_str(), Some("ok" | "failed" | "unsupported")) {
            let used = interpreter.used();
            lease.give_back(interpreter).await;
            let mut answer = serde_json::from_value::<ExportAnswer>(message).map_err(unreadable)?;
            if let Some(heard) = &mut answer.heard {
                match used {
                    Some(used) => heard.add(used, job.sources(), &host.sources),
                    None => host.note_unobserved(),
                }
            }
            return Ok(ExportAnswer { took: started.elapsed(), ..answer });
        }
        if let Some(entered) = message["stage"].as_str() {
            stage = match message["output-type"].as_str() {
                Some(output_type) => format!("{entered} to {output_type}"),
                None => entered.to_owned(),
            };
        }
    }
}

fn request(
    job: ExportJob<'_>,
    inputs: Vec<InputArg>,
    out: &Path,
) -> Result<serde_json::Value, PipelineError> {
    let model = job.planned.model;
    let sources = job.sources();
    let (source, symbol, torchbench) = source_words(model, |path| absolute(&sources.join(path)))?;
    let path = job.path().iter().map(|path| absolute(&sources.join(path)));
    let inputs = inputs.into_iter().map(|input| match input {
        InputArg::File(file) => Ok(TensorFile { path: absolute(&file.path)?, ..file }.notation()),
        InputArg::Literal(text) => Ok(text),
    });
    let inputs = inputs.collect::<Result<Vec<String>, PipelineError>>()?;
    let output_types: Vec<&str> = model.output_types.iter().map(|output| output.into_str()).collect();
    Ok(serde_json::json!({
        "id": job.planned.name().as_str(),
        "source": source,
        "symbol": symbol,
        "torchbench": torchbench,
        "inputs": inputs,
        "exporter": job.exporter.into_str(),
        "folder": absolute(sources)?,
        "path": path.collect::<Result<Vec<PathBuf>, PipelineError>>()?,
        "out": absolute(out)?,
        "preset": model.preset,
        "dtype": model.dtype,
        "options": model.options.iter().map(|(name, value)| (name.clone(), typed(value))).collect::<serde_json::Map<_, _>>(),
        "output-type": if output_types.is_empty() { None } else { Some(output_types) },
        "function": model.function,
        "seed": 0,
    }))
}

/// The words with which a request names a model: its source, a symbol in it, and a checkout of torchbench. The
/// checkout's path is absolute, because the process is started in another folder.
pub(super) fn source_words(
    model: &Model,
    file: impl FnOnce(&Path) -> Result<PathBuf, PipelineError>,
) -> Result<(String, Option<&String>, Option<PathBuf>), PipelineError> {
    let file = |path: &PathBuf| Ok::<_, PipelineError>(file(path)?.to_string_lossy().into_owned());
    Ok(match &model.source {
        ModelSource::Zoo(key) => (format!("zoo:{key}"), None, None),
        ModelSource::Torchbench { name, checkout } => {
            (format!("torchbench:{name}"), None, Some(absolute(&checkout.folder)?))
        }
        ModelSource::Python { file: path, symbol } => (file(path)?, Some(symbol), None),
        ModelSource::Mlir(path) | ModelSource::Onnx(path) | ModelSource::Pt2(path) => {
            (file(path)?, None, None)
        }
    })
}

fn absolute(path: &Path) -> Result<PathBuf, PipelineError> {
    std::path::absolute(path).map_err(PipelineError::io("find", path))
}

/// Converts the text of an option to a number or boolean, if it is one.
pub(super) fn typed(value: &str) -> serde_json::Value {
    match serde_json::from_str::<serde_json::Value>(value) {
        Ok(scalar @ (serde_json::Value::Number(_) | serde_json::Value::Bool(_))) => scalar,
        _ => serde_json::Value::String(value.to_owned()),
    }
}

#[cfg(test)]
mod tests;
