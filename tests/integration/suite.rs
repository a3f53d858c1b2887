//! A suite with fake IREE tools: real processes and files, but no real compiler.

use std::path::Path;

use crate::harness::World;

/// The commit that the fake tools report.
pub const COMMIT: &str = "1111111111111111111111111111111111111111";

/// Installs the fake tools in a folder that a `[toolchain] path` can name.
pub fn install_fake_tools(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    for tool in
        ["iree-compile", "iree-run-module", "iree-benchmark-module", "iree-dump-module", "iree-profile"]
    {
        crate::harness::install_program(&crate::harness::built_example("fake_iree"), &folder.join(tool));
    }
    std::fs::write(folder.join("version.py"), format!("REVISIONS = {{\"IREE\": \"{COMMIT}\"}}\n")).unwrap();
}

/// A one-dimensional f32 array as NumPy stores it.
pub fn npy(values: &[f32]) -> Vec<u8> {
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    npy_of("<f4", &format!("({},)", values.len()), &data)
}

/// An array of any type and shape as NumPy stores it.
pub fn npy_of(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let mut header =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}").into_bytes();
    while !(10 + header.len() + 1).is_multiple_of(64) {
        header.push(b' ');
    }
    header.push(b'\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header);
    bytes.extend(data);
    bytes
}

/// A suite of fake models in the world's working folder.
pub struct Suite {
    pub world: World,
    models: Vec<String>,
    extra: String,
    base: Option<String>,
    head: String,
    measure: String,
}

impl Suite {
    /// Runs `benchgate run`, and removes the state of the machine from run.json, as if the host had been
    /// quiet.
    pub fn run_on_a_quiet_host(&self) {
        self.world.run(["run"]).expect_code(0);
        let mut file: serde_json::Value = serde_json::from_str(&self.world.read("run.json")).unwrap();
        for benchmark in file["sides"][0]["benchmarks"].as_array_mut().unwrap() {
            for process in benchmark["processes"].as_array_mut().unwrap() {
                process.as_object_mut().unwrap().remove("telemetry");
            }
        }
        self.world.write("run.json", file.to_string());
    }

    pub fn new() -> Self {
        let world = World::new();
        install_fake_tools(&world.work().join("tools"));
        world.write("data/y.npy", npy(&[1.0, 2.0, 3.0]));
        Self {
            world,
            models: Vec::new(),
            extra: String::new(),
            base: None,
            head: String::new(),
            measure:
                "repetitions = 4\nmin-time = \"1ms\"\nwarmup = \"0ms\"\nmin-blocks = 4\nmax-blocks = 12\n\
                      processes = 2\ntimeout = \"20s\"\ncompile-timeout = \"20s\"\n"
                    .to_owned(),
        }
    }

    /// Adds a model. `directives` are `KEY=VALUE` lines for the fake tools.
    pub fn model(mut self, name: &str, directives: &[&str]) -> Self {
        self.source(name, directives);
        self.models.push(name.to_owned());
        self
    }

    /// Adds tables without changes: another `[[target]]`, or a `[[model]]` whose source exists.
    pub fn toml(mut self, tables: &str) -> Self {
        self.extra.push_str(tables);
        self.extra.push_str("\n\n");
        self
    }

    /// Writes the devices of the fake runtime, and the errors of its drivers.
    pub fn devices(self, lines: &str) -> Self {
        self.world.write("tools/DEVICES", lines);
        self
    }

    /// Replaces a model's source.
    pub fn source(&self, name: &str, directives: &[&str]) {
        let lines: String = directives.iter().map(|line| format!("// fake {line}\n")).collect();
        self.world.write(&format!("models/{name}.mlir"), format!("// {name}\n{lines}"));
    }

    pub fn base(mut self, toml: &str) -> Self {
        self.base = Some(toml.to_owned());
        self
    }

    pub fn head(mut self, toml: &str) -> Self {
        toml.clone_into(&mut self.head);
        self
    }

    pub fn measure(mut self, toml: &str) -> Self {
        self.measure.push_str(toml);
        self
    }

    /// Writes benchgate.toml.
    pub fn write(self) -> Self {
        let models: String = self
            .models
            .iter()
            .map(|name| {
                format!(
                    "[[model]]\nname = \"{name}\"\nsource = \"models/{name}.mlir\"\n\
                     inputs = [\"3xf32=1\"]\nexpected = [\"data/y.npy\"]\n\n"
                )
            })
            .collect();
        let base = self.base.as_ref().map(|toml| format!("[side.base]\n{toml}\n")).unwrap_or_default();
        let toml = format!(
            "[suite]\nname = \"fake\"\n\n[toolchain]\nversion = \"9.9.9\"\ncommit = \"{COMMIT}\"\npath = \"tools\"\n\n\
             {base}[side.head]\n{}\n\n{models}\
             [[target]]\nname = \"cpu\"\nbackend = \"llvm-cpu\"\ndevice = \"local-task\"\n\n\
             {}[measure]\n{}",
            self.head, self.extra, self.measure
        );
        self.world.write("benchgate.toml", toml);
        self
    }

    /// Moves the tools out of the working folder, and configures their absolute path. If the folder is a
    /// repository, tools are usually outside it.
    pub fn with_tools_outside(self) -> Self {
        let tools = self.world.locks().join("tools");
        std::fs::rename(self.world.work().join("tools"), &tools).unwrap();
        let toml = self.world.read("benchgate.toml").replace("\"tools\"", &format!("{tools:?}"));
        self.world.write("benchgate.toml", toml);
        self
    }

    pub fn run_json(&self) -> serde_json::Value {
        serde_json::from_str(&self.world.read("run.json")).unwrap()
    }

    /// `(benchmark, side, block, slot)` of every process of the stored run, sorted.
    pub fn results(&self) -> Vec<(String, String, u64, u64)> {
        let run = self.run_json();
        let mut results = Vec::new();
        for side in run["sides"].as_array().unwrap() {
            for benchmark in side["benchmarks"].as_array().unwrap() {
                for process in benchmark["processes"].as_array().map(Vec::as_slice).unwrap_or_default() {
                    results.push((
                        benchmark["name"].as_str().unwrap().to_owned(),
                        side["name"].as_str().unwrap().to_owned(),
                        process["slot"]["block"].as_u64().unwrap_or_default(),
                        process["slot"]["slot"].as_u64().unwrap_or_default(),
                    ));
                }
            }
        }
        results.sort();
        results
    }
}
