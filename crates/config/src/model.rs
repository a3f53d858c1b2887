//! `[[model]]`: the models of a suite.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use strum::VariantNames;

use benchgate_core::numerics::{ParameterFill, RandomTensor, TensorFile};

use super::fields::{COUNT, KeyPresence, LINES, NAMES, Section, ValueKind, defaulted};
use super::problems::{Collector, NamedFile, among, did_you_mean, unique};
use super::table::{DeclaredTable, table};
use super::values::ConfigView;
use super::values::shown;
use super::{Target, values};

/// The models that come with benchgate. A name is that of a file in `crates/pipeline/python/benchgate_export/zoo/`, with `-`
/// instead of `_`; they are separated by spaces.
pub const ZOO: &str = "bert conv deepseek gat gatv2 gcn gpt2 graphsage llama llama-qlora llama-spinquant mlp \
    mobilenet resnet transformer unet-conv vit";

/// The source of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum ModelSource {
    /// MLIR text or bytecode, which needs no export. Relative to the side's `sources`.
    Mlir(PathBuf),
    /// `file.py:symbol`, which is exported. Relative to the side's `sources`.
    Python { file: PathBuf, symbol: String },
    /// `zoo:bert`, a model that comes with benchgate and is exported.
    Zoo(String),
    /// `torchbench:resnet18`, a model from a torchbench checkout, which is exported.
    Torchbench { name: String, checkout: TorchbenchCheckout },
    /// A saved ONNX model, which is imported. Relative to the side's `sources`.
    Onnx(PathBuf),
    /// A program that `torch.export` saved, which is exported to MLIR. Relative to the side's `sources`.
    Pt2(PathBuf),
}

/// A checkout of torchbench. Two checkouts are equal if the configurations write the same path, even though
/// each side resolves it against its own folder.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct TorchbenchCheckout {
    #[serde(skip)]
    pub folder: PathBuf,
    /// The path as the configuration writes it.
    pub written: PathBuf,
}

impl PartialEq for TorchbenchCheckout {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl Eq for TorchbenchCheckout {}

/// The exporter that turns a torch model into MLIR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum Exporter {
    TorchMlir,
    TorchXla,
    IreeTurbine,
    Onnx,
}

/// The dialect that torch-mlir lowers to for iree-compile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum OutputType {
    LinalgOnTensors,
    Stablehlo,
    Torch,
}

/// One input of a function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum ModelInput {
    /// A file, relative to the side's `sources`.
    File(TensorFile),
    /// A value in IREE's notation, such as `1x3x224x224xf32=1`.
    Literal(String),
    /// A tensor that is generated before the first call.
    Random(RandomTensor),
}

/// The weights of one scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Parameters {
    /// The scope's name; empty for the default scope.
    pub scope: String,
    pub source: ParameterSource,
}

/// The source of weights.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum ParameterSource {
    /// An archive, relative to the side's `sources`.
    File(PathBuf),
    /// Weights that are generated from the parameter declarations in the module.
    Made(ParameterFill),
}

table! {
    #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
    pub struct Model, MODEL: "[[model]]",
        "A model is a file of MLIR with its inputs, or torch code that is exported.";
    head "name" => name: String, ValueKind::Name, "Name of the model; unique in the suite.";
    head "source": KeyPresence::Required => source: ModelSource = ModelSource::Mlir(PathBuf::new()), ValueKind::Line,
        "`models/a.mlir` or `models/a.mlirbc`, `models.py:make_a` for a function that returns a torch module \
             and its inputs, `models/a.onnx`, `models/a.pt2` as `torch.export.save` writes it, `zoo:bert` for a \
             model that benchgate includes, or `torchbench:resnet18`.";
    head "renamed-from" => renamed_from: Option<String>, ValueKind::Name,
        "The model's name in the base. The two models are compared, under the policy for the old name. \
        Without this key, the old name is missing at head, which fails. With `gate --stored --base`, the \
        sessions that were stored under the old name are used. After the merge the key has no effect.";
    head "function" => function: String = "main".to_owned(), ValueKind::Name, "The function to run.";
    head "functions": KeyPresence::Optional, ValueKind::Named(&FUNCTION),
        "Several functions of one MLIR module instead of `function`: one benchmark each.";
    head "inputs": KeyPresence::Text("[]") => inputs: Vec<ModelInput> = Vec::new(), LINES,
        "One input per argument: an `.npy` file, a raw file with its type (`1x3xbf16=@x.bin`), values \
             (`1x3xf32=1`; `5` for an argument that is not a tensor), or NumPy's random numbers \
             (`1x3xf32=random(seed=42)`, also with `skip`, `scale` and `offset`; integers need a `scale`: \
             `1x3xi64=random(seed=42, scale=1000)` for 0 to 999). Exported models provide their \
             own. Inputs given here replace the seeded random ones of `.onnx` and the saved ones of `.pt2`.";
    head "expected": KeyPresence::Text("[]") => expected: Vec<TensorFile> = Vec::new(), LINES,
        "One `.npy` or raw file (`4x8xbf16=@y.bin`) per result. Exported models provide their own; \
        without a reference, head's outputs are compared with base's.";
    head "expected-f64": KeyPresence::Text("[]") => expected_f64: Vec<TensorFile> = Vec::new(), LINES,
        "The same results computed in double precision, one `.npy` file for each file in `expected`. The \
        errors of base and head are measured against these results. Exported models provide their own.";
    head "parameters": KeyPresence::Text("[]") => parameters: Vec<Parameters> = Vec::new(), LINES,
        "Parameter archives, `scope=weights.irpa` or `weights.irpa` for the default scope. Weights that an MLIR text \
        module declares can be generated: `scope=random(seed=42)`, `scope=zeros()`.";
    head "input-type" => input_type: String = "auto".to_owned(),
        ValueKind::Name, "`--iree-input-type` of the compiler.";
    head "exporter": KeyPresence::Text("\"torch-mlir\"") => exporter: Option<Exporter> = None,
        ValueKind::OneOrMore(&ValueKind::Choice(Exporter::VARIANTS)),
        "Exporter of a Python model. A list makes one benchmark for each, named `model@exporter`.";
    head "output-type": KeyPresence::Optional => output_types: Vec<OutputType> = Vec::new(),
        ValueKind::OneOrMore(&ValueKind::Choice(OutputType::VARIANTS)),
        "Output type of torch-mlir; with a list, the first that works is used and shown in the benchmark's \
        label `lowering`. By default a model of the zoo has its own list, and other models use \
        `linalg-on-tensors`, `stablehlo`, `torch`.";
    head "dtype" => dtype: Option<String>, ValueKind::Choice(&["f64", "f32", "f16", "bf16"]),
        "Type to which an exported model's weights and floating-point inputs are cast before the reference \
        run and the export; the model's own by default. Each `[[backend]]` without a `dtype` uses this type \
        too.";
    head "preset" => preset: Option<String>, ValueKind::Name, "Passed to the Python model's constructor as `preset`.";
    head "options" => options: BTreeMap<String, String>, ValueKind::Scalars,
        "Keyword arguments of the Python model's constructor. For `.onnx`, sizes of the dimensions that the model \
             leaves open: `{ batch = 1 }`.";
    head "flags" => flags: Vec<String>, LINES, "Compile flags added after the target's.";
    head "tags" => tags: Vec<String>, NAMES, "Groups that the model belongs to, for `--tag`.";
    "dispatch-repeats" => dispatch_repeats: u32 = 1, COUNT,
        "Runs every dispatch this many times in a row and divides the time by this number, so that very \
        short kernels can be timed. For modules that are one chain of dispatches; a dispatch that updates a \
        buffer in place gives different results when repeated, which verification reports.";
    head "targets" => targets: Vec<String>, NAMES, "Names of the targets that the model runs on; all of \
    them when empty.";
    head "compile" => compile: bool = true, ValueKind::Bool,
        "Whether IREE compiles the model. `false` is for a Python model that only a `[[backend]]` runs, \
        such as one that can only be trained: the model has no benchmark, only the backend's rows on its \
        targets' devices.";
}

static FUNCTION: Section = Section {
    title: "[model.functions.<name>]",
    doc: "One of several functions of a module, with its own data.",
    fields: &[
        defaulted("inputs", LINES, "[]", "Like `inputs` of the model."),
        defaulted("expected", LINES, "[]", "Like `expected` of the model."),
        defaulted("expected-f64", LINES, "[]", "Like `expected-f64` of the model."),
    ],
};

/// Keys that are only valid for an exported model.
const EXPORTED_ONLY: [&str; 5] = ["exporter", "output-type", "preset", "options", "dtype"];
/// Keys that are only valid for MLIR; for an exported model, the exporter sets their values.
const MLIR_ONLY: [&str; 5] = ["functions", "inputs", "expected", "expected-f64", "parameters"];
/// Keys that are not valid for a saved program: the exporter sets them, or they only make sense for code.
const NOT_SAVED: [&str; 7] =
    ["functions", "expected", "expected-f64", "parameters", "preset", "options", "dtype"];
/// Keys that are not valid for ONNX. Its `options` are the sizes of dimensions.
const NOT_ONNX: [&str; 8] =
    ["functions", "expected", "expected-f64", "parameters", "preset", "exporter", "output-type", "dtype"];
/// Extensions of the archives that the runtime's `--parameters` can read.
const ARCHIVES: [&str; 3] = ["irpa", "gguf", "safetensors"];

pub(super) fn models(
    root: ConfigView<'_, '_>,
    targets: &[Target],
    folder: &Path,
    files: &mut Vec<NamedFile>,
    problems: &mut Collector,
) -> Vec<Model> {
    let mut seen = BTreeMap::new();
    let view = root.get("model");
    let names: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
    let torchbench = root.get("torchbench").get("path").text();
    let torchbench =
        torchbench.map(|path| TorchbenchCheckout { folder: folder.join(path), written: path.into() });
    let usual = root.get("torchbench").get("options").scalars();
    view.items()
        .flat_map(|model| {
            unique(model.get("name"), "model", &mut seen, problems);
            among(model.get("targets"), "target", &names, problems);
            let mut one = one(model, torchbench.as_ref(), files, problems);
            if matches!(one.source, ModelSource::Torchbench { .. }) {
                let own = std::mem::replace(&mut one.options, usual.clone());
                one.options.extend(own);
            }
            each_exporter(one, model.get("exporter"), problems)
        })
        .collect()
}

/// Replaces a model that has a list of exporters by one model per exporter. The exporter is part of each
/// name, so that a benchmark keeps its name and meaning when the list is extended or reordered.
fn each_exporter(model: Model, view: ConfigView<'_, '_>, problems: &mut Collector) -> Vec<Model> {
    match model.source {
        ModelSource::Mlir(_) => return vec![model],
        ModelSource::Onnx(_) => return vec![Model { exporter: Some(Exporter::Onnx), ..model }],
        _ => {}
    }
    let mut all: Vec<Model> = Vec::new();
    for item in view.items() {
        let Some(exporter) = item.word::<Exporter>() else { continue };
        let word = exporter.into_str();
        if all.iter().any(|model| model.exporter == Some(exporter)) {
            problems.add(item.at(), format!("`exporter`: `{word}` is listed twice"));
        }
        let name = format!("{}@{word}", model.name);
        let renamed_from = model.renamed_from.as_ref().map(|from| format!("{from}@{word}"));
        all.push(Model { name, renamed_from, exporter: Some(exporter), ..model.clone() });
    }
    if all.is_empty() {
        all.push(Model { exporter: Some(view.word().unwrap_or(Exporter::TorchMlir)), ..model });
    }
    all
}

fn one(
    view: ConfigView<'_, '_>,
    torchbench: Option<&TorchbenchCheckout>,
    files: &mut Vec<NamedFile>,
    problems: &mut Collector,
) -> Model {
    let name = view.get("name").owned();
    let mut file = |at: ConfigView<'_, '_>, what: &str, path: &Path| {
        let what = format!("{what} of model `{}`", shown(&name));
        files.push(NamedFile { at: at.at(), what, path: path.to_owned() });
    };
    let source = source(view.get("source"), torchbench, problems);
    if let Some(path) = source.as_ref().and_then(ModelSource::file) {
        file(view.get("source"), "source", path);
    }
    let (foreign, kind) = match source {
        Some(ModelSource::Mlir(_)) => (EXPORTED_ONLY.as_slice(), "an MLIR file"),
        Some(ModelSource::Onnx(_)) => (NOT_ONNX.as_slice(), "an ONNX model"),
        Some(ModelSource::Pt2(_)) => (NOT_SAVED.as_slice(), "a saved program"),
        Some(ModelSource::Python { .. } | ModelSource::Zoo(_) | ModelSource::Torchbench { .. }) => {
            (MLIR_ONLY.as_slice(), "a Python model")
        }
        None => (&[][..], ""),
    };
    for (key, at, _) in view.entries().filter(|(key, ..)| foreign.contains(key)) {
        problems.add(at, format!("`{key}` is not valid for {kind}"));
    }
    let has_module = !matches!(source, Some(ModelSource::Mlir(_) | ModelSource::Onnx(_)));
    if !has_module && view.get("compile").bool() == Some(false) {
        let message = format!("`compile`: no backend can run {kind}, so `false` leaves nothing to measure");
        problems.add(view.get("compile").at(), message);
    }
    let mut parameters = Vec::new();
    for item in view.get("parameters").items() {
        if let Some(archive) = archive(item, problems) {
            if let ParameterSource::File(path) = &archive.source {
                file(item, "parameters", path);
            }
            parameters.push(archive);
        }
    }
    let FunctionData { inputs, expected, expected_f64 } = data(view, &name, files, problems);
    Model {
        source: source.unwrap_or_else(|| ModelSource::Mlir(PathBuf::new())),
        inputs,
        expected,
        expected_f64,
        parameters,
        output_types: output_types(view.get("output-type"), problems),
        ..Model::read(view)
    }
}

/// Inputs and expected outputs of a function.
pub(super) struct FunctionData {
    pub(super) inputs: Vec<ModelInput>,
    pub(super) expected: Vec<TensorFile>,
    pub(super) expected_f64: Vec<TensorFile>,
}

/// Reads the inputs and expected outputs of a model or of one of its functions.
pub(super) fn data(
    view: ConfigView<'_, '_>,
    model: &str,
    files: &mut Vec<NamedFile>,
    problems: &mut Collector,
) -> FunctionData {
    let mut file = |at: ConfigView<'_, '_>, what: &str, path: &Path| {
        let what = format!("{what} of model `{}`", shown(model));
        files.push(NamedFile { at: at.at(), what, path: path.to_owned() });
    };
    let mut inputs = Vec::new();
    for item in view.get("inputs").items() {
        if let Some(input) = input(item, problems) {
            if let ModelInput::File(found) = &input {
                file(item, "input", &found.path);
            }
            inputs.push(input);
        }
    }
    let mut arrays = |key: &str, what: &str| -> Vec<TensorFile> {
        let mut files = Vec::new();
        for item in view.get(key).items() {
            let Some(text) = item.text() else { continue };
            let Some(found) = tensor_file(item, key, problems) else {
                let message = format!(
                    "`{key}`: expected an `.npy` file or a raw one such as `4x8xbf16=@y.bin`, found `{}`",
                    shown(text)
                );
                problems.add(item.at(), message);
                continue;
            };
            file(item, what, &found.path);
            files.push(found);
        }
        files
    };
    let expected = arrays("expected", "expected output");
    let expected_f64 = arrays("expected-f64", "fp64 output");
    if !expected_f64.is_empty() && expected_f64.len() != expected.len() {
        let (wide, all) = (expected_f64.len(), expected.len());
        problems.add(
            view.get("expected-f64").at(),
            format!("`expected-f64`: expected one file for each of `expected` ({all}), found {wide}"),
        );
    }
    FunctionData { inputs, expected, expected_f64 }
}

fn source(
    view: ConfigView<'_, '_>,
    torchbench: Option<&TorchbenchCheckout>,
    problems: &mut Collector,
) -> Option<ModelSource> {
    let text = view.text()?;
    let inside = |path: &str, problems: &mut Collector| {
        if !values::is_inside(path) {
            problems.add(
                view.at(),
                format!("`source`: `{}` must be a relative path inside the sources folder", shown(path)),
            );
        }
    };
    if let Some(key) = text.strip_prefix("zoo:") {
        if !ZOO.split(' ').any(|model| model == key) {
            let advice = did_you_mean(key, ZOO.split(' '));
            let all = ZOO.replace(' ', "`, `");
            let message =
                format!("`source`: the zoo has no model `{}`{advice}; its models are `{all}`", shown(key));
            problems.add(view.at(), message);
        }
        return Some(ModelSource::Zoo(key.to_owned()));
    }
    if let Some(name) = text.strip_prefix("torchbench:") {
        if !is_python_name(name) {
            problems.add(view.at(), format!("`source`: `{}` is not the name of a model", shown(name)));
        }
        let Some(checkout) = torchbench else {
            problems.add(view.at(), "`source`: a model of torchbench needs `path` in [torchbench]");
            return None;
        };
        return Some(ModelSource::Torchbench { name: name.to_owned(), checkout: checkout.clone() });
    }
    if let Some((path, symbol)) = text.split_once(".py:") {
        if !symbol.split('.').all(is_python_name) {
            problems.add(view.at(), format!("`source`: `{}` is not the name of a function", shown(symbol)));
        }
        let path = format!("{path}.py");
        inside(&path, problems);
        return Some(ModelSource::Python { file: PathBuf::from(path), symbol: symbol.to_owned() });
    }
    if text.ends_with(".mlir") || text.ends_with(".mlirbc") {
        inside(text, problems);
        return Some(ModelSource::Mlir(PathBuf::from(text)));
    }
    for (ending, kind) in [(".onnx", ModelSource::Onnx as fn(PathBuf) -> _), (".pt2", ModelSource::Pt2)] {
        if text.ends_with(ending) {
            inside(text, problems);
            return Some(kind(PathBuf::from(text)));
        }
    }
    let advice = if text.ends_with(".py") { "; name one of its functions: `file.py:function`" } else { "" };
    problems.add(
        view.at(),
        format!(
            "`source`: expected `….mlir`, `….mlirbc`, `….onnx`, `….pt2`, `….py:function`, `zoo:key` or \
             `torchbench:name`, found `{}`{advice}",
            shown(text)
        ),
    );
    None
}

impl Model {
    /// The files below the side's sources that the model's keys name. Its flags may name more.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let inputs = self.inputs.iter().filter_map(|input| match input {
            ModelInput::File(file) => Some(file.path.as_path()),
            ModelInput::Literal(_) | ModelInput::Random(_) => None,
        });
        let expected = self.expected.iter().chain(&self.expected_f64).map(|file| file.path.as_path());
        let parameters = self.parameters.iter().filter_map(|archive| match &archive.source {
            ParameterSource::File(path) => Some(path.as_path()),
            ParameterSource::Made(_) => None,
        });
        self.source.file().into_iter().chain(inputs).chain(expected).chain(parameters)
    }

    /// Returns true if both have the same model name and function.
    pub(super) fn is(&self, other: &Self) -> bool {
        (&self.name, &self.function) == (&other.name, &other.function)
    }
}

/// Returns true if the text is a valid Python identifier (in ASCII).
pub fn is_python_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl ModelSource {
    /// The source's file below the side's sources, if it is a file.
    fn file(&self) -> Option<&Path> {
        match self {
            Self::Mlir(path) | Self::Onnx(path) | Self::Pt2(path) | Self::Python { file: path, .. } => {
                Some(path)
            }
            Self::Zoo(_) | Self::Torchbench { .. } => None,
        }
    }
}

/// The tensor file that a text names, if any.
fn tensor_file(view: ConfigView<'_, '_>, key: &str, problems: &mut Collector) -> Option<TensorFile> {
    let file = TensorFile::parse(view.text()?)?;
    let path = file.path.to_string_lossy();
    if !values::is_inside(&path) {
        problems.add(
            view.at(),
            format!("`{key}`: `{}` must be a relative path inside the sources folder", shown(&path)),
        );
    }
    Some(file)
}

fn input(view: ConfigView<'_, '_>, problems: &mut Collector) -> Option<ModelInput> {
    let text = view.text()?;
    if let Some(path) = text.strip_prefix('@').filter(|path| path.ends_with(".npy")) {
        problems.add(view.at(), format!("`inputs`: write `{}` without `@`", shown(path)));
        return None;
    }
    if let Some(file) = tensor_file(view, "inputs", problems) {
        return Some(ModelInput::File(file));
    }
    if RandomTensor::is_meant(text) {
        return match values::random_input(text) {
            Ok(random) => Some(ModelInput::Random(random)),
            Err(why) => {
                problems.add(view.at(), format!("`inputs`: {why}"));
                None
            }
        };
    }
    if !values::is_literal_input(text) {
        problems.add(
            view.at(),
            format!(
                "`inputs`: expected an `.npy` file, a raw one such as `1x3xf32=@x.bin`, a literal such as `1x3xf32=1` or a number, \
                 found `{}`",
                shown(text)
            ),
        );
        return None;
    }
    Some(ModelInput::Literal(text.to_owned()))
}

fn archive(view: ConfigView<'_, '_>, problems: &mut Collector) -> Option<Parameters> {
    let text = view.text()?;
    let (scope, path) = text.split_once('=').unwrap_or(("", text));
    if !scope.is_empty() && !values::is_name(scope) {
        problems.add(view.at(), format!("`parameters`: `{}` is not a scope's name", shown(scope)));
    }
    if let Some(fill) = ParameterFill::parse(path) {
        return Some(Parameters { scope: scope.to_owned(), source: ParameterSource::Made(fill) });
    }
    let known = Path::new(path).extension().is_some_and(|e| ARCHIVES.iter().any(|known| e == *known));
    if !values::is_inside(path) || !known {
        problems.add(
            view.at(),
            format!(
                "`parameters`: expected `scope=file` with an .irpa, .gguf or .safetensors file inside the sources \
                 folder, `scope=random(seed=42)` or `scope=zeros()`, found `{}`",
                shown(text)
            ),
        );
    }
    Some(Parameters { scope: scope.to_owned(), source: ParameterSource::File(PathBuf::from(path)) })
}

fn output_types(view: ConfigView<'_, '_>, problems: &mut Collector) -> Vec<OutputType> {
    let mut types = Vec::new();
    for item in view.one_or_more() {
        let Some(known) = item.word::<OutputType>() else { continue };
        if types.contains(&known) {
            problems.add(item.at(), format!("`output-type`: `{}` is listed twice", known.into_str()));
        }
        types.push(known);
    }
    types
}

/// Keys that each function sets for itself, so the model must not set them.
const OF_EACH: [&str; 4] = ["function", "inputs", "expected", "expected-f64"];

/// Replaces every model that has several functions (`[model.functions.<name>]`) by one model per function. The functions
/// share one module, so it is compiled once and the cache has one entry for it.
pub(super) fn in_models(
    root: ConfigView<'_, '_>,
    models: Vec<Model>,
    files: &mut Vec<NamedFile>,
    problems: &mut Collector,
) -> Vec<Model> {
    let mut all = Vec::with_capacity(models.len());
    // Only the first model of a name counts. A second one has already been reported as a mistake.
    let mut views = BTreeMap::new();
    for view in root.items() {
        views.entry(view.get("name").text().unwrap_or_default()).or_insert(view);
    }
    for model in models {
        let view = views.get(model.name.as_str()).copied();
        let functions = view.map(|view| view.get("functions")).filter(|functions| functions.is_present());
        match (view, functions, &model.source) {
            (Some(view), Some(functions), ModelSource::Mlir(_)) => {
                all.extend(each(view, functions, &model, files, problems));
            }
            _ => all.push(model),
        }
    }
    all
}

fn each(
    view: ConfigView<'_, '_>,
    functions: ConfigView<'_, '_>,
    model: &Model,
    files: &mut Vec<NamedFile>,
    problems: &mut Collector,
) -> Vec<Model> {
    for (key, at, _) in view.entries().filter(|(key, ..)| OF_EACH.contains(key)) {
        problems.add(
            at,
            format!("`{key}` and `functions` can't both be set: each function has its own settings"),
        );
    }
    let models: Vec<Model> = functions
        .entries()
        .map(|(name, at, view)| {
            if !values::is_name(name) {
                problems.add(at, format!("`functions`: `{}` is not the name of a function", shown(name)));
            }
            let FunctionData { inputs, expected, expected_f64 } = data(view, &model.name, files, problems);
            Model { function: name.to_owned(), inputs, expected, expected_f64, ..model.clone() }
        })
        .collect();
    if models.is_empty() {
        problems.add(functions.at(), "`functions`: expected at least one function");
    }
    models
}
