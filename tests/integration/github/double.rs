//! A fake GitHub server that stores comments and check runs, and fails on request. It does not validate
//! requests; the module `schema` checks them against GitHub's own description.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde_json::{Value, json};

/// The token that the server requires.
pub const TOKEN: &str = "ghs_loopback_9f8e7d6c5b4a";

/// The login of the token's owner.
pub const BOT: &str = "github-actions[bot]";

pub struct Double {
    port: u16,
    state: Arc<Mutex<State>>,
    stop: Arc<AtomicBool>,
}

#[derive(Debug, Clone)]
pub enum Fault {
    /// The request is refused and has no effect.
    Refuse { status: u16, headers: Vec<(&'static str, String)>, message: &'static str },
    /// The request takes effect, but a gateway answers with an error.
    DoneThen502,
    /// The request takes effect, but the connection breaks before the answer.
    DoneThenSilence,
    /// A gateway answers with an error, and the request has no effect.
    NotDone502,
}

#[derive(Debug, Clone)]
pub struct Comment {
    pub id: u64,
    pub login: String,
    pub body: String,
}

#[derive(Default)]
struct State {
    next: u64,
    comments: Vec<Comment>,
    checks: Vec<Value>,
    issues: Vec<Value>,
    pulls: Vec<Value>,
    /// Commits with their parents.
    commits: Vec<(String, Vec<String>)>,
    /// The commits that are on a branch.
    on_branch: Vec<String>,
    /// True if `GET /user` is refused, as for an installation's token.
    installation: bool,
    /// True if the token is read-only.
    reader: bool,
    faults: VecDeque<(&'static str, &'static str, Fault)>,
    log: Vec<(String, Instant)>,
    unauthorized: usize,
}

impl Double {
    pub fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State { next: 1000, installation: true, ..State::default() }));
        let stop = Arc::new(AtomicBool::new(false));
        let this = Self { port, state: Arc::clone(&state), stop: Arc::clone(&stop) };
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let state = Arc::clone(&state);
                // A client that disconnected is not a failure of the server.
                std::thread::spawn(move || drop(answer(stream.unwrap(), &state)));
            }
        });
        this
    }

    /// The API's URL, with the prefix that a self-hosted GitHub server has.
    pub fn api(&self) -> String {
        format!("http://127.0.0.1:{}/api/v3", self.port)
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().unwrap())
    }

    /// Makes the next request fail that has this method and a path that contains `path`.
    pub fn fail(&self, method: &'static str, path: &'static str, fault: Fault) {
        self.with(|state| state.faults.push_back((method, path, fault)));
    }

    /// Makes the token a person's. Such a token may ask for its owner's login.
    pub fn personal(&self) {
        self.with(|state| state.installation = false);
    }

    pub fn read_only(&self) {
        self.with(|state| state.reader = true);
    }

    pub fn pull_request(&self, pull: Value) {
        self.with(|state| state.pulls.push(pull));
    }

    pub fn has_pulls(&self) -> bool {
        self.with(|state| !state.pulls.is_empty())
    }

    /// Adds a commit to the branch, from which pull requests start.
    pub fn advance(&self, sha: &str) {
        self.with(|state| state.on_branch.push(sha.to_owned()));
    }

    /// Adds a merge commit. `on_branch` says whether its first parent is on the branch.
    pub fn merge(&self, sha: &str, parents: [&str; 2], on_branch: bool) {
        self.with(|state| {
            state.commits.push((sha.to_owned(), parents.map(str::to_owned).to_vec()));
            if on_branch {
                state.on_branch.push(parents[0].to_owned());
            }
        });
    }

    pub fn add(&self, login: &str, body: &str) -> u64 {
        self.with(|state| state.add(login, body))
    }

    pub fn remove(&self, id: u64) {
        self.with(|state| state.comments.retain(|comment| comment.id != id));
    }

    pub fn comments(&self) -> Vec<Comment> {
        self.with(|state| state.comments.clone())
    }

    pub fn checks(&self) -> Vec<Value> {
        self.with(|state| state.checks.clone())
    }

    pub fn issues(&self) -> Vec<Value> {
        self.with(|state| state.issues.clone())
    }

    /// Closes all issues, as a person would.
    pub fn close_issues(&self) {
        self.with(|state| state.issues.iter_mut().for_each(|issue| issue["state"] = json!("closed")));
    }

    pub fn add_issue(&self, issue: Value) {
        self.with(|state| state.issues.push(issue));
    }

    /// `METHOD path` of every request, in order.
    pub fn log(&self) -> Vec<String> {
        self.with(|state| state.log.iter().map(|(line, _)| line.clone()).collect())
    }

    pub fn count(&self, beginning: &str) -> usize {
        self.log().iter().filter(|line| line.starts_with(beginning)).count()
    }

    /// The seconds between the first two requests whose log line begins like this.
    pub fn gap(&self, beginning: &str) -> f64 {
        self.with(|state| {
            let mut times =
                state.log.iter().filter(|(line, _)| line.starts_with(beginning)).map(|(_, at)| *at);
            let first = times.next().unwrap();
            times.next().unwrap().duration_since(first).as_secs_f64()
        })
    }

    /// The number of requests without the right token.
    pub fn unauthorized(&self) -> usize {
        self.with(|state| state.unauthorized)
    }
}

impl Drop for Double {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes the listener, so that its port is free again.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: String,
}

fn reply(status: u16, body: &Value) -> Reply {
    Reply { status, headers: Vec::new(), body: body.to_string() }
}

fn refused(status: u16, message: &str) -> Reply {
    reply(status, &json!({ "message": message, "documentation_url": "https://docs.github.com/rest" }))
}

impl State {
    fn add(&mut self, login: &str, body: &str) -> u64 {
        self.next += 1;
        self.comments.push(Comment { id: self.next, login: login.to_owned(), body: body.to_owned() });
        self.next
    }

    fn carry_out(&mut self, method: &str, path: &str, query: &str, body: &Value) -> Reply {
        let parts: Vec<&str> = path.trim_start_matches("/api/v3/").split('/').collect();
        let writes = method != "GET";
        if writes && self.reader {
            return refused(403, "Resource not accessible by integration");
        }
        match (method, parts.as_slice()) {
            ("GET", ["user"]) if self.installation => refused(403, "Resource not accessible by integration"),
            ("GET", ["user"]) => reply(200, &json!({ "login": BOT })),
            ("GET", ["repos", "o", "r", "issues"]) => page(&self.issues, query, |entries| json!(entries)),
            ("POST", ["repos", "o", "r", "issues"]) => {
                let mut issue = body.clone();
                issue["number"] = json!(self.issues.len() + 1);
                issue["state"] = json!("open");
                issue["user"] = json!({ "login": BOT });
                self.issues.push(issue.clone());
                reply(201, &issue)
            }
            ("PATCH", ["repos", "o", "r", "issues", number]) => {
                match self.issues.iter_mut().find(|issue| is(&issue["number"], number)) {
                    None => refused(404, "Not Found"),
                    Some(issue) => {
                        for (key, value) in body.as_object().unwrap() {
                            issue[key] = value.clone();
                        }
                        reply(200, issue)
                    }
                }
            }
            ("GET", ["repos", "o", "r", "issues", _, "comments"]) => {
                let all: Vec<Value> = self.comments.iter().map(shown).collect();
                page(&all, query, |entries| json!(entries))
            }
            ("POST", ["repos", "o", "r", "issues", _, "comments"]) => {
                self.add(BOT, body["body"].as_str().unwrap());
                reply(201, &shown(self.comments.last().unwrap()))
            }
            ("PATCH", ["repos", "o", "r", "issues", "comments", id]) => {
                match self.comments.iter_mut().find(|comment| comment.id.to_string() == *id) {
                    None => refused(404, "Not Found"),
                    Some(comment) => {
                        body["body"].as_str().unwrap().clone_into(&mut comment.body);
                        reply(200, &shown(comment))
                    }
                }
            }
            ("DELETE", ["repos", "o", "r", "issues", "comments", id]) => {
                self.comments.retain(|comment| comment.id.to_string() != *id);
                Reply { status: 204, headers: Vec::new(), body: String::new() }
            }
            ("GET", ["repos", "o", "r", "commits", sha, "check-runs"]) => {
                let of = |check: &&Value| check["head_sha"] == **sha;
                let all: Vec<Value> = self.checks.iter().filter(of).cloned().collect();
                page(&all, query, |entries| json!({ "total_count": all.len(), "check_runs": entries }))
            }
            ("POST", ["repos", "o", "r", "check-runs"]) => {
                self.next += 1;
                let mut check = body.clone();
                check["id"] = json!(self.next);
                self.checks.push(check.clone());
                reply(201, &check)
            }
            ("PATCH", ["repos", "o", "r", "check-runs", id]) => {
                let check = self.checks.iter_mut().find(|check| is(&check["id"], id)).unwrap();
                for (key, value) in body.as_object().unwrap() {
                    check[key] = value.clone();
                }
                reply(200, check)
            }
            ("GET", ["repos", "o", "r", "pulls", number]) => {
                match self.pulls.iter().find(|pull| is(&pull["number"], number)) {
                    None => refused(404, "Not Found"),
                    Some(pull) => reply(200, pull),
                }
            }
            ("GET", ["repos", "o", "r", "git", "commits", sha]) => {
                match self.commits.iter().find(|(known, _)| known == sha) {
                    None => refused(404, "Not Found"),
                    Some((sha, parents)) => {
                        let parents: Vec<Value> = parents.iter().map(|sha| json!({ "sha": sha })).collect();
                        reply(200, &json!({ "sha": sha, "parents": parents }))
                    }
                }
            }
            ("GET", ["repos", "o", "r", "compare", range]) => {
                let (from, head) = range.split_once("...").unwrap();
                let place = |sha: &str| self.on_branch.iter().position(|known| known == sha);
                // A change starts from the newest commit.
                let start = || self.on_branch.last().cloned().unwrap_or_else(|| "f".repeat(40));
                let (status, base) = match (place(from), place(head)) {
                    (_, None) => ("diverged", start()),
                    (None, Some(_)) => ("behind", head.to_owned()),
                    (Some(old), Some(new)) if old == new => ("identical", head.to_owned()),
                    (Some(old), Some(new)) if old < new => ("ahead", from.to_owned()),
                    _ => ("behind", head.to_owned()),
                };
                reply(200, &json!({ "status": status, "merge_base_commit": { "sha": base } }))
            }
            ("GET", ["repos", "o", "r", "pulls"]) => page(&self.pulls, query, |entries| json!(entries)),
            _ => refused(404, "Not Found"),
        }
    }
}

fn is(number: &Value, text: &str) -> bool {
    number.as_u64() == text.parse().ok()
}

fn shown(comment: &Comment) -> Value {
    json!({
        "id": comment.id,
        "body": comment.body,
        "user": { "login": comment.login },
        "html_url": format!("https://example.org/o/r/pull/7#issuecomment-{}", comment.id),
    })
}

fn page(all: &[Value], query: &str, content: impl FnOnce(&[Value]) -> Value) -> Reply {
    let asked = |key: &str, default: usize| {
        let part = query.split('&').find_map(|part| part.strip_prefix(key)?.strip_prefix('='));
        part.map_or(default, |text| text.parse().unwrap())
    };
    let (size, number) = (asked("per_page", 30), asked("page", 1));
    let entries: &[Value] = all.chunks(size).nth(number - 1).unwrap_or_default();
    let mut reply = reply(200, &content(entries));
    if number * size < all.len() {
        // The link leads to another server on purpose: a client must not send its token there.
        reply.headers.push(("Link", "<http://127.0.0.1:1/next>; rel=\"next\"".to_owned()));
    }
    reply
}

fn answer(stream: TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let (mut length, mut token) = (0, String::new());
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "authorization" => value.clone_into(&mut token),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let mut words = first.split(' ');
    let (Some(method), Some(target)) = (words.next(), words.next()) else { return Ok(()) };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut state = state.lock().unwrap();
    state.log.push((format!("{method} {target}"), Instant::now()));
    let matching = |(of, part, _): &(&str, &str, Fault)| *of == method && path.contains(part);
    let fault = state.faults.iter().position(matching).and_then(|at| state.faults.remove(at));
    let reply = match fault.map(|(_, _, fault)| fault) {
        _ if token != format!("Bearer {TOKEN}") => {
            state.unauthorized += 1;
            refused(401, "Bad credentials")
        }
        Some(Fault::Refuse { status, headers, message }) => Reply { headers, ..refused(status, message) },
        Some(Fault::DoneThen502) => {
            state.carry_out(method, path, query, &body);
            Reply { status: 502, headers: Vec::new(), body: "<html>bad gateway</html>".to_owned() }
        }
        Some(Fault::NotDone502) => {
            Reply { status: 502, headers: Vec::new(), body: "<html>bad gateway</html>".to_owned() }
        }
        Some(Fault::DoneThenSilence) => {
            state.carry_out(method, path, query, &body);
            return Ok(());
        }
        None => state.carry_out(method, path, query, &body),
    };
    drop(state);
    let mut head = format!(
        "HTTP/1.1 {} X\r\nConnection: close\r\nContent-Length: {}\r\n",
        reply.status,
        reply.body.len()
    );
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let mut stream = stream;
    stream.write_all(format!("{head}\r\n{}", reply.body).as_bytes())?;
    stream.flush()
}
