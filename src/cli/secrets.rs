//! The tokens: taken out of the environment before anything starts, and kept in this process alone.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::process;

/// The variables that hold a token.
const NAMES: [&str; 2] = ["GITHUB_TOKEN", "BENCHGATE_TOKEN"];

static TAKEN: OnceLock<BTreeMap<&'static str, String>> = OnceLock::new();

/// Takes the tokens out of the environment, so that no child can inherit them, and closes this process's
/// memory and `/proc` files to other processes of the same user. Further calls do nothing.
pub fn take() {
    TAKEN.get_or_init(|| {
        let found: BTreeMap<&str, String> =
            NAMES.into_iter().filter_map(|name| Some((name, std::env::var(name).ok()?))).collect();
        if found.values().any(|token| !token.is_empty()) {
            // Only a kernel without prctl refuses, and there is nothing better to fall back to.
            let _hidden: bool = process::hide_memory();
        }
        for name in NAMES {
            // SAFETY: this is the first thing that `cli::main` does, before the runtime or anything else has
            // started a thread that could read the environment.
            unsafe { std::env::remove_var(name) };
        }
        found
    });
}

/// A token that was in the environment; an empty one is as good as none.
pub fn get(name: &str) -> Option<String> {
    TAKEN.get()?.get(name).filter(|token| !token.is_empty()).cloned()
}
