//! The tokens, and the paths of the files that a runner obeys: taken out of the environment before anything starts, and
//! kept in this process alone.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::process;

/// The variables that hold benchgate's tokens.
const NAMES: [&str; 4] =
    ["GITHUB_TOKEN", "BENCHGATE_TOKEN", "BENCHGATE_WEBHOOK_URL", "BENCHGATE_WEBHOOK_SECRET"];

/// The variables that name a file from which the runner takes orders for the later steps of the job. Measured code
/// that knows a command of the runner could set its variables.
const RUNNER_FILES: [&str; 5] =
    ["GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY"];

/// Parts of the names of other secrets (`ACTIONS_ID_TOKEN_REQUEST_TOKEN`, `AWS_SECRET_ACCESS_KEY`): the code that is
/// measured should find none of them in its parent.
const SECRET_WORDS: [&str; 10] = [
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSPHRASE",
    "PRIVATE_KEY",
    "ACCOUNT_KEY",
    "ACCESS_KEY",
    "MASTER_KEY",
    "SAS_KEY",
    "ENCRYPTION_KEY",
];

/// How the variables of object stores begin. Their secrets are kept, because the history may be in such a store.
const CLOUD_PREFIXES: [&str; 3] = ["AWS_", "AZURE_", "GOOGLE_"];

static TAKEN: OnceLock<BTreeMap<String, String>> = OnceLock::new();

/// Takes all secrets out of the environment, so that no child can inherit them and `/proc` does not show them, and
/// closes this process's memory to other processes of the same user. Further calls do nothing.
pub fn take() {
    TAKEN.get_or_init(|| {
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        let mut found = BTreeMap::new();
        for name in names.filter(|name| is_secret(name)) {
            // SAFETY: this is the first thing that `cli::main` does, before the runtime or anything else has
            // started a thread that could read the environment.
            let value = unsafe { process::take_variable(&name) };
            if let Some(value) = value.and_then(|value| value.into_string().ok())
                && (is_own(&name) || is_cloud(&name))
            {
                found.insert(name, value);
            }
        }
        if found.values().any(|token| !token.is_empty()) {
            // Only a kernel without prctl refuses, and there is no better fallback.
            let _hidden: bool = process::hide_memory();
        }
        found
    });
}

fn is_own(name: &str) -> bool {
    NAMES.contains(&name) || RUNNER_FILES.contains(&name)
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    // The address of a webhook is secret too.
    is_own(&name) || SECRET_WORDS.iter().any(|word| name.contains(word))
}

fn is_cloud(name: &str) -> bool {
    CLOUD_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The variables that say how to reach an object store, secrets included.
pub fn cloud_variables() -> Vec<(String, String)> {
    let open = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let kept = TAKEN.get().into_iter().flatten().map(|(name, value)| (name.clone(), value.clone()));
    open.chain(kept).filter(|(name, value)| is_cloud(name) && !value.is_empty()).collect()
}

/// A token, or the path of a runner's file, from the environment; an empty one counts as absent.
pub fn get(name: &str) -> Option<String> {
    TAKEN.get()?.get(name).filter(|token| !token.is_empty()).cloned()
}
