//! `benchgate init --torchbench`: writes a suite with the models of a torchbench checkout, and with the
//! settings that PyTorch keeps for them in `benchmarks/dynamo/torchbench.yaml`.
//!
//! The settings are copied into the suite instead of being read by each run: data types and tolerances are
//! policy, so reviewers must see changes to them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use crate::cli::CliError;
use crate::config::is_python_name;
use crate::gate::NumericsPolicy;
use crate::git::Repository;

use super::existing;

/// Lists of models that PyTorch's own runner skips and that benchgate can't run either.
const LEFT_OUT: [(&str, &str); 4] = [
    ("/skip/all", "skip.all"),
    ("/skip/device/cpu", "skip.device.cpu"),
    ("/skip/multiprocess", "skip.multiprocess"),
    ("/skip/export_not_supported", "skip.export_not_supported"),
];

/// The tolerances that the runner uses for each list of models. Some lists only apply to one data type.
const TOLERANCES: [(&str, Option<&str>, f64); 4] = [
    ("/tolerance/higher", None, 1e-3),
    ("/tolerance/even_higher", None, 8e-3),
    ("/tolerance/higher_bf16", Some("bf16"), 1e-2),
    ("/tolerance/higher_fp16", Some("f16"), 1e-2),
];

/// The precision that the runner selects for products of f32 matrices.
const PRECISION: &str = "matmul-precision = \"high\"\n";
/// The backends that the runner compares when it does not use XLA.
const BACKENDS: [&str; 2] = ["eager", "inductor"];

/// PyTorch/XLA needs a separate environment, which the user provides.
const XLA: &str = "
# PyTorch/XLA as well: another copy of torch, 3 GB. `benchgate tools pin` locks it.
# [[backend]]
# name = \"xla-dynamo\"
# test = [\"eval\", \"train\"]
# matmul-precision = \"high\"
";

/// The tables of a suite that runs the models of a checkout. `file` is the path of `torchbench.yaml`, and
/// `folder` is that of the suite.
///
/// # Errors
/// A checkout without models, or a file that can't be read or is not a `torchbench.yaml`.
pub fn suite(checkout: &Path, file: Option<&Path>, folder: &Path) -> Result<String, CliError> {
    let source = checkout.join("torchbenchmark/models");
    let models = models(&source).map_err(|error| {
        CliError::usage(format!("failed to read {}: {error}", source.display()))
            .hint("clone https://github.com/pytorch/benchmark and name its folder")
    })?;
    let settings = file.map(|file| {
        let text = std::fs::read_to_string(file).map_err(|error| error.to_string());
        let settings = text.and_then(|text| Settings::read(&text));
        settings.map_err(|error| CliError::usage(format!("failed to read {}: {error}", file.display())))
    });
    // Relative paths in a suite start at its folder.
    let inside = folder.components().filter(|part| *part != Component::CurDir);
    let path = match inside.map(|part| matches!(part, Component::Normal(_)).then_some("..")).collect() {
        Some(up) if checkout.is_relative() && !is_outside(checkout, folder) => {
            PathBuf::from_iter::<Vec<&str>>(up).join(checkout)
        }
        _ => std::path::absolute(checkout).map_err(|error| CliError::usage(error.to_string()))?,
    };
    let path =
        path.to_str().ok_or_else(|| CliError::usage(format!("{} is not valid UTF-8", path.display())))?;
    Ok(tables(&models, path, settings.transpose()?.as_ref()))
}

/// Returns true if a checkout is outside the suite's repository. Such a checkout needs an absolute path:
/// benchgate copies the repository for each side, and a relative path would not lead from a copy to the
/// checkout.
fn is_outside(checkout: &Path, folder: &Path) -> bool {
    let root = Repository::open(&existing(folder)).map(|repository| repository.root().to_owned());
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    root.ok().and_then(|root| real(&root)).zip(real(checkout)).is_some_and(|(root, it)| !it.starts_with(root))
}

/// The sorted names of the folders that torchbench itself would import as models.
fn models(folder: &Path) -> std::io::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_model = entry.path().join("__init__.py").is_file();
        found.extend(name.to_str().filter(|name| is_model && is_python_name(name)).map(str::to_owned));
    }
    found.sort_unstable();
    if found.is_empty() {
        return Err(std::io::Error::new(std::io::ErrorKind::NotFound, "no folder in it has an __init__.py"));
    }
    Ok(found)
}

/// The content of `torchbench.yaml`.
struct Settings(Value);

impl Settings {
    /// Parses the settings. An error is a fragment of a message.
    fn read(text: &str) -> Result<Self, String> {
        let all: Value = serde_saphyr::from_str(text)
            .map_err(|error| error.to_string().lines().next().unwrap_or_default().to_owned())?;
        let known = ["skip", "dtype", "tolerance", "batch_size"];
        match known.into_iter().find(|key| !all[*key].is_object()) {
            Some(missing) => Err(format!("expected a mapping `{missing}`, as in PyTorch's torchbench.yaml")),
            None => Ok(Self(all)),
        }
    }

    /// Returns true if a list has the model. YAML aliases can nest lists in lists.
    fn lists(&self, pointer: &str, model: &str) -> bool {
        fn has(value: &Value, model: &str) -> bool {
            match value {
                Value::Array(items) => items.iter().any(|item| has(item, model)),
                other => other.as_str() == Some(model),
            }
        }
        self.0.pointer(pointer).is_some_and(|list| has(list, model))
    }

    /// The batch size that replaces the model's default.
    fn batch_size(&self, test: &str, model: &str) -> Option<u64> {
        let size = self.0["batch_size"][test][model].as_u64();
        size.filter(|_| !self.lists("/dont_change_batch_size", model))
    }

    fn left_out(&self, model: &str) -> Option<&'static str> {
        let listed =
            LEFT_OUT.into_iter().find_map(|(pointer, list)| self.lists(pointer, model).then_some(list));
        listed.or_else(|| {
            let is_never_run = self.only_trains(model) && self.lists("/skip/test/training", model);
            is_never_run.then_some("only_training and skip.test.training")
        })
    }

    /// Returns true if the runner only trains this model, so that there is no inference for IREE to compile.
    fn only_trains(&self, model: &str) -> bool {
        self.lists("/only_training", model)
    }

    fn needs_amp(&self, model: &str) -> bool {
        self.lists("/dtype/force_amp_for_fp16_bf16_models", model)
    }

    fn dtype(&self, model: &str) -> Option<&'static str> {
        if self.needs_amp(model) {
            None
        } else if self.lists("/dtype/force_fp16_for_bf16_models", model) {
            Some("f16")
        } else {
            Some("bf16")
        }
    }
}

/// The tables as TOML. `models` are valid Python names, and `checkout` is the path to write into the suite.
fn tables(models: &[String], checkout: &str, settings: Option<&Settings>) -> String {
    // JSON strings are valid TOML strings.
    let mut text = format!(
        "[torchbench]\npath = {}\n# Downloads no weights and is small enough for two processors:\n\
         # options = {{ weights = \"random\", batch_size = 1 }}\n",
        Value::from(checkout)
    );
    let left_out = |model: &str| settings.and_then(|settings| settings.left_out(model));
    let kept: Vec<&str> =
        models.iter().map(String::as_str).filter(|model| left_out(model).is_none()).collect();
    for model in &kept {
        let _ = write!(text, "\n[[model]]\nname = \"{model}\"\nsource = \"torchbench:{model}\"\n");
        let Some(settings) = settings else { continue };
        if settings.only_trains(model) {
            text.push_str("# PyTorch's runner only trains it, which IREE can't do.\n");
            text.push_str("compile = false\noptions = { test = \"train\" }\n");
            continue;
        }
        match settings.dtype(model) {
            Some(dtype) => _ = writeln!(text, "dtype = \"{dtype}\""),
            None => text.push_str("# PyTorch's runner uses automatic mixed precision; IREE has none.\n"),
        }
        if let Some(size) = settings.batch_size("inference", model) {
            let _ = writeln!(text, "options = {{ batch_size = {size} }}");
        }
    }
    if let Some(settings) = settings {
        backends(settings, &kept, &mut text);
        text.push_str(XLA);
        tolerances(settings, &kept, &mut text);
    }
    let mut reasons = models.iter().filter_map(|model| Some((model, left_out(model)?))).peekable();
    if reasons.peek().is_some() {
        text.push_str("\n# Left out, and the list of torchbench.yaml that says so:\n");
        for (model, list) in reasons {
            let _ = writeln!(text, "#   {model}: {list}");
        }
    }
    text
}

/// Adds backends: inference in each model's own data type, and training with automatic mixed precision.
fn backends(settings: &Settings, kept: &[&str], text: &mut String) {
    let inferred: Vec<&str> = kept.iter().copied().filter(|model| !settings.only_trains(model)).collect();
    let amp: Vec<&str> = inferred.iter().copied().filter(|model| settings.needs_amp(model)).collect();
    let chosen = match inferred.len() {
        all if all == kept.len() => String::new(),
        _ => format!("models = {}\n", list(&inferred)),
    };
    let mut trained: BTreeMap<Option<u64>, Vec<&str>> = BTreeMap::new();
    for model in kept {
        let size = settings.batch_size("training", model);
        // Without a batch size for training, the one for inference would be used, so such a model is not
        // trained.
        let unknown = size.is_none()
            && settings.batch_size("inference", model).is_some()
            && !settings.only_trains(model);
        if !unknown && !settings.lists("/skip/test/training", model) {
            trained.entry(size).or_default().push(model);
        }
    }
    for backend in BACKENDS {
        if !inferred.is_empty() {
            let _ = write!(text, "\n[[backend]]\nname = \"{backend}\"\ntest = \"eval\"\n{PRECISION}{chosen}");
        }
        if !amp.is_empty() {
            let models = list(&amp);
            let _ = write!(
                text,
                "\n[[backend]]\nname = \"{backend}\"\ntest = \"eval\"\n{PRECISION}dtype = \"amp\"\nmodels = {models}\n"
            );
        }
        for (size, models) in &trained {
            let models = list(models);
            let _ = write!(
                text,
                "\n[[backend]]\nname = \"{backend}\"\ntest = \"train\"\n{PRECISION}dtype = \"amp\"\nmodels = {models}\n"
            );
            if let Some(size) = size {
                let _ = writeln!(text, "batch-size = [{size}]");
            }
        }
    }
}

/// A TOML array of names, a few per line.
fn list(models: &[&str]) -> String {
    let line = |names: &[&str]| format!("\"{}\"", names.join("\", \""));
    let lines: Vec<String> = models.chunks(4).map(line).collect();
    match lines.as_slice() {
        [one] => format!("[{one}]"),
        all => format!("[\n    {},\n]", all.join(",\n    ")),
    }
}

/// Adds tolerances for models on the runner's lists: the larger of the runner's bound and benchgate's
/// default.
fn tolerances(settings: &Settings, kept: &[&str], text: &mut String) {
    let defaults = NumericsPolicy::default();
    for model in kept.iter().filter(|model| !settings.only_trains(model)) {
        // A model for which the settings name no type keeps its own, which is f32 in torchbench.
        let dtype = settings.dtype(model).unwrap_or("f32");
        let applies = |of: Option<&str>| of.is_none_or(|of| of == dtype);
        let bounds = TOLERANCES.iter().filter(|(list, of, _)| applies(*of) && settings.lists(list, model));
        let Some(bound) = bounds.map(|(.., bound)| *bound).reduce(f64::max) else { continue };
        let Some(own) = defaults.types.iter().find(|own| own.dtype == dtype) else { continue };
        let keys = [("atol", own.atol), ("rtol", own.rtol), ("max-error", own.max_error)];
        let mut wider = keys.into_iter().filter(|(_, usual)| *usual < bound).peekable();
        if wider.peek().is_some() {
            let _ = write!(text, "\n[[numerics-override]]\nbenchmark = \"{model}/*\"\ntype = \"{dtype}\"\n");
        }
        for (key, _) in wider {
            let _ = writeln!(text, "{key} = {bound}");
        }
    }
}
