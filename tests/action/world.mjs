// A repository with a suite of faked tools, the events of GitHub about it, and a GitHub that remembers.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { runAction } from "./runner.mjs";

export const ROOT = process.env.BENCHGATE_REPOSITORY;
const BUILT = process.env.BENCHGATE_BUILT;
export const BINARY = path.join(BUILT, "benchgate");
export const TOKEN = "ghs_0123456789abcdefghijklmnopqrstuvwxyz";
const COMMIT = "1".repeat(40);
const ZEROS = "0".repeat(40);

/** GitHub's own payload of an event, changed where this test's commits have to be. */
export function payload(name, change = () => {}) {
  const read = JSON.parse(fs.readFileSync(path.join(ROOT, `tests/fixtures/github/${name}.json`), "utf8"));
  change(read);
  return read;
}

export class World {
  constructor(test, models = ["a"]) {
    this.folder = fs.mkdtempSync(path.join(os.tmpdir(), "benchgate-action-"));
    test.after(() => {
      // What a checkout made read-only must become removable.
      execFileSync("chmod", ["-R", "u+w", this.folder]);
      fs.rmSync(this.folder, { recursive: true });
    });
    this.workspace = path.join(this.folder, "workspace");
    const tools = path.join(this.folder, "tools");
    fs.mkdirSync(this.workspace);
    fs.mkdirSync(tools);
    fs.mkdirSync(path.join(this.folder, "locks"));
    // What a debug build reads instead of the kernel's counters: nothing else runs on this host.
    fs.mkdirSync(path.join(this.folder, "proc"));
    const processors = ["cpu", ...Array.from({ length: 1024 }, (_, cpu) => `cpu${cpu}`)];
    fs.writeFileSync(path.join(this.folder, "proc/stat"), processors.map((name) => `${name} 0 0 0 0 0 0 0 0 0 0\n`).join(""));
    fs.writeFileSync(path.join(this.folder, "proc/loadavg"), "0.00 0.00 0.00 1/100 1\n");
    for (const tool of ["iree-compile", "iree-run-module", "iree-benchmark-module", "iree-dump-module"]) {
      fs.copyFileSync(path.join(BUILT, "examples/fake_iree"), path.join(tools, tool));
    }
    fs.writeFileSync(path.join(tools, "version.py"), `REVISIONS = {"IREE": "${COMMIT}"}\n`);
    for (const model of models) this.write(`models/${model}.mlir`, "// fake latency-us=1000\n");
    const tables = models.map((model) => `[[model]]\nname = "${model}"\nsource = "models/${model}.mlir"\ninputs = ["3xf32=1"]\n`);
    this.write(
      "benchgate.toml",
      `[suite]\nname = "fake"\n[toolchain]\nversion = "9.9.9"\ncommit = "${COMMIT}"\npath = ${JSON.stringify(tools)}\n` +
        tables.join("") +
        `[[target]]\nname = "cpu"\nbackend = "llvm-cpu"\ndevice = "local-task"\n` +
        `[measure]\nrepetitions = 4\nmin-time = "1ms"\nwarmup = "0ms"\nmin-blocks = 4\nmax-blocks = 16\nprocesses = 2\n`,
    );
    this.git("init", "--quiet", "--initial-branch=main");
    this.first = this.commit("suite");
  }

  write(name, text) {
    const file = path.join(this.workspace, name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, text);
  }

  read(name) {
    return fs.readFileSync(path.join(this.workspace, name), "utf8");
  }

  git(...args) {
    const identity = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"];
    const options = { cwd: this.workspace, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] };
    return execFileSync("git", [...identity, ...args], options).trim();
  }

  commit(message) {
    this.git("add", "--all");
    this.git("commit", "--quiet", "--allow-empty", "--message", message);
    return this.git("rev-parse", "HEAD");
  }

  /** Replaces the suite by one that `init` writes of a project whose tools are the scripts in `programs`. */
  init(files, programs, options) {
    this.programs = path.join(this.folder, "bin");
    fs.mkdirSync(this.programs);
    for (const [name, script] of Object.entries(programs)) {
      fs.writeFileSync(path.join(this.programs, name), script, { mode: 0o755 });
    }
    this.git("rm", "--quiet", "-r", ".");
    for (const [name, text] of Object.entries(files)) this.write(name, text);
    execFileSync(BINARY, ["init", "--suite", "kernels", ...options], { cwd: this.workspace, stdio: "ignore" });
    this.first = this.commit("suite");
  }

  /** A branch with a change, merged onto a main that has moved on, as GitHub checks a pull request out. */
  proposed(text, file = "models/a.mlir") {
    this.git("checkout", "--quiet", "-b", "change");
    this.write(file, text);
    const head = this.commit("change");
    this.git("checkout", "--quiet", "main");
    this.write("README.md", "main moved on\n");
    const base = this.commit("unrelated");
    this.git("checkout", "--quiet", "--detach");
    this.git("merge", "--quiet", "--no-ff", "--message", "Merge", head);
    return { head, base, merge: this.git("rev-parse", "HEAD") };
  }

  /** Its event. The base that it names is the older one, as in GitHub's own after main moved. */
  pullRequest({ head }, fork = false) {
    return payload("pull_request", (event) => {
      event.pull_request.head.sha = head;
      event.pull_request.base.sha = this.first;
      if (fork) event.pull_request.head.repo = { id: 1, private: false, owner: { login: "mallory" } };
    });
  }

  /** Runs the action in a job on a runner that GitHub hosts, unless `env` says otherwise. */
  run({ inputs = {}, event, payload, sha, env = {}, action = ROOT }) {
    const environment = {
      PATH: [this.programs, process.env.PATH].filter(Boolean).join(":"),
      HOME: this.folder,
      XDG_CACHE_HOME: path.join(this.folder, "cache"),
      // It waits for no other measurement.
      BENCHGATE_LOCK_DIR: path.join(this.folder, "locks"),
      BENCHGATE_PROC_DIR: path.join(this.folder, "proc"),
      RUNNER_ENVIRONMENT: "github-hosted",
      ...env,
    };
    return runAction({
      action,
      inputs: { "binary-path": BINARY, ...inputs },
      event,
      payload,
      github: { sha },
      workspace: this.workspace,
      temp: path.join(this.folder, `temp-${Math.random().toString(36).slice(2)}`),
      env: environment,
    });
  }
}

export const push = (before, after) =>
  payload("push", (event) => Object.assign(event, { ref: "refs/heads/main", before: before ?? ZEROS, after }));

/** As much of GitHub as publishing needs. It refuses every request without the token. */
export class GitHub {
  /** `merges` are commits with their parents; every first parent is on the branch. */
  constructor(test, pulls, merges = {}) {
    this.merges = merges;
    this.comments = [];
    this.checks = [];
    this.pulls = pulls;
    this.server = http.createServer((request, response) => this.answer(request, response));
    test.after(() => this.server.close());
  }

  async start() {
    await new Promise((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${this.server.address().port}`;
    return this;
  }

  async answer(request, response) {
    let text = "";
    for await (const chunk of request) text += chunk;
    const say = (status, body) => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(body));
    };
    if (!(request.headers.authorization ?? "").endsWith(TOKEN)) return say(401, { message: "Bad credentials" });
    const { pathname } = new URL(request.url, this.url);
    const rest = pathname.split("/").slice(4).join("/");
    const made = (list, more) => {
      const id = list.length + 1;
      const html_url = `https://github.com/comment/${id}`;
      const one = { id, html_url, ...JSON.parse(text), ...more };
      list.push(one);
      return say(201, one);
    };
    const user = { login: "github-actions[bot]" };
    if (/^issues\/\d+\/comments$/.test(rest)) {
      return request.method === "POST" ? made(this.comments, { user }) : say(200, this.comments);
    }
    const comment = rest.match(/^issues\/comments\/(\d+)$/);
    if (comment && request.method === "PATCH") {
      const known = this.comments[Number(comment[1]) - 1];
      Object.assign(known, JSON.parse(text));
      return say(200, known);
    }
    if (rest === "check-runs" && request.method === "POST") return made(this.checks);
    if (/^commits\/[0-9a-f]+\/check-runs$/.test(rest)) {
      return say(200, { total_count: this.checks.length, check_runs: this.checks });
    }
    if (rest === "pulls") return say(200, this.pulls);
    const pull = this.pulls.find(({ number }) => rest === `pulls/${number}`);
    if (pull) return say(200, pull);
    const commit = rest.match(/^git\/commits\/([0-9a-f]+)$/);
    if (commit && this.merges[commit[1]]) {
      return say(200, { sha: commit[1], parents: this.merges[commit[1]].map((sha) => ({ sha })) });
    }
    const compared = rest.match(/^compare\/([^/]+)\.\.\.([0-9a-f]+)$/);
    if (compared) {
      const [, from, to] = compared;
      const merges = Object.values(this.merges);
      // Each change starts from the commit into which it is merged.
      const start = merges.find(([, head]) => head === to)?.[0] ?? to;
      const status = from === to ? "identical" : merges.some(([base]) => base === to) ? "behind" : "diverged";
      return say(200, { status, merge_base_commit: { sha: start } });
    }
    return say(404, { message: "Not Found" });
  }
}
