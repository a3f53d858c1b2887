//! `[[backend]]`: the same models on other backends, for context.

use std::path::Path;

use super::names::among;
use super::problems::{Collector, shown};
use super::view::ConfigView;
use super::{Backend, BackendKind, BackendTest, Model, sections};

impl Backend {
    /// Whether both have an experiment of the same name.
    fn overlaps(&self, other: &Self) -> bool {
        fn shares<T: PartialEq>(a: &[T], b: &[T]) -> bool {
            a.iter().any(|value| b.contains(value))
        }
        /// An axis without values is the model's own value, which no other axis has.
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

    /// The backend as a configuration has it that only names it.
    pub fn new(kind: BackendKind) -> Self {
        one(kind, ConfigView::empty(&sections::BACKEND), Path::new(""), &mut Collector::default())
    }
}

pub(super) fn backends(
    root: ConfigView<'_, '_>,
    models: &[Model],
    file: &Path,
    problems: &mut Collector,
) -> Vec<Backend> {
    let names: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
    let mut all: Vec<Backend> = Vec::new();
    for view in root.get("backend").items() {
        among(view.get("models"), "model", &names, problems);
        let Some(kind) = view.get("name").word() else { continue };
        let backend = one(kind, view, file, problems);
        if all.iter().any(|other| other.overlaps(&backend)) {
            let name = kind.into_str();
            problems
                .add(view.get("name").at(), format!("a second backend `{name}` has the same experiments"));
        }
        all.push(backend);
    }
    all
}

fn one(kind: BackendKind, view: ConfigView<'_, '_>, file: &Path, problems: &mut Collector) -> Backend {
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
    let mut tests: Vec<BackendTest> =
        view.get("test").one_or_more().into_iter().filter_map(ConfigView::word).collect();
    tests.sort_unstable();
    Backend {
        models: view.get("models").texts(),
        tests,
        batch_sizes: view.get("batch-size").items().filter_map(ConfigView::integer).collect(),
        dtypes: texts("dtype"),
        matmul_precisions: texts("matmul-precision"),
        processes: view.get("processes").integer_or_default(),
        repetitions: view.get("repetitions").integer(),
        iterations: view.get("iterations-per-run").integer(),
        timeout: view.get("timeout").duration().unwrap_or_default(),
        // The interpreter runs in other folders.
        python: view.get("python").text().map(|path| file.parent().unwrap_or(Path::new("")).join(path)),
        env: view.get("env").scalars(),
        kind,
    }
}
