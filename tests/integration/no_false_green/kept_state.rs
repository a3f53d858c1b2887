//! `[[command]]`: what processes leave to later ones, and outputs that prove nothing.

use crate::harness::Outcome;

use super::suite_commands::{BASES_BUILD, COMPUTES, Change, WITH_OUTPUTS};

fn found(outcome: &Outcome, code: &str) -> bool {
    outcome.stdout.contains(&format!("\"{code}\""))
}

/// A command that remembers its result in a file.
fn memo(file: &str) -> String {
    format!(
        "m=\"{file}\"; mkdir -p \"$(dirname \"$m\")\"; [ -e \"$m\" ] || echo 42 > \"$m\"; cp \"$m\" \"$1/y.txt\"; rows"
    )
}

#[track_caller]
fn is_other_work(case: &str, outcome: &Outcome) {
    assert!(found(outcome, "workload-changed"), "{case}: {}", outcome.said());
    assert_ne!(outcome.code, Some(0), "{case}");
}

#[track_caller]
fn is_the_same_work(case: &str, outcome: &Outcome) {
    assert!(!found(outcome, "workload-changed"), "{case}: {}", outcome.said());
}

#[test]
fn a_result_that_heads_processes_leave_to_later_ones_is_never_green() {
    let change = Change::new(COMPUTES, WITH_OUTPUTS);
    change.bench(&format!(": > \"$1/profile.$$\"; rm \"$1/profile.$$\"; {COMPUTES}"));
    let outcome = change.strictly();
    is_the_same_work("a file that is gone again", &outcome);
    assert!(!found(&outcome, "kept-state"), "{}", outcome.said());
    for place in ["$1/memo", "$1/true/memo", "memo", "$HOME/.cache/tool/memo", "$HOME/../elsewhere/memo"] {
        change.bench(&memo(place));
        is_other_work(place, &change.strictly());
    }
    // A cache that base has as well.
    for (base, head) in [("$1/cache/a", "$1/cache/b"), ("$HOME/.cache/x/a", "$HOME/.cache/x/b")] {
        let change = Change::new(&format!(": > \"$1/log.$$\"; {}", memo(base)), WITH_OUTPUTS);
        change.bench(&format!(": > \"$1/log.$$\"; {}", memo(head)));
        let outcome = change.strictly();
        is_the_same_work(base, &outcome);
        assert_eq!(found(&outcome, "kept-state"), base.starts_with("$HOME"), "{}", outcome.said());
    }
}

#[test]
fn a_head_that_reads_what_bases_processes_left_is_never_green() {
    let change = Change::new(&format!("echo 42 > \"$HOME/result\"; {COMPUTES}"), WITH_OUTPUTS);
    is_the_same_work("the base's own program", &change.strictly());
    change.bench("cp \"$HOME/result\" \"$1/y.txt\"; rows");
    is_other_work("a copy of base's result", &change.strictly());
}

#[test]
fn a_head_that_repairs_its_build_with_bases_is_never_green() {
    let build = |text: &str| format!("\"sh -c 'echo {text} > {{build}}/y.txt'\"");
    let change = Change::new("rows", &WITH_OUTPUTS.replace("\"true\"", &build("42")));
    is_the_same_work("no difference", &change.strictly());
    change.0.write("benchgate.toml", WITH_OUTPUTS.replace("\"true\"", &build("43")));
    change.bench(&format!("cp {BASES_BUILD}/y.txt \"$1\"; rows"));
    is_other_work("a copy of what base's build made", &change.strictly());
}

#[test]
fn a_file_of_the_build_that_only_heads_processes_change_is_never_green() {
    let config = WITH_OUTPUTS.replace("\"true\"", "\"sh -c ': > {build}/cache.db'\"");
    let change = Change::new(COMPUTES, &config);
    is_the_same_work("no difference", &change.strictly());
    for edit in ["echo 1 >> \"$1/cache.db\"", "rm -f \"$1/cache.db\"", "chmod 600 \"$1/cache.db\""] {
        change.bench(&format!("{edit}; {COMPUTES}"));
        is_other_work(edit, &change.strictly());
    }
    let change = Change::new(&format!("echo 1 >> \"$1/cache.db\"; {COMPUTES}"), &config);
    change.bench(&format!("echo 2 >> \"$1/cache.db\"; {COMPUTES}"));
    is_the_same_work("base's processes change it too", &change.strictly());
}

#[test]
fn outputs_that_a_program_without_a_computation_would_have_prove_nothing() {
    let npy = |values: &str| {
        format!(
            "printf '\\223NUMPY\\001\\000\\166\\000%-117s\\n{values}' \
             \"{{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }}\" > \"$1/y.npy\"; rows"
        )
    };
    let nan = "\\000\\000\\300\\177";
    for (output, body) in [
        ("y.txt", ": > \"$1/y.txt\"; rows".to_owned()),
        ("y.txt", "head -c 64 /dev/zero > \"$1/y.txt\"; rows".to_owned()),
        ("y.npy", npy(&"\\000".repeat(8))),
        ("y.npy", npy(&nan.repeat(2))),
    ] {
        let change = Change::new(&body, &WITH_OUTPUTS.replace("y.txt", output));
        let outcome = change.strictly();
        assert!(found(&outcome, "vacuous-reference"), "{body}: {}", outcome.said());
        assert_eq!(outcome.code, Some(11), "{body}: {}", outcome.said());
    }
    // One number that is right, next to one that can't be wrong.
    let change =
        Change::new(&npy(&format!("{nan}\\000\\000\\200\\077")), &WITH_OUTPUTS.replace("y.txt", "y.npy"));
    let outcome = change.strictly();
    assert!(!found(&outcome, "vacuous-reference"), "{}", outcome.said());
}
