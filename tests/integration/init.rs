//! `benchgate init`: the files that it writes, that it overwrites nothing, and that other tools accept the
//! files.

use std::collections::BTreeSet;
use std::path::Path;

use crate::harness::World;

const ACTION: &str = "o/benchgate@1111111111111111111111111111111111111111";

fn files(world: &World) -> BTreeSet<String> {
    fn walk(folder: &Path, top: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if !path.ends_with(".git") {
                    walk(&path, top, found);
                }
            } else {
                found.insert(path.strip_prefix(top).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    let mut found = BTreeSet::new();
    walk(&world.work(), &world.work(), &mut found);
    found
}

fn expected(lines: &[&str]) -> BTreeSet<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

#[test]
fn a_suite_and_its_workflows_are_written_and_doctor_finds_nothing_wrong_with_them() {
    init_suits_doctor(&[]);
}

#[test]
fn the_workflows_of_several_machines_measure_without_a_token_too() {
    init_suits_doctor(&["--shards", "4"]);
}

#[test]
fn workflows_that_measure_on_request_are_fine_too() {
    init_suits_doctor(&["--label", "benchgate"]);
    init_suits_doctor(&["--label", "benchgate", "--shards", "4"]);
}

fn init_suits_doctor(options: &[&str]) {
    let world = World::new();
    git2::Repository::init(world.work()).unwrap();
    let usual = ["init", "suites/zoo", "--runner", "self-hosted,gpu", "--action", ACTION];
    world.run(usual.iter().chain(options)).expect_code(0);
    let written = [
        ".gitignore",
        ".github/workflows/benchgate-nightly.yml",
        ".github/workflows/benchgate-publish.yml",
        ".github/workflows/benchgate-site.yml",
        ".github/workflows/benchgate.yml",
        "suites/zoo/benchgate.toml",
        "suites/zoo/models/example.mlir",
        "suites/zoo/models/example.output0.npy",
    ];
    assert_eq!(files(&world), expected(&written));
    assert!(world.read("suites/zoo/benchgate.toml").contains("name = \"zoo\""));
    let repository = git2::Repository::open(world.work()).unwrap();
    for result in ["run.json", "suites/zoo/run.json", "suites/zoo/.benchgate/logs/x"] {
        assert!(repository.is_path_ignored(result).unwrap(), "{result}");
    }
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/quickstart/benchgate.lock");
    world.write("suites/zoo/benchgate.lock", std::fs::read(lock).unwrap());
    let said = world.run(["doctor", "--config", "suites/zoo/benchgate.toml", "--format", "json"]).stdout;
    let diagnosis: serde_json::Value = serde_json::from_str(&said).unwrap();
    let repository = diagnosis["repository"].as_array().unwrap();
    let wrong: Vec<_> = repository
        .iter()
        .filter(|finding| !["ok", "note"].contains(&finding["level"].as_str().unwrap()))
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    let fine = ["configuration", "workflows", "permissions", "publishing", "baseline-writer"];
    for id in fine {
        let level = repository.iter().find(|finding| finding["id"] == id).map(|finding| &finding["level"]);
        assert_eq!(level.and_then(serde_json::Value::as_str), Some("ok"), "{id}: {said}");
    }
}

#[test]
fn nothing_is_overwritten_and_then_nothing_is_written() {
    let world = World::new();
    world.write(".github/workflows/benchgate.yml", "mine");
    let outcome = world.run(["init", "--action", ACTION]).expect_code(2);
    assert!(outcome.stderr.contains("already there"), "{}", outcome.stderr);
    assert_eq!(files(&world), expected(&[".github/workflows/benchgate.yml"]));
    assert_eq!(world.read(".github/workflows/benchgate.yml"), "mine");
}

#[test]
fn an_existing_gitignore_is_kept_and_its_missing_lines_are_printed() {
    let world = World::new();
    world.write(".gitignore", "mine\n");
    let said = world.run(["init", "--action", ACTION]).expect_code(0).stdout;
    assert!(said.contains("\nrun.json\nnoise.json\n.benchgate/\n"), "{said}");
    assert_eq!(world.read(".gitignore"), "mine\n");
}

#[test]
fn a_model_is_one_file_and_three_lines() {
    let world = World::new();
    let said = world.run(["init", "--model", "attention"]).expect_code(0).stdout;
    assert_eq!(files(&world), expected(&["models/attention.py"]));
    assert!(said.contains("source = \"models/attention.py:make\""), "{said}");
    world.run(["init", "--model", "attention"]).expect_code(2);
}

#[test]
fn an_action_is_named_by_its_whole_commit() {
    for action in ["o/r@v1", "o/r", "o/r@1111111", "o/r/x@1111111111111111111111111111111111111111"] {
        let world = World::new();
        let outcome = world.run(["init", "--action", action]).expect_code(2);
        assert!(outcome.stderr.contains("OWNER/REPO@COMMIT"), "{}", outcome.stderr);
        assert_eq!(files(&world), BTreeSet::new());
    }
}

#[test]
fn names_are_plain_so_that_nothing_in_a_workflow_needs_quotes() {
    for arguments in
        [["--runner", "a: b"], ["--suite", "a\"b"], ["--model", "../x"], ["--runner", "${{ x }}"]]
    {
        let world = World::new();
        world.run(["init", "--action", ACTION].iter().chain(&arguments)).expect_code(2);
        assert_eq!(files(&world), BTreeSet::new());
    }
}

#[test]
fn a_build_of_ones_own_writes_the_suite_and_adds_workflows_when_the_action_is_named() {
    let world = World::new();
    let said = world.run(["init"]).expect_code(0).stderr;
    assert!(said.contains("--action OWNER/REPO@COMMIT"), "{said}");
    assert!(files(&world).iter().all(|file| !file.starts_with(".github")), "{:?}", files(&world));
    let suite = world.read("benchgate.toml");
    world.run(["init", "--action", ACTION]).expect_code(0);
    assert_eq!(world.read("benchgate.toml"), suite);
    assert!(files(&world).contains(".github/workflows/benchgate.yml"));
}

#[test]
fn without_a_remote_sessions_are_stored_in_a_folder() {
    let place = |prepare: &dyn Fn(&World), options: &[&str]| {
        let world = World::new();
        prepare(&world);
        world.run([&["init"], options].concat()).expect_code(0);
        let suite = benchgate::config::parse(&world.read("benchgate.toml"), Path::new("benchgate.toml"));
        suite.unwrap().store.branch
    };
    let repository = |world: &World| drop(git2::Repository::init(world.work()).unwrap());
    let with_remote = |world: &World| {
        let repository = git2::Repository::init(world.work()).unwrap();
        repository.remote("origin", "https://example.com/o/r.git").unwrap();
    };
    assert_eq!(place(&|_| {}, &[]), None);
    assert_eq!(place(&repository, &[]), None);
    let branch = Some("benchgate-baselines".to_owned());
    assert_eq!(place(&with_remote, &[]), branch);
    // The nightly workflow stores sessions on a branch of the remote to which the repository will be pushed.
    assert_eq!(place(&repository, &["--action", ACTION]), branch);
}

/// PyTorch's file contains nested lists and empty lists.
const TORCHBENCH_YAML: &str = "\
batch_size:
  training: { demucs: 4, densenet121: 4 }
  inference: { efficientdet: 32, demucs: 16 }
dont_change_batch_size: [demucs]
tolerance:
  higher_fp16: [maskrcnn, resnet18]
  higher_bf16: [densenet121]
  higher: [densenet121]
  even_higher: [efficientdet, resnet18]
very_slow: &VERY_SLOW
detectron2: &DETECTRON2
  - detectron2_a
  - detectron2_b
only_training:
  - *DETECTRON2
  - yolov3
dtype:
  force_amp_for_fp16_bf16_models: [super_slomo]
  force_fp16_for_bf16_models: [maskrcnn]
skip:
  all: [*VERY_SLOW, tacotron2]
  device: { cpu: [nanogpt], cuda: [] }
  test:
    training: [*DETECTRON2, demucs]
  multiprocess: [simple_gpt]
  export_not_supported: [drq]
";

fn torchbench(world: &World) {
    let models = [
        "demucs",
        "densenet121",
        "detectron2_a",
        "drq",
        "efficientdet",
        "maskrcnn",
        "nanogpt",
        "resnet18",
        "simple_gpt",
        "super_slomo",
        "tacotron2",
        "yolov3",
    ];
    for model in models {
        world.write(&format!("bench/torchbenchmark/models/{model}/__init__.py"), "");
    }
    // Neither folder is a model: one has no code, and the other one could not be imported.
    world.write("bench/torchbenchmark/models/README/notes.txt", "");
    world.write("bench/torchbenchmark/models/a-b/__init__.py", "");
    world.write("torchbench.yaml", TORCHBENCH_YAML);
}

#[test]
fn a_checkout_of_torchbench_becomes_a_suite_with_pytorchs_settings() {
    let world = World::new();
    torchbench(&world);
    let usual = ["init", "--suite", "torchbench", "--torchbench", "bench"];
    world.run(usual.into_iter().chain(["--torchbench-config", "torchbench.yaml"])).expect_code(0);
    let suite = world.read("benchgate.toml");
    insta::assert_snapshot!("torchbench_suite", suite);
    let found = benchgate::config::parse(&suite, Path::new("benchgate.toml")).unwrap();
    assert_eq!((found.models.len(), found.backends.len()), (7, 8));
    let compiled = |name: &str| found.models.iter().find(|model| model.name == name).map(|it| it.compile);
    assert_eq!((compiled("yolov3"), compiled("resnet18")), (Some(false), Some(true)), "it is only trained");
    assert!(!world.work().join("models").exists());
    // The suite is not written again, and the workflows are not written without it.
    world.run(usual.into_iter().chain(["--action", ACTION])).expect_code(2);
    assert!(!world.work().join(".github").exists());
}

#[test]
fn without_pytorchs_settings_every_model_of_the_checkout_runs_as_it_is() {
    let world = World::new();
    torchbench(&world);
    world.run(["init", "suites/bench", "--torchbench", "bench"]).expect_code(0);
    let suite = world.read("suites/bench/benchgate.toml");
    assert!(!suite.contains("dtype") && !suite.contains("[[backend]]"), "{suite}");
    let found = benchgate::config::parse(&suite, Path::new("suites/bench/benchgate.toml")).unwrap();
    assert_eq!(found.models.len(), 12);
    let benchgate::config::ModelSource::Torchbench { checkout, .. } = &found.models[0].source else {
        panic!()
    };
    assert_eq!(checkout.folder, Path::new("suites/bench/../../bench"));
    // Each side has its own copy of the repository, and different folders next to that copy.
    git2::Repository::init(world.work().join("repository")).unwrap();
    world.run(["init", "repository/suite", "--torchbench", "bench"]).expect_code(0);
    let suite = world.read("repository/suite/benchgate.toml");
    let absolute = world.work().join("bench");
    assert!(suite.contains(&format!("path = \"{}\"\n", absolute.display())), "{suite}");
}

#[test]
fn what_is_not_a_checkout_or_not_its_settings_writes_nothing() {
    let world = World::new();
    torchbench(&world);
    world.write("other.yaml", "skip: { all: [] }\n");
    world.write("broken.yaml", "skip: [\n");
    let before = files(&world);
    for (checkout, settings, part) in [
        ("nowhere", "torchbench.yaml", "nowhere"),
        (".", "torchbench.yaml", "torchbenchmark"),
        ("bench", "nothing.yaml", "nothing.yaml"),
        ("bench", "other.yaml", "`dtype`"),
        ("bench", "broken.yaml", "broken.yaml"),
    ] {
        let arguments = ["init", "--torchbench", checkout, "--torchbench-config", settings];
        let said = world.run(arguments).expect_code(2).stderr;
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(files(&world), before);
}
