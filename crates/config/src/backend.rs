//! `[[backend]]`: the same models on other backends, for comparison. Without a list of batch sizes, data
//! types or matmul precisions, a model keeps its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use strum::VariantNames;

use super::Model;
use super::fields::{COUNT, KeyPresence, NAMES, ValueKind};
use super::problems::{Collector, among};
use super::table::{DeclaredTable, minutes, table};
use super::values::ConfigView;
use super::values::shown;

/// A backend that runs a torch model instead of IREE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[derive(strum::Display, strum::EnumString, strum::IntoStaticStr, strum::VariantArray, strum::VariantNames)]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum BackendKind {
    Eager,
    #[strum(serialize = "torchscript")]
    TorchScript,
    Inductor,
    #[strum(serialize = "onnxruntime")]
    OnnxRuntime,
    XlaLazy,
    XlaDynamo,
    #[strum(serialize = "tensorrt")]
    TensorRt,
}

/// The work that one iteration does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum BackendTest {
    Eval,
    Train,
}

table! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Backend, BACKEND: "[[backend]]",
        "Runs the same models on a backend other than IREE, for context. These results are never \
        judged; a backend that fails or is not installed gets a row with the reason. Every combination of \
        axis values is one experiment; `--axis \
        NAME=VALUE` selects some. Experiments run after everything that is judged, one process at a time, on the \
        same processors.";
    "name": KeyPresence::Required => kind: BackendKind = BackendKind::Eager, ValueKind::Choice(BackendKind::VARIANTS),
        "The backend. Several tables may name the same backend if their experiments differ.";
    "models" => models: Vec<String>, NAMES, "Names of the models that the backend runs; all of them when empty.";
    "test": KeyPresence::Text("\"eval\"") => tests: Vec<BackendTest> = vec![BackendTest::Eval],
        ValueKind::OneOrMore(&ValueKind::Choice(BackendTest::VARIANTS)),
        "Axis: `eval` is a forward pass without gradients; `train` is forward, loss and backward, without an optimizer step.";
    "batch-size" => batch_sizes: Vec<u32>, ValueKind::List(&COUNT),
        "Axis: batch size, passed to the constructor as `batch_size` or `batch`; the model's own when empty.";
    "dtype": KeyPresence::Optional => dtypes: Vec<String> = Vec::new(),
        ValueKind::OneOrMore(&ValueKind::Choice(&["f64", "f32", "f16", "bf16", "amp"])),
        "Axis: type to which weights and floating-point inputs are cast, or `amp` for automatic mixed precision (bf16 on a \
             CPU, f16 on a GPU); the model's own by default.";
    "matmul-precision": KeyPresence::Optional => matmul_precisions: Vec<String> = Vec::new(),
        ValueKind::OneOrMore(&ValueKind::Choice(&["highest", "high", "medium"])),
        "Axis: value of `torch.set_float32_matmul_precision`; torch's own by default.";
    "processes" => processes: u32 = 3, COUNT, "Fresh processes of each experiment.";
    "repetitions" => repetitions: Option<u32>, COUNT,
        "Repetitions inside one process; those of `[measure]` by default.";
    "iterations-per-run" => iterations: Option<u32>, COUNT,
        "Iterations of one repetition; by default as many as fill `min-time` of `[measure]`.";
    "timeout" => timeout: Duration = minutes(10), ValueKind::Duration, "Limit of one process, including its compiler.";
    "python" => python: Option<PathBuf>, ValueKind::AnyPath,
        "Your own interpreter with torch and the backend, instead of benchgate's environment: for example \
        TensorRT in a vendor's container. Relative to this file's folder.";
    "env" => env: BTreeMap<String, String>, ValueKind::Texts, "Environment variables of the backend's processes.";
}

impl Backend {
    /// Returns true if both tables define an experiment of the same name.
    fn overlaps(&self, other: &Self) -> bool {
        fn shares<T: PartialEq>(a: &[T], b: &[T]) -> bool {
            a.iter().any(|value| b.contains(value))
        }
        /// An empty list stands for the model's own value, which no other list can contain.
        fn meets<T: PartialEq>(a: &[T], b: &[T]) -> bool {
            (a.is_empty() && b.is_empty()) || shares(a, b)
        }
        self.kind == other.kind
            && (self.models.is_empty() || other.models.is_empty() || shares(&self.models, &other.models))
            && shares(&self.tests, &other.tests)
            && meets(&self.batch_sizes, &other.batch_sizes)
            && meets(&self.dtypes, &other.dtypes)
            && meets(&self.matmul_precisions, &other.matmul_precisions)
    }

    /// The backend that a table with nothing but this name declares.
    pub fn new(kind: BackendKind) -> Self {
        one(kind, ConfigView::ABSENT, Path::new(""), &mut Collector::default())
    }
}

pub(super) fn backends(
    root: ConfigView<'_, '_>,
    models: &[Model],
    folder: &Path,
    problems: &mut Collector,
) -> Vec<Backend> {
    let names: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
    let mut all: Vec<Backend> = Vec::new();
    for view in root.get("backend").items() {
        among(view.get("models"), "model", &names, problems);
        let Some(kind) = view.get("name").word() else { continue };
        let backend = one(kind, view, folder, problems);
        if all.iter().any(|other| other.overlaps(&backend)) {
            let name = kind.into_str();
            problems
                .add(view.get("name").at(), format!("a second backend `{name}` has the same experiments"));
        }
        all.push(backend);
    }
    all
}

fn one(kind: BackendKind, view: ConfigView<'_, '_>, folder: &Path, problems: &mut Collector) -> Backend {
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
        view.get(key).one_or_more().into_iter().filter_map(ConfigView::text).map(str::to_owned).collect()
    };
    let mut backend = Backend::read(view);
    if view.get("test").is_present() {
        backend.tests = view.get("test").one_or_more().into_iter().filter_map(ConfigView::word).collect();
        backend.tests.sort_unstable();
    }
    // The path is relative to the configuration, but the interpreter is started in other folders.
    let python = backend.python.map(|path| folder.join(path));
    Backend { kind, dtypes: texts("dtype"), matmul_precisions: texts("matmul-precision"), python, ..backend }
}
