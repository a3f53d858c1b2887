// The composite action, run for real: `.ci/run action`. Every test is one job.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import test from "node:test";
import { BINARY, GitHub, ROOT, TOKEN, World, payload, push } from "./world.mjs";

const SLOWER = "// fake latency-us=1300\n";
const SAME = "// fake latency-us=1000\n";

test("a slower pull request fails its job, and the job says by how much", async (t) => {
  const world = new World(t);
  const change = world.proposed(SLOWER);
  const job = await world.run({ event: "pull_request", payload: world.pullRequest(change), sha: change.merge });
  assert.deepEqual([job.conclusion, job.code], ["failure", 10], job.log);
  const { outputs } = job;
  assert.deepEqual([outputs.verdict, outputs.regressions, outputs.improvements], ["regressed", "1", "0"]);
  assert.equal(outputs["comment-url"], "");
  // What GitHub merged onto, and not the older base that the event names.
  assert.equal(outputs["baseline-sha"], change.base);
  const report = JSON.parse(fs.readFileSync(outputs["report-json"], "utf8"));
  assert.deepEqual([report.schema, report.verdict], ["benchgate/comparison/v1", "regressed"]);
  assert.match(job.summary, /Regressed/);
  assert.match(job.summary, /`a\/cpu\/main`/);
  const titles = job.annotations.map(({ level, title }) => `${level} ${title}`);
  assert.deepEqual(titles, ["error a/cpu/main latency: regressed"]);
});

test("warn-only says the same and does not fail", async (t) => {
  const world = new World(t);
  const change = world.proposed(SLOWER);
  const event = { event: "pull_request", payload: world.pullRequest(change), sha: change.merge };
  const job = await world.run({ ...event, inputs: { "warn-only": "true" } });
  assert.deepEqual([job.conclusion, job.outputs.verdict], ["success", "regressed"], job.log);
});

test("an unchanged pull request passes", async (t) => {
  const world = new World(t);
  const change = world.proposed(SAME);
  const job = await world.run({ event: "pull_request", payload: world.pullRequest(change), sha: change.merge });
  assert.deepEqual([job.code, job.outputs.verdict, job.annotations], [0, "pass", []], job.log);
});

test("the pull request that brings the suite has nothing to be compared with", async (t) => {
  const world = new World(t);
  world.git("mv", "benchgate.toml", "kept.toml");
  world.first = world.commit("no suite yet");
  world.git("checkout", "--quiet", "-b", "change");
  world.git("mv", "kept.toml", "benchgate.toml");
  const head = world.commit("a suite");
  const change = { head, base: world.first, merge: head };
  const job = await world.run({ event: "pull_request", payload: world.pullRequest(change), sha: head });
  assert.deepEqual([job.code, job.outputs.verdict], [12, "missing"], job.log);
  assert.match(job.summary, /once it is merged|merge it first/);
});

test("a fork's code does not run on a self-hosted runner that is kept", async (t) => {
  const world = new World(t);
  const change = world.proposed(SLOWER);
  const event = { event: "pull_request", payload: world.pullRequest(change, true), sha: change.merge };
  const job = await world.run({ ...event, env: { RUNNER_ENVIRONMENT: "self-hosted" } });
  assert.deepEqual([job.code, job.outputs.verdict], [2, "error"], job.log);
  assert.match(job.annotations[0].message, /fork-runner: ephemeral/);
  assert.match(job.summary, /ephemeral/);
  assert.ok(!fs.existsSync(path.join(world.workspace, "run.json")));
});

test("another commit than the event's does not run on a self-hosted runner that is kept", async (t) => {
  const world = new World(t);
  world.proposed(SLOWER);
  const event = { event: "push", payload: push(world.first, world.first), sha: world.first };
  const job = await world.run({ ...event, env: { RUNNER_ENVIRONMENT: "self-hosted" } });
  assert.deepEqual([job.code, job.outputs.verdict], [2, "error"], job.log);
  assert.match(job.annotations[0].message, /fork-runner: ephemeral/);
});

test("a fork is measured on a hosted runner, with a cache of its own, and its tools can't speak to the runner", async (t) => {
  const world = new World(t);
  const change = world.proposed("// fake compile-error=x%0A::error title=pwned::y\n::error title=pwned::z\n");
  const job = await world.run({ event: "pull_request", payload: world.pullRequest(change, true), sha: change.merge });
  assert.equal(job.outputs.verdict, "regressed", job.log);
  assert.ok(job.annotations.every(({ title }) => !title.includes("pwned")), JSON.stringify(job.annotations));
  assert.deepEqual(fs.readdirSync(path.join(world.folder, "cache/benchgate")), ["untrusted"]);
});

test("a push is compared with what was there before", async (t) => {
  const world = new World(t);
  world.write("models/a.mlir", SLOWER);
  const after = world.commit("slower");
  const job = await world.run({ event: "push", payload: push(world.first, after), sha: after });
  assert.deepEqual([job.code, job.outputs.verdict], [10, "regressed"], job.log);
  assert.equal(job.outputs["baseline-sha"], world.first);
});

test("a first push of the default branch has nothing to be compared with, and that is no pass", async (t) => {
  const world = new World(t);
  const env = { GITHUB_REF: "refs/heads/master" };
  const job = await world.run({ event: "push", payload: push(null, world.first), sha: world.first, env });
  assert.deepEqual([job.code, job.outputs.verdict], [12, "missing"], job.log);
});

test("a first push of another branch is compared with the default branch, and is an error without it", async (t) => {
  const world = new World(t);
  world.write("models/a.mlir", SLOWER);
  const after = world.commit("slower");
  const pushed = { event: "push", payload: push(null, after), sha: after, env: { GITHUB_REF: "refs/heads/change" } };
  const shallow = await world.run(pushed);
  assert.deepEqual([shallow.code, shallow.outputs.verdict], [2, "error"], shallow.log);
  world.git("update-ref", "refs/remotes/origin/master", world.first);
  const job = await world.run(pushed);
  assert.deepEqual([job.code, job.outputs["baseline-sha"]], [10, world.first], job.log);
});

test("a merge group is compared with the base that it names", async (t) => {
  const world = new World(t);
  world.write("models/a.mlir", SLOWER);
  const after = world.commit("slower");
  const group = payload("merge_group", (event) => {
    Object.assign(event.merge_group, { head_sha: after, base_sha: world.first });
  });
  const job = await world.run({ event: "merge_group", payload: group, sha: after });
  assert.deepEqual([job.code, job.outputs["baseline-sha"]], [10, world.first], job.log);
});

test("what a fork measured is published by another job, once, and the token is in nothing that is kept", async (t) => {
  const world = new World(t);
  const change = world.proposed(SLOWER);
  const proposed = world.pullRequest(change, true);
  const started = Date.now();
  await world.run({ event: "pull_request", payload: proposed, sha: change.merge });
  world.git("checkout", "--quiet", "main");
  const merges = { [change.merge]: [change.base, change.head] };
  const github = await new GitHub(t, [{ ...proposed.pull_request, state: "open" }], merges).start();
  const reported = payload("workflow_run", (event) => {
    event.repository = proposed.repository;
    Object.assign(event.workflow_run, {
      path: ".github/workflows/benchgate.yml",
      event: "pull_request",
      head_sha: change.head,
      head_branch: "change",
      head_repository: proposed.pull_request.head.repo,
      pull_requests: [],
      conclusion: "failure",
      run_started_at: new Date(started).toISOString(),
      updated_at: new Date().toISOString(),
    });
  });
  const publish = (inputs) =>
    world.run({
      event: "workflow_run",
      payload: reported,
      sha: change.base,
      env: { GITHUB_API_URL: github.url },
      inputs: { command: "publish", "github-token": TOKEN, "check-run": "true", ...inputs },
    });
  const job = await publish();
  // The check run is red. The job itself is shown on the default branch, which is not to blame.
  assert.deepEqual([job.code, job.outputs.verdict], [0, "regressed"], job.log);
  const unchecked = await publish({ "check-run": "" });
  assert.equal(unchecked.code, 10, unchecked.log);
  assert.equal(job.outputs["comment-url"], "https://github.com/comment/1");
  await publish();
  assert.equal(github.comments.length, 1);
  assert.match(github.comments[0].body, /Regressed/);
  assert.deepEqual(github.checks.map(({ head_sha, conclusion }) => [head_sha, conclusion]), [[change.head, "failure"]]);
  assert.ok(!JSON.stringify(job).includes(TOKEN));
  const report = fs.readFileSync(job.outputs["report-json"], "utf8");
  assert.ok(!report.includes(TOKEN));
  // Nothing is measured with a token that can write.
  const refused = await publish({ command: "gate", "check-run": "", "github-token": "" });
  assert.deepEqual([refused.code, refused.outputs.verdict], [2, "error"], refused.log);
});

/** Prints what a tool printed once, with times of its own, a factor longer: `print.mjs RECORDED FACTOR [OUTPUT]`. */
const PRINT = `import fs from "node:fs";
const [recorded, factor, output] = process.argv.slice(2);
const run = JSON.parse(fs.readFileSync(recorded, "utf8"));
const scaled = (time) => time * factor * (1 - Math.log(1 - Math.random()) / 300);
const measured = (row) => row.stats || (row.run_type === "iteration" && !row.error_message && !row.skip_message);
run.benchmarks = run.benchmarks.filter(measured);
const first = new Map();
for (const row of run.benchmarks) {
  if (row.stats) row.stats = { data: row.stats.data.map(() => scaled(row.stats.mean)) };
  else {
    // The recorded repetitions would be the same few times in every process.
    if (!first.has(row.name)) first.set(row.name, { ...row });
    for (const time of ["real_time", "cpu_time"]) row[time] = scaled(first.get(row.name)[time]);
  }
}
fs.writeFileSync(output ?? 1, JSON.stringify(run));
`;
const printing = (recorded) =>
  `exec ${process.execPath} "$(dirname "$(command -v print.mjs)")/print.mjs" ${ROOT}/tests/fixtures/tool_output/${recorded}`;

for (const [project, { source, programs, options, row }] of Object.entries({
  "CMake and Google Benchmark": {
    source: "bench.cc",
    programs: {
      // Configures with -S and -B, and builds with --build.
      cmake: `#!/bin/sh
if [ "$1" = -S ]; then exec cp "$2/bench.cc" "$4/"; fi
echo '${printing("google_benchmark/counters-main.json")}' "$(sed 's/.*= //' "$2/bench.cc")" > "$2/bench"
chmod +x "$2/bench"
`,
    },
    options: [
      ...["--build-command", "cmake -S . -B {build}", "--build-command", "cmake --build {build}"],
      ...["--command", "sh {build}/bench --benchmark_format=json --benchmark_filter={filter}"],
    ],
    row: "bench/BM_counters",
  },
  "pytest-benchmark": {
    source: "bench.py",
    programs: {
      pytest: `#!/bin/sh
${printing("pytest_benchmark/5.3.1.json")} "$(sed 's/.*= //' "$1")" "\${2#--benchmark-json=}"
`,
    },
    options: ["--command", "pytest bench.py --benchmark-json={output} -k {filter}"],
    row: "bench/test_sum.py::test_sum[10]",
  },
})) {
  test(`a project of ${project} goes from init to a red comment and a green one`, async (t) => {
    for (const [factor, code, verdict] of [["1.05", 10, /Regressed/], ["1.0", 0, /Pass/]]) {
      const world = new World(t);
      world.init({ [source]: "factor = 1\n" }, { "print.mjs": PRINT, ...programs }, options);
      const change = world.proposed(`factor = ${factor}\n`, source);
      const proposed = world.pullRequest(change);
      proposed.repository.private = true;
      const github = await new GitHub(t, [{ ...proposed.pull_request, state: "open" }]).start();
      const job = await world.run({
        event: "pull_request",
        payload: proposed,
        sha: change.merge,
        env: { GITHUB_API_URL: github.url },
        inputs: { "github-token": TOKEN, comment: "always" },
      });
      assert.equal(job.code, code, job.log);
      assert.equal(github.comments.length, 1, job.log);
      assert.match(github.comments[0].body, verdict);
      if (code !== 0) assert.ok(github.comments[0].body.includes(row), github.comments[0].body);
    }
  });
}

test("a night that turned red says so, and is bisected from the last good night", async (t) => {
  const world = new World(t);
  const { repository } = payload("workflow_dispatch");
  const job = (inputs) =>
    world.run({ event: "schedule", payload: { repository, schedule: "17 2 * * *" }, sha: world.git("rev-parse", "HEAD"), inputs });
  const night = async () => {
    const measured = await job({ command: "run" });
    assert.equal(measured.code, 0, measured.log);
    return job({ command: "baseline-update", "github-token": TOKEN });
  };
  const good = await night();
  assert.deepEqual([good.code, good.outputs.regressions], [0, "0"], good.log);
  world.write("NOTES", "nothing");
  world.git("add", "NOTES");
  world.git("commit", "--quiet", "-m", "notes");
  world.write("models/a.mlir", "// fake latency-us=3000\n");
  world.git("commit", "--quiet", "-a", "-m", "three times as slow");
  const culprit = world.git("rev-parse", "HEAD");
  world.git("commit", "--quiet", "--allow-empty", "-m", "nothing");
  // Stored sessions are ordered by the second in which they began.
  await new Promise((resume) => setTimeout(resume, 1100));
  const red = await night();
  assert.deepEqual([red.code, red.outputs.regressions], [10, "1"], red.log);
  const found = await job({ command: "bisect", "time-budget": "10m" });
  assert.equal(found.code, 0, found.log);
  assert.match(found.summary, /### Bisection of `a\/cpu\/main`/);
  assert.ok(found.summary.includes(culprit.slice(0, 12)), found.summary);
  const result = JSON.parse(fs.readFileSync(found.outputs["bisection-json"], "utf8"));
  assert.deepEqual([result.schema, result.result], ["benchgate/bisection/v1", "found"]);
  // The next workflow shows it. It starts after the night, with a token that may read.
  const site = await world.run({
    event: "workflow_run",
    payload: payload("workflow_run"),
    sha: culprit,
    inputs: { command: "site", config: "benchgate.toml", "output-dir": "public", "fail-on": "missing", "github-token": TOKEN },
  });
  assert.equal(site.code, 0, site.log);
  const overview = world.read("public/index.html");
  assert.ok(overview.includes("a/cpu/main") && !overview.includes(TOKEN), overview);
});

test("a night is measured by one job, stored by another, and compared with later", async (t) => {
  const world = new World(t);
  // A schedule's payload names its repository, and nothing else that matters.
  const { repository } = payload("workflow_dispatch");
  const night = { event: "schedule", payload: { repository, schedule: "17 2 * * *" }, sha: world.first };
  const measured = await world.run({ ...night, inputs: { command: "run" } });
  assert.equal(measured.code, 0, measured.log);
  // What else ran on this machine would keep the night from being learned from.
  const run = JSON.parse(world.read("run.json"));
  for (const { processes } of run.sides[0].benchmarks) processes.forEach((process) => delete process.telemetry);
  world.write("run.json", JSON.stringify(run));
  const stored = await world.run({ ...night, inputs: { command: "baseline-update", "github-token": TOKEN } });
  assert.equal(stored.code, 0, stored.log);
  const [testbed] = fs.readdirSync(path.join(world.workspace, "baselines/fake"));
  const [session] = fs.readdirSync(path.join(world.workspace, "baselines/fake", testbed));
  assert.match(session, new RegExp(`-${world.first}\\.json$`));
  world.git("add", "baselines");
  const base = world.commit("a night");
  const compared = await world.run({
    event: "push",
    payload: push(base, base),
    sha: base,
    inputs: { baseline: "stored", base, "fail-on": "error" },
  });
  assert.ok(["pass", "inconclusive"].includes(compared.outputs.verdict), compared.log);
  assert.match(compared.log, /stored session/);
});

/** A model for each shard, and what its results are called. */
const MODELS = ["a", "b", "c", "d"];

/** Plans, measures in four jobs with a workspace of the same commit, and merges. `event` is of all of these jobs. */
async function sharded(world, event, { command = "gate", lost = [] } = {}) {
  const plan = path.join(world.folder, "plan.json");
  const results = path.join(world.folder, "shards");
  fs.mkdirSync(results);
  const planned = await world.run({ ...event, inputs: { command: "plan", shards: "4", plan } });
  assert.equal(planned.code, 0, planned.log);
  const { include } = JSON.parse(planned.outputs.matrix);
  assert.deepEqual(include.map(({ shard, shards }) => [shard, shards]), [[1, 4], [2, 4], [3, 4], [4, 4]]);
  const shard = async ({ shard }, attempt) => {
    const run = path.join(results, `shard-${shard}-${attempt}.json`);
    const inputs = { command, plan, shard: String(shard), run };
    const job = await world.run({ ...event, inputs, env: { GITHUB_RUN_ATTEMPT: String(attempt) } });
    // It judges nothing: neither its exit code nor its outputs say how the suite did.
    assert.deepEqual([job.code, job.outputs.verdict, job.annotations], [0, "", []], job.log);
    assert.equal(job.outputs["run-json"], run);
    if (attempt === 1 && lost.includes(shard)) fs.rmSync(run);
  };
  for (const job of include) await shard(job, 1);
  const merge = () => world.run({ ...event, inputs: { command: "merge", plan, results, run: "run.json" } });
  let merged = await merge();
  if (lost.length > 0) {
    assert.deepEqual([merged.code, merged.outputs["run-json"]], [20, ""], merged.log);
    assert.match(merged.log, new RegExp(`shard ${lost[0]} is missing`));
    for (const job of include.filter(({ shard }) => lost.includes(shard))) await shard(job, 2);
    merged = await merge();
  }
  assert.equal(merged.code, 0, merged.log);
  return merged.outputs["run-json"];
}

test("four jobs measure a fork's pull request, a lost one again, and what is merged is judged and published", async (t) => {
  const world = new World(t, MODELS);
  const change = world.proposed(SLOWER);
  const proposed = world.pullRequest(change, true);
  const event = { event: "pull_request", payload: proposed, sha: change.merge };
  const created = new Date().toISOString();
  const run = await sharded(world, event, { lost: [3] });
  const compared = await world.run({ ...event, inputs: { command: "compare", base: `${run}#base`, head: `${run}#head` } });
  assert.deepEqual([compared.code, compared.outputs.verdict, compared.outputs.regressions], [10, "regressed", "1"], compared.log);
  assert.match(compared.summary, /`a\/cpu\/main`/);
  world.git("checkout", "--quiet", "main");
  const github = await new GitHub(t, [{ ...proposed.pull_request, state: "open" }], { [change.merge]: [change.base, change.head] }).start();
  // The second attempt of the run, which kept three results of the first: it started when they had been measured.
  const attempt = (from) => payload("workflow_run", (reported) => {
    reported.repository = proposed.repository;
    Object.assign(reported.workflow_run, {
      path: ".github/workflows/benchgate.yml",
      event: "pull_request",
      head_sha: change.head,
      head_branch: "change",
      head_repository: proposed.pull_request.head.repo,
      pull_requests: [],
      conclusion: "failure",
      run_attempt: 2,
      created_at: from,
      run_started_at: new Date(Date.now() + 600_000).toISOString(),
      updated_at: new Date(Date.now() + 3_600_000).toISOString(),
    });
  });
  const publish = (from, inputs) =>
    world.run({
      event: "workflow_run",
      payload: attempt(from),
      sha: change.base,
      env: { GITHUB_API_URL: github.url },
      inputs: { command: "publish", run, "github-token": TOKEN, ...inputs },
    });
  // What was measured before the run's first attempt is another run's.
  const later = await publish(new Date(Date.now() + 600_000).toISOString());
  assert.deepEqual([later.code, later.outputs.verdict], [20, "error"], later.log);
  const job = await publish(created, { "check-run": "true" });
  assert.deepEqual([job.code, job.outputs.verdict], [0, "regressed"], job.log);
  assert.match(github.comments.at(-1).body, /Regressed/);
  assert.equal(github.checks.at(-1).conclusion, "failure");
});

test("a night of four jobs is merged and stored as one session", async (t) => {
  const world = new World(t, MODELS);
  const { repository } = payload("workflow_dispatch");
  const night = { event: "schedule", payload: { repository, schedule: "17 2 * * *" }, sha: world.first };
  const run = await sharded(world, night, { command: "run" });
  const stored = await world.run({ ...night, inputs: { command: "baseline-update", run, "github-token": TOKEN } });
  assert.equal(stored.code, 0, stored.log);
  const [testbed] = fs.readdirSync(path.join(world.workspace, "baselines/fake"));
  assert.equal(fs.readdirSync(path.join(world.workspace, "baselines/fake", testbed)).length, 1);
});

test("two results are compared without any event", async (t) => {
  const world = new World(t);
  const change = world.proposed(SLOWER);
  await world.run({ event: "pull_request", payload: world.pullRequest(change), sha: change.merge });
  const inputs = { command: "compare", base: "run.json#base", head: "run.json#head", "fail-on": "error" };
  const job = await world.run({ event: "workflow_dispatch", payload: payload("workflow_dispatch"), sha: change.merge, inputs });
  assert.deepEqual([job.code, job.outputs.verdict], [0, "regressed"], job.log);
});

test("an input is never a command", async (t) => {
  const world = new World(t);
  for (const hostile of ["$(touch pwned)", '"; touch pwned; "', "`touch pwned`", "--help", "a\n::error title=pwned::b"]) {
    const inputs = { config: hostile };
    const job = await world.run({ event: "push", payload: push(null, world.first), sha: world.first, inputs });
    assert.notEqual(job.code, 0, job.log);
    assert.ok(!fs.existsSync(path.join(world.workspace, "pwned")));
    assert.ok(job.annotations.every(({ title }) => !title.includes("pwned")), JSON.stringify(job.annotations));
  }
});

test("a configuration below the workspace is found from there", async (t) => {
  const world = new World(t);
  world.git("checkout", "--quiet", "-b", "moved");
  fs.mkdirSync(path.join(world.workspace, "suite"));
  world.git("mv", "benchgate.toml", "models", "suite/");
  const before = world.commit("move");
  const after = world.commit("nothing");
  const inputs = { "working-directory": "suite" };
  const job = await world.run({ event: "push", payload: push(before, after), sha: after, inputs });
  assert.deepEqual([job.code, job.outputs.verdict], [0, "pass"], job.log);
});

// What the action has of this repository; its sources are folders that a build would read.
const SOURCES = ["action.yml", ".github/action", "Cargo.toml", "Cargo.lock", "rust-toolchain.toml"];

// How the binary gets there. `curl` and `cargo` are stood in for: nothing here may reach a network.
async function delivered(t, { sums = "", project = null, served = "", cargo = false, version = "", rustc = "", prepare = () => {}, then = null }) {
  const world = new World(t);
  prepare(world);
  const action = path.join(world.folder, "action");
  for (const name of SOURCES) fs.cpSync(path.join(project ?? ROOT, name), path.join(action, name), { recursive: true });
  for (const name of ["src", "crates", "schemas"]) fs.mkdirSync(path.join(action, name));
  fs.appendFileSync(path.join(action, ".github/action/releases.sha256"), sums);
  const bin = path.join(world.folder, "bin");
  fs.mkdirSync(bin);
  const program = (name, text) => fs.writeFileSync(path.join(bin, name), `#!/bin/bash\n${text}\n`, { mode: 0o755 });
  const quiet = `test -z "$GITHUB_TOKEN" || exit 99`;
  program("curl", `${quiet}\nwhile [ "$1" != --output ]; do shift; done\ncp '${served}' "$2"\necho "got \${@: -1}" >&2`);
  if (cargo) {
    const build = `while [ "$1" != --target-dir ]; do shift; done\nmkdir -p "$2/release"\ncp '${BINARY}' "$2/release/"`;
    // Cargo and rustup look for configuration in the folder they run in and above it, and in their home.
    const alone = `test "$PWD" = / && test -z "$(ls -A "$CARGO_HOME")" && test -z "$RUSTC_WRAPPER$RUSTFLAGS" || exit 98`;
    const pinned = `test "$RUSTUP_TOOLCHAIN" = '${CHANNEL}' || exit 97`;
    program("cargo", `${quiet}\n${alone}\n${pinned}\n${build}`);
    if (rustc) program("rustc", `echo 'rustc ${rustc} (0000000 2026-01-01)'`);
    else program("rustup", "exit 96");
  }
  for (const name of ["bash", "sed", "head", "awk", "uname", "mkdir", "sha256sum", "tar", "gzip", "mv", "rm", "cp", "git", "dirname", "find", "sort", "xargs", "cut", "env", "ls"]) {
    fs.symlinkSync(execFileSync("bash", ["-c", `type -P ${name}`], { encoding: "utf8" }).trim(), path.join(bin, name));
  }
  const inputs = { "binary-path": "", version, command: "publish", "github-token": TOKEN };
  const env = { PATH: bin, RUNNER_TOOL_CACHE: path.join(world.folder, "tool-cache"), RUSTC_WRAPPER: "/pwned", RUSTFLAGS: "-Cx", RUSTUP_TOOLCHAIN: "/pwned" };
  const job = { event: "push", payload: push(null, world.first), sha: world.first, inputs, env, action };
  const first = await world.run(job);
  if (!then) return first;
  then(world);
  return world.run(job);
}

const CHANNEL = fs.readFileSync(path.join(ROOT, "rust-toolchain.toml"), "utf8").match(/^channel = "(.*)"$/m)[1];

const MACHINE = execFileSync("uname", ["-m"], { encoding: "utf8" }).trim();

function release(t, version) {
  const world = new World(t);
  const file = path.join(world.folder, `benchgate-${version}-${MACHINE}-unknown-linux-gnu.tar.gz`);
  execFileSync("tar", ["-czf", file, "-C", path.dirname(BINARY), "./benchgate"]);
  const sum = createHash("sha256").update(fs.readFileSync(file)).digest("hex");
  return { file, line: `${sum}  ${path.basename(file)}\n` };
}

// publish finds no run.json: that it says so means that the binary was there.
const RAN = 21;

test("a release is taken when it is the one that was committed", async (t) => {
  const { file, line } = release(t, "9.8.7");
  const job = await delivered(t, { sums: line, served: file, version: "9.8.7" });
  assert.equal(job.code, RAN, job.log);
  assert.match(job.log, /releases\/download\/v9\.8\.7\/benchgate-9\.8\.7-/);
});

test("a release whose hash differs is not run, and no build replaces it", async (t) => {
  const { line } = release(t, "9.8.7");
  const job = await delivered(t, { sums: line, served: BINARY, version: "9.8.7", cargo: true });
  assert.equal(job.code, 20, job.log);
  assert.match(job.log, /releases\.sha256/);
  assert.doesNotMatch(job.log, /building from source/);
});

test("a mock release works from its archives to the action at its tag, and no other archive is run", async (t) => {
  const world = new World(t);
  const project = path.join(world.folder, "project");
  for (const name of [...SOURCES, ".ci/release-commit"]) fs.cpSync(path.join(ROOT, name), path.join(project, name), { recursive: true });
  const version = fs.readFileSync(path.join(ROOT, "Cargo.toml"), "utf8").match(/^version = "(.*)"$/m)[1];
  fs.writeFileSync(path.join(project, "CHANGELOG.md"), `# Changelog\n\n## ${version}\n\n- First.\n`);
  const git = (...args) => execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.com", ...args], { cwd: project, encoding: "utf8" }).trim();
  git("init", "--quiet", "--initial-branch=main");
  git("add", "--all", "--force");
  git("commit", "--quiet", "--message", "sources");
  const built = git("rev-parse", "HEAD");

  const { file, line } = release(t, version);
  const dist = path.join(world.folder, "dist");
  fs.mkdirSync(dist);
  const archive = path.join(dist, path.basename(file));
  fs.copyFileSync(file, archive);
  fs.writeFileSync(path.join(dist, "SHA256SUMS"), line);
  const identity = { GIT_AUTHOR_NAME: "t", GIT_AUTHOR_EMAIL: "t@example.com", GIT_COMMITTER_NAME: "t", GIT_COMMITTER_EMAIL: "t@example.com" };
  const commit = () => execFileSync(path.join(project, ".ci/release-commit"), [dist], { encoding: "utf8", stdio: "pipe", env: { ...process.env, ...identity } }).trim();

  // An archive that changed after it was packed is not released.
  fs.appendFileSync(archive, "x");
  assert.throws(commit, /not those of SHA256SUMS/);
  fs.copyFileSync(file, archive);
  const tagged = commit();
  assert.equal(git("rev-parse", `v${version}^{}`), tagged);
  assert.equal(git("rev-parse", `${tagged}^`), built);
  assert.equal(git("diff", "--name-only", built, tagged), ".github/action/releases.sha256");
  assert.throws(commit, /already a tag/);

  const job = await delivered(t, { project, served: archive, cargo: true });
  assert.equal(job.code, RAN, job.log);
  assert.match(job.log, new RegExp(`releases/download/v${version}/`));
  assert.doesNotMatch(job.log, /building from source/);
  fs.appendFileSync(archive, "x");
  const tampered = await delivered(t, { project, served: archive, cargo: true });
  assert.equal(tampered.code, 20, tampered.log);
  assert.doesNotMatch(tampered.log, /building from source/);
  // The commit that was built lists no sums yet: a workflow that is pinned to it would build in every job.
  git("checkout", "--quiet", built);
  assert.match((await delivered(t, { project, served: file, cargo: true })).log, /building from source/);
});

test("without a release the sources are built, and without cargo that is an error", async (t) => {
  assert.equal((await delivered(t, { sums: "", cargo: true })).code, RAN);
  const job = await delivered(t, { sums: "" });
  assert.equal(job.code, 20, job.log);
  assert.match(job.annotations[0].message, /could not be installed/);
});

test("a build reads nothing of the workspace and runs no binary that an earlier job left", async (t) => {
  const own = fs.readFileSync(path.join(ROOT, "Cargo.toml"), "utf8").match(/^version = "(.*)"$/m)[1];
  const pwned = (world) => path.join(world.folder, "pwned");
  let left;
  const prepare = (world) => {
    left = pwned(world);
    world.write(".cargo/config.toml", `[build]\nrustc-wrapper = "${left}.sh"\n`);
    world.write("rust-toolchain.toml", `[toolchain]\npath = "/pwned"\n`);
    for (const place of [`${own}/build/release`, `${own}`]) {
      const folder = path.join(world.folder, "tool-cache/benchgate", place);
      fs.mkdirSync(folder, { recursive: true });
      fs.writeFileSync(path.join(folder, "benchgate"), `#!/bin/bash\ntouch '${left}'\n`, { mode: 0o755 });
    }
  };
  assert.equal((await delivered(t, { sums: "", cargo: true, prepare })).code, RAN);
  assert.ok(!fs.existsSync(left));
});

test("a build takes the compiler that the action pins, and no other", async (t) => {
  assert.equal((await delivered(t, { sums: "", cargo: true, rustc: CHANNEL })).code, RAN);
  const job = await delivered(t, { sums: "", cargo: true, rustc: "1.0.0" });
  assert.equal(job.code, 20, job.log);
  assert.match(job.log, new RegExp(`needs Rust ${CHANNEL}`));
});

test("a binary that was replaced between two steps of a job is built again and not run", async (t) => {
  let left;
  const then = (world) => {
    left = path.join(world.folder, "pwned");
    const found = execFileSync("find", [world.folder, "-path", "*benchgate-build*", "-name", "benchgate", "-type", "f"], { encoding: "utf8" });
    const binaries = found.trim().split("\n");
    assert.equal(binaries.length, 1, found);
    fs.writeFileSync(binaries[0], `#!/bin/bash\ntouch '${left}'\n`, { mode: 0o755 });
  };
  assert.equal((await delivered(t, { sums: "", cargo: true, then })).code, RAN);
  assert.ok(!fs.existsSync(left));
});

test("a binary-path without a slash is the file that was tested and not one on the PATH", async (t) => {
  const world = new World(t);
  fs.copyFileSync(BINARY, path.join(world.workspace, "benchgate"));
  const bin = path.join(world.folder, "bin");
  fs.mkdirSync(bin);
  fs.writeFileSync(path.join(bin, "benchgate"), "#!/bin/bash\nexit 77\n", { mode: 0o755 });
  const job = await world.run({
    event: "push",
    payload: push(null, world.first),
    sha: world.first,
    inputs: { "binary-path": "benchgate", command: "publish" },
    env: { PATH: `${bin}:${process.env.PATH}` },
  });
  assert.equal(job.code, RAN, job.log);
});

test("only a result that this very step measured is an output", async (t) => {
  const world = new World(t);
  const change = world.proposed(SAME);
  const job = { event: "pull_request", payload: world.pullRequest(change), sha: change.merge };
  const measured = await world.run(job);
  assert.equal(measured.outputs["run-json"], path.join(world.workspace, "run.json"));
  const forged = world.read("run.json");
  const left = path.join(world.workspace, "run.json");
  const failures = [
    { config: "absent.toml" },
    { "warn-only": "perhaps" },
    { "binary-path": "/absent" },
    { version: "no version" },
  ];
  for (const inputs of failures) {
    world.write("run.json", forged);
    const failed = await world.run({ ...job, inputs });
    assert.notEqual(failed.code, 0, failed.log);
    assert.deepEqual([failed.outputs["run-json"], fs.existsSync(left)], ["", false], failed.log);
  }
  // A link that was committed is removed, and not what it names.
  world.write("other.json", forged);
  fs.symlinkSync("other.json", left);
  await world.run({ ...job, inputs: { config: "absent.toml" } });
  assert.deepEqual([fs.existsSync(left), world.read("other.json")], [false, forged]);
});

test("a version is a version", async (t) => {
  const job = await delivered(t, { sums: "", version: "1.0.0/../../x" });
  assert.equal(job.code, 20, job.log);
});
