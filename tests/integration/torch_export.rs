//! The real exporter: torch, torch-mlir and IREE, from Python source to a verdict. The tests are ignored by
//! default, because they install several gigabytes; `.ci/run torch` runs them.

use std::collections::BTreeSet;
use std::path::Path;

use crate::harness::{Outcome, World};
use crate::pull_request::commit;
use crate::real_tools;

/// A copy of an example, so that nothing is written into the source tree.
fn example(name: &str) -> World {
    let world = World::new();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name);
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            world.write(path.file_name().unwrap().to_str().unwrap(), std::fs::read(&path).unwrap());
        }
    }
    world
}

fn run(world: &World, args: &[&str]) -> Outcome {
    world.finish(real_tools::command(world, args))
}

/// The benchmarks of a side whose result of this stage came from the cache, according to run.json.
fn cached(world: &World, side: &str, stage: &str) -> Vec<String> {
    let run: serde_json::Value = serde_json::from_str(&world.read("run.json")).unwrap();
    let side = run["sides"].as_array().unwrap().iter().find(|found| found["name"] == side).unwrap();
    let benchmarks = side["benchmarks"].as_array().unwrap().iter().filter(|benchmark| {
        let mut stages = benchmark["stages"].as_array().unwrap().iter();
        stages.any(|found| found["stage"] == stage && found["status"] == "cached")
    });
    benchmarks.map(|benchmark| benchmark["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
#[ignore = "installs PyTorch (6 GB)"]
fn torch_models_go_from_source_to_a_verdict_and_a_crash_is_one_models_failure() {
    let world = example("torch");
    // The example is about the benefit of data tiling. Two blocks measure both sides but can't decide this
    // question.
    let outcome = run(&world, &["gate", "--max-blocks", "2"]);
    assert_eq!(outcome.code, Some(11), "{outcome:?}");
    assert!(outcome.stderr.contains("verify: 4 steps, 4 PASS"), "two models, two sides: {}", outcome.stderr);

    let again = run(&world, &["run", "--side", "head"]);
    assert_eq!(again.code, Some(0), "{again:?}");
    for stage in ["export", "compile"] {
        assert_eq!(cached(&world, "head", stage).len(), 2, "nothing is made twice: {}", again.stderr);
    }

    // A model that crashes the interpreter only fails itself; later models get a new interpreter.
    let models = world.read("models.py");
    world.write(
        "models.py",
        format!(
            "{models}\n\ndef make_crash():\n    import os, signal\n    os.kill(os.getpid(), signal.SIGSEGV)\n"
        ),
    );
    let toml = world.read("benchgate.toml");
    let crash = "[[model]]\nname = \"crash\"\nsource = \"models.py:make_crash\"\n\n";
    let at = toml.find("[[model]]").unwrap();
    world.write("benchgate.toml", format!("{}{crash}{}", &toml[..at], &toml[at..]));
    let crashed = run(&world, &["run", "--side", "head"]);
    assert_eq!(crashed.code, Some(20), "{crashed:?}");
    let said = crashed.said();
    assert!(said.contains("crash/cpu/main: failed: export: construct: the exporter"), "{said}");
    assert!(said.contains("SIGSEGV"), "{said}");
    assert_eq!(said.matches("ok, PASS").count(), 2, "{said}");
}

/// PyTorch/XLA is left out, because its environment is another copy of torch.
#[test]
#[ignore = "installs PyTorch (6 GB)"]
fn other_backends_stand_next_to_iree_and_each_combination_of_axes_is_a_line() {
    let world = example("backends");
    let some =
        ["--axis", "backend=torchscript", "--axis", "backend=onnxruntime", "--axis", "backend=tensorrt"];
    let mut args = vec!["run", "--filter", "mlp", "--axis", "backend=eager"];
    args.extend(some);
    let outcome = run(&world, &args);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    // The row of a backend begins with its name. Reasons are below the table.
    let rows = |backend: &str| {
        let rows =
            outcome.stdout.lines().filter(|line| line.trim_start().starts_with(&format!("{backend} ")));
        rows.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    for backend in ["eager", "torchscript", "onnxruntime"] {
        let [eval, train] = &rows(backend)[..] else { panic!("{backend}: {}", outcome.stdout) };
        assert!(eval.contains(&format!("× {backend}")) && eval.ends_with("PASS"), "{eval}");
        let trained = if backend == "onnxruntime" { "unsupported" } else { "PASS" };
        assert!(train.ends_with(trained), "{train}");
    }
    let said = outcome.said();
    assert!(said.contains("onnxruntime, train: unsupported: the onnxruntime package"), "{said}");
    assert!(said.contains("tensorrt, eval: unsupported: TensorRT runs on CUDA devices only"), "{said}");

    let axes = ["--axis", "backend=eager", "--axis", "matmul-precision=medium", "--repeat", "2"];
    let mut args = vec!["run", "--config", "axes.toml", "--append-results", "results"];
    args.extend(axes);
    let outcome = run(&world, &args);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let lines: Vec<serde_json::Value> =
        world.read("results/results.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let others = lines.iter().filter(|line| line["experiment"]["backend"] != "iree");
    let experiments: BTreeSet<String> = others
        .map(|line| {
            assert_eq!(
                (line["verification_code"].as_str(), line["repeat"].as_u64()),
                (Some("PASS"), Some(2)),
                "{line}"
            );
            line["experiment"].to_string()
        })
        .collect();
    assert_eq!(experiments.len(), 8, "{experiments:#?}");
    let iree = world.read("results/iree_latency.csv");
    assert!(iree.starts_with("timestamp,model,target,time_ms\n") && iree.lines().count() > 1, "{iree}");
}

#[test]
#[ignore = "installs PyTorch (6 GB)"]
fn what_init_writes_is_measured_and_so_is_a_model_that_is_added_to_it() {
    let world = World::new();
    world.run(["init", "--action", "o/r@1111111111111111111111111111111111111111"]).expect_code(0);
    let said = world.run(["init", "--model", "attention"]).expect_code(0).stdout;
    let (_, table) = said.split_once("[[model]]").unwrap();
    world.write("benchgate.toml", format!("{}\n[[model]]{table}", world.read("benchgate.toml")));
    // The lock of the example is used, because `benchgate tools pin` would later resolve newer tools and
    // packages.
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/torch/benchgate.lock");
    world.write("benchgate.lock", std::fs::read(lock).unwrap());
    let outcome = run(&world, &["run"]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let said = outcome.said();
    assert!(said.contains("example/cpu/main") && said.contains("attention/cpu/main"), "{said}");
    assert_eq!(said.matches("ok, PASS").count(), 2, "{said}");
}

/// A package of five files with relative imports. Its model needs an additional Python package.
#[test]
#[ignore = "installs PyTorch (6 GB)"]
fn a_package_with_another_requirement_is_measured_and_a_change_of_its_meaning_has_to_be_allowed() {
    let world = World::new();
    world.run(["init", "--action", "o/r@1111111111111111111111111111111111111111"]).expect_code(0);
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/torch/benchgate.lock");
    world.write("benchgate.lock", std::fs::read(lock).unwrap());
    for (file, text) in [
        ("nets/__init__.py", ""),
        ("nets/width.py", "WIDTH = 32\n"),
        ("nets/layers/__init__.py", "from .mlp import Mlp\n"),
        (
            "nets/layers/mlp.py",
            "import torch\nfrom einops import rearrange\nfrom ..width import WIDTH\n\n\n\
             class Mlp(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        \
             self.layer = torch.nn.Linear(WIDTH, WIDTH)\n\n    def forward(self, x):\n        \
             return self.layer(rearrange(x, 'b h w -> (b h) w'))\n",
        ),
        (
            "nets/model.py",
            "import torch\nfrom .layers import Mlp\nfrom .width import WIDTH\n\n\n\
             def make():\n    return Mlp(), (torch.randn(2, 8, WIDTH),)\n",
        ),
    ] {
        world.write(file, text);
    }
    let toml = world.read("benchgate.toml");
    let own = "\n[python]\nrequirements = [\"einops==0.8.1\"]\n\n[[model]]\nname = \"net\"\nsource = \"nets/model.py:make\"\n";
    world.write("benchgate.toml", format!("{toml}{own}"));
    let refused = run(&world, &["run", "--filter", "net"]).said();
    assert!(refused.contains("torch+suite") && refused.contains("benchgate tools pin"), "{refused}");
    assert_eq!(run(&world, &["tools", "pin"]).code, Some(0));
    let outcome = run(&world, &["run", "--filter", "net"]);
    assert!(outcome.code == Some(0) && outcome.said().contains("ok, PASS"), "{outcome:?}");

    let repository = git2::Repository::init(world.work()).unwrap();
    let gate = || run(&world, &["gate", "--base", "HEAD", "--filter", "net", "--max-blocks", "2"]);
    commit(&repository, "base");
    let mlp = world.read("nets/layers/mlp.py");
    // The new layer's weights are drawn before the inputs, but the inputs stay the same.
    let layer = "self.layer = torch.nn.Linear(WIDTH, WIDTH)\n";
    world.write(
        "nets/layers/mlp.py",
        mlp.replace(layer, &format!("{layer}        {}", layer.replace("layer", "more"))),
    );
    let outcome = gate();
    // Nothing uses the new layer. Two blocks on a busy machine may leave even that undecided.
    assert!(matches!(outcome.code, Some(0 | 11)), "{outcome:?}");
    assert!(outcome.said().contains("identical"), "{outcome:?}");
    world.write("nets/layers/mlp.py", mlp.replace("w'))", "w')) * 1.01"));
    let outcome = gate();
    assert_eq!(outcome.code, Some(13), "{outcome:?}");
    assert!(outcome.said().contains("1.01"), "{outcome:?}");
    // The base allows a changed reference before the next change.
    let toml = world.read("benchgate.toml");
    world.write("benchgate.toml", format!("{toml}\n[numerics]\nchanged-reference = \"note\"\n"));
    world.write("nets/layers/mlp.py", &mlp);
    commit(&repository, "allow");
    world.write("nets/layers/mlp.py", mlp.replace("w'))", "w')) * 2"));
    let outcome = gate();
    // Two blocks can't decide about the time.
    assert_eq!(outcome.code, Some(11), "{outcome:?}");
    assert!(outcome.said().contains("reference-changed"), "{outcome:?}");
}

/// Without PyTorch: this test only needs iree-import-onnx and ONNX Runtime.
#[test]
#[ignore = "installs ONNX Runtime and iree-import-onnx (0.7 GB)"]
fn saved_onnx_models_are_verified_by_onnx_runtime_and_their_external_data_is_in_the_key() {
    let world = example("onnx");
    let first = run(&world, &["run"]);
    assert_eq!(first.code, Some(0), "{first:?}");
    assert_eq!(first.said().matches("ok, PASS").count(), 2, "{first:?}");
    let results: serde_json::Value = serde_json::from_str(&world.read("run.json")).unwrap();
    for row in results["sides"][0]["benchmarks"].as_array().unwrap() {
        let output = &row["verification"]["outputs"][0];
        assert!(output["divergence"]["error_fp64"].is_number(), "there is an fp64 reference: {row}");
    }
    let again = run(&world, &["run"]);
    assert_eq!(cached(&world, "head", "export"), ["convnet/cpu/main", "encoder/cpu/main"], "{again:?}");
    // The weight is new, so that no earlier run of this test has stored it in the cache.
    let mut data = std::fs::read(world.work().join("encoder.data")).unwrap();
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().subsec_nanos() as f32 / 1e9;
    data[..4].copy_from_slice(&now.to_le_bytes());
    world.write("encoder.data", data);
    let changed = run(&world, &["run"]);
    assert_eq!(changed.code, Some(0), "{changed:?}");
    assert_eq!(cached(&world, "head", "export"), ["convnet/cpu/main"], "{changed:?}");
}

#[test]
#[ignore = "downloads IREE from the Python package index"]
fn a_transform_library_changes_the_dispatch_and_its_content_is_part_of_the_key() {
    let world = example("transform-dialect");
    let first = run(&world, &["run", "--dump-ir"]);
    assert_eq!(first.code, Some(0), "{first:?}");
    assert_eq!(first.said().matches("ok, PASS").count(), 2, "{first:?}");
    let configured = |side: &str| {
        let folder = world.work().join(format!(".benchgate/ir/{side}/matmul/cpu/main"));
        std::fs::read_to_string(folder.join("matmul.9.executable-configurations.mlir")).unwrap()
    };
    assert!(configured("head").contains("distribution = [16, 16, 0]"), "{}", configured("head"));
    assert!(!configured("base").contains("distribution = [16, 16, 0]"), "{}", configured("base"));
    // The content is new, so that no earlier run of this test has stored it in the cache.
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos();
    let library = world.read("library.mlir").replace("[16, 16, 0]", "[32, 32, 0]");
    world.write("library.mlir", format!("// {now}\n{library}"));
    let changed = run(&world, &["run"]);
    assert_eq!(changed.code, Some(0), "{changed:?}");
    let compiled = |side: &str| cached(&world, side, "compile").is_empty();
    assert!(compiled("head") && !compiled("base"), "{changed:?}");
}

/// A saved program, and a model from a checkout with torchbench's layout.
#[test]
#[ignore = "installs PyTorch (6 GB)"]
fn a_saved_program_and_a_model_of_torchbench_are_verified() {
    let world = example("torch");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/saved/tiny.pt2");
    world.write("tiny.pt2", std::fs::read(fixture).unwrap());
    world.write("bench/torchbenchmark/__init__.py", "");
    world.write("bench/torchbenchmark/models/__init__.py", "");
    world.write(
        "bench/torchbenchmark/models/tiny/__init__.py",
        "import torch\n\
         class Model:\n    \
             def __init__(self, test, device, batch_size=None, extra_args=[]):\n        \
                 self.model, self.batch_size = torch.nn.Linear(8, 4).to(device), batch_size or 2\n    \
             def get_module(self):\n        \
                 return self.model, (torch.randn(self.batch_size, 8),)\n",
    );
    world.write(
        "bench/torchbenchmark/models/trained/__init__.py",
        "import torch\n\
         class Model:\n    \
             def __init__(self, test, device, batch_size=None, extra_args=[]):\n        \
                 if test != \"train\": raise NotImplementedError(\"no inference\")\n        \
                 self.model = torch.nn.Linear(8, 4).to(device)\n    \
             def get_module(self):\n        \
                 return self.model, (torch.randn(2, 8),)\n",
    );
    let toml = world.read("benchgate.toml");
    let (at, end) = (toml.find("[[model]]").unwrap(), toml.find("[[target]]").unwrap());
    let models = "[torchbench]\npath = \"bench\"\n\
                  [[model]]\nname = \"saved\"\nsource = \"tiny.pt2\"\nexporter = [\"torch-mlir\", \"iree-turbine\", \"onnx\"]\n\
                  [[model]]\nname = \"bench\"\nsource = \"torchbench:tiny\"\noptions = { batch_size = 3 }\n\
                  [[backend]]\nname = \"eager\"\nprocesses = 1\n";
    world.write("benchgate.toml", format!("{}{models}{}", &toml[..at], &toml[end..]));
    let outcome = run(&world, &["run", "--side", "head"]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(outcome.said().matches("ok, PASS").count(), 4, "{outcome:?}");
    let results: serde_json::Value = serde_json::from_str(&world.read("run.json")).unwrap();
    let rows = results["sides"][0]["benchmarks"].as_array().unwrap();
    assert_eq!(rows[3]["labels"]["torchbench"], "unversioned", "{}", rows[3]);
    let backends = results["backends"].as_array().unwrap();
    assert!(backends.iter().all(|row| row["verification"]["code"] == "PASS"), "{backends:?}");
    // Neither the model nor a file that it reads has changed.
    let again = run(&world, &["run", "--side", "head"]);
    assert_eq!(cached(&world, "head", "export").len(), 4, "{again:?}");

    // A model that can only be trained runs only on backends.
    let trained = "compile = false\noptions = { test = \"train\" }\n[[backend]]\nname = \"eager\"\n\
                   processes = 1\ntest = \"train\"\n";
    let only = format!("[[model]]\nname = \"trained\"\nsource = \"torchbench:trained\"\n{trained}");
    let torchbench = "[torchbench]\npath = \"bench\"\n";
    world.write("benchgate.toml", format!("{}{torchbench}{only}{}", &toml[..at], &toml[end..]));
    let outcome = run(&world, &["run", "--side", "head"]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let results: serde_json::Value = serde_json::from_str(&world.read("run.json")).unwrap();
    let [row] = &results["backends"].as_array().unwrap()[..] else { panic!("{results}") };
    assert_eq!((row["test"].as_str(), row["verification"]["code"].as_str()), (Some("train"), Some("PASS")));
    assert!(outcome.stdout.contains("trained"), "{outcome:?}");
}

/// Weights beside the suite that native code reads, and a helper that base imports by the absolute path of head's tree.
#[test]
#[ignore = "installs PyTorch (6 GB)"]
fn an_export_that_reads_files_outside_its_sources_is_never_taken_for_an_unchanged_one() {
    let world = World::new();
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/torch/benchgate.lock");
    world.write("suite/benchgate.lock", std::fs::read(lock).unwrap());
    let toml = world.write("suite/benchgate.toml", SUITE_BESIDE_WEIGHTS);
    let helper = world.work().join("lib").display().to_string();
    let weights =
        "torch.from_file(path.join(path.dirname(__file__), '../weights.bin'), size=1024).reshape(32, 32)";
    let head = "import sys\nfrom os import path\nimport torch\n";
    let model = |layer: &str| {
        format!(
            "{head}\nclass Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        \
             self.layer = torch.nn.Parameter({layer})\n\n    def forward(self, x):\n        return x @ self.layer\n\n\n\
             def make():\n    torch.manual_seed(1)\n    return Net(), (torch.randn(8, 32),)\n"
        )
    };
    world.write("suite/mapped.py", model(&format!("{weights}.clone()")));
    let imported = model("torch.eye(32) * scale_of_test.SCALE");
    let import = format!("{head}sys.path.insert(0, {helper:?})\nimport scale_of_test\n");
    world.write("suite/imported.py", imported.replace(head, &import));
    let change = |scale: f32| {
        let values = (0..1024).map(|at| scale * (at as f32 / 512.0 - 1.0)).flat_map(f32::to_le_bytes);
        world.write("weights.bin", values.collect::<Vec<u8>>());
        world.write("lib/scale_of_test.py", format!("SCALE = {scale:?}\n"));
    };
    // The values are new, so that no earlier run of this test has stored them in the cache.
    let scale = 1.0 + std::time::UNIX_EPOCH.elapsed().unwrap().subsec_nanos() as f32 / 1e9;
    change(scale);
    let repository = git2::Repository::init(world.work()).unwrap();
    commit(&repository, "base");
    change(scale * 1.5);
    let toml = toml.to_str().unwrap();
    let outcome = run(&world, &["gate", "--base", "HEAD", "--config", toml, "--max-blocks", "2"]);
    assert_eq!(outcome.code, Some(13), "{outcome:?}");
    let said = outcome.said().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("diverged") && said.contains("mapped/cpu/main"), "{outcome:?}");
    assert!(said.contains("base's export read head's `lib/"), "{outcome:?}");
}

const SUITE_BESIDE_WEIGHTS: &str = r#"
[suite]
name = "beside"

[toolchain]
version = "3.13.0"
commit = "89ece87b89852100c0a4ac3d515e14842d090967"

[[target]]
name = "cpu"
backend = "llvm-cpu"
device = "local-sync"
flags = ["--iree-llvmcpu-target-cpu=host"]

[[model]]
name = "mapped"
source = "mapped.py:make"

[[model]]
name = "imported"
source = "imported.py:make"
"#;
