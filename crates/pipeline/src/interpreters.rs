//! The Python interpreters that export models, and the package they run.
//!
//! Importing torch takes seconds, so one interpreter serves many models. Another one of the same environment
//! is started only when a model is waiting and a processor is free. Interpreters of different environments
//! run in parallel.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::{Mutex, Semaphore, SemaphorePermit};

use benchgate_host::files::Scratch;
use benchgate_host::process::{Command, END_OF_SECTION, ProgramSession, Reply};
use benchgate_toolchain::{Environment, PythonEnv};

use super::PipelineError;
use super::cache::{Cache, package_digest};
use super::host::Host;
use super::stage::{StageFailure, Staged};
use super::trace::is_library;

const KIND: &str = "exporter";

/// The version of the protocol, which the interpreter prints in its first line.
const PROTOCOL: &str = "benchgate-export/3";

/// Number of models that justify starting an additional interpreter, because each start imports torch.
const MODELS_PER_START: usize = 4;

/// The export package. The package is embedded in the binary, so that their versions always match.
#[derive(Debug, Clone, Copy)]
pub struct ExporterSource;

impl ExporterSource {
    /// Names and contents of the files, sorted by name.
    pub const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/export_package.rs"));

    pub(super) fn digest() -> String {
        package_digest(KIND, Self::FILES)
    }

    /// Writes the package to the cache. Returns the folder to import it from.
    pub(super) fn install(cache: &Cache) -> Result<PathBuf, PipelineError> {
        cache.install(KIND, "benchgate_export", Self::FILES)
    }
}

/// The environments of a run; for those that could not be installed, the reason.
pub(super) type Environments = BTreeMap<Environment, Result<PythonEnv, String>>;

/// All export interpreters of a run.
#[derive(Default)]
pub(super) struct Exporters {
    environments: Environments,
    pools: BTreeMap<Environment, Pool>,
}

/// The interpreters of one environment.
struct Pool {
    /// Limits the number of parallel interpreters.
    leases: Semaphore,
    /// Interpreters that are running and waiting for a model.
    idle: Mutex<Vec<ExportInterpreter>>,
}

/// A running interpreter and its own temporary folder.
pub(super) struct ExportInterpreter {
    pub(super) session: ProgramSession,
    /// The libraries that it has loaded. Later exports can use them without opening them again, so each counts as a user
    /// of all of them.
    libraries: BTreeSet<PathBuf>,
    /// The source folder from which it exports. An interpreter serves one side only, because that side's code
    /// may have changed its state.
    serves: PathBuf,
    _temporary: Scratch,
}

/// The right to use one interpreter of an environment.
pub(super) struct Lease<'a> {
    pool: &'a Pool,
    python: &'a PythonEnv,
    _permit: SemaphorePermit<'a>,
}

impl Exporters {
    /// Creates pools for at most `jobs` parallel tools and this number of models for each environment.
    pub(super) fn new(
        environments: Environments,
        jobs: usize,
        models: &BTreeMap<Environment, usize>,
    ) -> Self {
        // Interpreters get half of the processors, because the other half compiles what has been exported.
        let share = (jobs / 2 / environments.len().max(1)).max(1);
        let pools = environments.keys().map(|environment| {
            let wanted = models.get(environment).copied().unwrap_or(0).div_ceil(MODELS_PER_START).max(1);
            let pool = Pool { leases: Semaphore::new(share.min(wanted)), idle: Mutex::new(Vec::new()) };
            (*environment, pool)
        });
        Self { pools: pools.collect(), environments }
    }

    /// The environment, or the reason why it is not available.
    pub(super) fn environment(&self, environment: Environment) -> Result<&PythonEnv, StageFailure> {
        match self.environments.get(&environment) {
            Some(found) => found.as_ref().map_err(StageFailure::new),
            None => Err(unprepared(environment)),
        }
    }

    /// Waits for the right to use an interpreter.
    pub(super) async fn lease(&self, host: &Host<'_>, environment: Environment) -> Staged<Lease<'_>> {
        let python = self.environment(environment)?;
        let Some(pool) = self.pools.get(&environment) else { return Err(unprepared(environment).into()) };
        tokio::select! {
            // The semaphore is never closed, so a permit is always returned.
            turn = pool.leases.acquire() => {
                let permit = turn.map_err(|_| PipelineError::Interrupted)?;
                Ok(Lease { pool, python, _permit: permit })
            }
            () = host.cancel.requested() => Err(PipelineError::Interrupted.into()),
        }
    }

    /// Ends all interpreters. The interpreters have finished their work, so their exit codes don't matter.
    pub(super) async fn stop(&self) {
        // Torch's own threads need a moment to end.
        const LIMIT: Duration = Duration::from_secs(5);
        for pool in self.pools.values() {
            for interpreter in pool.idle.lock().await.drain(..) {
                drop(interpreter.session.finish(LIMIT).await);
            }
        }
    }
}

fn unprepared(environment: Environment) -> StageFailure {
    StageFailure::new(format!("no Python environment {} was prepared", environment.name()))
}

impl Lease<'_> {
    /// Returns an idle interpreter for these sources, or starts a new one and checks its protocol.
    pub(super) async fn interpreter(
        &self,
        host: &Host<'_>,
        sources: &Path,
        log: &Path,
        timeout: Duration,
    ) -> Staged<ExportInterpreter> {
        {
            let mut idle = self.pool.idle.lock().await;
            if let Some(at) = idle.iter().position(|interpreter| interpreter.serves == sources) {
                return Ok(idle.swap_remove(at));
            }
        }
        let package = ExporterSource::install(&host.cache)?;
        let temporary = host.scratch()?;
        let command = Command::new(&self.python.python, timeout)
            .args(["-m", "benchgate_export"])
            // With `-m`, Python searches the current folder first, and a `torch.py` next to a model must not
            // shadow torch.
            .cwd(&package)
            .env("BENCHGATE_PACKAGES", self.python.suite_packages.as_deref().unwrap_or_else(|| Path::new("")))
            // torch-mlir writes its reproducers to this folder.
            .env("TMPDIR", temporary.path())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            // The order of hashes affects the output of some passes, so it is fixed.
            .env("PYTHONHASHSEED", "0")
            // One thread per interpreter, because several interpreters and the compiler run at the same time.
            .env("OMP_NUM_THREADS", "1")
            .env("MKL_NUM_THREADS", "1")
            // The device of torch-xla, which would look for a TPU otherwise.
            .env("PJRT_DEVICE", "CPU")
            .env("BENCHGATE_END_OF_SECTION", END_OF_SECTION)
            .log(log)
            // Libraries of native code open files without a report of Python.
            .observed();
        let mut session = ProgramSession::start(&command).await?;
        match session.receive(host.cancel).await? {
            Reply::Line(line) if is_hello(&line) => {}
            Reply::Interrupted => return Err(PipelineError::Interrupted.into()),
            lost => return Err(crashed(session, lost, "start").await.into()),
        }
        let mut interpreter = ExportInterpreter {
            session,
            libraries: BTreeSet::new(),
            serves: sources.to_owned(),
            _temporary: temporary,
        };
        // Exports use none of the files that the start opened, except for libraries.
        drop(interpreter.used());
        Ok(interpreter)
    }

    /// Returns an interpreter to the pool, so that it can export another model.
    pub(super) async fn give_back(&self, interpreter: ExportInterpreter) {
        self.pool.idle.lock().await.push(interpreter);
    }
}

impl ExportInterpreter {
    /// The files that the last request used, if they could be observed.
    pub(super) fn used(&mut self) -> Option<BTreeSet<PathBuf>> {
        let mut used = self.session.used()?;
        self.libraries.extend(used.iter().filter(|path| is_library(path)).cloned());
        used.extend(self.libraries.iter().cloned());
        Some(used)
    }
}

fn is_hello(line: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(line).is_ok_and(|hello| hello["hello"] == PROTOCOL)
}

/// The failure of a model whose interpreter was lost while exporting it.
pub(super) async fn crashed(session: ProgramSession, reply: Reply, stage: &str) -> StageFailure {
    let ended = if reply == Reply::TimedOut {
        session.kill().await
    } else {
        session.finish(Duration::from_secs(5)).await
    };
    let mut killed = false;
    let how = match ended {
        Ok(finished) if reply == Reply::TimedOut => finished.exit.to_string(),
        Ok(finished) => {
            let last = finished.stderr_tail.lines().rev().find(|line| !line.trim().is_empty());
            let cause = finished.ended_from_outside();
            killed = cause.is_some();
            let why = cause.or(last).map(|why| format!(": {why}")).unwrap_or_default();
            format!("{}{why}", finished.exit)
        }
        Err(error) => error.to_string(),
    };
    StageFailure { killed, ..StageFailure::new(format!("{stage}: the exporter {how}")) }
}

#[cfg(test)]
mod tests {
    use super::ExporterSource;
    use benchgate_config::ZOO;

    #[test]
    fn every_model_of_the_zoo_has_a_file_and_every_file_is_a_model() {
        let files = ExporterSource::FILES.iter();
        let models = files.filter_map(|(name, _)| name.strip_prefix("zoo/")?.strip_suffix(".py"));
        let models = models.filter(|name| !name.starts_with('_')).map(|name| name.replace('_', "-"));
        let models = models.collect::<Vec<_>>().join(" ");
        assert_eq!(models, ZOO, "`ZOO` in crates/config/src/model.rs lists the models, sorted");
    }
}
