//! Checks that neither a token nor the path of a file with commands for the runner can be read while code of
//! a pull request runs.

use std::process::{Command, Stdio};

use crate::suite::Suite;

/// Searches the environments of all processes that this process can read.
const SEARCH: &str = "grep -l -s -a -e SECRET /proc/[0-9]*/environ";

#[test]
fn no_environment_shows_a_token_or_a_file_of_the_runner_while_a_tool_runs_not_even_to_root() {
    // No other process of the machine has this secret, not even another run of this test.
    let secret = format!("OneSecretOfTest{}", std::process::id());
    let suite = Suite::new().model("a", &[]).base("").write();
    let found = suite.world.locks().join("found");
    let search = SEARCH.replace("SECRET", &secret);
    suite.source("a", &[&format!("shell={search} >>{} || echo searched >>{0}", found.display())]);
    let mut command = suite.world.command(["gate"]);
    for variable in [
        "GITHUB_TOKEN",
        "BENCHGATE_TOKEN",
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "AZURE_STORAGE_ACCOUNT_KEY",
        "GITHUB_ENV",
        "GITHUB_OUTPUT",
        "GITHUB_PATH",
        "GITHUB_STATE",
        "GITHUB_STEP_SUMMARY",
    ] {
        command.env(variable, format!("/no/such/folder/{variable}_{secret}"));
    }
    suite.world.finish(command).expect_code(0);
    let text = std::fs::read_to_string(&found).unwrap();
    assert!(!text.is_empty() && text.lines().all(|line| line == "searched"), "{text}");
}

#[test]
fn the_search_for_a_token_finds_one() {
    let secret = "ghs_TheSecretOfAnOpenProcess";
    let mut open = Command::new("sleep").arg("60").env("GITHUB_TOKEN", secret).spawn().unwrap();
    let search = SEARCH.replace("SECRET", secret);
    let found = Command::new("sh").args(["-c", &search]).stdin(Stdio::null()).output().unwrap();
    open.kill().unwrap();
    open.wait().unwrap();
    let found = String::from_utf8(found.stdout).unwrap();
    assert_eq!(found, format!("/proc/{}/environ\n", open.id()));
}
