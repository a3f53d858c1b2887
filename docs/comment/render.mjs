// A comment as GitHub shows it: `node render.mjs COMMENT.md OUT.html light|dark`.
import fs from "node:fs";
import path from "node:path";
import rehypeRaw from "rehype-raw";
import rehypeSanitize, { defaultSchema } from "rehype-sanitize";
import rehypeStringify from "rehype-stringify";
import remarkGfm from "remark-gfm";
import { remarkAlert } from "remark-github-blockquote-alert";
import remarkParse from "remark-parse";
import remarkRehype from "remark-rehype";
import { unified } from "unified";

const [comment, out, theme] = process.argv.slice(2);
if (!["light", "dark"].includes(theme)) throw new Error("the theme is light or dark");

// What GitHub lets through is what the default lets through, and its own callouts.
const schema = structuredClone(defaultSchema);
schema.attributes.div = [...(schema.attributes.div ?? []), ["className", /^markdown-alert/]];
schema.attributes.p = [...(schema.attributes.p ?? []), ["className", "markdown-alert-title"]];

const body = await unified()
  .use(remarkParse)
  .use(remarkGfm)
  .use(remarkAlert)
  .use(remarkRehype, { allowDangerousHtml: true })
  .use(rehypeRaw)
  .use(rehypeSanitize, schema)
  .use(rehypeStringify)
  .process(fs.readFileSync(comment, "utf8"));

const sheet = path.join(import.meta.dirname, `node_modules/github-markdown-css/github-markdown-${theme}.css`);
const [page, border, head, text] =
  theme === "dark" ? ["#0d1117", "#3d444d", "#151b23", "#9198a1"] : ["#fff", "#d1d9e0", "#f6f8fa", "#59636e"];
const font = `"Liberation Sans", Arial, "Noto Color Emoji"`;
fs.writeFileSync(
  out,
  `<!doctype html><meta charset="utf-8"><style>${fs.readFileSync(sheet, "utf8")}
body { background: ${page}; margin: 16px; font-family: ${font} }
.markdown-body { font-family: ${font} !important; padding: 16px }
main { width: 880px; border: 1px solid ${border}; border-radius: 6px }
header { background: ${head}; border-bottom: 1px solid ${border}; border-radius: 6px 6px 0 0; color: ${text}; font-size: 14px; padding: 8px 16px }
</style><main><header><b>github-actions</b> bot commented now</header><div class="markdown-body">${body}</div></main>`,
);
