//! Tests of exports with the real package in a real interpreter. Only the lowering is faked: it returns what
//! the model's constructor returns, as text.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};

use benchgate_core::model::SideName;
use benchgate_core::record::StageStatus;
use benchgate_host::process::Cancel;
use benchgate_toolchain::PythonEnv;

use super::super::interpreters::Environments;
use super::super::plan::{Filter, SideInput, plan};
use super::*;

const FAKE: &str = r#"#!/usr/bin/env python3
import os, sys
sys.path.insert(0, os.getcwd())
from benchgate_export import exporting, serve, source
def export(request, enter):
    enter("import")
    if request.source.endswith(".onnx"):
        made = open(request.source).read() + open(request.source + ".data").read()
    else:
        made = source.construct(source.load(request.source), request)
    with open(os.path.join(request.out, "main.mlir"), "w") as f:
        f.write(str(made))
    return {"mlir": "main.mlir"}
exporting.export = export
sys.exit(serve.main())
"#;

/// A folder that contains checkouts and the cache that their runs share.
struct World(tempfile::TempDir);

impl World {
    fn new(files: &[(&str, &str)]) -> Self {
        let world = Self(tempfile::tempdir().unwrap());
        for (name, text) in files {
            world.write(name, text);
        }
        world.write("python", FAKE);
        fs::set_permissions(world.path("python"), fs::Permissions::from_mode(0o755)).unwrap();
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Runs once, exporting `models/a.py:make` from each of these source folders. Returns each result, and
    /// whether it was already in the cache.
    fn run(&self, sources: &[&str]) -> Vec<(String, StageStatus)> {
        self.run_models(sources, &vec!["a"; sources.len()])
    }

    /// Exports `models/NAME.py:make` for each of these names instead.
    fn run_models(&self, sources: &[&str], names: &[&str]) -> Vec<(String, StageStatus)> {
        let sides: Vec<SideInput> =
            sources.iter().zip(names).map(|(sources, name)| self.side(sources, name)).collect();
        let python = PythonEnv {
            python: self.path("python"),
            packages: PathBuf::new(),
            suite_packages: None,
            digest: "d".to_owned(),
        };
        let environments: Environments = [Environment::Torch, Environment::Onnx]
            .map(|environment| (environment, Ok(python.clone())))
            .into();
        let cancel = Cancel::new();
        let host = Host::in_folder(self.0.path(), &cancel);
        let exporters = Exporters::new(environments, 1, &BTreeMap::new());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut results = Vec::new();
            for side in &sides {
                let planned = plan(side, &Filter::default())[0];
                let environment = Environment::for_model(planned.model).unwrap();
                let job =
                    ExportJob { planned, exporter: Exporter::TorchMlir, environment, exporters: &exporters };
                let source = export(&host, job).await.unwrap();
                results.push((fs::read_to_string(source.mlir).unwrap(), source.report.status));
            }
            exporters.stop().await;
            results
        })
    }

    fn side(&self, sources: &str, model: &str) -> SideInput {
        let own = fs::read_to_string(self.path("model.toml"));
        let model = own.unwrap_or_else(|_| format!("source = \"models/{model}.py:make\"\n"));
        let text = format!(
            "[suite]\nname = \"s\"\n[toolchain]\nversion = \"1.0\"\ncommit = \"{}\"\n\
             [[model]]\nname = \"m\"\n{model}[[target]]\nname = \"cpu\"\nbackend = \"llvm-cpu\"\n",
            "1".repeat(40)
        );
        self.write(&format!("{sources}/benchgate.toml"), &text);
        let config =
            benchgate_config::parse(&text, &self.path(&format!("{sources}/benchgate.toml"))).unwrap();
        let mut side = config.head.clone();
        side.sources = self.path(sources);
        SideInput::new(SideName::Head, config, side)
    }

    /// Exports only the source folder `a`.
    fn export(&self) -> (String, StageStatus) {
        self.run(&["a"]).remove(0)
    }
}

/// Checks that a second export is found in the cache, and that a change leads to a new export.
fn a_change_is_seen(files: &[(&str, &str)], change: impl Fn(&World)) {
    let world = World::new(files);
    assert_eq!(world.export(), ("1".to_owned(), StageStatus::Ok), "{files:?}");
    assert_eq!(world.export(), ("1".to_owned(), StageStatus::Cached), "{files:?}");
    change(&world);
    assert_eq!(world.export(), ("2".to_owned(), StageStatus::Ok), "{files:?}");
}

#[test]
fn a_module_that_a_model_imports_is_part_of_the_model() {
    for (model, module) in [
        ("from layers.block import N", "models/layers/block.py"),
        ("import sys; sys.path.insert(0, __file__.rsplit('/', 2)[0])\nfrom shared import N", "shared.py"),
        (
            "import sys; sys.path.insert(0, __file__.rsplit('/', 3)[0] + '/lib')\nfrom common import N",
            "../lib/common.py",
        ),
        ("from pkg import N", "models/pkg/__init__.py"),
        ("N = int(open(__file__.rsplit('/', 1)[0] + '/layers.csv').read()[4:])", "models/layers.csv"),
        ("N = int(open(__file__.rsplit('/', 3)[0] + '/data/n').read()[4:])", "../data/n"),
    ] {
        let (code, module) = (format!("{model}\ndef make(): return N\n"), format!("a/{module}"));
        let files = [("a/models/a.py", code.as_str()), (module.as_str(), "N = 1")];
        a_change_is_seen(&files, |world| world.write(&module, "N = 2"));
    }
}

#[test]
fn a_relative_import_of_a_package_is_part_of_the_model() {
    let files = [
        ("a/models/a.py", "from pkg.inner import N\ndef make(): return N\n"),
        ("a/models/pkg/inner/__init__.py", "from ..deep import N\n"),
        ("a/models/pkg/deep.py", "N = 1\n"),
    ];
    a_change_is_seen(&files, |world| world.write("a/models/pkg/deep.py", "N = 2\n"));
}

#[test]
fn a_file_that_is_added_and_shadows_another_is_seen() {
    let lib = "import sys; sys.path.insert(0, __file__.rsplit('/', 3)[0] + '/lib')\n";
    let code = format!("{lib}from common import N\ndef make(): return N\n");
    let files = [("a/models/a.py", code.as_str()), ("lib/common.py", "N = 1\n")];
    a_change_is_seen(&files, |world| world.write("lib/common/__init__.py", "N = 2\n"));
}

#[test]
fn a_file_that_is_removed_is_seen() {
    let code = "try:\n    from extra import N\nexcept ImportError:\n    N = 2\ndef make(): return N\n";
    for extra in ["a/models/extra.py", "a/models/extra/__init__.py"] {
        let files = [("a/models/a.py", code), (extra, "N = 1\n")];
        a_change_is_seen(&files, |world| fs::remove_file(world.path(extra)).unwrap());
    }
}

#[test]
fn the_target_of_a_link_out_of_the_tree_is_part_of_the_model() {
    let world = World::new(&[
        ("a/models/a.py", "from linked import N\ndef make(): return N\n"),
        ("elsewhere/linked.py", "N = 1\n"),
    ]);
    symlink(world.path("elsewhere/linked.py"), world.path("a/models/linked.py")).unwrap();
    assert_eq!(world.export(), ("1".to_owned(), StageStatus::Ok));
    assert_eq!(world.export(), ("1".to_owned(), StageStatus::Cached));
    world.write("elsewhere/linked.py", "N = 2\n");
    assert_eq!(world.export(), ("2".to_owned(), StageStatus::Ok));
}

const CONSTANT: (&str, &str) = ("a/models/a.py", "def make(): return 1\n");

#[test]
fn a_file_that_native_code_may_open_unheard_is_part_of_the_key() {
    let world = World::new(&[CONSTANT, ("a/data/w.safetensors", "1")]);
    world.export();
    world.write("a/data/w.safetensors", "2");
    assert_eq!(world.export().1, StageStatus::Ok);
}

/// Code that reads a number as libraries of native code do, without a report of Python.
const NATIVELY: &str = "import ctypes\n\
    def read(path):\n    \
        libc, text = ctypes.CDLL(None), ctypes.create_string_buffer(16)\n    \
        file = libc.open(path.encode(), 0)\n    \
        assert file > 0 and libc.read(file, text, 15) >= 0 and libc.close(file) == 0\n    \
        return int(text.value)\n\
    above = __file__.rsplit('/', 3)[0]\n";

#[test]
fn a_file_elsewhere_that_native_code_reads_is_part_of_the_model() {
    let code = format!("{NATIVELY}def make(): return read(above + '/weights/w.safetensors')\n");
    let files = [("a/models/a.py", code.as_str()), ("weights/w.safetensors", "1")];
    a_change_is_seen(&files, |world| world.write("weights/w.safetensors", "2"));
}

#[test]
fn what_an_earlier_model_read_is_no_part_of_the_next() {
    // The side's interpreter serves both.
    let code = format!("{NATIVELY}def make(): return 1 // read(above + '/zero')\n");
    let next = format!("{NATIVELY}def make(): return read(above + '/one')\n");
    let files =
        [("a/models/a.py", code.as_str()), ("a/models/b.py", next.as_str()), ("zero", "1"), ("one", "1")];
    let world = World::new(&files);
    let both = |status| {
        assert_eq!(
            world.run_models(&["a", "a"], &["a", "b"]),
            [("1".to_owned(), status), ("1".to_owned(), status)]
        );
    };
    both(StageStatus::Ok);
    both(StageStatus::Cached);
    world.write("zero", "1 ");
    let results = world.run_models(&["a", "a"], &["a", "b"]);
    assert_eq!([results[0].1, results[1].1], [StageStatus::Ok, StageStatus::Cached]);
}

#[test]
fn a_saved_model_is_exported_again_when_it_its_external_data_or_its_inputs_change() {
    let toml = "source = \"m.onnx\"\ninputs = [\"x.npy\", \"1xi8=@raw.bin\"]\n";
    let files =
        ["a/m.onnx", "a/m.onnx.data", "a/x.npy", "a/raw.bin", "a/other.py"].map(|name| (name, "1")).to_vec();
    let world = World::new(&[files, vec![("model.toml", toml)]].concat());
    assert_eq!([world.export().1, world.export().1], [StageStatus::Ok, StageStatus::Cached]);
    for (name, status) in [
        ("a/m.onnx", StageStatus::Ok),
        ("a/m.onnx.data", StageStatus::Ok),
        ("a/x.npy", StageStatus::Ok),
        ("a/raw.bin", StageStatus::Ok),
        ("a/other.py", StageStatus::Cached),
    ] {
        world.write(name, "2");
        assert_eq!(world.export().1, status, "{name}");
    }
    world.write("model.toml", &format!("{toml}options = {{ batch = 2 }}\n"));
    assert_eq!(world.export().1, StageStatus::Ok, "another size");
}

#[test]
fn what_a_run_writes_and_what_a_model_does_not_read_changes_nothing() {
    let world = World::new(&[CONSTANT, ("a/notes.csv", "1"), ("lib/other.py", "1")]);
    world.export();
    for name in ["a/run.json", "a/.benchgate/logs/x", "a/notes.csv", "lib/other.py", "a/target/CACHEDIR.TAG"]
    {
        world.write(name, "2");
        if name.starts_with("a/target") {
            continue;
        }
        assert_eq!(world.export().1, StageStatus::Cached, "{name}");
    }
    // A new folder may shadow a module, even if it is marked as a cache, so it causes a new export. The
    // content of such a folder does not matter.
    assert_eq!(world.export().1, StageStatus::Ok);
    world.write("a/target/debug/x", "3");
    assert_eq!(world.export().1, StageStatus::Cached);
}

#[test]
fn what_leaves_no_trace_is_exported_in_every_run() {
    for what in [
        "import os\nN = os.environ.get('LAYERS', 1)",
        "import os\nN = len(dict(os.environ)) and 1",
        "import subprocess, sys\nN = int(subprocess.check_output([sys.executable, '-c', 'print(1)']))",
        "import os\nN = os.system('true') + 1",
    ] {
        let code = format!("{what}\ndef make(): return N\n");
        let world = World::new(&[("a/models/a.py", &code)]);
        for _ in 0..2 {
            assert_eq!(world.export(), ("1".to_owned(), StageStatus::Ok), "{what}");
        }
    }
}

#[test]
fn a_variable_that_is_the_same_in_every_export_leaves_nothing_open() {
    // argparse reads environment variables for the language and the terminal's width.
    let code = "import argparse\nargparse.ArgumentParser().parse_args([])\ndef make(): return 1\n";
    let world = World::new(&[("a/models/a.py", code)]);
    assert_eq!([world.export().1, world.export().1], [StageStatus::Ok, StageStatus::Cached]);
}

#[test]
fn two_checkouts_with_the_same_sources_and_another_library_next_to_them_are_two_exports() {
    let code = "import sys; sys.path.insert(0, __file__.rsplit('/', 3)[0] + '/lib')\n\
                from common import N\ndef make(): return N\n";
    let world = World::new(&[
        ("base/a/models/a.py", code),
        ("head/a/models/a.py", code),
        ("base/lib/common.py", "N = 1\n"),
        ("head/lib/common.py", "N = 2\n"),
    ]);
    for status in [StageStatus::Ok, StageStatus::Cached] {
        let results = world.run(&["base/a", "head/a"]);
        assert_eq!(results, [("1".to_owned(), status), ("2".to_owned(), status)]);
    }
    world.write("head/lib/common.py", "N = 1\n");
    assert_eq!(world.run(&["head/a"]), [("1".to_owned(), StageStatus::Cached)], "now they are the same");
}

#[test]
fn what_one_side_does_to_its_interpreter_does_not_reach_the_other() {
    let world = World::new(&[
        ("base/a/models/a.py", "import json; json.N = 1\ndef make(): return 1\n"),
        ("head/a/models/a.py", "import json\ndef make(): return getattr(json, 'N', 2)\n"),
    ]);
    let results = world.run(&["base/a", "head/a"]);
    assert_eq!(results[1].0, "2");
}
