//! Tokens, and the paths of files through which a runner can be controlled. They are removed from the
//! environment before anything starts, and only this process keeps them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::process;

/// The variables that contain benchgate's own tokens.
const NAMES: [&str; 4] =
    ["GITHUB_TOKEN", "BENCHGATE_TOKEN", "BENCHGATE_WEBHOOK_URL", "BENCHGATE_WEBHOOK_SECRET"];

/// The variables that name files from which the runner reads instructions for later steps of the job.
/// Measured code could use those files to set variables of the job.
const RUNNER_FILES: [&str; 5] =
    ["GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY"];

/// Parts of the names of other secrets, such as `ACTIONS_ID_TOKEN_REQUEST_TOKEN` or `AWS_SECRET_ACCESS_KEY`.
/// Measured code must not find them in its parent process.
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

/// Prefixes of the variables of object stores. Their secrets are kept, because the history may be in such a
/// store.
const CLOUD_PREFIXES: [&str; 3] = ["AWS_", "AZURE_", "GOOGLE_"];

static TAKEN: OnceLock<BTreeMap<String, String>> = OnceLock::new();

/// Takes all secrets out of the environment, so that no child inherits them and `/proc` does not show them.
/// Also hides this process's memory from other processes of the same user. Further calls do nothing.
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
            // This only fails on a kernel without prctl, where there is no alternative.
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
    // The URL of a webhook is also a secret.
    is_own(&name) || SECRET_WORDS.iter().any(|word| name.contains(word))
}

fn is_cloud(name: &str) -> bool {
    CLOUD_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The variables that configure access to object stores, including secrets.
pub fn cloud_variables() -> Vec<(String, String)> {
    let open = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let kept = TAKEN.get().into_iter().flatten().map(|(name, value)| (name.clone(), value.clone()));
    open.chain(kept).filter(|(name, value)| is_cloud(name) && !value.is_empty()).collect()
}

/// A token, or the path of a runner's file, that was in the environment. An empty one counts as absent.
pub fn get(name: &str) -> Option<String> {
    TAKEN.get()?.get(name).filter(|token| !token.is_empty()).cloned()
}
