// GitHub's own language service over workflows and actions: `node validate.mjs FILE…`. Any finding fails.
import fs from "node:fs";
import { register } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

// Its packages import JSON without saying so, which bundlers allow and Node does not.
const hook = `import fs from "node:fs";
export async function load(url, context, next) {
  if (!url.endsWith(".json")) return next(url, context);
  return { format: "module", source: "export default " + fs.readFileSync(new URL(url), "utf8"), shortCircuit: true };
}`;
register(`data:text/javascript,${encodeURIComponent(hook)}`);

const { validate } = await import("@actions/languageservice");
const { TextDocument } = await import("vscode-languageserver-textdocument");

let findings = 0;
for (const file of process.argv.slice(2)) {
  const address = pathToFileURL(path.resolve(file)).href;
  const found = await validate(TextDocument.create(address, "yaml", 1, fs.readFileSync(file, "utf8")));
  for (const { range, message } of found) console.log(`${file}:${range.start.line + 1}: ${message}`);
  findings += found.length;
}
console.log(`${process.argv.length - 2} files, findings: ${findings}`);
process.exitCode = findings === 0 && process.argv.length > 2 ? 0 : 1;
