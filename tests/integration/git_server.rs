//! A local git remote over HTTP that requires a token: `git http-backend` behind a listener of this test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The token that the server requires.
pub const TOKEN: &str = "ghs_loopback0123456789";

/// `Basic x-access-token:<TOKEN>`.
const EXPECTED: &str = "Basic eC1hY2Nlc3MtdG9rZW46Z2hzX2xvb3BiYWNrMDEyMzQ1Njc4OQ==";

/// A server with one bare repository, `r.git`, that allows partial fetches.
pub struct GitServer {
    folder: tempfile::TempDir,
    port: u16,
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
}

impl GitServer {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let this = Self { folder, port, stop: Arc::clone(&stop), sent: Arc::clone(&sent) };
        this.git(&["init", "--quiet", "--bare", "-b", "main", "r.git"]);
        for (key, value) in
            [("http.receivepack", "true"), ("uploadpack.allowFilter", "true"), ("gc.auto", "0")]
        {
            this.git(&["-C", "r.git", "config", key, value]);
        }
        let root = this.folder.path().to_owned();
        std::thread::spawn(move || {
            for stream in server.incoming() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let (root, sent) = (root.clone(), Arc::clone(&sent));
                // A killed client is not a failure of the server.
                std::thread::spawn(move || drop(answer(stream.unwrap(), &root, &sent)));
            }
        });
        this
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/r.git", self.port)
    }

    pub fn repository(&self) -> PathBuf {
        self.folder.path().join("r.git")
    }

    /// The number of bytes in all answers so far.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::SeqCst)
    }

    /// Runs git next to the repository and returns what it printed.
    pub fn git(&self, arguments: &[&str]) -> String {
        let output =
            isolated(Command::new("git")).args(arguments).current_dir(self.folder.path()).output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for GitServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes the listener, so that its port is free again.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

/// Removes the configuration of the user who runs the tests from git's environment.
fn isolated(mut command: Command) -> Command {
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    command
}

fn answer(stream: TcpStream, root: &Path, sent: &AtomicU64) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let (Some(method), Some(target)) = (words.next(), words.next()) else { return Ok(()) };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut headers = std::collections::BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let header = |name: &str| headers.get(name).map_or("", String::as_str);
    if header("authorization") != EXPECTED {
        let refusal = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"git\"\r\n";
        return write!(stream, "{refusal}Content-Length: 0\r\nConnection: close\r\n\r\n");
    }
    if header("expect") == "100-continue" {
        write!(stream, "HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let body = body(&mut reader, &headers)?;
    let mut backend = isolated(Command::new("git"))
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("REQUEST_METHOD", method)
        .env("CONTENT_TYPE", header("content-type"))
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("GIT_PROTOCOL", header("git-protocol"))
        .env("REMOTE_USER", "x-access-token")
        .env("REMOTE_ADDR", "127.0.0.1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut input = backend.stdin.take().unwrap();
    let feeder = std::thread::spawn(move || drop(input.write_all(&body)));
    let output = backend.wait_with_output()?.stdout;
    drop(feeder.join());
    let end = output.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(output.len());
    let (head, data) = output.split_at((end + 4).min(output.len()));
    let head = String::from_utf8_lossy(head);
    let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK").to_owned();
    write!(stream, "HTTP/1.1 {status}\r\n")?;
    for line in head.lines().filter(|line| !line.is_empty() && !line.starts_with("Status: ")) {
        write!(stream, "{line}\r\n")?;
    }
    write!(stream, "Content-Length: {}\r\nConnection: close\r\n\r\n", data.len())?;
    sent.fetch_add(data.len() as u64, Ordering::SeqCst);
    stream.write_all(data)
}

fn body(
    reader: &mut impl BufRead,
    headers: &std::collections::BTreeMap<String, String>,
) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if headers.get("transfer-encoding").is_some_and(|encoding| encoding == "chunked") {
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let length = u64::from_str_radix(line.trim(), 16).unwrap_or(0);
            reader.by_ref().take(length).read_to_end(&mut body)?;
            reader.read_line(&mut line)?;
            if length == 0 {
                return Ok(body);
            }
        }
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    reader.take(length).read_to_end(&mut body)?;
    Ok(body)
}
