//! Stored sessions that measured a frozen toolchain next to head: `[baseline] anchor`.

use crate::suite::{Suite, install_fake_tools};

const FROZEN: &str = "2222222222222222222222222222222222222222";
/// Three rows together give a steadier spread between sessions. With five or more, a common shift would be
/// removed even without an anchor.
const MODELS: [&str; 3] = ["a", "b", "c"];
const REFROZEN: &str = "3333333333333333333333333333333333333333";

/// A committed suite with an anchor, on a host whose speed differs by tens of percent between days.
struct Nights {
    suite: Suite,
}

impl Nights {
    fn new() -> Self {
        let suite = Suite::new().write().with_tools_outside();
        for (folder, commit) in [("frozen", FROZEN), ("refrozen", REFROZEN)] {
            let folder = suite.world.locks().join(folder);
            install_fake_tools(&folder);
            std::fs::write(folder.join("COMMIT"), commit).unwrap();
            let version = format!("REVISIONS = {{\"IREE\": \"{commit}\"}}\n");
            std::fs::write(folder.join("version.py"), version).unwrap();
        }
        suite.world.write(".gitignore", "/run.json\n/day\n");
        let nights = Self { suite };
        nights.day(1.0);
        nights.source(1000);
        nights.configure("frozen", FROZEN, "");
        crate::stored_gate::git(&nights.suite, &["init", "--quiet"]);
        nights.commit();
        nights
    }

    fn day(&self, factor: f64) {
        self.suite.world.write("day", factor.to_string());
    }

    fn source(&self, latency: u32) {
        let day = self.suite.world.work().join("day");
        for model in MODELS {
            let (latency, day) = (format!("latency-us={latency}"), format!("day-file={}", day.display()));
            self.suite.source(model, &[&latency, &day]);
        }
    }

    /// Configures the anchor, and the flags with which head's compiler differs from it.
    fn configure(&self, anchor: &str, commit: &str, flag: &str) {
        let outside = self.suite.world.locks();
        let model = |name: &str| {
            format!(
                "[[model]]\nname = \"{name}\"\nsource = \"models/{name}.mlir\"\ninputs = [\"3xf32=1\"]\n\
                 expected = [\"data/y.npy\"]\n\n"
            )
        };
        let toml = format!(
            "[suite]\nname = \"fake\"\n\n[toolchain]\nversion = \"9.9.9\"\ncommit = \"{}\"\npath = {:?}\n\n\
             [baseline.anchor]\nversion = \"9.9.0\"\ncommit = \"{commit}\"\npath = {:?}\n\n\
             [side.head]\nflags = [{flag}]\n\n\
             {}[[target]]\nname = \"cpu\"\nbackend = \"llvm-cpu\"\ndevice = \"local-task\"\n\n\
             [measure]\nrepetitions = 3\nmin-time = \"1ms\"\nwarmup = \"0ms\"\nmin-blocks = 2\ntimeout = \"20s\"\n",
            crate::suite::COMMIT,
            outside.join("tools"),
            outside.join(anchor),
            MODELS.map(model).concat(),
        );
        self.suite.world.write("benchgate.toml", toml);
    }

    fn commit(&self) {
        crate::stored_gate::commit(&self.suite);
    }

    fn store(&self) -> crate::harness::Outcome {
        let outcome = self.suite.world.run(["baseline", "update", "--measure"]);
        self.commit();
        outcome
    }

    /// Five nights with different speeds, each within a factor of 1.5 of the next. If an identical head
    /// differed by more, that would be a contradiction.
    fn five() -> Self {
        let nights = Self::new();
        for factor in [1.0, 1.3, 0.9, 1.2, 0.85] {
            nights.day(factor);
            nights.store().expect_code(0);
        }
        nights
    }

    fn gate(&self, arguments: &[&str]) -> crate::harness::Outcome {
        self.suite.world.run([&["gate", "--stored"], arguments].concat())
    }
}

#[test]
fn what_a_day_does_to_head_and_anchor_alike_is_no_change() {
    let nights = Nights::five();
    // The bytes differ, because an identical head would be unchanged by definition.
    nights.configure("frozen", FROZEN, "\"--fake=bytes=1\"");
    nights.day(1.5);
    nights.gate(&[]).expect_code(0);
    // The compiler makes the program 5 % slower, on the fastest day of all.
    nights.configure("frozen", FROZEN, "\"--fake=latency-us=1050\"");
    nights.day(0.7);
    nights.gate(&[]).expect_code(10);
}

#[test]
fn ratios_to_another_anchor_show_nothing_and_begin_a_new_history() {
    let nights = Nights::five();
    // The head differs too, because a head that executes the same as the newest session is unchanged with any
    // anchor.
    nights.configure("refrozen", REFROZEN, "\"--fake=bytes=1\"");
    nights.commit();
    let outcome = nights.gate(&["--format", "json"]).expect_code(11);
    assert!(outcome.stdout.contains("\"anchor-changed\""), "{}", outcome.stdout);
    let first = nights.store().expect_code(0);
    assert!(!first.stdout.contains("quarantined"), "{}", first.stdout);
    nights.configure("refrozen", REFROZEN, "\"--fake=bytes=2\"");
    let second = nights.gate(&["--format", "json"]);
    assert!(!second.stdout.contains("\"anchor-changed\""), "{}", second.stdout);
}

#[test]
fn ratios_to_another_module_of_the_anchor_show_nothing() {
    let nights = Nights::five();
    nights.source(1001);
    let outcome = nights.gate(&["--format", "json"]).expect_code(11);
    assert!(outcome.stdout.contains("\"anchor-changed\""), "{}", outcome.stdout);
}

#[test]
fn an_anchor_that_cant_be_measured_leaves_no_green() {
    let nights = Nights::five();
    // The flag overrides the failure in the source for head, but not for the anchor.
    nights.suite.source("a", &["benchmark-exit=3"]);
    nights.configure("frozen", FROZEN, "\"--fake=benchmark-exit=0\"");
    let outcome = nights.gate(&[]);
    assert!(![Some(0)].contains(&outcome.code), "{}", outcome.stdout);
}

#[test]
fn an_anchor_is_not_a_base_to_compare_with() {
    let nights = Nights::new();
    nights.store().expect_code(0);
    let run = nights.suite.run_json();
    assert_eq!(
        (&run["sides"][0]["anchor"], &run["sides"][1]["anchor"]),
        (&true.into(), &serde_json::Value::Null)
    );
    nights.suite.world.run(["compare", "run.json"]).expect_code(2);
    nights.suite.world.run(["compare", "run.json#base", "run.json#head"]).expect_code(21);
    let head = "\"name\": \"head\",";
    let forged = nights.suite.world.read("run.json").replace(head, &format!("{head} \"anchor\": true,"));
    nights.suite.world.write("forged.json", forged);
    nights.suite.world.run(["compare", "forged.json", "run.json"]).expect_code(21);
}

#[test]
fn a_change_that_brings_another_anchor_is_judged_by_the_one_that_was() {
    let nights = Nights::five();
    crate::stored_gate::git(&nights.suite, &["branch", "base"]);
    nights.configure("refrozen", REFROZEN, "\"--fake=latency-us=1100\"");
    nights.commit();
    nights.gate(&["--base", "base"]).expect_code(10);
}
