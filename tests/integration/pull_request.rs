//! `gate --base REF`: compares the merge base with the working tree, in a real repository.

use std::path::Path;

use git2::{IndexAddOption, Repository, Signature};
use serde_json::Value;

use crate::harness::{lint_codes, reason, row, without_digests};
use crate::suite::{Suite, install_fake_tools};

/// A committed suite of one model on `main`, with a branch on top of it that is checked out.
pub fn repository() -> (Suite, Repository) {
    let suite = Suite::new().model("a", &["latency-us=1000"]).write().with_tools_outside();
    let repository = branch(&suite.world.work());
    (suite, repository)
}

/// Commits everything in this folder to `main`, and checks out the branch `change`, whose own commit changes nothing.
pub fn branch(work: &Path) -> Repository {
    let mut options = git2::RepositoryInitOptions::new();
    options.initial_head("main");
    let repository = Repository::init_opts(work, &options).unwrap();
    commit(&repository, "suite");
    let head = repository.head().unwrap().peel_to_commit().unwrap();
    repository.branch("change", &head, false).unwrap();
    repository.set_head("refs/heads/change").unwrap();
    drop(head);
    commit(&repository, "nothing yet");
    repository
}

pub fn commit(repository: &Repository, message: &str) {
    let mut index = repository.index().unwrap();
    index.add_all(["*"], IndexAddOption::DEFAULT, None).unwrap();
    index.write().unwrap();
    let tree = repository.find_tree(index.write_tree().unwrap()).unwrap();
    let author = Signature::now("t", "t@example.com").unwrap();
    let parent = repository.head().ok().map(|head| head.peel_to_commit().unwrap());
    let parents: Vec<_> = parent.iter().collect();
    repository.commit(Some("HEAD"), &author, &author, message, &tree, &parents).unwrap();
}

fn edit(suite: &Suite, from: &str, to: &str) {
    let toml = suite.world.read("benchgate.toml");
    assert!(toml.contains(from), "{toml}");
    suite.world.write("benchgate.toml", toml.replace(from, to));
}

/// Gates the branch and returns the comparison.
fn gate(suite: &Suite, code: i32) -> Value {
    let outcome = suite.world.run(["gate", "--base", "main", "--format", "json"]);
    if code == 0 { outcome.expect_no_failure().json() } else { outcome.expect_code(code).json() }
}

fn latency(comparison: &Value) -> &Value {
    row(comparison, "a/cpu/main", Some("latency"))
}

#[test]
fn an_unchanged_branch_executes_the_same_bytes() {
    let (suite, _repository) = repository();
    assert_eq!(latency(&gate(&suite, 0))["reason"]["code"], "identical");
}

#[test]
fn a_slower_model_on_the_branch_is_a_regression() {
    let (suite, repository) = repository();
    suite.source("a", &["latency-us=1300"]);
    commit(&repository, "slower");
    assert_eq!(latency(&gate(&suite, 10))["verdict"], "regressed");
    let run = suite.run_json();
    let commits: Vec<_> =
        run["sides"].as_array().unwrap().iter().map(|side| side["commit"].clone()).collect();
    assert_ne!(commits[0], commits[1], "each side names its commit");
}

#[test]
fn the_base_is_where_the_branch_left_main_not_the_tip_of_main() {
    let (suite, repository) = repository();
    commit(&repository, "nothing yet");
    // A later commit on main is slow, which does not affect the branch.
    repository.set_head("refs/heads/main").unwrap();
    suite.source("a", &["latency-us=5000"]);
    commit(&repository, "main gets slow");
    repository.set_head("refs/heads/change").unwrap();
    repository.checkout_head(Some(git2::build::CheckoutBuilder::new().force())).unwrap();
    assert_eq!(latency(&gate(&suite, 0))["reason"]["code"], "identical");
}

#[test]
fn uncommitted_changes_are_part_of_head() {
    let (suite, _repository) = repository();
    suite.source("a", &["latency-us=1300"]);
    gate(&suite, 10);
    let run = suite.run_json();
    assert_eq!(run["sides"][1]["dirty"], true);
}

#[test]
fn a_flag_changed_on_the_branch_is_measured() {
    let (suite, repository) = repository();
    edit(&suite, "[side.head]\n", "[side.head]\nflags = [\"--fake=latency-us=700\"]\n");
    commit(&repository, "a flag");
    assert_eq!(latency(&gate(&suite, 0))["verdict"], "improved");
}

#[test]
fn each_side_runs_under_its_own_pin() {
    let (suite, repository) = repository();
    let newer = "2222222222222222222222222222222222222222";
    let tools = suite.world.locks().join("tools-newer");
    install_fake_tools(&tools);
    set_commit(&tools, newer);
    edit(&suite, crate::suite::COMMIT, newer);
    edit(&suite, "/tools\"", "/tools-newer\"");
    commit(&repository, "a newer IREE");
    gate(&suite, 0);
    let run = suite.run_json();
    let compiler =
        |side: usize| run["sides"][side]["toolchain"]["compiler_commit"].as_str().unwrap().to_owned();
    assert_eq!((compiler(0).as_str(), compiler(1).as_str()), (crate::suite::COMMIT, newer));
}

fn set_commit(tools: &Path, commit: &str) {
    std::fs::write(tools.join("COMMIT"), commit).unwrap();
    std::fs::write(tools.join("version.py"), format!("REVISIONS = {{\"IREE\": \"{commit}\"}}\n")).unwrap();
}

#[test]
fn a_branch_can_not_loosen_the_gate_that_judges_it() {
    let (suite, repository) = repository();
    suite.source("a", &["latency-us=1300"]);
    let toml = suite.world.read("benchgate.toml");
    suite.world.write(
        "benchgate.toml",
        format!("{toml}\n[gate.metric.latency]\nfloor = \"90%\"\ntolerance = \"95%\"\n"),
    );
    commit(&repository, "slower, under a looser policy");
    let comparison = gate(&suite, 10);
    let notes = comparison["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap());
    let about_policy: Vec<&str> = notes.filter(|note| note.contains("policy")).collect();
    insta::assert_snapshot!(without_digests(&about_policy.join("\n")), @"this change edits the policy that judges changes; the change was judged by the policy of [DIGEST], without these edits: latency floor: 1 % → 90 %; latency tolerance: 3 % → 95 %");
}

#[test]
fn a_suite_that_the_merge_base_lacks_has_no_base() {
    let (suite, repository) = repository();
    suite.world.write("new.toml", suite.world.read("benchgate.toml"));
    commit(&repository, "a new suite");
    let outcome = suite.world.run(["gate", "--base", "main", "--config", "new.toml"]).expect_code(12);
    insta::assert_snapshot!(without_digests(&outcome.messages()), @"
    error: failed to find a base: the merge base [DIGEST] has no new.toml
    hint: the suite does not exist on the base yet: merge it first, or compare with a [side.base]
    ");
}

#[test]
fn an_unknown_base_says_what_to_fetch() {
    let (suite, repository) = repository();
    let outcome = suite.world.run(["gate", "--base", "origin/main"]).expect_code(2);
    insta::assert_snapshot!(outcome.messages(), @"error: failed to resolve `origin/main`: no such commit, branch or tag here; there is no remote `origin` to fetch it from, so name a branch, tag or commit of this clone");
    repository.remote("origin", "https://example.com/suite").unwrap();
    let outcome = suite.world.run(["gate", "--base", "origin/main"]).expect_code(2);
    insta::assert_snapshot!(outcome.messages(), @"error: failed to resolve `origin/main`: no such commit, branch or tag here; run `git fetch origin main:refs/remotes/origin/main`");
}

#[test]
fn the_base_checkout_is_removed_after_the_run() {
    let (suite, _repository) = repository();
    gate(&suite, 0);
    let checkouts = suite.world.cache().join("benchgate/checkouts");
    assert_eq!(std::fs::read_dir(checkouts).unwrap().count(), 0);
}

#[test]
fn a_nightly_update_measures_the_suite_and_stores_the_session() {
    let (suite, _repository) = repository();
    let store = ["--store", "baselines"];
    let update = suite.world.run([&["baseline", "update", "--measure"][..], &store].concat());
    // Other programs that run during the tests may disturb the session, which is then stored but quarantined.
    assert!(matches!(update.code, Some(0 | 11)), "{}", update.stderr);
    assert!(update.stderr.contains("benchmark: 2 steps ("), "{}", update.stderr);
    let list = suite.world.run([&["baseline", "list"][..], &store].concat()).expect_code(0);
    assert!(list.said().contains("fake"), "{}", list.stdout);
}

#[test]
fn a_change_can_t_choose_the_order_in_which_it_is_measured() {
    let (suite, repository) = repository();
    edit(&suite, "[measure]", "[measure]\nseed = 1");
    commit(&repository, "a seed");
    gate(&suite, 0);
    assert_ne!(suite.run_json()["seed"], 1);
}

/// Every verdict that is not a pass.
const ALL: &str = "regressed,diverged,error,missing,inconclusive";

#[test]
fn a_head_that_is_measured_with_other_work_is_inconclusive() {
    let changes = [
        ("inputs", "3xf32=1", "3xf32=2"),
        ("device", "device = \"local-task\"", "device = \"local-sync\""),
        ("flags of the target", "device =", "run-flags = [\"--fake_target\"]\ndevice ="),
        ("flags of the side", "[side.head]\n", "[side.head]\nrun-flags = [\"--fake_side\"]\n"),
        ("environment", "device =", "env = { OMP_NUM_THREADS = \"1\" }\ndevice ="),
    ];
    let (suite, repository) = repository();
    suite.source("a", &["latency-us=1000", "revision=2"]);
    commit(&repository, "a change that passes");
    suite.world.run(["gate", "--base", "main", "--fail-on", ALL]).expect_code(0);
    let before = suite.world.read("benchgate.toml");
    for (what, from, to) in changes {
        suite.world.write("benchgate.toml", &before);
        edit(&suite, from, to);
        let outcome = suite.world.run(["gate", "--base", "main", "--fail-on", ALL, "--format", "json"]);
        assert_eq!(outcome.code, Some(11), "{what}: {}", outcome.stdout);
        assert!(
            lint_codes(latency(&outcome.json())).contains(&"workload-changed"),
            "{what}: {}",
            outcome.stdout
        );
    }
}

#[test]
fn inputs_are_compared_by_content() {
    let (suite, repository) = repository();
    suite.world.write("data/x.npy", crate::suite::npy(&[1.0, 1.0, 1.0]));
    edit(&suite, "3xf32=1", "data/x.npy");
    repository.set_head("refs/heads/main").unwrap();
    commit(&repository, "inputs in a file");
    let main = repository.head().unwrap().peel_to_commit().unwrap();
    repository.branch("change", &main, true).unwrap();
    repository.set_head("refs/heads/change").unwrap();
    suite.source("a", &["latency-us=1000", "revision=2"]);
    std::fs::rename(suite.world.work().join("data/x.npy"), suite.world.work().join("data/z.npy")).unwrap();
    edit(&suite, "data/x.npy", "data/z.npy");
    suite.world.run(["gate", "--base", "main", "--fail-on", ALL]).expect_code(0);
    suite.world.write("data/z.npy", crate::suite::npy(&[1.0, 1.0, 2.0]));
    suite.world.run(["gate", "--base", "main", "--fail-on", ALL]).expect_code(11);
}

#[test]
fn a_waiver_of_the_base_accepts_other_work() {
    let (suite, repository) = repository();
    let expires = jiff::Zoned::now().date().saturating_add(jiff::Span::new().days(9));
    let waiver = format!(
        "\n[[waiver]]\nbenchmark = \"a/*\"\nowner = \"@o\"\nreason = \"other inputs\"\nexpires = \"{expires}\"\n"
    );
    policy_on_main(&suite, &repository, &waiver);
    edit(&suite, "3xf32=1", "3xf32=2");
    suite.world.run(["gate", "--base", "main", "--fail-on", ALL]).expect_code(0);
}

/// A branch whose model has outputs and a reference that are `factor` times those of base.
fn scaled(factor: f32) -> (Suite, Repository) {
    let (suite, repository) = repository();
    scale(&suite, &repository, factor);
    (suite, repository)
}

fn scale(suite: &Suite, repository: &Repository, factor: f32) {
    let values = [1.0, 2.0, 3.0].map(|value: f32| value * factor);
    let output = values.map(|value| value.to_string()).join(",");
    suite.source("a", &["latency-us=1000", &format!("output={output}")]);
    suite.world.write("data/y.npy", crate::suite::npy(&values));
    commit(repository, "other results");
}

/// Adds these tables to the configuration on main, on which the checked-out branch is based.
pub fn policy_on_main(suite: &Suite, repository: &Repository, tables: &str) {
    suite.world.write("benchgate.toml", suite.world.read("benchgate.toml") + tables);
    repository.set_head("refs/heads/main").unwrap();
    commit(repository, "policy");
    let main = repository.head().unwrap().peel_to_commit().unwrap();
    repository.branch("change", &main, true).unwrap();
    repository.set_head("refs/heads/change").unwrap();
}

#[test]
fn a_model_whose_outputs_moved_with_its_reference_has_diverged() {
    let (suite, _repository) = scaled(1.01);
    let comparison = gate(&suite, 13);
    let (code, text) = reason(row(&comparison, "a/cpu/main", None));
    assert_eq!(code, "wrong-output");
    insta::assert_snapshot!(text, @"
    head's outputs differ: output 0 differs from base's, and the model or its reference changed
    3 of 3 elements beyond the tolerance, largest |a − b| 3.000e-2, first at [0], all over the output; every element is that of base's output × 1.01
    ");
}

#[test]
fn only_the_policy_of_the_base_lets_a_models_outputs_move() {
    let note = "\n[numerics]\nchanged-reference = \"note\"\n";
    let (suite, _repository) = scaled(1.01);
    suite.world.write("benchgate.toml", suite.world.read("benchgate.toml") + note);
    gate(&suite, 13);
    let expires = jiff::Zoned::now().date().saturating_add(jiff::Span::new().days(9));
    let waiver = format!(
        "\n[[waiver]]\nbenchmark = \"a/*\"\nowner = \"@o\"\nreason = \"new weights\"\nexpires = \"{expires}\"\n"
    );
    for allowed in [note, &waiver] {
        let (suite, repository) = repository();
        policy_on_main(&suite, &repository, allowed);
        scale(&suite, &repository, 1.01);
        let comparison = gate(&suite, 0);
        assert!(lint_codes(latency(&comparison)).contains(&"reference-changed"), "{comparison:#}");
    }
}

#[test]
fn a_reference_that_moved_within_the_tolerance_needs_no_word() {
    let (suite, _repository) = scaled(1.000_001);
    let comparison = gate(&suite, 0);
    assert!(!lint_codes(latency(&comparison)).contains(&"reference-changed"), "{comparison:#}");
}

/// A branch that renames the model `a` to `b`, with this latency.
pub fn renamed(latency: &str, model: &str) -> (Suite, Repository) {
    let (suite, repository) = repository();
    suite.source("b", &[latency]);
    edit(&suite, "name = \"a\"\nsource = \"models/a.mlir\"", model);
    commit(&repository, "rename");
    (suite, repository)
}

pub const RENAMED: &str = "name = \"b\"\nrenamed-from = \"a\"\nsource = \"models/b.mlir\"";
pub const UNEXPLAINED: &str = "name = \"b\"\nsource = \"models/b.mlir\"";

#[test]
fn a_renamed_model_is_compared_with_what_it_was() {
    let (suite, _repository) = renamed("latency-us=1000", RENAMED);
    let comparison = gate(&suite, 0);
    assert_eq!(row(&comparison, "b/cpu/main", Some("latency"))["verdict"], "pass");
    let notes = comparison["notes"].as_array().unwrap();
    assert!(notes.contains(
        &"head renamed benchmarks, and the policy for the old names applies: a/cpu/main → b/cpu/main".into()
    ));

    let (suite, _repository) = renamed("latency-us=1300", RENAMED);
    assert_eq!(row(&gate(&suite, 10), "b/cpu/main", Some("latency"))["verdict"], "regressed");
    // A filter for either name selects the renamed benchmark.
    for filter in ["^a/", "^b/"] {
        let gated = suite.world.run(["gate", "--base", "main", "--filter", filter, "--format", "json"]);
        assert_eq!(row(&gated.expect_code(10).json(), "b/cpu/main", Some("latency"))["verdict"], "regressed");
    }
}

#[test]
fn a_rename_that_nobody_declared_fails_and_is_pointed_out() {
    let (suite, _repository) = renamed("latency-us=1000", UNEXPLAINED);
    let comparison = gate(&suite, 12);
    let gone = row(&comparison, "a/cpu/main", None);
    let found =
        "looks renamed: a/cpu/main → b/cpu/main; if it is, add renamed-from = \"a\" to the [[model]] b";
    assert_eq!(gone["lints"][0]["detail"], found);
    let said = suite.world.run(["gate", "--base", "main"]).expect_code(12).said();
    assert!(said.contains(found), "{said}");
    suite.world.run(["gate", "--base", "main", "--rename", "a", "b"]).expect_code(0);
    suite.world.run(["gate", "--base", "main", "--rename", "a", "c"]).expect_code(2);
}

#[test]
fn a_rename_does_not_take_a_model_out_of_the_policy_that_its_old_name_is_under() {
    let (suite, repository) = repository();
    let expires = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(24 * 30);
    let loose = format!(
        "\n[[gate.override]]\nbenchmark = \"b/**\"\nfatal = false\n\n\
         [[waiver]]\nbenchmark = \"b/**\"\nowner = \"@o\"\nreason = \"r\"\nexpires = \"{}\"\n",
        expires.strftime("%F")
    );
    suite.world.write("benchgate.toml", suite.world.read("benchgate.toml") + &loose);
    commit(&repository, "b may be slow");
    let head = repository.head().unwrap().peel_to_commit().unwrap();
    repository.branch("main", &head, true).unwrap();
    suite.source("b", &["latency-us=1300"]);
    edit(&suite, "name = \"a\"\nsource = \"models/a.mlir\"", RENAMED);
    commit(&repository, "rename");
    let comparison = gate(&suite, 10);
    assert_eq!(row(&comparison, "b/cpu/main", Some("latency"))["verdict"], "regressed");
}

#[test]
fn a_rename_that_could_mean_two_models_is_refused_and_one_that_was_merged_does_nothing() {
    let (suite, repository) = renamed("latency-us=1000", RENAMED);
    let head = repository.head().unwrap().peel_to_commit().unwrap();
    repository.branch("main", &head, true).unwrap();
    commit(&repository, "nothing yet");
    assert!(!gate(&suite, 0).to_string().contains("head renamed benchmarks"));
    let toml = suite.world.read("benchgate.toml");
    let model = toml.split("[[model]]").nth(1).unwrap().split("\n\n").next().unwrap();
    let again = model.replace("name = \"b\"\nrenamed-from = \"a\"", "name = \"c\"\nrenamed-from = \"b\"");
    suite.world.write("benchgate.toml", format!("{toml}\n[[model]]{again}\n"));
    let outcome = suite.world.run(["gate", "--base", "main"]).expect_code(2);
    assert!(outcome.stderr.contains("is ambiguous"), "{}", outcome.stderr);
}
