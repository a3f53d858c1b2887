// Runs one composite action on this machine as a runner of GitHub Actions would: GitHub's own evaluator of
// expressions, real shells, the files through which a step talks to its runner, and the runner's limits.
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { Evaluator, Lexer, Parser, data } from "@actions/expressions";
import YAML from "yaml";

const MAX_SUMMARY = 1024 * 1024;
const MAX_ANNOTATIONS = 10;

/** What a step said when the job was over. */
export async function runAction({ action, inputs = {}, event, payload, github = {}, workspace, temp, env = {} }) {
  const definition = YAML.parse(fs.readFileSync(path.join(action, "action.yml"), "utf8"));
  if (definition.runs.using !== "composite") throw new Error("not a composite action");
  for (const name of Object.keys(inputs)) {
    if (!(name in definition.inputs)) throw new Error(`unexpected input ${name}`);
  }
  fs.mkdirSync(temp, { recursive: true });
  const eventPath = path.join(temp, "event.json");
  fs.writeFileSync(eventPath, JSON.stringify(payload));
  const contexts = {
    github: { action_path: action, workspace, event_name: event, event: payload, ...github },
    runner: { os: "Linux", arch: "X64", temp },
    inputs: {},
    steps: {},
    env: {},
    job: { status: "success" },
  };
  for (const [name, input] of Object.entries(definition.inputs)) {
    contexts.inputs[name] = inputs[name] ?? substitute(String(input.default ?? ""), contexts);
  }
  const result = { conclusion: "success", log: "", annotations: [], summary: "", code: 0 };
  for (const step of definition.runs.steps) {
    if (!step.shell) throw new Error("a step of a composite action names its shell");
    const file = (name) => {
      const made = path.join(temp, `${name}-${randomUUID()}`);
      fs.writeFileSync(made, "");
      return made;
    };
    const files = {
      GITHUB_OUTPUT: file("output"),
      GITHUB_ENV: file("env"),
      GITHUB_PATH: file("path"),
      GITHUB_STATE: file("state"),
      GITHUB_STEP_SUMMARY: file("summary"),
    };
    const variables = {
      CI: "true",
      GITHUB_ACTIONS: "true",
      GITHUB_ACTION_PATH: action,
      GITHUB_WORKSPACE: workspace,
      GITHUB_EVENT_NAME: event,
      GITHUB_EVENT_PATH: eventPath,
      GITHUB_REPOSITORY: payload.repository?.full_name ?? "o/r",
      GITHUB_SHA: github.sha,
      GITHUB_API_URL: "https://api.github.com",
      GITHUB_SERVER_URL: "https://github.com",
      GITHUB_RUN_ID: "77",
      GITHUB_RUN_ATTEMPT: "1",
      RUNNER_TEMP: temp,
      RUNNER_OS: "Linux",
      RUNNER_ARCH: "X64",
      ...env,
      ...files,
    };
    for (const [name, value] of Object.entries(step.env ?? {})) variables[name] = substitute(String(value), contexts);
    const script = path.join(temp, `${randomUUID()}.sh`);
    fs.writeFileSync(script, substitute(step.run, contexts));
    const folder = path.join(workspace, substitute(String(step["working-directory"] ?? ""), contexts));
    const { code, text } = await shell(script, folder, variables);
    result.code = code;
    if (code !== 0) result.conclusion = "failure";
    heed(text, result);
    if (fs.readFileSync(files.GITHUB_ENV, "utf8") + fs.readFileSync(files.GITHUB_PATH, "utf8") !== "") {
      throw new Error("the action changes the environment of later steps");
    }
    const summary = fs.readFileSync(files.GITHUB_STEP_SUMMARY, "utf8");
    if (Buffer.byteLength(summary) > MAX_SUMMARY) throw new Error("GitHub drops a summary of this size whole");
    result.summary += summary;
    if (step.id) contexts.steps[step.id] = { outputs: outputsOf(files.GITHUB_OUTPUT) };
  }
  const outputs = Object.entries(definition.outputs).map(([name, { value }]) => [name, substitute(value, contexts)]);
  return { ...result, outputs: Object.fromEntries(outputs) };
}

function substitute(text, contexts) {
  return text.replace(/\$\{\{(.*?)\}\}/gs, (_, expression) => {
    const { tokens } = new Lexer(expression.trim()).lex();
    const tree = new Parser(tokens, Object.keys(contexts), []).parse();
    return new Evaluator(tree, toData(contexts)).evaluate().coerceString();
  });
}

function toData(value) {
  if (value === null || value === undefined) return new data.Null();
  if (Array.isArray(value)) return new data.Array(...value.map(toData));
  if (typeof value === "object") {
    const pairs = Object.entries(value).map(([key, inner]) => ({ key, value: toData(inner) }));
    return new data.Dictionary(...pairs);
  }
  if (typeof value === "number") return new data.NumberData(value);
  if (typeof value === "boolean") return new data.BooleanData(value);
  return new data.StringData(String(value));
}

// Not spawnSync: the GitHub that the step may talk to runs in this very process.
function shell(script, folder, env) {
  return new Promise((resolve, reject) => {
    const child = spawn("bash", ["--noprofile", "--norc", "-e", "-o", "pipefail", script], { cwd: folder, env });
    let text = "";
    child.stdout.on("data", (chunk) => (text += chunk));
    child.stderr.on("data", (chunk) => (text += chunk));
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, text }));
  });
}

// A runner obeys commands on both streams, at the start of any line.
function heed(text, result) {
  const decode = (value) =>
    value.replace(/%3A/g, ":").replace(/%2C/g, ",").replace(/%0D/g, "\r").replace(/%0A/g, "\n").replace(/%25/g, "%");
  for (const line of text.split("\n")) {
    const command = line.trimStart().match(/^::([a-z-]+)(?: (.*?))?::(.*)$/);
    if (!command) {
      result.log += `${line}\n`;
      continue;
    }
    const [, level, properties = "", message] = command;
    if (!["error", "warning", "notice"].includes(level)) throw new Error(`the action says ${line}`);
    const title = properties.match(/title=([^,]*)/)?.[1] ?? "";
    result.annotations.push({ level, title: decode(title), message: decode(message) });
  }
  for (const level of ["error", "warning"]) {
    if (result.annotations.filter((one) => one.level === level).length > MAX_ANNOTATIONS) {
      throw new Error(`GitHub shows ${MAX_ANNOTATIONS} ${level}s of a step`);
    }
  }
}

function outputsOf(file) {
  const found = {};
  const lines = fs.readFileSync(file, "utf8").split("\n");
  while (lines.length > 0) {
    const line = lines.shift();
    const fence = line.match(/^([^=]+?)<<(.+)$/);
    if (fence) {
      const end = lines.indexOf(fence[2]);
      if (end < 0) throw new Error(`no end of ${fence[1]}`);
      found[fence[1]] = lines.splice(0, end).join("\n");
      lines.shift();
    } else if (line.includes("=")) {
      found[line.slice(0, line.indexOf("="))] = line.slice(line.indexOf("=") + 1);
    } else if (line !== "") {
      throw new Error(`the runner can't read ${line}`);
    }
  }
  return found;
}
