//! Tests of experiments with a fake interpreter, in real processes but without torch.

use std::path::Path;
use std::time::Duration;

use strum::{VariantArray, VariantNames};
use tempfile::TempDir;

use benchgate_config::{self, BackendKind, ModelSource};
use benchgate_core::model::{Outcome, Progress, SideName, VerifyCode};
use benchgate_core::record::BackendRecord;
use benchgate_host::process::{Cancel, Command};
use benchgate_toolchain::{Environment, PythonEnv};

use super::super::host::Host;
use super::super::interpreters::Environments;
use super::super::journal::{Journal, Opening};
use super::super::plan::{Filter, PlannedBenchmark, expected, plan, uncompiled};
use super::*;

/// A fake of `python -m benchgate_backends REQUEST ANSWER`. The symbol of the model determines what it does.
const FAKE: &str = r#"#!/usr/bin/env python3
import json, os, struct, sys
assert sys.argv[1:3] == ["-m", "benchgate_backends"], sys.argv
request = json.load(open(sys.argv[3]))
answers = open(sys.argv[4], "w")
def send(**m): print(json.dumps({k.replace("_", "-"): v for k, v in m.items()}), file=answers, flush=True)
def npy(name, values):
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }" % len(values)
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    with open(os.path.join(request["out"], name), "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack("<%df" % len(values), *values))
request["packages"] = os.environ["BENCHGATE_PACKAGES"]
with open(os.path.join(os.path.dirname(sys.argv[0]), "calls"), "a") as f: f.write(json.dumps(request) + "\n")
what = request["symbol"]
send(hello="benchgate-backends/1", python="3")
send(stage="import")
if what == "unsupported": send(status="unsupported", stage="import", error="no such thing here"); sys.exit()
send(stage="compile")
if what == "crash": print("segfault coming", file=sys.stderr, flush=True); os.kill(os.getpid(), 11)
if what == "raises": send(status="failed", stage="compile", error="ValueError: no\nmore"); sys.exit()
if what == "eager": send(status="failed", stage="eager", error="it raises", code="EAGER_FAILED"); sys.exit()
if what == "silent": sys.exit()
if what == "zero": send(status="ok", samples=[0.0]); sys.exit()
if not request["measure"]: send(status="ok" if what == "works" else "failed", stage="dump", error="no graph"); sys.exit()
if request["verify"]:
    npy("expected0.npy", [1, 2, 3]); npy("actual0.npy", [1, 2, 4] if what == "wrong" else [1, 2, 3])
send(status="ok", samples=[1000.0, 1200.0], iterations=request["iterations"] or 7, compile_seconds=2.5, cold=request["verify"],
     outputs=1 if request["verify"] else None, references64=0, versions={"torch": "9"}, metrics={"xla_CompileTime_number": [0, 0]},
     memory=[[0.1, 5000, None, "import"]],
     collected={"dynamo_counters": {"stats": {"unique_graphs": 1}}} if request["collect"] else None)
"#;

fn suite(symbol: &str, more: &str) -> (TempDir, SideInput) {
    let folder = tempfile::tempdir().unwrap();
    let [fake, source] = ["python", "python.source"].map(|name| folder.path().join(name));
    std::fs::write(&source, FAKE).unwrap();
    // Another process writes the file. If this process did, a child that another thread starts at the same
    // time might hold the file open for writing, and executing it would fail.
    let install = Command::new("install", Duration::from_secs(60)).args(["-m", "755"]).args([&source, &fake]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert!(
        runtime.block_on(benchgate_host::process::run(&install, &Cancel::new())).unwrap().exit.is_success()
    );
    let text = format!(
        "[suite]\nname = \"s\"\n[toolchain]\nversion = \"1.0\"\ncommit = \"{}\"\n\
         [[model]]\nname = \"m\"\nsource = \"models.py:{symbol}\"\noptions = {{ width = 4 }}\n\
         [[target]]\nname = \"cpu\"\nbackend = \"llvm-cpu\"\n\
         [[backend]]\nname = \"eager\"\nprocesses = 2\npython = \"{}\"\n{more}",
        "1".repeat(40),
        fake.display()
    );
    let config = benchgate_config::parse(&text, &folder.path().join("benchgate.toml")).unwrap();
    let side = config.head.clone();
    (folder, SideInput::new(SideName::Head, config, side))
}

/// Runs the suite's experiments; the fake records its calls in the folder.
fn records(folder: &Path, side: &SideInput, axes: &[&str]) -> Vec<BackendRecord> {
    records_in(folder, side, axes, &Environments::new())
}

/// A progress listener that keeps the warnings, in order.
#[derive(Default)]
struct Warnings(std::sync::Mutex<Vec<String>>);

impl Progress for Warnings {
    fn on(&self, event: Event<'_>) {
        if let Event::Warning(text) = event {
            self.0.lock().unwrap().push(text.to_owned());
        }
    }
}

fn records_in(
    folder: &Path,
    side: &SideInput,
    axes: &[&str],
    environments: &Environments,
) -> Vec<BackendRecord> {
    records_with(folder, side, axes, environments, &Extras::default()).0
}

/// Runs the suite's experiments, and returns their records and the warnings of the run.
fn records_with(
    folder: &Path,
    side: &SideInput,
    axes: &[&str],
    environments: &Environments,
    extras: &Extras,
) -> (Vec<BackendRecord>, Vec<String>) {
    let (cancel, warnings) = (Cancel::new(), Warnings::default());
    let host = Host { progress: &warnings, ..Host::in_folder(folder, &cancel) };
    let axes: Vec<String> = axes.iter().map(|&axis| axis.to_owned()).collect();
    let planned: Vec<PlannedBenchmark<'_>> = plan(side, &Filter::default());
    let experiments = experiments(&planned, &side.config.backends, &Axes::new(&axes).unwrap()).unwrap();
    let sessions = folder.join("sessions");
    let Opening::Opened(journal) =
        Journal::try_open(&sessions, &"a".repeat(32), "2026-01-01T00:00:00Z").unwrap()
    else {
        panic!("nothing else holds it")
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let records = runtime.block_on(async {
        let found = interpreters(&experiments, environments);
        let all =
            Experiments { host: &host, lead: side, experiments: &experiments, interpreters: &found, extras };
        all.run(&journal, folder).await.unwrap()
    });
    (records, warnings.0.into_inner().unwrap())
}

fn one(symbol: &str) -> BackendRecord {
    let (folder, side) = suite(symbol, "");
    records(folder.path(), &side, &[]).remove(0)
}

fn calls(folder: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(folder.join("calls")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn each_process_is_fresh_and_only_the_first_verifies_and_compiles_cold() {
    let (folder, side) = suite("works", "iterations-per-run = 5\n");
    let record = records(folder.path(), &side, &[]).remove(0);
    assert_eq!(Outcome::from(&record.outcome), Outcome::Ok);
    assert_eq!(record.verification.unwrap().code, VerifyCode::Pass);
    assert_eq!((record.benchmarks, record.versions["torch"].as_str()), (vec!["m/cpu/main".to_owned()], "9"));
    let [first, second] = record.processes.as_slice() else { panic!("two processes") };
    assert_eq!((first.latency.len(), first.iterations), (2, Some(5)));
    assert_eq!((first.compile_seconds.is_some(), second.compile_seconds.is_some()), (true, false));
    assert_eq!(first.memory[0].host_bytes, 5000);
    assert!(first.log.as_ref().unwrap().starts_with("sessions/"), "{:?}", first.log);
    let calls = calls(folder.path());
    assert_eq!(
        calls.iter().map(|call| call["verify"].as_bool()).collect::<Vec<_>>(),
        [Some(true), Some(false)]
    );
    assert_eq!(calls[0]["options"], serde_json::json!({ "width": 4 }));
    assert!(calls[0]["batch-size"].is_null() && calls[0]["source"].as_str().unwrap().ends_with("models.py"));
}

#[test]
fn what_an_interrupted_session_finished_is_not_run_again() {
    let (folder, side) = suite("works", "");
    let first = records(folder.path(), &side, &[]);
    let second = records(folder.path(), &side, &[]);
    assert_eq!(first, second);
    assert_eq!(calls(folder.path()).len(), 2);
}

#[test]
fn a_wrong_output_is_measured_and_said() {
    let record = one("wrong");
    assert_eq!(Outcome::from(&record.outcome), Outcome::Ok);
    assert_eq!(record.verification.unwrap().code, VerifyCode::Fail);
    assert_eq!(record.processes.len(), 2);
}

#[test]
fn every_way_to_fail_is_a_row_with_its_reason_after_one_process() {
    for (symbol, stage, part) in [
        ("crash", Stage::Compile, "SIGSEGV): segfault coming"),
        ("raises", Stage::Compile, "compile: ValueError: no"),
        ("eager", Stage::Export, "eager: it raises"),
        ("silent", Stage::Compile, "ended without an answer"),
        ("zero", Stage::Benchmark, "measured no time"),
    ] {
        let record = one(symbol);
        let Outcome::Failed { stage: failed, why } = Outcome::from(&record.outcome) else {
            panic!("{symbol}: {:?}", record.outcome)
        };
        assert_eq!(failed, stage, "{symbol}: {why}");
        assert!(why.contains(part), "{symbol}: {why}");
        assert_eq!(record.processes.len(), 1, "{symbol}");
    }
    assert_eq!(one("eager").verification.unwrap().code, VerifyCode::EagerFailed);
    let Outcome::Unsupported { reason } = Outcome::from(&one("unsupported").outcome) else { panic!() };
    assert_eq!(reason, "no such thing here");
}

#[test]
fn an_interpreter_that_is_not_there_is_a_reason() {
    let (folder, mut side) = suite("works", "");
    side.config.backends[0].python = Some(folder.path().join("none"));
    let record = records(folder.path(), &side, &[]).remove(0);
    let Outcome::Unsupported { reason } = Outcome::from(&record.outcome) else {
        panic!("{:?}", record.outcome)
    };
    assert!(reason.contains("there is no interpreter"), "{reason}");
}

#[test]
fn a_backend_that_is_only_a_runtime_lies_over_torch() {
    let (folder, mut side) = suite("works", "");
    side.config.backends[0].kind = BackendKind::OnnxRuntime;
    let python = side.config.backends[0].python.take().unwrap();
    let env = |python: &Path, packages: &str| {
        Ok(PythonEnv {
            python: python.to_owned(),
            packages: packages.into(),
            suite_packages: None,
            digest: String::new(),
        })
    };
    let mut environments = Environments::from([(Environment::Torch, env(&python, "/torch"))]);
    let planned = plan(&side, &Filter::default());
    let wanted = needed(&experiments(&planned, &side.config.backends, &Axes::default()).unwrap());
    assert_eq!(wanted.into_iter().collect::<Vec<_>>(), [Environment::Torch, Environment::OnnxRuntime]);

    environments.insert(Environment::OnnxRuntime, Err("failed to find it".to_owned()));
    let record = records_in(folder.path(), &side, &[], &environments).remove(0);
    let reason = || Outcome::Unsupported { reason: "failed to find it".to_owned() };
    assert_eq!(Outcome::from(&record.outcome), reason());

    environments.insert(Environment::OnnxRuntime, env(Path::new("/other/python"), "/runtime"));
    let record = records_in(folder.path(), &side, &[], &environments).remove(0);
    assert_eq!(Outcome::from(&record.outcome), Outcome::Ok);
    assert_eq!(calls(folder.path())[0]["packages"], "/runtime");
}

#[test]
fn axes_are_multiplied_out_and_filtered_by_value() {
    let more = "test = [\"eval\", \"train\"]\nbatch-size = [1, 8]\ndtype = [\"f32\", \"bf16\"]\n";
    let (folder, side) = suite("works", more);
    assert_eq!(records(folder.path(), &side, &[]).len(), 8);
    let some = records(folder.path(), &side, &["test=train", "dtype=bf16", "batch-size=1", "batch-size=8"]);
    let found: Vec<_> = some.iter().map(|r| (r.test.as_str(), r.batch_size, r.dtype.as_deref())).collect();
    assert_eq!(found, [("train", Some(1), Some("bf16")), ("train", Some(8), Some("bf16"))]);
    assert!(Axes::new(&["color=red".to_owned()]).unwrap_err().contains("no axis `color`"));
    assert!(records(folder.path(), &side, &["backend=iree"]).is_empty(), "IREE is measured in any case");
    let none = Axes::new(&["backend=inductor".to_owned()]).unwrap();
    let error = experiments(&plan(&side, &Filter::default()), &side.config.backends, &none).unwrap_err();
    assert!(error.to_string().contains("--axis"), "{error}");
}

#[test]
fn a_model_that_is_not_compiled_runs_on_backends_alone() {
    let (_folder, mut side) = suite("works", "test = \"train\"\n");
    side.config.models[0].compile = false;
    assert!(plan(&side, &Filter::default()).is_empty() && expected(&side.config).is_empty());
    let uncompiled = uncompiled(&side, &Filter::default());
    let found = experiments(&uncompiled, &side.config.backends, &Axes::default()).unwrap();
    let [experiment] = &found[..] else { panic!("{found:?}") };
    assert_eq!(experiment.to_string(), "m/eager-cpu-train");
}

#[test]
fn a_model_of_mlir_has_no_module_for_a_backend() {
    let (folder, mut side) = suite("works", "");
    side.config.models[0].source = ModelSource::Mlir("a.mlir".into());
    let record = records(folder.path(), &side, &[]).remove(0);
    let Outcome::Unsupported { reason } = Outcome::from(&record.outcome) else {
        panic!("{:?}", record.outcome)
    };
    assert!(reason.contains("no torch module"), "{reason}");
    assert!(calls(folder.path()).is_empty(), "nothing was started");
}

#[test]
fn the_names_of_backends_are_those_of_the_package() {
    let protocol = BackendsSource::FILES.iter().find(|(name, _)| *name == "protocol.py").unwrap().1;
    let names = <BackendKind as VariantNames>::VARIANTS
        .iter()
        .map(|name| format!("\"{name}\""))
        .collect::<Vec<_>>()
        .join(", ");
    assert!(protocol.contains(&format!("BACKENDS = ({names})")), "{names}");
}

fn xla(symbol: &str) -> (TempDir, SideInput) {
    let (folder, mut side) = suite(symbol, "");
    side.config.backends[0].kind = BackendKind::XlaLazy;
    (folder, side)
}

fn run(folder: &Path, side: &SideInput, extras: Extras) -> (Vec<BackendRecord>, Vec<String>) {
    records_with(folder, side, &[], &Environments::new(), &Extras { folder: folder.join("dumps"), ..extras })
}

#[test]
fn what_is_dumped_while_xla_compiles_has_a_process_that_measures_nothing() {
    let (folder, side) = xla("works");
    let dump = vec![DumpKind::XlaIr, DumpKind::Profile, DumpKind::XlaCompiledHlo, DumpKind::XlaIr];
    let (records, warnings) = run(folder.path(), &side, Extras { dump, ..Extras::default() });
    let experiment = folder.path().join("dumps/m/xla-lazy-cpu-eval");
    let found: Vec<_> = calls(folder.path())
        .into_iter()
        .map(|call| {
            (
                call["measure"].as_bool(),
                call["verify"].as_bool(),
                call["dump"].to_string(),
                call["dump-dir"].clone(),
            )
        })
        .collect();
    let expected = [
        (Some(true), Some(true), "[\"profile\"]", experiment.join("0")),
        (Some(true), Some(false), "[\"profile\"]", experiment.join("1")),
        (Some(false), Some(false), "[\"xla-ir\"]", experiment.clone()),
        (Some(false), Some(false), "[\"xla-compiled-hlo\"]", experiment),
    ]
    .map(|(measure, verify, dump, folder)| (measure, verify, dump.to_owned(), serde_json::json!(folder)));
    assert_eq!(found, expected);
    assert_eq!((records[0].processes.len(), warnings), (2, Vec::new()), "the record holds what was measured");
}

#[test]
fn a_dump_that_fails_is_a_warning_and_the_row_stays() {
    let (folder, side) = xla("wrong");
    let (records, warnings) =
        run(folder.path(), &side, Extras { dump: vec![DumpKind::XlaHlo], ..Extras::default() });
    assert_eq!(Outcome::from(&records[0].outcome), Outcome::Ok);
    assert_eq!(warnings, ["no xla-hlo of m/xla-lazy-cpu-eval: failed: benchmark: dump: no graph"]);
}

#[test]
fn a_backend_that_failed_is_not_started_again_for_its_dumps() {
    let (folder, side) = xla("raises");
    run(folder.path(), &side, Extras { dump: vec![DumpKind::XlaHlo], ..Extras::default() });
    assert_eq!(calls(folder.path()).len(), 1);
}

#[test]
fn what_is_collected_is_in_the_record_of_each_process() {
    let (folder, side) = suite("works", "");
    let (records, _) =
        run(folder.path(), &side, Extras { collect: vec![CollectKind::DynamoCounters], ..Extras::default() });
    for process in &records[0].processes {
        let counters = process.collected.as_ref().unwrap().dynamo_counters.as_ref().unwrap();
        assert_eq!(counters["stats"]["unique_graphs"], 1);
    }
    assert_eq!(calls(folder.path())[0]["collect"], serde_json::json!(["dynamo-counters"]));
}

#[test]
fn a_dump_that_no_experiment_can_leave_is_refused() {
    let (_folder, side) = suite("works", "");
    let planned = plan(&side, &Filter::default());
    let eager = experiments(&planned, &side.config.backends, &Axes::default()).unwrap();
    let asked = |dump: DumpKind| Extras { dump: vec![dump], ..Extras::default() };
    for (extras, experiments, part) in [
        (asked(DumpKind::XlaIr), eager.as_slice(), "xla-ir needs an experiment on xla-lazy or xla-dynamo"),
        (asked(DumpKind::XlaMetrics), eager.as_slice(), "xla-metrics needs"),
        (asked(DumpKind::Profile), &[], "this run has none"),
    ] {
        let error = extras.check(experiments).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    asked(DumpKind::Profile).check(&eager).unwrap();
    Extras::default().check(&[]).unwrap();
}

#[test]
fn the_kinds_are_those_of_the_package_and_of_the_documentation() {
    let protocol = BackendsSource::FILES.iter().find(|(name, _)| *name == "protocol.py").unwrap().1;
    let documentation = include_str!("../../../../docs/backends.md");
    let dumps: Vec<&str> = DumpKind::VARIANTS.iter().map(Into::into).collect();
    let collected: Vec<&str> = CollectKind::VARIANTS.iter().map(Into::into).collect();
    for (constant, names) in [("DUMPS", &dumps), ("COLLECTED", &collected)] {
        let quoted = names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
        assert!(protocol.contains(&format!("\n{constant} = ({quoted})\n")), "{constant}: {quoted}");
        for name in names {
            assert!(documentation.contains(&format!("| `{name}` |")), "{name} is not in docs/backends.md");
        }
    }
}
