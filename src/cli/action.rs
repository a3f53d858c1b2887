//! `benchgate action`: turns the inputs of action.yml into one of the other commands.
//!
//! Inputs arrive as `BENCHGATE_INPUT_*` and never inside a script; they leave as an argument list and never
//! as a line of shell. This module derives the base and the rules for forks from the event, so that workflows
//! need no expressions for them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::exit_code::ExitCode;
use crate::git::Repository;
use crate::github::{self, CodeOrigin, GitHubEvent, Job};
use crate::{fleet, report};

use super::action_inputs::{Inputs, problems};
use super::reporting::{Reporting, Story, Texts};
use super::{CliError, Terminal, inputs, paths, reporting, run_args, runtime};

/// Run the command that the inputs of the GitHub Action select
///
/// Reads BENCHGATE_INPUT_COMMAND, _CONFIG, _BASE, _HEAD, _BASELINE, _RUN, _FAIL_ON, _WARN_ONLY, _COMMENT,
/// _CHECK_RUN, _FORK_RUNNER, _FILTER, _TIME_BUDGET, _PLAN, _SHARD, _SHARDS, _RUNNER, _DURATIONS and _RESULTS, as
/// action.yml sets them, and the event of the job. docs/action.md describes each.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  BENCHGATE_INPUT_COMMAND=compare BENCHGATE_INPUT_BASE=a.json \\
    BENCHGATE_INPUT_HEAD=b.json benchgate action --print

Exit codes: those of the command, 2 for invalid inputs.")]
pub struct ActionArgs {
    /// Print the command and run nothing
    #[arg(long)]
    print: bool,
}

/// The command that the inputs select, and the files that it writes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ActionInvocation {
    arguments: Vec<String>,
    /// Origin of the measured code. Counts as merged code if nothing is measured.
    origin: CodeOrigin,
    /// The results file, if the command writes one.
    measurements: Option<PathBuf>,
    /// The plan, if the command writes one.
    plan: Option<PathBuf>,
    /// The result of a bisection, which becomes the job's summary.
    bisection: Option<PathBuf>,
}

pub fn run(args: &ActionArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let invocation = match invocation_of_this_job() {
        Ok(invocation) => invocation,
        Err(error) if args.print => return Err(error),
        Err(error) => {
            // A job with invalid inputs has no verdict, but it reports that in the same places as other jobs.
            let texts = Texts::new(&Story::Failed(&error), None, true);
            Reporting { job: true, folder: None }.report(&texts, None, None, terminal)?;
            return Err(error);
        }
    };
    let line = format!("benchgate {}", invocation.arguments.join(" "));
    if args.print {
        terminal.print(&format!("{}\n", report::harmless(&line)));
        return Ok(ExitCode::Pass);
    }
    terminal.note(&line);
    for file in invocation.measurements.iter().chain(&invocation.plan).chain(&invocation.bisection) {
        paths::remove_output(file)?;
    }
    let arguments = std::iter::once("benchgate".to_owned()).chain(invocation.arguments).map(OsString::from);
    let code = super::main(arguments);
    if let Some(file) = invocation.bisection.iter().find(|file| file.is_file()) {
        let found = inputs::load_bisection(file)?;
        reporting::summary(&report::bisection_markdown(&found, github::SUMMARY_BYTES))?;
    }
    // Files of earlier attempts were removed above, so an existing file is from this attempt.
    for (output, file) in [("run-json", invocation.measurements), ("bisection-json", invocation.bisection)] {
        if let Some(file) = file.filter(|file| file.is_file()) {
            // Later steps may run in another working folder.
            let file = std::path::absolute(&file).unwrap_or(file);
            reporting::output(output, file.display().to_string())?;
        }
    }
    if let Some(file) = invocation.plan.filter(|file| file.is_file()) {
        let matrix = fleet::render(
            &run_args::read_plan(&file)?,
            fleet::PlanFormat::Github,
            &fleet::ShardCommand::default(),
        );
        reporting::output("matrix", matrix.trim_end().to_owned())?;
    }
    Ok(code)
}

fn invocation_of_this_job() -> Result<ActionInvocation, CliError> {
    let inputs = Inputs::read(&|name| match name {
        "GITHUB_TOKEN" => runtime::secret(name),
        _ => std::env::var(name).ok(),
    });
    let job = runtime::job()?;
    let hosted = std::env::var("RUNNER_ENVIRONMENT").is_ok_and(|found| found == "github-hosted");
    let merged = job.as_ref().and_then(|job| merged_onto(job, Path::new(".")));
    let origin = job.as_ref().map_or(CodeOrigin::Merged, |job| runtime::code_origin(job, Path::new(".")));
    let mut invocation = invocation(&inputs, job.as_ref(), origin, merged.as_deref(), hosted)?;
    if let Some(layer) = layer(invocation.origin) {
        let cache = paths::cache_dir(std::env::var_os("BENCHGATE_CACHE").map(PathBuf::from).as_deref())?;
        invocation.arguments.extend(["--cache-dir".to_owned(), cache.join(layer).display().to_string()]);
    }
    Ok(invocation)
}

/// The subfolder of the cache for code of this origin. Separate folders ensure that a run never uses files
/// that less trusted code made.
fn layer(origin: CodeOrigin) -> Option<&'static str> {
    match origin {
        CodeOrigin::Merged => None,
        CodeOrigin::Proposed => Some("proposed"),
        CodeOrigin::Unknown => Some("untrusted"),
    }
}

/// The base commit of the merge that GitHub made for a pull request, if that merge is checked out. The base
/// in the event may be older, and later commits of the base branch would then be blamed on the pull request.
fn merged_onto(job: &Job, folder: &Path) -> Option<String> {
    let GitHubEvent::PullRequest(pull) = &job.event else { return None };
    let repository = Repository::open(folder).ok()?;
    let at = |reference: &str| repository.resolve(reference).ok();
    let merge = at("HEAD")? == job.commit.as_str() && at("HEAD^2")? == pull.head.as_str();
    if merge { at("HEAD^1") } else { None }
}

/// The command for these inputs, or an error that lists every problem with them.
fn invocation(
    inputs: &Inputs,
    job: Option<&Job>,
    origin: CodeOrigin,
    merged: Option<&str>,
    hosted: bool,
) -> Result<ActionInvocation, CliError> {
    let command = inputs.get("command").unwrap_or("gate");
    let mut problems = problems(inputs, command);
    let origin = if measures(command) { origin } else { CodeOrigin::Merged };
    if origin == CodeOrigin::Unknown && !hosted && inputs.get("fork-runner") != Some("ephemeral") {
        problems.push(
            "code that may come from a fork is not run on a persistent self-hosted runner; if the runner is \
             discarded after the job, set `fork-runner: ephemeral`"
                .to_owned(),
        );
    }
    if origin == CodeOrigin::Unknown && inputs.get("github-token").is_some() {
        problems.push(
            "code that may come from a fork is not measured in a job with a token: omit github-token"
                .to_owned(),
        );
    }
    if let Some(event) = job.map(|job| &job.event)
        && measures(command)
        && let GitHubEvent::PullRequestTarget(_) | GitHubEvent::WorkflowRun(_) = event
    {
        problems.push(
            "jobs of pull_request_target and workflow_run have a write token, so they must not measure code: \
            measure on pull_request, and publish here"
                .to_owned(),
        );
    }
    if !problems.is_empty() {
        return Err(CliError::usage(format!("the inputs are not valid: {}", problems.join("; ")))
            .hint(docs!("action.md", "every input")));
    }
    let path = |name: &str| PathBuf::from(inputs.get(name).unwrap_or(default_path(name)));
    Ok(ActionInvocation {
        arguments: arguments(inputs, command, job, merged),
        origin,
        measurements: matches!(command, "gate" | "run" | "merge").then(|| path("run")),
        plan: (command == "plan").then(|| path("plan")),
        bisection: (command == "bisect").then(|| PathBuf::from(BISECTION)),
    })
}

/// The default file for the result of a bisection.
const BISECTION: &str = "bisect.json";

fn default_path(input: &str) -> &'static str {
    if input == "plan" { "plan.json" } else { "run.json" }
}

/// Returns true if a command runs code of the repository. `plan` counts as well: it runs no code, but checks
/// out the base into the cache.
fn measures(command: &str) -> bool {
    matches!(command, "gate" | "run" | "bisect" | "plan")
}

fn arguments(inputs: &Inputs, command: &str, job: Option<&Job>, merged: Option<&str>) -> Vec<String> {
    let mut arguments: Vec<String> = Vec::new();
    let mut push = |words: &[&str]| arguments.extend(words.iter().map(|word| (*word).to_owned()));
    let posting = [("comment", "--comment"), ("check-run", "--check-run")];
    let config = inputs.get("config");
    let run = inputs.get("run").unwrap_or(default_path("run"));
    let plan = inputs.get("plan").unwrap_or(default_path("plan"));
    let base = inputs.get("base").or(merged).or_else(|| Some(job?.base()?.as_str())).map(str::to_owned);
    // The event of a new branch, or of a manual run on a branch, contains no commit to compare with.
    let is_proposed = command == "gate" && job.is_some_and(|job| job.origin() != CodeOrigin::Merged);
    let merged_into = || Some(format!("origin/{}", job?.default_branch.as_ref()?));
    let base = base.or_else(|| merged_into().filter(|_| is_proposed));
    let base = base.as_ref().map(|base| ["--base", base]);
    match command {
        "gate" => {
            push(&["gate", "--run", run]);
            // A shard reports no verdict; the job that merges the shards does.
            push(if inputs.get("shard").is_some() { &["--warn-only"] } else { &["--github"] });
            push(base.as_ref().map_or(&[], |base| base));
            if inputs.get("baseline") == Some("stored") {
                push(&["--stored"]);
            }
            if inputs.get("github-token").is_some() {
                push(&["--publish"]);
            }
        }
        "run" => push(&["run", "--run", run]),
        "plan" => {
            push(&["plan", "--plan", plan, "--shards", inputs.get("shards").unwrap_or_default()]);
            push(base.as_ref().map_or(&[], |base| base));
            for labels in inputs.get("runner").unwrap_or_default().split_whitespace() {
                push(&["--runner", labels]);
            }
            if let Some(files) = inputs.get("durations") {
                push(&["--durations", files]);
            }
        }
        "merge" => {
            push(&["merge", inputs.get("results").unwrap_or_default(), "--plan", plan, "--output", run]);
        }
        "compare" => {
            push(&["compare", "--github"]);
            push(&[inputs.get("base").unwrap_or_default(), inputs.get("head").unwrap_or_default()]);
        }
        "bisect" => {
            push(&["bisect", "--format", "json", "--output", BISECTION]);
            match (inputs.get("base"), inputs.get("head")) {
                (Some(good), Some(bad)) => push(&["--good", good, "--bad", bad]),
                _ => push(&["--from-history"]),
            }
            for (name, option) in [("filter", "--filter"), ("time-budget", "--time-budget")] {
                if let Some(value) = inputs.get(name) {
                    push(&[option, value]);
                }
            }
        }
        "publish" => push(&["publish", "--run", run]),
        "alert" => {
            push(&["alert"]);
            if let Some(bisection) = inputs.get("results") {
                push(&["--bisection", bisection]);
            }
            if let Some(address) = inputs.get("site") {
                push(&[&format!("--site={address}")]);
            }
            for owner in inputs.get("owner").unwrap_or_default().lines().map(str::trim) {
                if !owner.is_empty() {
                    push(&[&format!("--owner={owner}")]);
                }
            }
        }
        "site" => push(&["site", inputs.get("output-dir").unwrap_or_default()]),
        _ => push(&["baseline", "update", "--run", run, "--github"]),
    }
    if let Some(shard) = inputs.get("shard") {
        push(&["--plan", plan, "--shard", shard]);
    }
    for (name, option) in posting {
        if let Some(value) = inputs.get(name) {
            push(&[&format!("{option}={value}")]);
        }
    }
    if let Some(config) = config {
        // These commands measure nothing, so the policy is all that they need from the configuration.
        let option = if matches!(command, "compare" | "baseline-update") { "--policy" } else { "--config" };
        push(&[option, config]);
    }
    if let Some(verdicts) = inputs.get("fail-on") {
        push(&["--fail-on", verdicts]);
    }
    if inputs.get("warn-only") == Some("true") {
        push(&["--warn-only"]);
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(given: &[(&'static str, &str)]) -> Inputs {
        Inputs(given.iter().map(|(name, value)| (*name, (*value).to_owned())).collect())
    }

    fn line(given: &[(&'static str, &str)], job: Option<&Job>) -> String {
        invocation(&inputs(given), job, from(job), None, true).unwrap().arguments.join(" ")
    }

    fn refused(given: &[(&'static str, &str)], job: Option<&Job>, hosted: bool) -> String {
        invocation(&inputs(given), job, from(job), None, hosted).unwrap_err().to_string()
    }

    fn from(job: Option<&Job>) -> CodeOrigin {
        job.map_or(CodeOrigin::Merged, Job::origin)
    }

    const BASE: &str = "1111111111111111111111111111111111111111";

    fn job(event: &str, payload: serde_json::Value) -> Job {
        let variable = |name: &'static str| {
            let value = match name {
                "GITHUB_EVENT_NAME" => event,
                "GITHUB_REPOSITORY" => "o/r",
                "GITHUB_SHA" => "2222222222222222222222222222222222222222",
                "GITHUB_API_URL" => "https://api.github.com",
                "GITHUB_SERVER_URL" => "https://github.com",
                "GITHUB_RUN_ID" | "GITHUB_RUN_ATTEMPT" => "1",
                _ => return None,
            };
            Some(value.to_owned())
        };
        Job::read(&variable, payload.to_string().as_bytes()).unwrap()
    }

    fn pull_request(head_repository: u64) -> Job {
        let head = serde_json::json!({"sha": "2".repeat(40), "repo": {"id": head_repository}});
        let base = serde_json::json!({"ref": "main", "sha": BASE, "repo": {"id": 1}});
        let pull = serde_json::json!({"number": 7, "state": "open", "head": head, "base": base});
        job("pull_request", serde_json::json!({"repository": {"id": 1}, "pull_request": pull}))
    }

    #[test]
    fn a_pull_request_is_compared_with_its_base() {
        let job = pull_request(1);
        assert_eq!(line(&[], Some(&job)), format!("gate --run run.json --github --base {BASE}"));
        assert_eq!(
            line(&[("base", "origin/release"), ("warn-only", "true")], Some(&job)),
            "gate --run run.json --github --base origin/release --warn-only"
        );
    }

    #[test]
    fn a_push_is_compared_with_what_was_there_before_and_a_new_branch_with_the_default_one() {
        let repository = serde_json::json!({"id": 1, "default_branch": "main"});
        let on = |event: &str, before: &str, branch: &'static str| {
            let mut job = job(event, serde_json::json!({"before": before, "repository": repository}));
            job.on_default_branch = branch == "main";
            line(&[], Some(&job))
        };
        let new = "0".repeat(40);
        assert!(on("push", BASE, "change").ends_with(&format!("--base {BASE}")));
        assert_eq!(on("push", &new, "main"), "gate --run run.json --github");
        assert_eq!(on("workflow_dispatch", "", "main"), "gate --run run.json --github");
        // Neither of these branches is merged, no matter who pushed it or started the job.
        assert_eq!(on("push", &new, "change"), "gate --run run.json --github --base origin/main");
        assert_eq!(on("workflow_dispatch", "", "change"), "gate --run run.json --github --base origin/main");
        let group = serde_json::json!({"merge_group": {"head_sha": "2".repeat(40), "base_sha": BASE}});
        assert!(line(&[], Some(&job("merge_group", group))).ends_with(&format!("--base {BASE}")));
        let nightly = job("schedule", serde_json::json!({}));
        assert_eq!(line(&[("baseline", "stored")], Some(&nightly)), "gate --run run.json --github --stored");
    }

    #[test]
    fn a_forks_code_runs_only_where_the_runner_is_thrown_away() {
        let fork = pull_request(2);
        assert!(refused(&[], Some(&fork), false).contains("fork-runner: ephemeral"));
        let origin = |given: &[(&'static str, &str)], hosted| {
            invocation(&inputs(given), Some(&fork), fork.origin(), None, hosted).unwrap().origin
        };
        assert_eq!(origin(&[("fork-runner", "ephemeral")], false), CodeOrigin::Unknown);
        assert_eq!(origin(&[], true), CodeOrigin::Unknown);
        // `publish` runs no code of the pull request.
        assert_eq!(origin(&[("command", "publish")], false), CodeOrigin::Merged);
    }

    #[test]
    fn an_event_without_a_rule_is_treated_as_a_fork() {
        for event in ["issue_comment", "pull_request_review", "repository_dispatch", "discussion"] {
            let job = job(event, serde_json::json!({"repository": {"id": 1, "private": true}}));
            assert_eq!(job.origin(), CodeOrigin::Unknown, "{event}");
            assert!(refused(&[], Some(&job), false).contains("fork-runner: ephemeral"), "{event}");
            assert!(
                refused(&[("github-token", "given")], Some(&job), true).contains("github-token"),
                "{event}"
            );
        }
    }

    #[test]
    fn only_code_of_the_default_branch_uses_the_trusted_cache() {
        let repository = serde_json::json!({"id": 1, "default_branch": "main"});
        let on = |event: &str, branch: &'static str| {
            let mut job = job(event, serde_json::json!({"repository": repository}));
            job.on_default_branch = branch == "main";
            layer(job.origin())
        };
        assert_eq!(on("push", "main"), None);
        assert_eq!(on("schedule", "main"), None);
        assert_eq!(on("workflow_dispatch", "main"), None);
        assert_eq!(on("push", "change"), Some("proposed"));
        assert_eq!(on("workflow_dispatch", "change"), Some("proposed"));
        assert_eq!(layer(pull_request(1).origin()), Some("proposed"));
        assert_eq!(layer(pull_request(2).origin()), Some("untrusted"));
    }

    #[test]
    fn nothing_is_measured_where_a_write_token_is() {
        let head = serde_json::json!({"sha": "2".repeat(40), "repo": {"id": 1}});
        let base = serde_json::json!({"ref": "main", "sha": BASE, "repo": {"id": 1}});
        let pull = serde_json::json!({"number": 7, "state": "open", "head": head, "base": base});
        let job =
            job("pull_request_target", serde_json::json!({"repository": {"id": 1}, "pull_request": pull}));
        assert!(refused(&[], Some(&job), true).contains("pull_request_target"));
        assert!(line(&[("command", "publish")], Some(&job)).starts_with("publish --run run.json"));
    }

    #[test]
    fn a_bisection_searches_between_base_and_head_and_holds_no_token() {
        let given = [("command", "bisect"), ("base", "3.9.0"), ("head", "3.13.0"), ("filter", "vit/cpu")];
        let bisect = "bisect --format json --output bisect.json --good 3.9.0 --bad 3.13.0 --filter vit/cpu";
        assert_eq!(line(&given, None), bisect);
        let night = [("command", "bisect"), ("time-budget", "2h")];
        let history = "bisect --format json --output bisect.json --from-history --time-budget 2h";
        assert_eq!(line(&night, None), history);
        assert!(refused(&[("command", "bisect"), ("base", "3.9.0")], None, true).contains("head is missing"));
        let with_token = [&given[..], &[("github-token", "given")]].concat();
        assert!(refused(&with_token, None, true).contains("github-token is not valid for bisect"));
        // The job that links the result is a separate one that measures nothing.
        let link = [("command", "alert"), ("results", "found/bisect.json"), ("github-token", "given")];
        assert_eq!(line(&link, None), "alert --bisection found/bisect.json");
        let told = [
            ("command", "alert"),
            ("site", "https://o.example/r/"),
            ("owner", "vit*=@o/vision\nmlp=@ann"),
            ("github-token", "given"),
        ];
        assert_eq!(
            line(&told, None),
            "alert --site=https://o.example/r/ --owner=vit*=@o/vision --owner=mlp=@ann"
        );
        assert!(refused(&[("command", "alert")], None, true).contains("needs github-token"));
    }

    #[test]
    fn a_suite_on_several_machines_is_planned_measured_and_merged() {
        let job = pull_request(1);
        let plan = [("command", "plan"), ("shards", "4"), ("runner", "big gpu=self-hosted,h100")];
        assert_eq!(
            line(&plan, Some(&job)),
            format!(
                "plan --plan plan.json --shards 4 --base {BASE} --runner big --runner gpu=self-hosted,h100"
            )
        );
        let shard = [("plan", "p.json"), ("shard", "2"), ("run", "2.json")];
        assert_eq!(
            line(&shard, Some(&job)),
            format!("gate --run 2.json --warn-only --base {BASE} --plan p.json --shard 2")
        );
        let night = [&shard[..], &[("command", "run")]].concat();
        assert_eq!(line(&night, None), "run --run 2.json --plan p.json --shard 2");
        let merge = [("command", "merge"), ("results", "shards"), ("plan", "p.json")];
        assert_eq!(line(&merge, Some(&job)), "merge shards --plan p.json --output run.json");
        assert!(refused(&[("command", "merge")], None, true).contains("merge needs results"));
        assert!(refused(&[("plan", "p.json")], None, true).contains("plan needs shard"));
        for verdict in ["fail-on", "warn-only", "baseline", "github-token"] {
            let given = [&shard[..], &[(verdict, "x")]].concat();
            assert!(refused(&given, None, true).contains("a shard is not judged"), "{verdict}");
        }
        // A plan can also be made for a fork.
        let fork = pull_request(2);
        assert!(refused(&plan, Some(&fork), false).contains("fork-runner: ephemeral"));
    }

    #[test]
    fn every_problem_of_the_inputs_is_reported_at_once() {
        let message = refused(
            &[("command", "compare"), ("base", "--help"), ("warn-only", "yes"), ("comment", "always")],
            None,
            true,
        );
        for problem in [
            "base begins with a dash",
            "warn-only is \"yes\"",
            "comment is not valid for compare",
            "needs head",
        ] {
            assert!(message.contains(problem), "{message}");
        }
        assert!(refused(&[("command", "gaet")], None, true).contains("gate, run, compare"));
    }
}
