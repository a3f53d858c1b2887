//! The Python interpreters of this machine, and environments that export models and run other backends. Each is a virtual
//! environment with exactly the locked wheels.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::install::{ToolPlace, blocking, succeeded};
use super::manifest::{Look, Scope, ToolManifest, text_digest};
use super::pip::{Name, Pip, SuitePackages, write_requirements};
use super::{Lock, LockedPython, ToolchainError};
use benchgate_config::{Assembler, Backend, BackendKind, Config, Exporter, Model, ModelSource, Target};
use benchgate_core::model::{Event, Progress, Stage, digest_of};
use benchgate_host::files;
use benchgate_host::process::{self, Cancel, Command, Exit};

/// A set of wheels that exporters and backends share. Sets with copies of torch, which take
/// gigabytes each, are separate only if their versions exclude each other. In the order of the
/// variants, an overlay comes after its base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum Environment {
    /// torch-mlir, iree-turbine and ONNX.
    Torch,
    TorchXla,
    /// iree-import-onnx and ONNX Runtime, without torch: enough for a saved ONNX model.
    Onnx,
    /// ONNX Runtime as a backend, laid over [`Self::Torch`].
    #[strum(serialize = "onnxruntime")]
    OnnxRuntime,
    /// NVIDIA's assembler `ptxas`, which is distributed as a wheel but needs no Python.
    Ptxas,
}

impl Environment {
    const fn for_exporter(exporter: Exporter) -> Self {
        match exporter {
            Exporter::TorchMlir | Exporter::IreeTurbine | Exporter::Onnx => Self::Torch,
            Exporter::TorchXla => Self::TorchXla,
        }
    }

    /// The environment that exports a model. `None` for MLIR models, which need no export.
    pub const fn for_model(model: &Model) -> Option<Self> {
        match (&model.source, model.exporter) {
            (ModelSource::Onnx(_), _) => Some(Self::Onnx),
            (_, Some(exporter)) => Some(Self::for_exporter(exporter)),
            (_, None) => None,
        }
    }

    /// The environment that contains a backend's packages.
    pub const fn for_backend(backend: BackendKind) -> Self {
        match backend {
            BackendKind::OnnxRuntime => Self::OnnxRuntime,
            BackendKind::XlaLazy | BackendKind::XlaDynamo => Self::TorchXla,
            BackendKind::Eager | BackendKind::TorchScript | BackendKind::Inductor | BackendKind::TensorRt => {
                Self::Torch
            }
        }
    }

    /// The base of an overlay. The base's Python is started, and the base's packages are found
    /// first.
    pub const fn over(self) -> Option<Self> {
        match self {
            Self::OnnxRuntime => Some(Self::Torch),
            Self::Torch | Self::TorchXla | Self::Onnx | Self::Ptxas => None,
        }
    }

    /// The base of this environment, if any, followed by the environment itself.
    pub fn with_under(self) -> impl Iterator<Item = Self> {
        self.over().into_iter().chain([self])
    }

    /// The environment that contains a target's assembler. `None` if the target needs none or the user
    /// provides one.
    pub fn for_target(target: &Target) -> Option<Self> {
        (target.assembler() == Some(&Assembler::Locked)).then_some(Self::Ptxas)
    }

    /// The environments that a suite's models, targets and backends need.
    pub fn needed(config: &Config) -> BTreeSet<Self> {
        let exporters = config.models.iter().filter_map(Self::for_model);
        let own = |backend: &&Backend| backend.python.is_none();
        let backends = config.backends.iter().filter(own);
        let backends = backends.flat_map(|backend| Self::for_backend(backend.kind).with_under());
        let assemblers = config.targets.iter().filter_map(Self::for_target);
        exporters.chain(backends).chain(assemblers).collect()
    }

    /// The environment's name in `benchgate.lock`.
    pub const fn name(self) -> &'static str {
        self.into_str()
    }

    /// The name in `benchgate.lock` of the packages that a suite adds, for environments that run models in
    /// Python.
    pub(super) const fn suite_name(self) -> Option<&'static str> {
        match self {
            Self::Torch => Some("torch+suite"),
            Self::TorchXla => Some("torch-xla+suite"),
            Self::Onnx | Self::OnnxRuntime | Self::Ptxas => None,
        }
    }

    /// The top-level requirements of the environment.
    pub(super) const fn requirements(self) -> &'static str {
        match self {
            Self::Torch => include_str!("../requirements/torch.in"),
            Self::TorchXla => include_str!("../requirements/torch-xla.in"),
            Self::Onnx => include_str!("../requirements/onnx.in"),
            Self::OnnxRuntime => include_str!("../requirements/onnxruntime.in"),
            Self::Ptxas => include_str!("../requirements/ptxas.in"),
        }
    }

    pub(super) fn requirements_digest(self) -> String {
        text_digest(self.requirements())
    }
}

/// Time limit for installing three gigabytes over a slow connection.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(3 * 3600);
const VENV_TIMEOUT: Duration = Duration::from_secs(300);

/// Number of wheels that one pip call downloads before it unpacks them. All wheels of torch at once would
/// need 3 GB of disk in addition to the 6 GB that they become; one at a time would start pip 86 times.
const WHEELS_AT_ONCE: usize = 4;

/// An installed and verified environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PythonEnv {
    pub python: PathBuf,
    /// Folder of the environment's packages.
    pub packages: PathBuf,
    /// Folder of the packages that the suite adds, which is searched last.
    pub suite_packages: Option<PathBuf>,
    /// Digest of the wheels and the Python version.
    pub digest: String,
}

impl PythonEnv {
    /// The assembler in [`Environment::Ptxas`].
    pub fn ptxas(&self) -> PathBuf {
        self.packages.join("nvidia/cuda_nvcc/bin/ptxas")
    }
}

/// A locked environment: one of benchgate's own, or the packages that a suite adds to it.
struct EnvironmentChoice<'a> {
    name: &'static str,
    requirements_sha256: String,
    /// The Python versions to choose from; `None` for all.
    pythons: Option<Vec<&'a str>>,
}

impl<'a> EnvironmentChoice<'a> {
    fn locked(&self, lock: &'a Lock) -> Result<Vec<&'a LockedPython>, ToolchainError> {
        lock.python(self.name, &self.requirements_sha256, self.pythons.as_deref())
    }
}

/// Returns an environment together with the packages that the suite adds, and installs them first if
/// necessary.
///
/// # Errors
/// The environment is not locked for a Python of this machine, or an error of [`super::ensure`].
pub async fn ensure_python(
    environment: Environment,
    suite: &SuitePackages,
    lock: &Lock,
    cache: &Path,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<PythonEnv, ToolchainError> {
    // The Python of the base loads the overlay's packages, so their wheels must be for that Python.
    let under = environment.over().unwrap_or(environment);
    let mut wanted = EnvironmentChoice {
        name: under.name(),
        requirements_sha256: under.requirements_digest(),
        pythons: None,
    };
    let mut added = under.suite_name().filter(|_| !suite.is_empty()).map(|name| EnvironmentChoice {
        name,
        requirements_sha256: suite.digest(&under.requirements_digest()),
        pythons: None,
    });
    if let Some(suite_environment) = &added {
        wanted.locked(lock)?;
        match suite_environment.locked(lock) {
            Ok(locked) => wanted.pythons = Some(locked.iter().map(|env| env.python.as_str()).collect()),
            // The packages are optional: many torchbench models list packages that they don't need, and a
            // model that needs a missing package reports it.
            Err(_) if suite.own.is_empty() => added = None,
            Err(error) => return Err(error),
        }
    }
    let (env, interpreter) = pick(&wanted, lock, cache, cancel).await?;
    let pythons = Some(vec![env.python.as_str()]);
    if environment != under {
        let requirements_sha256 = environment.requirements_digest();
        let own = EnvironmentChoice { name: environment.name(), requirements_sha256, pythons };
        let (env, interpreter) = pick(&own, lock, cache, cancel).await?;
        return install(env, interpreter, cache, progress, cancel).await;
    }
    let python = env.python.as_str();
    let mut installed = install(env, interpreter, cache, progress, cancel).await?;
    if let Some(added) = added {
        let added = EnvironmentChoice { pythons: Some(vec![python]), ..added };
        let (env, interpreter) = pick(&added, lock, cache, cancel).await?;
        let own = install(env, interpreter, cache, progress, cancel).await?;
        installed.digest = digest_of([installed.digest.as_str(), own.digest.as_str()]);
        installed.suite_packages = Some(own.packages);
    }
    Ok(installed)
}

/// Verifies a locked environment, and installs it first if an interpreter is given.
async fn install(
    env: &LockedPython,
    interpreter: Option<Interpreter>,
    cache: &Path,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<PythonEnv, ToolchainError> {
    let started = Instant::now();
    let what = format!("Python {} with {}", env.python, env.name);
    let place = place_of(env, cache);
    progress.on(Event::StepStarted { stage: Stage::Toolchain, what: &what });
    if let Some(interpreter) = &interpreter {
        let staging = stage(env, interpreter, &what, &place, cache, cancel);
        place.install(staging, progress, cancel).await?;
    }
    let root = place.root.clone();
    blocking(&place.root, move || {
        let missing = || ToolchainError::MissingTool { tool: "a manifest".into(), root: root.clone() };
        ToolManifest::read(&root)?.ok_or_else(missing)?.check(&root, Look::AtStamps, Scope::Everything)
    })
    .await?;
    files::mark_used(&place.root);
    let note = if interpreter.is_some() { "installed" } else { "verified" };
    progress.on(Event::StepFinished { stage: Stage::Toolchain, what: &what, note, took: started.elapsed() });
    Ok(PythonEnv {
        python: place.root.join("bin/python"),
        packages: place.root.join(format!("lib/python{}/site-packages", env.python)),
        suite_packages: None,
        digest: digest(env),
    })
}

/// Chooses a locked environment: an installed one, for which no Python has to be found, otherwise the newest
/// that can be installed.
async fn pick<'a>(
    wanted: &EnvironmentChoice<'a>,
    lock: &'a Lock,
    cache: &Path,
    cancel: &Cancel,
) -> Result<(&'a LockedPython, Option<Interpreter>), ToolchainError> {
    let locked = wanted.locked(lock)?;
    match locked.iter().find(|env| place_of(env, cache).is_installed()) {
        Some(env) => Ok((*env, None)),
        None => choose(&locked, lock, cancel).await,
    }
}

fn place_of(env: &LockedPython, cache: &Path) -> ToolPlace {
    ToolPlace::new(cache, "python", &digest(env))
}

fn digest(env: &LockedPython) -> String {
    let wheels = env.wheels.iter().flat_map(|wheel| [wheel.file.as_str(), wheel.sha256.as_str()]);
    digest_of(["python-1", env.python.as_str()].into_iter().chain(wheels))[..32].to_owned()
}

/// Chooses the environment with the newest locked Python that this machine has.
async fn choose<'a>(
    locked: &[&'a LockedPython],
    lock: &Lock,
    cancel: &Cancel,
) -> Result<(&'a LockedPython, Option<Interpreter>), ToolchainError> {
    for env in locked {
        if let Some(found) = of_version(&env.python, cancel).await? {
            return Ok((env, Some(found)));
        }
    }
    let wanted: Vec<&str> = locked.iter().map(|env| env.python.as_str()).collect();
    let here: Vec<String> = all(cancel).await?.iter().map(Interpreter::version).collect();
    Err(ToolchainError::NotLocked {
        what: format!("an environment for a Python of this machine ({})", here.join(", ")),
        found: format!("has Python {}", wanted.join(", ")),
        lock: lock.file.clone(),
    })
}

async fn stage(
    env: &LockedPython,
    interpreter: &Interpreter,
    what: &str,
    place: &ToolPlace,
    cache: &Path,
    cancel: &Cancel,
) -> Result<(), ToolchainError> {
    let tree = place.tree();
    // The environment is created without pip. There is one program less to trust, and this also
    // works on distributions that package pip separately.
    let make = Command::new(&interpreter.executable, VENV_TIMEOUT)
        .args(["-m", "venv", "--without-pip", "--clear"])
        .arg(tree.as_os_str());
    succeeded(&make, cancel).await?;
    let folder = match &interpreter.pip {
        Some(folder) => Some(folder.clone()),
        None => with_pip(cache, cancel).await?.pip,
    };
    let pip = Pip { pip: folder, ..Pip::of(tree.join("bin/python"), place.work(), INSTALL_TIMEOUT) };
    let lines: Vec<String> = env
        .wheels
        .iter()
        .filter_map(|wheel| Some((Name::parse(&wheel.file)?, &wheel.sha256)))
        .map(|(name, sha256)| format!("{} --hash=sha256:{sha256}", name.requirement()))
        .collect();
    let requirements = place.work().join("requirements.txt");
    // pip may run under another Python and see its packages. Without `--ignore-installed` it would leave out
    // packages that the other Python already has.
    let arguments = [
        "install",
        "--no-deps",
        "--no-compile",
        "--require-hashes",
        "--only-binary=:all:",
        "--ignore-installed",
    ];
    for some in lines.chunks(WHEELS_AT_ONCE) {
        write_requirements(&requirements, some)?;
        let arguments = arguments.iter().map(OsStr::new);
        pip.run(what, arguments.chain([OsStr::new("--requirement"), requirements.as_os_str()]), cancel)
            .await?;
    }
    let what = what.to_owned();
    blocking(&place.root, move || ToolManifest::take(&tree, what, Scope::Everything)?.write(&tree)).await
}

/// Names to look for; the interpreter that the user has selected comes first.
const NAMES: &[&str] =
    &["python3", "python3.14", "python3.13", "python3.12", "python3.11", "python3.10", "python"];

/// The oldest minor version of Python 3 that the wheels of IREE and torch support.
const OLDEST: u32 = 10;

/// Time limit for the script below. Python usually starts in a fraction of a second, but a home folder on a
/// network can make it much slower.
const PATIENCE: Duration = Duration::from_secs(60);

/// A script that prints facts about a Python interpreter. It also prints the folder of pip, because
/// another Python may have to run this pip, which all versions of pip support.
const QUESTION: &str = "\
import json, os, sys
def has(name):
    import importlib.util
    return importlib.util.find_spec(name) is not None
pip = None
if has('pip'):
    import pip as p
    pip = os.path.dirname(os.path.abspath(p.__file__))
print(json.dumps({'major': sys.version_info[0], 'minor': sys.version_info[1],
                  'executable': sys.executable, 'pip': pip, 'venv': has('venv'), 'ensurepip': has('ensurepip')}))";

/// A Python interpreter that was found.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Interpreter {
    major: u32,
    minor: u32,
    pub(super) executable: PathBuf,
    /// The folder of its pip package, which Python can run as a program.
    pub(super) pip: Option<PathBuf>,
    venv: bool,
    ensurepip: bool,
}

impl Interpreter {
    /// The version without its patch number, for example `3.11`.
    pub(super) fn version(&self) -> String {
        format!("{}.{}", self.major, self.minor)
    }

    fn is_recent(&self) -> bool {
        self.major == 3 && self.minor >= OLDEST
    }
}

/// Versions of the Python interpreters that can be used here, in order of preference. Used by `doctor`.
///
/// # Errors
/// The search was interrupted.
pub async fn pythons(cancel: &Cancel) -> Result<Vec<String>, ToolchainError> {
    Ok(all(cancel).await?.iter().map(Interpreter::version).collect())
}

/// Every supported Python interpreter that can be found, in order of preference, with each version once.
pub(super) async fn all(cancel: &Cancel) -> Result<Vec<Interpreter>, ToolchainError> {
    let mut usable: Vec<Interpreter> = Vec::new();
    for name in NAMES {
        if let Some(found) = ask(Path::new(name), cancel).await?
            && found.is_recent()
            && !usable.iter().any(|known| known.version() == found.version())
        {
            usable.push(found);
        }
    }
    Ok(usable)
}

/// The first Python that can install wheels. If a Python comes without pip but can install it (as those of uv
/// and of some distributions), an environment with pip is created below `cache`.
pub(super) async fn with_pip(cache: &Path, cancel: &Cancel) -> Result<Interpreter, ToolchainError> {
    let mut seen = Vec::new();
    let mut could = None;
    for name in NAMES {
        let Some(found) = ask(Path::new(name), cancel).await? else { continue };
        if found.is_recent() && found.pip.is_some() {
            return Ok(found);
        }
        let lack = if found.is_recent() { "without pip" } else { "too old" };
        seen.push(format!("{} ({}, {lack})", found.executable.display(), found.version()));
        if found.is_recent() && found.venv && found.ensurepip {
            could = could.or(Some(found));
        }
    }
    if let Some(bare) = could
        && let Some(found) = bootstrapped(&bare, cache, cancel).await?
    {
        return Ok(found);
    }
    let found = if seen.is_empty() {
        "there is no python3 in PATH".to_owned()
    } else {
        format!("found {}", seen.join(", "))
    };
    Err(ToolchainError::NoPython { found })
}

async fn bootstrapped(
    bare: &Interpreter,
    cache: &Path,
    cancel: &Cancel,
) -> Result<Option<Interpreter>, ToolchainError> {
    let folder = cache.join("python").join(format!("pip-{}", bare.version()));
    let python = folder.join("bin/python");
    if let Some(found) = ask(&python, cancel).await?
        && found.pip.is_some()
    {
        return Ok(Some(found));
    }
    // `--clear` removes the remains of a killed attempt. Two simultaneous attempts create the same files.
    let make = Command::new(&bare.executable, PATIENCE * 5).args(["-m", "venv", "--clear"]).arg(&folder);
    process::run(&make, cancel).await?;
    Ok(ask(&python, cancel).await?.filter(|found| found.pip.is_some()))
}

/// A Python of this version that can create an environment.
async fn of_version(version: &str, cancel: &Cancel) -> Result<Option<Interpreter>, ToolchainError> {
    for name in [format!("python{version}"), "python3".to_owned(), "python".to_owned()] {
        if let Some(found) = ask(Path::new(&name), cancel).await?
            && found.version() == version
            && found.venv
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Asks a program for its facts. `None` if it doesn't exist or is not a Python, for example a shim for a
/// version that is not installed.
async fn ask(program: &Path, cancel: &Cancel) -> Result<Option<Interpreter>, ToolchainError> {
    let command = Command::new(program, PATIENCE).args(["-c", QUESTION]).capture_stdout();
    match process::run(&command, cancel).await {
        Ok(finished) if finished.exit == Exit::Interrupted => Err(ToolchainError::Interrupted),
        Ok(finished) => Ok(serde_json::from_slice(&finished.stdout).ok()),
        // A program that can't be started is not a usable Python.
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needed(backends: &str) -> Vec<&'static str> {
        let commit = "1".repeat(40);
        let text = format!(
            "[suite]\nname = \"s\"\n[toolchain]\nversion = \"1.0\"\ncommit = \"{commit}\"\n\
             [[model]]\nname = \"m\"\nsource = \"m.mlir\"\ninputs = [\"4xf32\"]\n\
             [[target]]\nname = \"cpu\"\nbackend = \"llvm-cpu\"\n{backends}"
        );
        let config = benchgate_config::parse(&text, Path::new("benchgate.toml")).unwrap();
        Environment::needed(&config).into_iter().map(Environment::name).collect()
    }

    #[test]
    fn an_overlay_has_the_python_it_lies_over() {
        let mut lock = Lock::default();
        for python in ["3.11", "3.13"] {
            lock.put_python(LockedPython {
                name: "onnxruntime".into(),
                platform: super::super::lock::platform(),
                python: python.into(),
                requirements_sha256: Environment::OnnxRuntime.requirements_digest(),
                wheels: Vec::new(),
            });
        }
        let of = |python: Option<&[&str]>| {
            lock.python("onnxruntime", &Environment::OnnxRuntime.requirements_digest(), python)
        };
        let pythons =
            |found: Vec<&LockedPython>| found.iter().map(|env| env.python.clone()).collect::<Vec<_>>();
        assert_eq!(pythons(of(None).unwrap()), ["3.13", "3.11"]);
        assert_eq!(pythons(of(Some(&["3.11"])).unwrap()), ["3.11"]);
        let error = of(Some(&["3.12"])).unwrap_err().to_string();
        assert!(error.contains("the Python environment onnxruntime for Python 3.12"), "{error}");
    }

    #[test]
    fn what_backends_need_is_locked_with_what_exporters_need() {
        assert_eq!(needed(""), [""; 0]);
        assert_eq!(needed("[[backend]]\nname = \"onnxruntime\"\n"), ["torch", "onnxruntime"]);
        assert_eq!(needed("[[backend]]\nname = \"xla-dynamo\"\n"), ["torch-xla"]);
        // A user's own interpreter is used with its own packages.
        assert_eq!(needed("[[backend]]\nname = \"onnxruntime\"\npython = \"own/python\"\n"), [""; 0]);
    }
}
