//! The parts of a workflow file that matter for security: triggers, permissions, runners and steps. This
//! module does no IO; it parses bytes as GitHub would interpret them.

use std::collections::BTreeMap;

use serde_json::Value;

/// The parsed content of a workflow file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Workflow {
    /// The name by which other workflows refer to this one. Without a name, GitHub uses the path.
    pub name: Option<String>,
    /// The events that trigger the workflow.
    pub triggers: Vec<String>,
    /// The names of other workflows whose completion triggers this one.
    pub reports_on: Vec<String>,
    /// True if a newer run cancels an older one in progress.
    pub cancels: bool,
    pub jobs: Vec<WorkflowJob>,
}

/// A job of a workflow, including settings that it inherits from the workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowJob {
    pub id: String,
    /// The labels of the job's runner. Empty if the job calls another workflow.
    pub runner: Vec<String>,
    pub permissions: Permissions,
    pub steps: Vec<WorkflowStep>,
}

/// The permissions of a job's token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permissions {
    /// Not set, so the repository's settings apply.
    Unsaid,
    /// One level for all scopes: `read-all` or `write-all`.
    All(String),
    /// The level of each listed scope; scopes that are not listed are `none`.
    Listed(BTreeMap<String, String>),
}

impl Permissions {
    /// The scopes with write access; `everything` for `write-all`.
    pub fn writable(&self) -> Vec<&str> {
        match self {
            Self::Unsaid => Vec::new(),
            Self::All(level) if level == "write-all" => vec!["everything"],
            Self::All(_) => Vec::new(),
            Self::Listed(scopes) => scopes
                .iter()
                .filter(|(_, level)| *level == "write")
                .map(|(scope, _)| scope.as_str())
                .collect(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkflowStep {
    pub uses: Option<String>,
    pub run: Option<String>,
    /// The inputs, as the text that the action receives.
    pub with: BTreeMap<String, String>,
    /// The environment variables of the step, including those of its job and its workflow.
    pub env: BTreeMap<String, String>,
}

impl Workflow {
    /// Parses a workflow file.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
        let whole: Value = serde_saphyr::from_str(text).map_err(|error| first_line(&error.to_string()))?;
        let common = permissions(whole.get("permissions"));
        let jobs = whole.get("jobs").and_then(Value::as_object).ok_or("it has no jobs")?;
        let env = texts(&whole, "env");
        Ok(Self {
            name: whole.get("name").and_then(text_of),
            triggers: names(whole.get("on")),
            reports_on: names(whole.pointer("/on/workflow_run/workflows")),
            // An expression is only evaluated at run time, so only a literal `true` counts.
            cancels: whole.pointer("/concurrency/cancel-in-progress").is_some_and(|value| *value == true),
            jobs: jobs.iter().map(|(id, job)| WorkflowJob::read(id, job, &common, &env)).collect(),
        })
    }

    pub fn is_started_by(&self, event: &str) -> bool {
        self.triggers.iter().any(|trigger| trigger == event)
    }
}

impl WorkflowJob {
    fn read(id: &str, job: &Value, common: &Permissions, env: &BTreeMap<String, String>) -> Self {
        let runner = job.get("runs-on");
        // For a runner group, the labels are one level deeper.
        let runner = runner.and_then(|runner| runner.get("labels")).or(runner);
        let steps = job.get("steps").and_then(Value::as_array);
        let own = permissions(job.get("permissions"));
        let env: BTreeMap<_, _> = env.clone().into_iter().chain(texts(job, "env")).collect();
        Self {
            id: id.to_owned(),
            runner: names(runner),
            permissions: if own == Permissions::Unsaid { common.clone() } else { own },
            steps: steps
                .map(|steps| steps.iter().map(|step| WorkflowStep::read(step, &env)).collect())
                .unwrap_or_default(),
        }
    }

    /// Returns whether all labels are those of GitHub-hosted runners, which are discarded after each job.
    pub fn is_hosted(&self) -> bool {
        let hosted =
            |label: &String| ["ubuntu-", "windows-", "macos-"].iter().any(|system| label.starts_with(system));
        !self.runner.is_empty() && self.runner.iter().all(hosted)
    }
}

impl WorkflowStep {
    fn read(step: &Value, env: &BTreeMap<String, String>) -> Self {
        Self {
            uses: step.get("uses").and_then(text_of),
            run: step.get("run").and_then(text_of),
            with: texts(step, "with"),
            env: env.clone().into_iter().chain(texts(step, "env")).collect(),
        }
    }
}

/// The entries of a table whose values are text, or numbers and booleans in the form in which GitHub passes
/// them on.
fn texts(of: &Value, name: &str) -> BTreeMap<String, String> {
    let entries = of.get(name).and_then(Value::as_object).into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), text_of(value)?))).collect()
}

fn permissions(value: Option<&Value>) -> Permissions {
    match value {
        Some(Value::Object(scopes)) => Permissions::Listed(
            scopes.iter().filter_map(|(scope, level)| Some((scope.clone(), text_of(level)?))).collect(),
        ),
        Some(Value::String(level)) => Permissions::All(level.clone()),
        _ => Permissions::Unsaid,
    }
}

/// Parses a single name, a list, or the keys of a table; GitHub accepts all three.
fn names(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::Array(list)) => list.iter().filter_map(text_of).collect(),
        Some(Value::Object(table)) => table.keys().cloned().collect(),
        Some(one) => text_of(one).into_iter().collect(),
        None => Vec::new(),
    }
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Workflow {
        Workflow::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_trigger_is_one_name_a_list_or_a_table() {
        for text in ["on: push", "on: [push]", "on:\n  push:\n    branches: [main]"] {
            assert_eq!(read(&format!("{text}\njobs: {{}}")).triggers, ["push"]);
        }
        let reports = read("on:\n  workflow_run:\n    workflows: [a, b]\njobs: {}");
        assert_eq!(reports.reports_on, ["a", "b"]);
    }

    #[test]
    fn a_job_without_permissions_inherits_those_of_the_workflow() {
        let workflow = read(
            "on: push\npermissions: {contents: write}\njobs:\n  a: {runs-on: ubuntu-24.04}\n  b: {permissions: {}, \
             runs-on: {group: g, labels: [self-hosted, gpu]}}\n  c: {permissions: write-all, uses: ./x.yml}\n",
        );
        let [a, b, c] = workflow.jobs.as_slice() else { panic!("{workflow:?}") };
        assert_eq!(a.permissions.writable(), ["contents"]);
        assert!(b.permissions.writable().is_empty() && b.permissions != Permissions::Unsaid);
        assert_eq!(c.permissions.writable(), ["everything"]);
        assert_eq!(
            (a.is_hosted(), b.is_hosted(), b.runner.as_slice()),
            (true, false, ["self-hosted", "gpu"].map(String::from).as_slice())
        );
    }

    #[test]
    fn an_invalid_workflow_file_is_an_error() {
        assert!(Workflow::read(b"a: [").is_err());
        assert!(Workflow::read(b"a: 1").unwrap_err().contains("no jobs"));
        assert!(Workflow::read(b"\xff").is_err());
    }

    #[test]
    fn inputs_are_the_text_that_an_action_gets() {
        let workflow =
            read("on: push\njobs: {a: {steps: [{uses: x@y, with: {fetch-depth: 0, check-run: true}}]}}");
        let with = &workflow.jobs[0].steps[0].with;
        assert_eq!((with["fetch-depth"].as_str(), with["check-run"].as_str()), ("0", "true"));
    }
}
