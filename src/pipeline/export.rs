//! Python model → MLIR, inputs and reference outputs, through the embedded export package.
//!
//! One interpreter exports every model, because importing torch costs seconds. A model that crashes the
//! interpreter fails alone: the next one gets a fresh interpreter.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::model::{Stage, VerifyCode};
use crate::process::{Command, Reply, Session};
use crate::record::StageStatus;
use crate::toolchain::PythonEnv;

use super::PipelineError;
use super::argv::InputArg;
use super::cache::{Entry, KeyBuilder, Lookup, file_sha256};
use super::plan::Planned;
use super::prepare::{Context, Source, StageFailure, StageReport};

const KIND: &str = "export";

/// The protocol this driver speaks; the interpreter says its own in its first line.
const PROTOCOL: &str = "benchgate-export/1";

/// The export package, compiled into the binary so that the two can't drift apart.
#[derive(Debug, Clone, Copy)]
pub struct ExporterSource;

macro_rules! package {
    ($($file:literal),+ $(,)?) => {
        &[$(($file, include_str!(concat!("../../python/benchgate_export/", $file)))),+]
    };
}

impl ExporterSource {
    /// File name and content.
    pub const FILES: &[(&str, &str)] = package![
        "__init__.py",
        "__main__.py",
        "protocol.py",
        "serve.py",
        "source.py",
        "tensors.py",
        "torch_mlir_exporter.py",
    ];

    fn digest() -> String {
        Self::FILES
            .iter()
            .fold(KeyBuilder::new("exporter/1"), |key, (name, content)| key.text(name, content))
            .finish()
    }
}

/// The interpreter, started when the first model needs it.
pub(super) struct Exporter {
    python: Option<PythonEnv>,
    session: Option<Session>,
    /// The interpreter's own temporary folder.
    temporary: Option<tempfile::TempDir>,
}

impl Exporter {
    pub(super) const fn new(python: Option<PythonEnv>) -> Self {
        Self { python, session: None, temporary: None }
    }

    /// Ends the interpreter. It has nothing left to lose, so how it ends is not news.
    pub(super) async fn stop(&mut self) {
        if let Some(session) = self.session.take() {
            // A moment for torch's own threads.
            const LIMIT: Duration = Duration::from_secs(5);
            drop(session.finish(LIMIT).await);
        }
    }

    /// Starts the interpreter unless it runs, and checks that it speaks this protocol.
    async fn session(
        &mut self,
        context: &Context<'_>,
        log: &Path,
        timeout: Duration,
    ) -> Result<Result<&mut Session, StageFailure>, PipelineError> {
        if self.session.is_none() {
            let Some(python) = &self.python else {
                return Ok(Err(StageFailure::new("no Python environment was prepared for this model")));
            };
            let package = install_package(context)?;
            let temporary = context.cache.stage()?;
            let command = Command::new(&python.python, timeout)
                .args(["-m", "benchgate_export"])
                // `-m` looks in the current folder first: a torch.py beside a model must not shadow torch.
                .cwd(&package)
                // torch-mlir leaves reproducers here; nobody else's.
                .env("TMPDIR", temporary.path())
                .env("PYTHONDONTWRITEBYTECODE", "1")
                // Hash order decides the order of some passes' output; one order for one content.
                .env("PYTHONHASHSEED", "0")
                .log(log);
            let mut session = Session::start(&command).await?;
            let hello = session.receive(context.cancel).await?;
            match hello {
                Reply::Line(line) if is_hello(&line) => {}
                Reply::Interrupted => return Err(PipelineError::Interrupted),
                other => {
                    return Ok(Err(crashed(session, other, "start").await?));
                }
            }
            self.session = Some(session);
            self.temporary = Some(temporary);
        }
        Ok(self.session.as_mut().ok_or_else(|| StageFailure::new("the exporter did not start")))
    }
}

fn is_hello(line: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(line).is_ok_and(|hello| hello["hello"] == PROTOCOL)
}

/// Writes the package into the cache, once per version of benchgate.
fn install_package(context: &Context<'_>) -> Result<PathBuf, PipelineError> {
    const NAME: &str = "benchgate_export";
    let key = ExporterSource::digest();
    if let Lookup::Hit(entry) = context.cache.lookup("exporter", &key)? {
        return Ok(entry.folder);
    }
    let staged = context.cache.stage()?;
    let folder = staged.path().join(NAME);
    fs::create_dir(&folder).map_err(PipelineError::io("create", &folder))?;
    let mut files = Vec::new();
    for (name, content) in ExporterSource::FILES {
        let path = folder.join(name);
        fs::write(&path, content).map_err(PipelineError::io("write", &path))?;
        files.push(format!("{NAME}/{name}"));
    }
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    Ok(context.cache.store("exporter", &key, staged, &files, serde_json::Value::Null)?.folder)
}

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
        let all = |names: &[String]| names.iter().map(|name| self.entry.path(name)).collect::<Vec<_>>();
        Source {
            mlir: self.entry.path(&self.meta.mlir),
            mlir_sha256: self.entry.files.get(&self.meta.mlir).cloned().unwrap_or_default(),
            inputs: all(&self.meta.inputs).into_iter().map(InputArg::Npy).collect(),
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

/// The digest of everything that decides the export: the package, the environment, the model's own
/// folder of Python files (a model may import its neighbours), and how it is constructed.
fn key(planned: Planned<'_>, python: &PythonEnv, file: &Path, symbol: &str) -> Result<String, PipelineError> {
    let model = planned.model;
    let mut key = KeyBuilder::new("export/2")
        .text("package", &ExporterSource::digest())
        .text("environment", &python.digest)
        .text("file", &file.file_name().unwrap_or_default().to_string_lossy())
        .text("symbol", symbol)
        .text("function", &model.function)
        .text("preset", &format!("{:?}", model.preset))
        .list("option", model.options.iter().map(|(name, value)| format!("{name}={value}")))
        .list("output-type", model.output_types.iter().map(|output| output.as_str()));
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut neighbours = BTreeMap::new();
    for item in fs::read_dir(folder).map_err(PipelineError::io("read", folder))? {
        let path = item.map_err(PipelineError::io("read", folder))?.path();
        if path.extension().is_some_and(|extension| extension == "py") {
            neighbours.insert(path.file_name().unwrap_or_default().to_owned(), file_sha256(&path)?);
        }
    }
    for (name, digest) in neighbours {
        key = key.text(&name.to_string_lossy(), &digest);
    }
    Ok(key.finish())
}

/// Exports a model, or finds what an earlier run exported.
pub(super) async fn export(
    context: &Context<'_>,
    planned: Planned<'_>,
    file: &Path,
    symbol: &str,
) -> Result<Result<Exported, StageFailure>, PipelineError> {
    let key = {
        let exporter = context.exporter.lock().await;
        let Some(python) = &exporter.python else {
            return Ok(Err(StageFailure::new("no Python environment was prepared for this model")));
        };
        key(planned, python, file, symbol)?
    };
    let _making = context.cache.maker(KIND, &key).await;
    match context.cache.lookup(KIND, &key)? {
        Lookup::Hit(entry) => {
            if let Some(meta) = entry.meta_as() {
                return Ok(Ok(Exported { entry, meta }));
            }
        }
        Lookup::Damaged(why) => {
            let text = format!("a damaged cache entry was made again: {why}");
            context.progress.on(crate::model::Event::Warning(&text));
        }
        Lookup::Miss => {}
    }
    let started = Instant::now();
    let staged = context.cache.stage()?;
    let answer = match ask(context, planned, file, symbol, staged.path()).await? {
        Ok(answer) => answer,
        Err(failure) => return Ok(Err(failure)),
    };
    if answer.status == "unsupported" {
        return Ok(Err(StageFailure::unsupported(first_line(&answer))));
    }
    let reference_problem = reference_problem(&answer);
    if answer.status != "ok" && reference_problem.is_none() {
        return Ok(Err(failure(context, &answer, &key)?));
    }
    let Some(mlir) = answer.mlir.as_deref().map(file_name) else {
        return Ok(Err(failure(context, &answer, &key)?));
    };
    let names = |tensors: &[Tensor]| tensors.iter().map(|t| file_name(&t.path)).collect::<Vec<_>>();
    let meta = Meta {
        seconds: started.elapsed().as_secs_f64(),
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
    let entry = context.cache.store(KIND, &key, staged, &files, value)?;
    Ok(Ok(Exported { entry, meta }))
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
    let mut failure = StageFailure::new(format!("{stage}: {}", first_line(answer)));
    if let Some(trace) = &answer.trace {
        let kept = context.cache.stage()?;
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
    planned: Planned<'_>,
    file: &Path,
    symbol: &str,
    out: &Path,
) -> Result<Result<Answer, StageFailure>, PipelineError> {
    let model = planned.model;
    let request = serde_json::json!({
        "id": planned.name().as_str(),
        "source": absolute(file)?,
        "symbol": symbol,
        "out": absolute(out)?,
        "preset": model.preset,
        "options": model.options.iter().map(|(name, value)| (name.clone(), typed(value))).collect::<serde_json::Map<_, _>>(),
        "output-type": model.output_types.iter().map(|output| output.as_str()).collect::<Vec<_>>(),
        "function": model.function,
        "seed": 0,
    });
    let timeout = planned.side.config.measure.export_timeout;
    fs::create_dir_all(&context.logs).map_err(PipelineError::io("create", &context.logs))?;
    let log = context.logs.join("exporter.log");
    let mut exporter = context.exporter.lock().await;
    let session = match exporter.session(context, &log, timeout).await? {
        Ok(session) => session,
        Err(failure) => return Ok(Err(failure)),
    };
    session.send(&request.to_string()).await;
    let mut stage = "start".to_owned();
    loop {
        let reply = session.receive(context.cancel).await?;
        match reply {
            Reply::Line(line) => match serde_json::from_str::<serde_json::Value>(&line) {
                Ok(message)
                    if matches!(message["status"].as_str(), Some("ok" | "failed" | "unsupported")) =>
                {
                    return Ok(serde_json::from_value(message).map_err(|error| {
                        StageFailure::new(format!("the exporter's answer can't be read: {error}"))
                    }));
                }
                Ok(message) => {
                    if let Some(entered) = message["stage"].as_str() {
                        entered.clone_into(&mut stage);
                    }
                }
                Err(error) => {
                    return Ok(Err(StageFailure::new(format!(
                        "the exporter's answer can't be read: {error}"
                    ))));
                }
            },
            Reply::Interrupted => return Err(PipelineError::Interrupted),
            lost => {
                if let Some(session) = exporter.session.take() {
                    let mut failure = crashed(session, lost, &stage).await?;
                    failure.log = Some(log);
                    return Ok(Err(failure));
                }
                return Ok(Err(StageFailure::new("the exporter is gone")));
            }
        }
    }
}

/// How an interpreter was lost, as this model's failure. The next model gets a new interpreter.
async fn crashed(session: Session, reply: Reply, stage: &str) -> Result<StageFailure, PipelineError> {
    let ended = if reply == Reply::TimedOut {
        session.kill().await
    } else {
        session.finish(Duration::from_secs(5)).await
    };
    let how = match (&reply, ended) {
        (Reply::TimedOut, _) => "took too long and was stopped".to_owned(),
        (_, Ok(finished)) => {
            let last =
                finished.stderr_tail.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
            format!("{}{}{last}", finished.exit, if last.is_empty() { "" } else { ": " })
        }
        (_, Err(error)) => error.to_string(),
    };
    Ok(StageFailure::new(format!("{stage}: the exporter {how}")))
}

fn absolute(path: &Path) -> Result<PathBuf, PipelineError> {
    std::path::absolute(path).map_err(PipelineError::io("find", path))
}

/// Options travel as text; a number or a truth value is meant as one.
fn typed(value: &str) -> serde_json::Value {
    match serde_json::from_str::<serde_json::Value>(value) {
        Ok(scalar @ (serde_json::Value::Number(_) | serde_json::Value::Bool(_))) => scalar,
        _ => serde_json::Value::String(value.to_owned()),
    }
}
