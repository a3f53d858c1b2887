//! `[model.functions.<name>]`: several functions of one module as benchmarks.

use std::collections::BTreeMap;

use super::model::{FunctionData, data};
use super::names::NamedFile;
use super::problems::{Collector, shown};
use super::view::ConfigView;
use super::{Model, ModelSource, values};

/// Keys that each function sets for itself, so the model must not set them.
const OF_EACH: [&str; 4] = ["function", "inputs", "expected", "expected-f64"];

/// Replaces every model that has several functions by one model per function. The functions share one module,
/// so it is compiled once and the cache has one entry for it.
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
