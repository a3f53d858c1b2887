//! The second pass: values into [`Config`], and every rule that needs more than one value.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::judging::POLICY_KEYS;
use super::names::{NamedFile, unique};
use super::problems::Collector;
use super::services;
use super::view::ConfigView;
use super::{
    CommentWhen, Config, GitHub, Measure, Profiling, Store, Target, backend, flags, functions, model, policy,
    side,
};
use crate::model::{Disclose, GpuClock};

/// A configuration and what is left to check about it.
pub(super) struct Built {
    pub config: Config,
    pub files: Vec<NamedFile>,
    /// Offsets of the `sources` of base and head.
    pub sources_at: [usize; 2],
    pub policy_at: usize,
}

/// Builds as much as there is; only meaningful when `problems` stays empty.
pub(super) fn build(root: ConfigView<'_, '_>, file: &Path, problems: &mut Collector) -> Built {
    let targets = targets(root, problems);
    let mut files = Vec::new();
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    let models = model::models(root, &targets, &folder, &mut files, problems);
    let models = functions::in_models(root.get("model"), models, &mut files, problems);
    flags::check(root, problems);
    let (base, head) = side::sides(root, problems);
    let backends = backend::backends(root, &models, file, problems);
    let measure = measure(root.get("measure"), problems);
    let policy_file = root.get("policy").text().map(PathBuf::from);
    if policy_file.is_some() {
        for key in POLICY_KEYS {
            for (name, at, _) in root.entries().filter(|(name, ..)| *name == key) {
                problems.add(at, format!("`{name}` must not be here: `policy` names the file it belongs in"));
            }
        }
    }
    let part = policy::part(root, root.get("measure"), problems);
    let side_sources = |name| root.get("side").get(name).get("sources").at();
    Built {
        config: Config {
            file: file.to_owned(),
            root: folder,
            suite: root.get("suite").get("name").owned(),
            base,
            head,
            models,
            targets,
            backends,
            measure,
            policy: part.policy,
            numerics: part.numerics,
            disclose: match root.get("report").get("disclose").text() {
                Some("ratios") => Disclose::Ratios,
                _ => Disclose::All,
            },
            github: github(root.get("github")),
            aliases: root
                .get("aliases")
                .entries()
                .map(|(flag, _, other)| (flag.to_owned(), other.owned()))
                .collect(),
            store: store(root.get("store"), problems),
            anchor: {
                let anchor = root.get("baseline").get("anchor");
                anchor.is_present().then(|| side::pin(anchor, problems))
            },
            policy_file,
        },
        files,
        sources_at: [side_sources("base"), side_sources("head")],
        policy_at: root.get("policy").at(),
    }
}

fn targets(root: ConfigView<'_, '_>, problems: &mut Collector) -> Vec<Target> {
    let mut seen = BTreeMap::new();
    let view = root.get("target");
    if view.is_present() && view.items().next().is_none() {
        problems.add(view.at(), "no [[target]]: a suite needs at least one");
    }
    view.items()
        .map(|target| {
            unique(target.get("name"), "target", &mut seen, problems);
            let backend = match target.get("backend").owned() {
                // The seeds' and ROCm's own name for what the tools call `hip`.
                rocm if rocm == "rocm" => "hip".to_owned(),
                backend => backend,
            };
            let device = target.get("device").text().map_or_else(|| default_device(&backend), device);
            Target {
                name: target.get("name").owned(),
                backend,
                device,
                flags: target.get("flags").texts(),
                run_flags: target.get("run-flags").texts(),
                allocators: target.get("allocators").texts(),
                required: target.get("required").bool(),
                env: target.get("env").scalars(),
            }
        })
        .collect()
}

/// IREE's own name of the device that a backend's code runs on.
fn default_device(backend: &str) -> String {
    if backend == "llvm-cpu" { "local-task".to_owned() } else { backend.to_owned() }
}

/// A device as the runtime knows it: `rocm://0` is its `hip://0`.
fn device(text: &str) -> String {
    match text.strip_prefix("rocm") {
        Some(rest) if rest.is_empty() || rest.starts_with(':') => format!("hip{rest}"),
        _ => text.to_owned(),
    }
}

fn store(view: ConfigView<'_, '_>, problems: &mut Collector) -> Store {
    let places = ["folder", "url", "branch"].into_iter().filter(|key| view.get(key).is_present());
    if let [_, second, ..] = places.collect::<Vec<_>>().as_slice() {
        let what = format!("`{second}`: a baseline is in a `folder`, at a `url` or on a `branch`; name one");
        problems.add(view.get(second).at(), what);
    }
    Store {
        folder: PathBuf::from(view.get("folder").owned()),
        // The check has reported an address that is none.
        url: view.get("url").text().and_then(|url| url.parse().ok()),
        branch: view.get("branch").text().map(str::to_owned),
        remote: view.get("remote").owned(),
        sessions: view.get("sessions").integer_or_default(),
        stale_days: view.get("stale-days").integer_or_default(),
    }
}

fn github(view: ConfigView<'_, '_>) -> GitHub {
    GitHub {
        comment: view.get("comment").word().unwrap_or(CommentWhen::OnChange),
        check_run: view.get("check-run").bool().unwrap_or_default(),
        annotations: view.get("annotations").bool().unwrap_or_default(),
        workflow: view.get("workflow").owned(),
        author: view.get("author").owned(),
    }
}

fn measure(view: ConfigView<'_, '_>, problems: &mut Collector) -> Measure {
    let duration = |key: &str| view.get(key).duration().unwrap_or_default();
    for key in ["min-time", "timeout", "compile-timeout", "export-timeout", "time-budget"] {
        if view.get(key).duration().is_some_and(|duration| duration.is_zero()) {
            problems.add(view.get(key).at(), format!("`{key}`: expected more than zero"));
        }
    }
    let cpus = view.get("cpus");
    let numbers: Vec<usize> = cpus.items().filter_map(ConfigView::integer).collect();
    if cpus.is_present() && cpus.items().next().is_none() {
        problems.add(cpus.at(), "`cpus`: the list is empty; leave the key out to let benchgate choose");
    }
    for (index, item) in cpus.items().enumerate() {
        if item.integer().is_some_and(|cpu: usize| numbers[..index.min(numbers.len())].contains(&cpu)) {
            problems.add(item.at(), "`cpus`: a processor is named twice");
        }
    }
    let clock = view.get("lock-clocks");
    let lock_clocks = clock.text().and_then(GpuClock::parse);
    if clock.is_present() && clock.text().is_some() && lock_clocks.is_none() {
        problems.add(clock.at(), "`lock-clocks`: expected \"base\" or a clock such as \"1410MHz\"");
    }
    Measure {
        repetitions: view.get("repetitions").integer(),
        iterations: view.get("iterations-per-run").integer(),
        min_time: view.get("min-time").duration(),
        warmup: view.get("warmup").duration(),
        processes: view.get("processes").integer_or_default(),
        time_budget: view.get("time-budget").duration(),
        timeout: duration("timeout"),
        compile_timeout: duration("compile-timeout"),
        export_timeout: duration("export-timeout"),
        cpus: cpus.is_present().then_some(numbers),
        lock_clocks,
        profile: view.get("profile").word().unwrap_or(Profiling::Changed),
        jobs: view.get("jobs").integer(),
        seed: view.get("seed").integer(),
    }
}

impl Default for Store {
    fn default() -> Self {
        store(ConfigView::empty(&services::STORE), &mut Collector::default())
    }
}

impl Default for GitHub {
    fn default() -> Self {
        github(ConfigView::empty(&services::GITHUB))
    }
}
