//! `[[backend]]`: the same models beside IREE, for context.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::problems::{Collector, did_you_mean, shown};
use super::view::View;
use super::{Model, defaults};

/// What runs a torch model instead of IREE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BackendKind {
    Eager,
    TorchScript,
    Inductor,
    OnnxRuntime,
    XlaLazy,
    XlaDynamo,
    TensorRt,
}

impl BackendKind {
    pub const ALL: [Self; 7] = [
        Self::Eager,
        Self::TorchScript,
        Self::Inductor,
        Self::OnnxRuntime,
        Self::XlaLazy,
        Self::XlaDynamo,
        Self::TensorRt,
    ];

    /// The names of all, in the same order.
    pub const NAMES: [&str; 7] =
        ["eager", "torchscript", "inductor", "onnxruntime", "xla-lazy", "xla-dynamo", "tensorrt"];

    pub const fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

impl fmt::Display for BackendKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What one iteration does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Test {
    Eval,
    Train,
}

impl Test {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Eval => "eval",
            Self::Train => "train",
        }
    }
}

/// A `[[backend]]`. An empty axis is the model's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backend {
    pub kind: BackendKind,
    /// Names of models; empty for all.
    pub models: Vec<String>,
    pub tests: Vec<Test>,
    pub batch_sizes: Vec<u32>,
    pub dtypes: Vec<String>,
    pub matmul_precisions: Vec<String>,
    pub processes: u32,
    pub repetitions: Option<u32>,
    pub iterations: Option<u32>,
    pub timeout: Duration,
    /// The user's own interpreter, instead of an environment that benchgate makes.
    pub python: Option<PathBuf>,
    pub env: BTreeMap<String, String>,
}

impl Backend {
    /// The backend with nothing said about it.
    pub fn new(kind: BackendKind) -> Self {
        Self {
            kind,
            models: Vec::new(),
            tests: vec![Test::Eval],
            batch_sizes: Vec::new(),
            dtypes: Vec::new(),
            matmul_precisions: Vec::new(),
            processes: defaults::BACKEND_PROCESSES,
            repetitions: None,
            iterations: None,
            timeout: defaults::BACKEND_TIMEOUT,
            python: None,
            env: BTreeMap::new(),
        }
    }
}

pub(super) fn backends(
    root: View<'_, '_>,
    models: &[Model],
    file: &Path,
    problems: &mut Collector,
) -> Vec<Backend> {
    let mut seen = BTreeMap::new();
    let mut all = Vec::new();
    for view in root.get("backend").items() {
        super::build::unique(view.get("name"), "backend", &mut seen, problems);
        for name in view.get("models").items() {
            let Some(text) = name.text() else { continue };
            if !models.iter().any(|model| model.name == text) {
                let advice = did_you_mean(text, models.iter().map(|model| model.name.as_str()));
                problems.add(name.at(), format!("no model is named `{}`{advice}", shown(text)));
            }
        }
        let Some(kind) = BackendKind::parse(&view.get("name").owned()) else { continue };
        all.push(one(kind, view, file, problems));
    }
    all
}

fn one(kind: BackendKind, view: View<'_, '_>, file: &Path, problems: &mut Collector) -> Backend {
    let plain = Backend::new(kind);
    for key in ["test", "batch-size", "dtype", "matmul-precision"] {
        let mut values = Vec::new();
        for item in view.get(key).items() {
            let value = item.scalar();
            if value.is_some() && values.contains(&value) {
                let value = value.unwrap_or_default();
                problems.add(item.at(), format!("`{key}`: `{}` is listed twice", shown(&value)));
            } else {
                values.push(value);
            }
        }
    }
    if view.get("timeout").duration().is_some_and(|duration| duration.is_zero()) {
        problems.add(view.get("timeout").at(), "`timeout`: expected more than zero");
    }
    let texts = |key: &str| -> Vec<String> {
        view.get(key).one_or_more().into_iter().filter_map(View::text).map(str::to_owned).collect()
    };
    let tests: Vec<Test> = [Test::Eval, Test::Train]
        .into_iter()
        .filter(|test| texts("test").iter().any(|text| text == test.as_str()))
        .collect();
    Backend {
        models: view.get("models").texts(),
        tests: if tests.is_empty() { plain.tests } else { tests },
        batch_sizes: view.get("batch-size").items().filter_map(View::integer).collect(),
        dtypes: texts("dtype"),
        matmul_precisions: texts("matmul-precision"),
        processes: view.get("processes").integer().unwrap_or(plain.processes),
        repetitions: view.get("repetitions").integer(),
        iterations: view.get("iterations-per-run").integer(),
        timeout: view.get("timeout").duration().unwrap_or(plain.timeout),
        // The interpreter runs in other folders.
        python: view.get("python").text().map(|path| file.parent().unwrap_or(Path::new("")).join(path)),
        env: view
            .get("env")
            .entries()
            .filter_map(|(name, _, value)| Some((name.to_owned(), value.text()?.to_owned())))
            .collect(),
        kind,
    }
}
