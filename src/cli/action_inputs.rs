//! The inputs of action.yml, and the inputs that each command accepts.

use std::collections::{BTreeMap, BTreeSet};

/// The inputs that were given. An empty input counts as absent.
#[derive(Debug, Default)]
pub struct Inputs(pub(super) BTreeMap<&'static str, String>);

impl Inputs {
    pub fn read(variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let given = names().into_iter().filter_map(|name| {
            let variable_name = format!("BENCHGATE_INPUT_{}", name.to_ascii_uppercase().replace('-', "_"));
            let value = variable(&variable_name)?.trim().to_owned();
            (!value.is_empty()).then_some((name, value))
        });
        // The token's value is read elsewhere; here it only matters that there is one.
        let token = variable("GITHUB_TOKEN").filter(|token| !token.is_empty());
        Self(given.chain(token.map(|_| ("github-token", "given".to_owned()))).collect())
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

/// All inputs except the token, which has no variable of its own.
fn names() -> BTreeSet<&'static str> {
    let understood = UNDERSTOOD.iter().flat_map(|(_, names)| *names).copied();
    understood.filter(|name| *name != "github-token").chain(["command"]).collect()
}

/// Inputs that each command accepts; any other is an error, because ignoring it would hide a mistake.
const UNDERSTOOD: [(&str, &[&str]); 10] = [
    (
        "gate",
        &[
            "config",
            "base",
            "baseline",
            "run",
            "fail-on",
            "warn-only",
            "fork-runner",
            "github-token",
            "comment",
            "check-run",
            "plan",
            "shard",
        ],
    ),
    ("run", &["config", "run", "fork-runner", "plan", "shard"]),
    ("compare", &["config", "base", "head", "fail-on", "warn-only"]),
    ("publish", &["config", "run", "fail-on", "warn-only", "github-token", "comment", "check-run"]),
    ("baseline-update", &["config", "run", "warn-only", "github-token"]),
    ("bisect", &["config", "base", "head", "filter", "time-budget", "fork-runner"]),
    ("plan", &["config", "base", "fork-runner", "plan", "shards", "runner", "durations"]),
    ("merge", &["plan", "results", "run"]),
    ("alert", &["config", "results", "site", "owner", "fail-on", "github-token"]),
    ("site", &["config", "output-dir", "fail-on", "github-token"]),
];

/// Inputs that a command requires.
const NEEDED: [(&str, &[&str]); 5] = [
    ("compare", &["base", "head"]),
    ("alert", &["github-token"]),
    ("plan", &["shards"]),
    ("merge", &["results"]),
    ("site", &["output-dir"]),
];

/// Inputs that affect a verdict. They are refused for a shard, because only the merged run is judged.
const OF_A_VERDICT: [&str; 6] = ["baseline", "fail-on", "warn-only", "github-token", "comment", "check-run"];

/// The allowed values of inputs that have a fixed set of values.
const CHOICES: [(&str, &[&str]); 5] = [
    ("baseline", &["stored"]),
    ("warn-only", &["true", "false"]),
    ("comment", &["always", "on-change", "on-failure", "never"]),
    ("check-run", &["true", "false"]),
    ("fork-runner", &["ephemeral"]),
];

pub fn problems(inputs: &Inputs, command: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let Some((_, understood)) = UNDERSTOOD.iter().find(|(name, _)| *name == command) else {
        let known = UNDERSTOOD.map(|(name, _)| name).join(", ");
        return vec![format!("`command`: expected one of {known}, found {command:?}")];
    };
    for (name, value) in &inputs.0 {
        if *name != "command" && !understood.contains(name) {
            problems.push(format!("input {name} is not valid for {command}"));
        }
        if let Some((_, known)) = CHOICES.iter().find(|(choice, _)| choice == name)
            && !known.contains(&value.as_str())
        {
            problems.push(format!("{name} is {value:?}, expected {}", known.join(" or ")));
        }
        // The value would be parsed as an option.
        if value.starts_with('-') {
            problems.push(format!("{name} begins with a dash"));
        }
    }
    if command == "gate" && inputs.get("github-token").is_none() {
        for name in ["comment", "check-run"] {
            if inputs.get(name).is_some() {
                problems.push(format!("{name} needs github-token, because gate posts nothing without one"));
            }
        }
    }
    // If neither end is given, both are taken from the stored sessions.
    if command == "bisect" && inputs.get("base").is_some() != inputs.get("head").is_some() {
        let missing = if inputs.get("base").is_some() { "head" } else { "base" };
        problems.push(format!("bisect needs both base and head, or neither; {missing} is missing"));
    }
    let needed = NEEDED.iter().filter(|(name, _)| *name == command).flat_map(|(_, needed)| *needed);
    let missing = needed.filter(|name| inputs.get(name).is_none());
    problems.extend(missing.map(|name| format!("{command} needs {name}")));
    if inputs.get("shard").is_some() {
        let given = OF_A_VERDICT.iter().filter(|name| inputs.get(name).is_some());
        problems.extend(
            given.map(|name| {
                format!("{name} is valid only for the merged run, because a shard is not judged")
            }),
        );
    } else if matches!(command, "gate" | "run") && inputs.get("plan").is_some() {
        problems.push("plan needs shard".to_owned());
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Action {
        inputs: BTreeMap<String, Input>,
    }

    #[derive(serde::Deserialize)]
    struct Input {
        description: String,
    }

    const TEXT: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/action.yml"));

    fn action() -> Action {
        serde_saphyr::from_str(TEXT).unwrap()
    }

    #[test]
    fn the_inputs_of_the_action_are_those_that_some_command_understands() {
        // The runner and the action's script read these inputs before the binary is available.
        let outside = ["working-directory", "binary-path", "version"];
        let action = action();
        let documented: BTreeSet<&str> =
            action.inputs.keys().map(String::as_str).filter(|name| !outside.contains(name)).collect();
        let read: BTreeSet<&str> = names().into_iter().chain(["github-token"]).collect();
        assert_eq!(documented, read);
        for name in names() {
            let variable = name.to_ascii_uppercase().replace('-', "_");
            let line = format!("BENCHGATE_INPUT_{variable}: ${{{{ inputs.{name} }}}}\n");
            assert!(TEXT.contains(&line), "action.yml does not pass {name} on");
        }
    }

    #[test]
    fn the_values_that_the_action_documents_are_those_that_are_accepted() {
        let commands = UNDERSTOOD.map(|(command, _)| command);
        let choices: BTreeMap<&str, &[&str]> =
            CHOICES.into_iter().chain([("command", &commands[..])]).collect();
        for (name, input) in action().inputs {
            let documented: BTreeSet<&str> = input.description.split('`').skip(1).step_by(2).collect();
            let accepted = choices.get(name.as_str()).copied().unwrap_or_default();
            assert_eq!(documented, accepted.iter().copied().collect(), "{name}");
        }
    }
}
