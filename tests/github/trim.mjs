// GitHub's OpenAPI description, cut down to the operations that benchgate uses: the whole takes a minute to load.
// node trim.mjs WHOLE.json TRIMMED.json
import fs from "node:fs";

const OPERATIONS = [
  "GET /user",
  "GET /repos/{owner}/{repo}/issues",
  "POST /repos/{owner}/{repo}/issues",
  "PATCH /repos/{owner}/{repo}/issues/{issue_number}",
  "GET /repos/{owner}/{repo}/issues/{issue_number}/comments",
  "POST /repos/{owner}/{repo}/issues/{issue_number}/comments",
  "PATCH /repos/{owner}/{repo}/issues/comments/{comment_id}",
  "DELETE /repos/{owner}/{repo}/issues/comments/{comment_id}",
  "GET /repos/{owner}/{repo}/commits/{ref}/check-runs",
  "POST /repos/{owner}/{repo}/check-runs",
  "PATCH /repos/{owner}/{repo}/check-runs/{check_run_id}",
  "GET /repos/{owner}/{repo}/pulls",
  "GET /repos/{owner}/{repo}/pulls/{pull_number}",
  "GET /repos/{owner}/{repo}/git/commits/{commit_sha}",
  "GET /repos/{owner}/{repo}/compare/{basehead}",
];

const [whole, trimmed] = process.argv.slice(2);
const { openapi, info, servers, paths, components } = JSON.parse(fs.readFileSync(whole));
const kept = { openapi, info, servers, paths: {}, components: {} };

function keepReferences(node) {
  if (node === null || typeof node !== "object") return;
  for (const [key, value] of Object.entries(node)) {
    if (key === "$ref" && typeof value === "string") {
      const [, , kind, name] = value.split("/");
      kept.components[kind] ??= {};
      if (name in kept.components[kind]) continue;
      kept.components[kind][name] = components[kind][name];
      keepReferences(components[kind][name]);
    } else {
      keepReferences(value);
    }
  }
}

for (const operation of OPERATIONS) {
  const [method, path] = operation.split(" ");
  const found = paths[path]?.[method.toLowerCase()];
  if (!found) throw new Error(`GitHub no longer describes ${operation}`);
  // The double answers these without fields that GitHub has; the requests are what is tested.
  if (path.includes("check-runs")) {
    for (const answer of Object.values(found.responses)) delete answer.content;
  }
  kept.paths[path] ??= {};
  kept.paths[path][method.toLowerCase()] = found;
}
keepReferences(kept.paths);
fs.writeFileSync(trimmed, JSON.stringify(kept));
