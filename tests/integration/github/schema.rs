//! Checks every request against GitHub's own description. Prism validates each request and forwards it to
//! emulate, a server that stores the changes. `.ci/run github` installs both and runs this.

use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use benchgate::github::{
    Check, Client, Conclusion, GitHubEvent, GitHubToken, IssueChange, Job, Marker, RepositoryName,
    RetryPolicy, RunAttempt, Sha,
};
use serde_json::{Value, json};

use super::event::payload;
use super::publish::Measured;

/// These values are in tests/github/seed.yaml too.
const TOKEN: &str = "ghs_loopback_9f8e7d6c5b4a";
const UNTRUSTED: &str = "ghs_of_a_fork";
const BOT: &str = "bot";

/// Prism in front of emulate. Both are stopped when this is dropped.
struct GitHub {
    folder: tempfile::TempDir,
    prism: u16,
    emulate: u16,
    children: Vec<Child>,
}

impl GitHub {
    fn start() -> Self {
        let tools = std::env::var_os("BENCHGATE_GITHUB_TOOLS").map(PathBuf::from);
        let tools = tools.expect("`.ci/run github` installs what this needs and names it");
        let folder = tempfile::tempdir().unwrap();
        let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (prism, emulate) = (free(), free());
        let mut this = Self { folder, prism, emulate, children: Vec::new() };
        let seed = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/github/seed.yaml");
        let modules = tools.join("node_modules");
        let mut command = this.node(&tools, "emulate");
        command.arg(modules.join("emulate/dist/index.js"));
        command.args(["--service", "github", "--port", &emulate.to_string(), "--seed"]).arg(seed);
        this.children.push(command.spawn().unwrap());
        let mut command = this.node(&tools, "prism");
        command.arg(modules.join("@stoplight/prism-cli/dist/index.js"));
        command.args(["proxy", "-h", "127.0.0.1", "-p", &prism.to_string(), "--errors"]);
        command.arg(tools.join("github.json")).arg(format!("http://127.0.0.1:{emulate}"));
        this.children.push(command.spawn().unwrap());
        for port in [emulate, prism] {
            let deadline = Instant::now() + Duration::from_secs(60);
            while TcpStream::connect(("127.0.0.1", port)).is_err() {
                assert!(Instant::now() < deadline, "{}", this.log("emulate") + &this.log("prism"));
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        this
    }

    fn node(&self, tools: &std::path::Path, name: &str) -> Command {
        let log = File::create(self.folder.path().join(name)).unwrap();
        let mut command = Command::new(tools.join("node"));
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        command.current_dir(self.folder.path());
        command
    }

    fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap()
    }

    /// The URL for benchgate's requests.
    fn api(&self) -> String {
        format!("http://127.0.0.1:{}", self.prism)
    }

    /// Sends a request directly to emulate, for everyone except benchgate.
    fn world(&self, method: &str, path: &str, token: &str, body: &Value) -> Value {
        let address = format!("http://127.0.0.1:{}{path}", self.emulate);
        on(async {
            drop(rustls::crypto::ring::default_provider().install_default());
            let request = reqwest::Client::new().request(method.parse().unwrap(), address);
            let request = request.header("authorization", format!("Bearer {token}"));
            let answer = request.header("content-type", "application/json").body(body.to_string());
            let answer = answer.send().await.unwrap();
            assert!(answer.status().is_success(), "{method} {path}: {}", answer.status());
            serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap_or_default()
        })
    }

    fn comments(&self) -> Vec<Value> {
        let mut all = Vec::new();
        for page in 1.. {
            let path = format!("/repos/bot/r/issues/1/comments?per_page=100&page={page}");
            let entries = self.world("GET", &path, TOKEN, &Value::Null);
            let entries = entries.as_array().unwrap();
            if entries.is_empty() {
                break;
            }
            all.extend(entries.iter().cloned());
        }
        all
    }

    /// benchgate's only comment; fails if there is none or a second one.
    fn only(&self) -> Value {
        let ours = self.comments().into_iter().filter(|comment| {
            comment["user"]["login"] == BOT && comment["body"].as_str().unwrap().starts_with("<!-- benchgate")
        });
        let [only] = ours.collect::<Vec<_>>().try_into().unwrap();
        only
    }

    /// Fails if Prism found a request that GitHub's description does not allow.
    fn expect_described(&self) {
        let log = self.log("prism");
        for wrong in ["Violation", "terminated with error", "UNPROCESSABLE", "NO_PATH_MATCHED"] {
            assert!(!log.contains(wrong), "{log}");
        }
        assert!(log.contains("Request received"), "{log}");
    }
}

impl Drop for GitHub {
    fn drop(&mut self) {
        for child in &mut self.children {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

fn on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn client(github: &GitHub) -> Client {
    let token = GitHubToken::new(TOKEN).unwrap();
    Client::new(&github.api(), RepositoryName::parse("bot/r").unwrap(), &token, RetryPolicy::default())
        .unwrap()
}

/// Opens a pull request with one change to main.
fn proposal(github: &GitHub) -> Value {
    let commits = github.world("GET", "/repos/bot/r/commits", TOKEN, &Value::Null);
    let reference = json!({ "ref": "refs/heads/change", "sha": commits[0]["sha"] });
    github.world("POST", "/repos/bot/r/git/refs", TOKEN, &reference);
    let file = json!({ "message": "a change", "content": "YQ==", "branch": "change" });
    github.world("PUT", "/repos/bot/r/contents/a.txt", TOKEN, &file);
    let pull = json!({ "title": "a change", "head": "change", "base": "main" });
    github.world("POST", "/repos/bot/r/pulls", TOKEN, &pull)
}

/// Publishes the measured result as run `run`, attempt `attempt`.
fn publish(github: &GitHub, measured: &Measured, pull: &Value, run: u64, attempt: u64) {
    let mut payload = payload("pull_request");
    payload["pull_request"]["number"] = pull["number"].clone();
    payload["pull_request"]["head"]["sha"] = pull["head"]["sha"].clone();
    payload["pull_request"]["base"]["ref"] = json!("main");
    let mut command = measured.command("pull_request", &payload, &["--comment", "always"]);
    command
        .env("GITHUB_REPOSITORY", "bot/r")
        .env("GITHUB_API_URL", github.api())
        .env("GITHUB_RUN_ID", run.to_string())
        .env("GITHUB_RUN_ATTEMPT", attempt.to_string())
        .env("GITHUB_TOKEN", TOKEN);
    let outcome = measured.suite.world.finish(command).expect_code(10);
    assert!(!(outcome.stdout + &outcome.stderr).contains("ghs_"));
}

#[test]
#[ignore = "needs Node and GitHub's description: .ci/run github"]
fn exactly_one_comment_in_requests_that_github_describes() {
    let (github, measured) = (GitHub::start(), Measured::new());
    let pull = proposal(&github);
    assert_eq!(pull["number"], 1);
    let [base, head] = ["base", "head"].map(|side| pull[side]["sha"].as_str().unwrap());
    measured.about(base, head);
    let says = |comment: &Value, run: u64, attempt: u64| {
        let body = comment["body"].as_str().unwrap();
        assert!(body.contains(&format!(" run={run} attempt={attempt} -->")), "{body}");
    };

    publish(&github, &measured, &pull, 10, 1);
    let first = github.only();
    says(&first, 10, 1);

    publish(&github, &measured, &pull, 11, 1);
    says(&github.only(), 11, 1);
    publish(&github, &measured, &pull, 11, 2);
    says(&github.only(), 11, 2);
    publish(&github, &measured, &pull, 10, 3);
    says(&github.only(), 11, 2);
    assert_eq!(github.only()["id"], first["id"], "it was updated in place");

    let forged = first["body"].as_str().unwrap().replace("run=10", "run=99");
    let path = "/repos/bot/r/issues/1/comments";
    let untrusted = github.world("POST", path, UNTRUSTED, &json!({ "body": forged }));
    assert_eq!(untrusted["user"]["login"], "mallory");
    for at in 0..300 {
        github.world("POST", path, UNTRUSTED, &json!({ "body": format!("comment {at}") }));
    }
    github.world("DELETE", &format!("/repos/bot/r/issues/comments/{}", first["id"]), TOKEN, &Value::Null);
    // benchgate's comment is now the newest one, on the fourth page.
    publish(&github, &measured, &pull, 12, 1);
    says(&github.only(), 12, 1);
    publish(&github, &measured, &pull, 13, 1);
    says(&github.only(), 13, 1);
    assert_ne!(github.only()["id"], first["id"]);
    let found = github.comments().into_iter().find(|comment| comment["id"] == untrusted["id"]).unwrap();
    assert_eq!(found["body"], untrusted["body"]);
    github.expect_described();
}

#[test]
#[ignore = "needs Node and GitHub's description: .ci/run github"]
fn a_check_run_of_every_conclusion_is_one_that_github_describes() {
    let github = GitHub::start();
    let commits = github.world("GET", "/repos/bot/r/commits", TOKEN, &Value::Null);
    let head = Sha::parse(commits[0]["sha"].as_str().unwrap()).unwrap();
    for (attempt, conclusion) in
        [Conclusion::Success, Conclusion::Failure, Conclusion::Neutral].into_iter().enumerate()
    {
        let attempt = attempt as u64 + 1;
        let check = Check {
            name: "benchgate: quickstart".into(),
            head: head.clone(),
            conclusion,
            title: "Pass: 1 of 1 benchmarks passed.".into(),
            summary: "### ✅ Pass".into(),
            marker: Marker::new("quickstart", RunAttempt { run: 1, attempt }),
            page: Some("https://github.com/bot/r/actions/runs/1".into()),
        };
        on(async { client(&github).check(&check).await }).unwrap();
        let path = format!("/repos/bot/r/commits/{}/check-runs", head.as_str());
        let runs = github.world("GET", &path, TOKEN, &Value::Null);
        assert_eq!(
            (runs["total_count"].as_u64(), &runs["check_runs"][0]["conclusion"]),
            (Some(1), &json!(conclusion))
        );
    }
    github.expect_described();
}

#[test]
#[ignore = "needs Node and GitHub's description: .ci/run github"]
fn a_reported_run_finds_its_pull_request_in_requests_that_github_describes() {
    let github = GitHub::start();
    let pull = proposal(&github);
    let main = pull["base"]["sha"].clone();
    let mut payload = payload("workflow_run");
    payload["repository"]["id"] = pull["base"]["repo"]["id"].clone();
    let run = &mut payload["workflow_run"];
    run["head_sha"] = pull["head"]["sha"].clone();
    run["head_branch"] = json!("change");
    run["head_repository"] = pull["head"]["repo"].clone();
    let variable = |name: &'static str| {
        Some(match name {
            "GITHUB_EVENT_NAME" => "workflow_run".to_owned(),
            "GITHUB_REPOSITORY" => "bot/r".to_owned(),
            "GITHUB_SHA" => main.as_str()?.to_owned(),
            "GITHUB_API_URL" | "GITHUB_SERVER_URL" => github.api(),
            _ => "1".to_owned(),
        })
    };
    let job = Job::read(&variable, payload.to_string().as_bytes()).unwrap();
    assert_eq!(
        job.measured(),
        RunAttempt { run: payload["workflow_run"]["id"].as_u64().unwrap(), attempt: 1 }
    );
    let GitHubEvent::WorkflowRun(run) = &job.event else { panic!("{job:?}") };
    for named in [None, pull["number"].as_u64()] {
        let found = on(async { client(&github).pull_request_of(run, named).await }).unwrap().unwrap();
        assert_eq!(
            (json!(found.number), json!(found.head.as_str())),
            (pull["number"].clone(), pull["head"]["sha"].clone())
        );
    }
    github.expect_described();
}

#[test]
#[ignore = "needs Node and GitHub's description: .ci/run github"]
fn issues_are_opened_changed_and_listed_in_requests_that_github_describes() {
    let github = GitHub::start();
    let body = "<!-- benchgate/alert/v1 at=1 size=1 state=worse of=01234567 -->\nslow";
    let issues = on(async {
        let client = client(&github);
        let number = client.open_issue("slower", body, "benchgate-alert", BOT).await.unwrap();
        for (open, reopened) in [(true, false), (false, false), (true, true)] {
            let change = IssueChange { title: Some("still slower"), body, open, reopened };
            client.change_issue(number, change).await.unwrap();
        }
        client.issues("benchgate-alert", BOT).await.unwrap()
    });
    assert_eq!(issues.len(), 1);
    assert_eq!((issues[0].open, issues[0].title.as_str()), (true, "still slower"));
    github.expect_described();
}
