//! Known ways of losing, faking, contradicting or hiding a result, tested with the whole gate. None of them
//! may end in exit code 0. Cases are added but never removed.
//!
//! A case describes a manipulation of an honest setup. Each setup is run without manipulation first and must
//! pass, because a setup that never passes would prove nothing.

mod appended;
mod base;
mod builds;
mod bundles;
mod commands;
mod configuration;
mod conversions;
mod directions;
mod exchanged;
mod expectations;
mod files;
mod foreign;
mod foreign_context;
mod foreign_facts;
mod head_choices;
mod head_configuration;
mod history;
mod kept_state;
mod keys;
mod left_out;
mod machines;
mod measures;
mod named_files;
mod quality;
mod rates;
mod reported;
mod suite_commands;
mod tools;
mod transcripts;

use crate::harness::{Outcome, World};
use crate::suite::{COMMIT, install_fake_tools, npy};

/// Every verdict that is not a pass, so that a lint or a default can't turn one of them into exit code 0.
const FAIL_ON: &str = "regressed,diverged,error,missing,inconclusive";

/// A suite whose two sides differ in their sources: `base/` and `head/`.
struct Sides {
    world: World,
}

/// Default behavior of both sides. Head's code differs from base's without any effect, because identical
/// modules would pass for that reason alone.
const BASE: &[&str] = &["latency-us=1000"];
const HEAD: &[&str] = &["latency-us=1000", "revision=2"];

impl Sides {
    fn new() -> Self {
        let world = World::new();
        install_fake_tools(&world.work().join("tools"));
        let sides = Self { world };
        for (side, directives) in [("base", BASE), ("head", HEAD)] {
            sides.model(side, "a", directives);
            sides.world.write(&format!("{side}/data/y.npy"), npy(&[1.0, 2.0, 3.0]));
        }
        sides.configuration("");
        sides
    }

    /// Writes a model of one side. `directives` are `KEY=VALUE` lines for the fake tools.
    fn model(&self, side: &str, name: &str, directives: &[&str]) {
        let lines: String = directives.iter().map(|line| format!("// fake {line}\n")).collect();
        self.world.write(&format!("{side}/models/{name}.mlir"), format!("// {name}\n{lines}"));
    }

    /// Adds directives to head's model.
    fn head(&self, directives: &[&str]) {
        self.model("head", "a", &[HEAD, directives].concat());
    }

    /// Adds directives to the models of both sides.
    fn both(&self, directives: &[&str]) {
        self.model("base", "a", &[BASE, directives].concat());
        self.head(directives);
    }

    /// Writes benchgate.toml and appends these lines.
    fn configuration(&self, extra: &str) {
        let toml = format!(
            "[suite]\nname = \"fake\"\n\n[toolchain]\nversion = \"9.9.9\"\ncommit = \"{COMMIT}\"\npath = \"tools\"\n\n\
             [side.base]\nsources = \"base\"\n\n[side.head]\nsources = \"head\"\n\n\
             [[model]]\nname = \"a\"\nsource = \"models/a.mlir\"\ninputs = [\"3xf32=1\"]\nexpected = [\"data/y.npy\"]\n\n\
             [[target]]\nname = \"cpu\"\nbackend = \"llvm-cpu\"\ndevice = \"local-task\"\n\n\
             [measure]\nrepetitions = 4\nmin-time = \"1ms\"\nwarmup = \"0ms\"\n\
             timeout = \"3s\"\ncompile-timeout = \"3s\"\n\n{extra}"
        );
        self.world.write("benchgate.toml", toml);
    }

    /// Replaces part of benchgate.toml.
    fn edit(&self, from: &str, to: &str) {
        let toml = self.world.read("benchgate.toml");
        assert!(toml.contains(from), "{from} is not in\n{toml}");
        self.world.write("benchgate.toml", toml.replacen(from, to, 1));
    }

    fn gate(&self) -> Outcome {
        self.world.run(["gate", "--fail-on", FAIL_ON])
    }
}

/// Cases that ended in exit code 0 or in a crash of benchgate itself, collected so that one failure does not
/// hide the next.
#[derive(Default)]
struct Greens {
    cases: usize,
    found: Vec<String>,
}

impl Greens {
    fn check(&mut self, case: &str, outcome: &Outcome) {
        self.cases += 1;
        // Exit code 1 is a bug in benchgate, and 101 is a panic.
        if !outcome.code.is_some_and(|code| code > 1 && code != 101) {
            self.found.push(format!(
                "{case}: exit code {:?}\n{}\n{}",
                outcome.code, outcome.stdout, outcome.stderr
            ));
        }
    }

    /// Fails if any case passed, or if fewer cases ran than expected.
    #[track_caller]
    fn none(self, at_least: usize) {
        assert!(self.cases >= at_least, "only {} cases ran", self.cases);
        assert!(self.found.is_empty(), "{} false greens:\n\n{}", self.found.len(), self.found.join("\n\n"));
    }
}
