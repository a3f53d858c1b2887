//! The templates of `benchgate init`. They are separate files next to this one, so that linters can check
//! them.

/// Third-party actions, pinned to the same commits in every template.
const PINS: [(&str, &str); 5] = [
    ("@CHECKOUT@", "actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1"),
    ("@UPLOAD@", "actions/upload-artifact@043fb46d1a93c77aae656e7c1c64a875d1fc6a0a # v7.0.1"),
    ("@PAGES@", "actions/upload-pages-artifact@fc324d3547104276b827a68afc52ff2a11cc49c9 # v5.0.0"),
    ("@DEPLOY@", "actions/deploy-pages@cd2ce8fcbc39b97be8ca5fce6e763baed58fa128 # v5.0.0"),
    ("@DOWNLOAD@", "actions/download-artifact@3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c # v8.0.1"),
];

pub const MODEL: &str = include_str!("model.py");

/// The values that are filled into the templates.
pub struct Answers {
    pub suite: String,
    /// The folder of the suite in its repository; empty if it is the top folder.
    pub folder: String,
    /// Labels of the runner that measures.
    pub runner: Vec<String>,
    /// The number of shards, if several machines measure the suite.
    pub shards: Option<u16>,
    /// The label that a pull request must have to be measured, if one is required.
    pub label: Option<String>,
    /// The action as `OWNER/REPO@COMMIT`. If it is unknown, no workflows are written.
    pub action: Option<String>,
    /// The models as TOML tables; `None` for the example.
    pub models: Option<String>,
    /// True if a branch of the remote is the baseline.
    pub has_branch: bool,
}

/// The content of `[store]`: a branch of the remote, or a folder in a repository without a remote.
pub fn store(has_branch: bool) -> &'static str {
    if has_branch {
        "# Only the nightly workflow writes this branch.\nbranch = \"benchgate-baselines\"\n"
    } else {
        "# This repository has no remote yet. The nightly workflow needs a branch of it instead:\n\
         # branch = \"benchgate-baselines\"\nfolder = \"baselines\"\n"
    }
}

/// The workflow files.
#[derive(Debug, Clone, Copy)]
pub enum Template {
    Measure,
    Publish,
    Nightly,
    Site,
}

impl Template {
    pub const ALL: [Self; 4] = [Self::Measure, Self::Publish, Self::Nightly, Self::Site];

    /// The path in the repository. The first template's path is the default of `[github] workflow`.
    pub fn path(self) -> &'static str {
        match self {
            Self::Measure => ".github/workflows/benchgate.yml",
            Self::Publish => ".github/workflows/benchgate-publish.yml",
            Self::Nightly => ".github/workflows/benchgate-nightly.yml",
            Self::Site => ".github/workflows/benchgate-site.yml",
        }
    }

    pub fn fill(self, answers: &Answers) -> String {
        let mut text = match (self, answers.shards) {
            (Self::Measure, None) => include_str!("benchgate.yml"),
            (Self::Measure, Some(_)) => include_str!("benchgate-shards.yml"),
            (Self::Publish, _) => include_str!("benchgate-publish.yml"),
            (Self::Nightly, None) => include_str!("benchgate-nightly.yml"),
            (Self::Nightly, Some(_)) => include_str!("benchgate-nightly-shards.yml"),
            (Self::Site, _) => include_str!("benchgate-site.yml"),
        }
        .to_owned();
        if !answers.folder.is_empty() {
            let config = format!("          config: {}/benchgate.toml\n", answers.folder);
            text = text.replace("@ACTION@\n        with:\n", &format!("@ACTION@\n        with:\n{config}"));
            // A step with the id `benchgate` has no inputs yet, so it needs the line `with:` too.
            let id = "@ACTION@\n        id: benchgate\n";
            text = text.replace(id, &format!("{id}        with:\n{config}"));
        }
        if let (Self::Measure, Some(label)) = (self, &answers.label) {
            text = on_request(&text, label);
        }
        let runner = match answers.runner.as_slice() {
            [only] => only.clone(),
            labels => format!("[{}]", labels.join(", ")),
        };
        // Workflow linters warn about every self-hosted runner, so the warning is suppressed with the reason.
        let kept = answers.runner.iter().any(|label| label == "self-hosted");
        let runner = match self {
            Self::Measure if kept => {
                format!(
                    "{runner} # zizmor: ignore[self-hosted-runner] forks: require approval (Settings, Actions)"
                )
            }
            Self::Nightly if kept => {
                format!(
                    "{runner} # zizmor: ignore[self-hosted-runner] no pull request triggers this workflow"
                )
            }
            _ => runner,
        };
        let shards = answers.shards.map(|shards| shards.to_string()).unwrap_or_default();
        let action = answers.action.as_deref().unwrap_or_default();
        let own = [("@ACTION@", action), ("@RUNNER@", &runner), ("@SHARDS@", &shards)];
        PINS.into_iter().chain(own).fold(text, |text, (name, value)| text.replace(name, value))
    }
}

/// The measuring workflow for pull requests with a label. Other pull requests skip the first job and thereby
/// the jobs that depend on it. Setting the label triggers the workflow again.
fn on_request(workflow: &str, label: &str) -> String {
    let is_other = format!("github.event.action == 'labeled' && github.event.label.name != '{label}'");
    let asked = format!(
        "jobs:\n  @FIRST@:\n    # Only pull requests with this label. To measure one again without a new commit, remove the label and set it again.\n\
         \x20   if: >-\n      ${{{{ !(github.event_name == 'pull_request' && ({is_other}\n      \
         || !contains(github.event.pull_request.labels.*.name, '{label}'))) }}}}\n"
    );
    let first = if workflow.contains("jobs:\n  plan:\n") { "plan" } else { "measure" };
    workflow
        .replace(
            "every pull request against",
            &format!("every pull request with the label `{label}` against"),
        )
        .replace(
            "  pull_request:\n",
            "  pull_request:\n    types: [opened, reopened, synchronize, labeled]\n",
        )
        // Adding some other label must not cancel a running measurement.
        .replace(
            "${{ github.event.pull_request.number || github.ref }}",
            &format!(
                "${{{{ {is_other} && github.run_id || github.event.pull_request.number || github.ref }}}}"
            ),
        )
        .replace(&format!("jobs:\n  {first}:\n"), &asked.replace("@FIRST@", first))
}

/// The files of a suite, with their paths in its folder.
pub fn suite(answers: &Answers) -> Vec<(&'static str, Vec<u8>)> {
    let models = answers.models.as_deref();
    let toml = include_str!("benchgate.toml")
        .replace("@SUITE@", &answers.suite)
        .replace("@STORE@\n", store(answers.has_branch))
        .replace("@MODELS@", models.unwrap_or(include_str!("example.toml")));
    let mut files = vec![("benchgate.toml", toml.into_bytes())];
    if models.is_none() {
        files.push(("models/example.mlir", include_bytes!("example.mlir").to_vec()));
        files.push(("models/example.output0.npy", npy(1024, 1024.0)));
    }
    files
}

/// A NumPy file with a one-dimensional f32 array of consecutive whole numbers that starts at `first`.
fn npy(length: u16, first: f32) -> Vec<u8> {
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({length},), }}");
    // The header ends with a newline and is padded so that the data starts at a multiple of 64 bytes.
    let size = (10 + header.len() + 1).next_multiple_of(64) - 10;
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(size).unwrap_or(u16::MAX).to_le_bytes());
    bytes.extend(format!("{header:<width$}\n", width = size - 1).into_bytes());
    bytes.extend((0..length).flat_map(|row| (first + f32::from(row)).to_le_bytes()));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::Tensor;

    #[test]
    fn the_expected_output_is_an_array_of_numpy() {
        let tensor = Tensor::from_npy(&npy(1024, 1024.0)).unwrap();
        let rows: Vec<f64> = (1024..2048).map(f64::from).collect();
        assert_eq!((tensor.shape(), tensor.to_f64()), ([1024].as_slice(), rows));
    }

    #[test]
    fn with_a_label_only_its_pull_requests_are_measured_and_another_label_cancels_none() {
        let text = on_request(include_str!("benchgate-shards.yml"), "benchgate");
        let workflow: serde_json::Value = serde_saphyr::from_str(&text.replace('@', "")).unwrap();
        let types = serde_json::json!(["opened", "reopened", "synchronize", "labeled"]);
        assert_eq!(workflow["on"]["pull_request"]["types"], types);
        let other = "github.event.action == 'labeled' && github.event.label.name != 'benchgate'";
        let group = workflow["concurrency"]["group"].as_str().unwrap();
        assert!(group.contains(&format!("{other} && github.run_id ||")), "{group}");
        let asked = workflow["jobs"]["plan"]["if"].as_str().unwrap();
        let wanted = "!contains(github.event.pull_request.labels.*.name, 'benchgate')";
        assert!(asked.contains(other) && asked.contains(wanted), "{asked}");
        // GitHub skips jobs that need a skipped job. The merge job checks the plan's result itself.
        assert_eq!(workflow["jobs"]["measure"]["if"], serde_json::Value::Null);
    }

    #[test]
    fn every_blank_is_filled() {
        for (folder, shards) in ["", "suites/zoo"].into_iter().flat_map(|f| [(f, None), (f, Some(4))]) {
            let answers = Answers {
                suite: "zoo".to_owned(),
                folder: folder.to_owned(),
                runner: vec!["self-hosted".to_owned(), "gpu".to_owned()],
                shards,
                label: Some("benchgate".to_owned()),
                action: Some(format!("o/r@{}", "1".repeat(40))),
                models: None,
                has_branch: true,
            };
            for template in Template::ALL {
                let text = template.fill(&answers);
                let blank = text.lines().find(|line| {
                    line.split('@')
                        .nth(1)
                        .is_some_and(|word| !word.is_empty() && word.chars().all(|c| c.is_ascii_uppercase()))
                });
                assert_eq!(blank, None, "{}", template.path());
                let steps = text.matches(answers.action.as_deref().unwrap()).count();
                let recorded = ["command: merge\n", "command: compare\n"];
                let recorded: usize = recorded.into_iter().map(|command| text.matches(command).count()).sum();
                let configured = text.matches("config: suites/zoo/benchgate.toml").count();
                assert_eq!(configured, if folder.is_empty() { 0 } else { steps - recorded });
            }
        }
    }
}
