//! The validated configuration: only this leaves `config`. [`super::sections`], [`super::judging`] and
//! [`super::services`] document each key; here stands only what is not said there.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::gate::{NumericsPolicy, Policy};
use crate::model::{Disclose, GpuClock, SideName, StoreUrl};
use crate::numerics::TensorFile;

/// A whole, valid `benchgate.toml`.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The file it was read from.
    pub file: PathBuf,
    /// The folder of `file`; relative paths start here.
    pub root: PathBuf,
    pub suite: String,
    /// `[side.base]` and `[side.head]`; a suite without them has head only.
    pub base: Option<Side>,
    pub head: Side,
    pub models: Vec<Model>,
    pub targets: Vec<Target>,
    /// `[[backend]]`, in the order of the file.
    pub backends: Vec<Backend>,
    pub measure: Measure,
    pub policy: Policy,
    /// Defaults included.
    pub numerics: NumericsPolicy,
    pub disclose: Disclose,
    pub github: GitHub,
    pub store: Store,
    /// The frozen toolchain of `[baseline]`.
    pub anchor: Option<Pin>,
    /// `[aliases]`: flags of the tools by another name that other versions know them by.
    pub aliases: BTreeMap<String, String>,
    /// The file that `policy = "…"` names, as written; [`super::load`] has already read it.
    pub policy_file: Option<PathBuf>,
}

impl Config {
    /// The side of this name, where the configuration has one.
    pub fn side(&self, name: SideName) -> Option<&Side> {
        match name {
            SideName::Base => self.base.as_ref(),
            SideName::Head => Some(&self.head),
        }
    }

    /// Takes over from the configuration of the base all that a change must not decide about itself: what
    /// judges it, where it is stored and how it is reported.
    pub fn judge_by(&mut self, base: &Self) {
        // Naming every field makes a new one a decision.
        let Self {
            file: _,
            root: _,
            suite,
            base: _,
            head: _,
            models,
            targets,
            backends,
            measure,
            policy,
            numerics,
            disclose,
            github,
            store,
            anchor,
            aliases,
            policy_file: _,
        } = self;
        suite.clone_from(&base.suite);
        backends.clone_from(&base.backends);
        measure.clone_from(&base.measure);
        policy.clone_from(&base.policy);
        numerics.clone_from(&base.numerics);
        *disclose = base.disclose;
        github.clone_from(&base.github);
        store.clone_from(&base.store);
        anchor.clone_from(&base.anchor);
        aliases.clone_from(&base.aliases);
        for model in models {
            if let Some(base) = base.models.iter().find(|base| base.name == model.name) {
                model.dispatch_repeats = base.dispatch_repeats;
            }
        }
        for target in targets {
            if let Some(base) = base.targets.iter().find(|base| base.name == target.name) {
                target.required = base.required;
            }
        }
    }

    /// The part that judges.
    pub fn policy_part(&self) -> PolicyPart {
        PolicyPart { policy: self.policy.clone(), numerics: self.numerics.clone() }
    }
}

/// The part of a configuration that judges.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyPart {
    pub policy: Policy,
    /// Defaults included.
    pub numerics: NumericsPolicy,
}

/// Which tools: a version for people, a commit for truth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    pub version: String,
    pub commit: String,
    pub source: ToolSource,
}

/// Where tools come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolSource {
    /// `iree-base-compiler` and `iree-base-runtime` of this version; hashes are in `benchgate.lock`.
    Pypi,
    /// Wheels by URL with their SHA-256.
    Url { compiler: (String, String), runtime: (String, String) },
    /// A local build or install tree that holds `iree-compile` and the runtime tools.
    Path(PathBuf),
}

/// What differs between base and head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side {
    pub pin: Pin,
    pub flags: Vec<String>,
    pub run_flags: Vec<String>,
    pub sources: PathBuf,
}

/// Where a model comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum ModelSource {
    /// MLIR text or bytecode; passes through export untouched. Relative to the side's `sources`.
    Mlir(PathBuf),
    /// `file.py:symbol`, exported. Relative to the side's `sources`.
    Python { file: PathBuf, symbol: String },
    /// `zoo:bert`, a model that benchgate brings along; exported.
    Zoo(String),
    /// `torchbench:resnet18`, a model of a checkout of torchbench; exported.
    Torchbench { name: String, checkout: PathBuf },
    /// A saved ONNX model; imported. Relative to the side's `sources`.
    Onnx(PathBuf),
    /// A program that `torch.export` saved; exported. Relative to the side's `sources`.
    Pt2(PathBuf),
}

/// What turns a torch model into MLIR.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    strum::EnumString,
    strum::IntoStaticStr,
    Serialize,
    strum::VariantNames,
)]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum Exporter {
    TorchMlir,
    TorchXla,
    IreeTurbine,
    Onnx,
}

/// What torch-mlir lowers to before iree-compile takes over.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    strum::EnumString,
    strum::IntoStaticStr,
    Serialize,
    strum::VariantNames,
)]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum OutputType {
    LinalgOnTensors,
    Stablehlo,
    Torch,
}

/// One input of a function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum ModelInput {
    /// Relative to the side's `sources`.
    File(TensorFile),
    /// IREE's own notation, `1x3x224x224xf32=1`.
    Literal(String),
}

/// An `.irpa` parameter archive and its scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Parameters {
    /// Empty for the default scope.
    pub scope: String,
    pub path: PathBuf,
}

/// A `[[model]]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Model {
    /// As configured; `bert@onnx` where the configuration lists exporters.
    pub name: String,
    pub source: ModelSource,
    /// `None` for MLIR.
    pub exporter: Option<Exporter>,
    pub function: String,
    pub dispatch_repeats: u32,
    /// Empty for exported models: the exporter writes them.
    pub inputs: Vec<ModelInput>,
    /// Reference outputs, `.npy`; empty for exported models, or where nothing is known.
    pub expected: Vec<TensorFile>,
    pub expected_f64: Vec<TensorFile>,
    pub parameters: Vec<Parameters>,
    pub input_type: String,
    pub flags: Vec<String>,
    pub targets: Vec<String>,
    /// Lowerings to try, in order; empty for the exporter's and the model's own order.
    pub output_types: Vec<OutputType>,
    pub preset: Option<String>,
    pub options: BTreeMap<String, String>,
    pub dtype: Option<String>,
}

/// A `[[target]]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Target {
    pub name: String,
    pub backend: String,
    pub device: String,
    pub flags: Vec<String>,
    pub run_flags: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub allocators: Vec<String>,
    pub required: Option<bool>,
}

/// What runs a torch model instead of IREE.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    strum::Display,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
    strum::VariantNames,
)]
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

/// What one iteration does.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantNames,
)]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum BackendTest {
    Eval,
    Train,
}

/// A `[[backend]]`. An empty axis is the model's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backend {
    pub kind: BackendKind,
    pub models: Vec<String>,
    pub tests: Vec<BackendTest>,
    pub batch_sizes: Vec<u32>,
    pub dtypes: Vec<String>,
    pub matmul_precisions: Vec<String>,
    pub processes: u32,
    pub repetitions: Option<u32>,
    pub iterations: Option<u32>,
    pub timeout: Duration,
    pub python: Option<PathBuf>,
    pub env: BTreeMap<String, String>,
}

/// `[measure]`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measure {
    pub repetitions: Option<u32>,
    pub iterations: Option<u32>,
    pub min_time: Option<Duration>,
    pub warmup: Option<Duration>,
    pub processes: u32,
    pub time_budget: Option<Duration>,
    pub timeout: Duration,
    pub compile_timeout: Duration,
    pub export_timeout: Duration,
    pub cpus: Option<Vec<usize>>,
    pub lock_clocks: Option<GpuClock>,
    pub profile: Profiling,
    pub jobs: Option<usize>,
    pub seed: Option<u64>,
}

/// `[store]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    pub folder: PathBuf,
    pub url: Option<StoreUrl>,
    pub branch: Option<String>,
    pub remote: String,
    pub sessions: usize,
    pub stale_days: u32,
}

/// `[github]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitHub {
    pub comment: CommentWhen,
    pub check_run: bool,
    pub annotations: bool,
    pub workflow: String,
    pub author: String,
}

/// When a pull request gets a comment.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
    strum::VariantNames,
)]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum CommentWhen {
    Always,
    /// Where there is anything but an unchanged suite.
    OnChange,
    /// Where the verdict is neither pass nor improved.
    OnFailure,
    Never,
}

/// Which benchmarks are run under the runtime's profiler after they are measured.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr, strum::VariantNames, Serialize,
)]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum Profiling {
    /// Those whose latency regressed or improved.
    Changed,
    Always,
    Never,
}
