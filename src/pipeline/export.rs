//! Torch model → MLIR, parameters, inputs and reference outputs, through the embedded export package.
//!
//! A model that crashes its interpreter fails alone: the next one gets a fresh interpreter.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::config::{Exporter, ModelSource};
use crate::model::{Event, Stage, VerifyCode};
use crate::numerics::TensorFile;
use crate::process::Reply;
use crate::record::StageStatus;
use crate::toolchain::{Environment, PythonEnv};

use super::PipelineError;
use super::argv::InputArg;
use super::cache::{Entry, KeyBuilder, Lookup};
use super::interpreters::ExporterSource;
use super::plan::Planned;
use super::prepare::{Context, Source, StageFailure, StageReport};
use super::trace::Heard;
use super::tree;

const KIND: &str = "export";

/// The interpreter's last line about a model.
#[derive(Debug, Deserialize)]
struct Answer {
    status: String,
    stage: Option<String>,
    code: Option<String>,
    error: Option<String>,
    #[serde(rename = "traceback")]
    trace: Option<String>,
    mlir: Option<PathBuf>,
    #[serde(default)]
    inputs: Vec<Tensor>,
    #[serde(default)]
    expected: Vec<Tensor>,
    expected64: Option<Vec<Tensor>>,
    #[serde(rename = "expected64-error")]
    expected64_error: Option<String>,
    #[serde(default)]
    parameters: Vec<Archive>,
    #[serde(rename = "output-type")]
    output_type: Option<String>,
    /// By step, and `total`: without the wait for an interpreter.
    #[serde(default)]
    seconds: BTreeMap<String, f64>,
    /// What it read.
    #[serde(rename = "trace")]
    heard: Option<Heard>,
    /// By the clock on this side of the pipe: failures give no total.
    #[serde(skip)]
    took: Duration,
}

#[derive(Debug, Deserialize)]
struct Tensor {
    path: PathBuf,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Archive {
    scope: String,
    path: PathBuf,
}

/// What an entry remembers beside its files.
#[derive(Debug, Serialize, Deserialize)]
struct Meta {
    seconds: f64,
    mlir: String,
    inputs: Vec<String>,
    expected: Vec<String>,
    expected64: Vec<String>,
    expected64_problem: Option<String>,
    /// Scope and file.
    parameters: Vec<(String, String)>,
    output_type: Option<String>,
    /// Verification code and reason, where the reference is not usable.
    reference_problem: Option<(String, String)>,
}

/// An exported model.
pub(super) struct Exported {
    entry: Entry,
    meta: Meta,
}

impl Exported {
    pub(super) fn into_source(self) -> Source {
        let all = |names: &[String]| -> Vec<_> {
            names.iter().map(|name| TensorFile::named(self.entry.path(name))).collect()
        };
        Source {
            mlir: self.entry.path(&self.meta.mlir),
            mlir_sha256: self.entry.files.get(&self.meta.mlir).cloned().unwrap_or_default(),
            inputs: all(&self.meta.inputs).into_iter().map(InputArg::File).collect(),
            expected: all(&self.meta.expected),
            expected64: all(&self.meta.expected64),
            expected64_problem: self.meta.expected64_problem.clone(),
            parameters: self
                .meta
                .parameters
                .iter()
                .map(|(scope, name)| (scope.clone(), self.entry.path(name)))
                .collect(),
            reference_problem: self
                .meta
                .reference_problem
                .as_ref()
                .and_then(|(code, why)| Some((VerifyCode::parse(code)?, why.clone()))),
            report: StageReport {
                stage: Stage::Export,
                status: if self.entry.cached { StageStatus::Cached } else { StageStatus::Ok },
                seconds: self.meta.seconds,
                peak_memory_bytes: None,
                log: None,
            },
            lowering: self.meta.output_type.clone(),
        }
    }
}

/// What is exported: the source, and what exports it.
#[derive(Clone, Copy)]
struct Job<'a> {
    planned: Planned<'a>,
    exporter: Exporter,
}

/// The digest of everything about an export that is known before it: the package, the environment, how the
/// model is constructed, and the whole tree of the side's sources. What else it reads is in its [`Trace`]. The
/// inner error is a tree that can't be known.
async fn key(
    context: &Context<'_>,
    job: Job<'_>,
    python: &PythonEnv,
) -> Result<Result<String, String>, PipelineError> {
    let model = job.planned.model;
    let sources = &job.planned.side.side.sources;
    let mut key = KeyBuilder::new("export/3")
        .text("package", &ExporterSource::digest())
        .text("environment", &python.digest)
        .text("exporter", job.exporter.as_str())
        .text("function", &model.function)
        .text("preset", &format!("{:?}", model.preset))
        .list("option", model.options.iter().map(|(name, value)| format!("{name}={value}")))
        .list("output-type", model.output_types.iter().map(|output| output.as_str()));
    match &model.source {
        ModelSource::Zoo(name) => key = key.text("zoo", name),
        ModelSource::Python { file, symbol } => {
            let tree = match context.sources.digest(sources, &context.digests).await? {
                Ok(tree) => tree,
                Err(why) => return Ok(Err(format!("the sources can't be hashed: {why}"))),
            };
            key = key.text("sources", &tree).text("file", &file.to_string_lossy()).text("symbol", symbol);
        }
        ModelSource::Mlir(path) => key = key.text("mlir", &path.to_string_lossy()),
    }
    // An option may name a file or a folder of weights, also outside of the tree.
    for value in model.options.values() {
        let path = sources.join(value);
        if path.is_file() {
            key = key.text("weights", &context.digests.of(&path).await?);
        } else if path.is_dir() && !value.is_empty() {
            match tree::files(&path, &|_| false) {
                Ok(files) => key = tree::add(key, &files, &context.digests).await?,
                Err(why) => return Ok(Err(format!("the option `{value}` can't be hashed: {why}"))),
            }
        }
    }
    Ok(Ok(key.finish()))
}

/// Exports a model, or finds what an earlier run exported.
pub(super) async fn export(
    context: &Context<'_>,
    planned: Planned<'_>,
    exporter: Exporter,
) -> Result<Result<Exported, StageFailure>, PipelineError> {
    let job = Job { planned, exporter };
    let python = match context.interpreters.environment(Environment::of(exporter)) {
        Ok(python) => python,
        Err(why) => return Ok(Err(StageFailure::new(why))),
    };
    let key = match key(context, job, python).await? {
        Ok(key) => key,
        Err(why) => return Ok(Err(StageFailure::new(why))),
    };
    let _making = context.cache.maker(KIND, &key).await;
    // What a side can't export, the other one may: what lies outside of its sources can differ.
    let sources = planned.side.side.sources.to_string_lossy();
    let attempt = KeyBuilder::new("attempt").text("key", &key).text("sources", &sources).finish();
    if let Some(failure) = context.failures.of(KIND, &attempt) {
        return Ok(Err(failure));
    }
    let made = make(context, job, &key).await?;
    Ok(context.failures.keep(KIND, &attempt, made))
}

async fn make(
    context: &Context<'_>,
    job: Job<'_>,
    key: &str,
) -> Result<Result<Exported, StageFailure>, PipelineError> {
    let sources = &job.planned.side.side.sources;
    if let Some(found) = context.sources.entry(context.cache, key, sources, &context.digests).await? {
        match context.cache.lookup_aside(KIND, &found).await? {
            Lookup::Hit(entry) => {
                if let Some(meta) = entry.meta_as() {
                    return Ok(Ok(Exported { entry, meta }));
                }
            }
            Lookup::Damaged(why) => {
                let text = format!("a damaged cache entry was made again: {why}");
                context.progress.on(Event::Warning(&text));
            }
            Lookup::Miss => {}
        }
    }
    let staged = context.cache.stage()?;
    let answer = match ask(context, job, staged.path()).await? {
        Ok(answer) => answer,
        Err(failure) => return Ok(Err(failure)),
    };
    if answer.status == "unsupported" {
        let took = Some(answer.took);
        return Ok(Err(StageFailure { took, ..StageFailure::unsupported(first_line(&answer)) }));
    }
    let reference_problem = reference_problem(&answer);
    if answer.status != "ok" && reference_problem.is_none() {
        return Ok(Err(failure(context, &answer, key)?));
    }
    let Some(mlir) = answer.mlir.as_deref().map(file_name) else {
        return Ok(Err(failure(context, &answer, key)?));
    };
    let names = |tensors: &[Tensor]| tensors.iter().map(|t| file_name(&t.path)).collect::<Vec<_>>();
    let meta = Meta {
        seconds: answer.seconds.get("total").copied().unwrap_or_default(),
        mlir,
        inputs: names(&answer.inputs),
        expected: names(&answer.expected),
        expected64: answer.expected64.as_deref().map(names).unwrap_or_default(),
        expected64_problem: answer.expected64_error,
        parameters: answer
            .parameters
            .into_iter()
            .map(|archive| (archive.scope, file_name(&archive.path)))
            .collect(),
        output_type: answer.output_type,
        reference_problem,
    };
    let files: Vec<&str> = std::iter::once(&meta.mlir)
        .chain(&meta.inputs)
        .chain(&meta.expected)
        .chain(&meta.expected64)
        .chain(meta.parameters.iter().map(|(_, name)| name))
        .map(String::as_str)
        .collect();
    let value = serde_json::to_value(&meta)
        .map_err(|error| PipelineError::io("write", staged.path())(std::io::Error::other(error)))?;
    let traced = traced(context, job, key, answer.heard.as_ref(), staged.path()).await?;
    let entry = context.cache.store(KIND, &traced, staged, &files, value)?;
    Ok(Ok(Exported { entry, meta }))
}

/// The key of an entry: that of its request with what it read. An export that can't be followed is stored for
/// this run alone.
async fn traced(
    context: &Context<'_>,
    job: Job<'_>,
    key: &str,
    heard: Option<&Heard>,
    staged: &Path,
) -> Result<String, PipelineError> {
    let followed = match heard {
        Some(Heard { opaque: Some(why), .. }) => Err(format!("the model {why}")),
        Some(heard) => Ok(heard),
        None => Err("the exporter does not say what it read".to_owned()),
    };
    let heard = match followed {
        Ok(heard) => heard,
        Err(why) => {
            let text = format!("{}: exported again in every run, because {why}", job.planned.name());
            context.progress.on(Event::Note(&text));
            let once = KeyBuilder::new("once").text("key", key).text("folder", &staged.to_string_lossy());
            return Ok(once.text("at", &jiff::Timestamp::now().to_string()).finish());
        }
    };
    let sources = &job.planned.side.side.sources;
    let trace = context.sources.record(heard, sources, &context.digests).await?;
    trace.keep(context.cache, key)?;
    Ok(trace.entry_key(key))
}

/// Only the name: an exporter's answer must not lead out of the folder it was given.
fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn reference_problem(answer: &Answer) -> Option<(String, String)> {
    let code = VerifyCode::parse(answer.code.as_deref()?)?;
    Some((code.as_str().to_owned(), answer.error.clone().unwrap_or_default()))
}

fn first_line(answer: &Answer) -> &str {
    let error = answer.error.as_deref().unwrap_or("the exporter gave no reason");
    error.lines().next().unwrap_or_default()
}

fn failure(context: &Context<'_>, answer: &Answer, key: &str) -> Result<StageFailure, PipelineError> {
    let stage = answer.stage.as_deref().unwrap_or("export");
    let why = format!("{stage}: {}", first_line(answer));
    let mut failure = StageFailure { took: Some(answer.took), ..StageFailure::new(why) };
    if let Some(trace) = &answer.trace {
        let kept = context.scratch()?;
        let path = kept.path().join("export.log");
        fs::write(&path, trace).map_err(PipelineError::io("write", &path))?;
        failure.log = Some(context.keep_log(&path, "export", key)?);
    }
    Ok(failure)
}

/// Sends the request and waits for the last line about it. The lines before it say where the
/// interpreter is, which is what a crash leaves behind.
async fn ask(
    context: &Context<'_>,
    job: Job<'_>,
    out: &Path,
) -> Result<Result<Answer, StageFailure>, PipelineError> {
    let environment = Environment::of(job.exporter);
    let Some(lease) = context.interpreters.lease(context, environment).await? else {
        return Ok(Err(StageFailure::new(format!("there is no Python environment {}", environment.name()))));
    };
    // Exporting takes a processor as compiling does.
    let _slot = context.slot().await?;
    let timeout = job.planned.side.config.measure.export_timeout;
    fs::create_dir_all(&context.logs).map_err(PipelineError::io("create", &context.logs))?;
    let log = context.logs.join(format!("exporter-{}.log", environment.name()));
    let mut interpreter =
        match lease.interpreter(context, &job.planned.side.side.sources, &log, timeout).await? {
            Ok(interpreter) => interpreter,
            Err(failure) => return Ok(Err(failure)),
        };
    let started = Instant::now();
    interpreter.session.send(&request(job, out)?.to_string()).await;
    let mut stage = "start".to_owned();
    loop {
        let line = match interpreter.session.receive(context.cancel).await? {
            Reply::Line(line) => line,
            Reply::Interrupted => return Err(PipelineError::Interrupted),
            lost => {
                let mut failure = interpreter.crashed(lost, &stage).await?;
                failure.log = Some(log);
                failure.took = Some(started.elapsed());
                return Ok(Err(failure));
            }
        };
        let unreadable = |error: serde_json::Error| {
            StageFailure::new(format!("the exporter's answer can't be read: {error}"))
        };
        let message = match serde_json::from_str::<serde_json::Value>(&line) {
            Ok(message) => message,
            // Nobody knows what it would say next: it is not given back, and so ends.
            Err(error) => return Ok(Err(unreadable(error))),
        };
        if matches!(message["status"].as_str(), Some("ok" | "failed" | "unsupported")) {
            lease.give_back(interpreter).await;
            let answer = serde_json::from_value::<Answer>(message).map_err(unreadable);
            return Ok(answer.map(|answer| Answer { took: started.elapsed(), ..answer }));
        }
        if let Some(entered) = message["stage"].as_str() {
            stage = match message["output-type"].as_str() {
                Some(output_type) => format!("{entered} to {output_type}"),
                None => entered.to_owned(),
            };
        }
    }
}

fn request(job: Job<'_>, out: &Path) -> Result<serde_json::Value, PipelineError> {
    let model = job.planned.model;
    let sources = &job.planned.side.side.sources;
    let (source, symbol) = match &model.source {
        ModelSource::Zoo(key) => (format!("zoo:{key}"), None),
        ModelSource::Python { file, symbol } => {
            (absolute(&sources.join(file))?.to_string_lossy().into_owned(), Some(symbol))
        }
        ModelSource::Mlir(path) => (path.to_string_lossy().into_owned(), None),
    };
    let output_types: Vec<&str> = model.output_types.iter().map(|output| output.as_str()).collect();
    Ok(serde_json::json!({
        "id": job.planned.name().as_str(),
        "source": source,
        "symbol": symbol,
        "exporter": job.exporter.as_str(),
        "folder": absolute(sources)?,
        "out": absolute(out)?,
        "preset": model.preset,
        "options": model.options.iter().map(|(name, value)| (name.clone(), typed(value))).collect::<serde_json::Map<_, _>>(),
        "output-type": if output_types.is_empty() { None } else { Some(output_types) },
        "function": model.function,
        "seed": 0,
    }))
}

fn absolute(path: &Path) -> Result<PathBuf, PipelineError> {
    std::path::absolute(path).map_err(PipelineError::io("find", path))
}

/// Options travel as text; a number or a truth value is meant as one.
pub(super) fn typed(value: &str) -> serde_json::Value {
    match serde_json::from_str::<serde_json::Value>(value) {
        Ok(scalar @ (serde_json::Value::Number(_) | serde_json::Value::Bool(_))) => scalar,
        _ => serde_json::Value::String(value.to_owned()),
    }
}

#[cfg(test)]
mod tests;
