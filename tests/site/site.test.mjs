// The site of a simulated history in a real browser: from a disk, and from a server under a path, as GitHub Pages
// has it. `.ci/run site` makes the history and the site and runs this.
//
// SITE: the folder of the site. TRUTH: what was planted, as JSON. SHOTS: where pictures go, if wanted.
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";

import bundled from "@sparticuz/chromium";
import { chromium } from "playwright-core";

const site = path.resolve(process.env.SITE);
const truth = JSON.parse(fs.readFileSync(process.env.TRUTH));
const axe = fs.readFileSync(new URL(import.meta.resolve("axe-core/axe.min.js")), "utf8");
const TITLE = " · benchgate";

let browser, server, base;

const TYPES = { ".html": "text/html", ".css": "text/css", ".js": "text/javascript" };

before(async () => {
  const executablePath = process.env.BENCHGATE_CHROMIUM || await bundled.executablePath();
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  server = http.createServer((request, answer) => {
    const asked = decodeURIComponent(new URL(request.url, "http://x").pathname).replace(/^\/pages\//, "");
    const file = path.join(site, path.normalize("/" + (asked || "index.html")));
    if (!request.url.startsWith("/pages/") || !fs.existsSync(file) || !fs.statSync(file).isFile()) {
      answer.writeHead(404).end();
      return;
    }
    answer.writeHead(200, { "content-type": TYPES[path.extname(file)] ?? "application/octet-stream" });
    fs.createReadStream(file).pipe(answer);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  base = `http://127.0.0.1:${server.address().port}/pages/`;
});

after(async () => {
  await browser?.close();
  server?.closeAllConnections();
  server?.close();
});

const fromDisk = (file) => pathToFileURL(path.join(site, file)).href;

/** A page of the site, and everything that went wrong in it. */
async function open(url, options = {}) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const wrong = [];
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) wrong.push(message.text()); });
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("dialog", (dialog) => { wrong.push("a dialog"); dialog.dismiss(); });
  page.on("requestfailed", (request) => wrong.push(`failed: ${request.url()}`));
  page.on("request", (request) => {
    const own = request.url().startsWith(base) || request.url().startsWith(pathToFileURL(site).href) || request.url().startsWith("data:");
    if (!own) wrong.push(`request: ${request.url()}`);
  });
  await page.goto(url);
  return { page, wrong, close: () => context.close() };
}

async function shot(page, name) {
  if (process.env.SHOTS) await page.screenshot({ path: path.join(process.env.SHOTS, `${name}.png`), fullPage: false });
}

/** What the overview links, by name of the benchmark and testbed. */
async function rows(page) {
  return page.$$eval("table.benchmarks tbody tr", (rows) => rows.map((row) => ({
    name: row.querySelector("th").textContent, href: row.querySelector("a").getAttribute("href"),
    testbed: row.dataset.testbed, state: row.dataset.state,
  })));
}

const visible = (name) => name.replace(/[\u202a-\u202e]/g, "\ufffd");

async function pageOf(page, name, testbed) {
  const found = (await rows(page)).find((row) => row.name === visible(name) && row.testbed === testbed);
  assert.ok(found, `no row of ${name} on ${testbed}`);
  return found.href;
}

for (const [kind, address] of [["a disk", (file) => fromDisk(file)], ["a server", (file) => base + file]]) {
  test(`every page opens from ${kind} without an error or a request elsewhere`, { timeout: 240_000 }, async () => {
    const { page, wrong, close } = await open(address("index.html"));
    const pages = [...(await rows(page)).map((row) => row.href), "compare.html"];
    assert.ok(pages.length > 20);
    for (const file of pages) {
      await page.goto(address(file));
      assert.ok((await page.title()).endsWith(TITLE), file);
      await page.waitForSelector(file === "compare.html" ? "#comparison tbody tr" : ".zoom button", { timeout: 10_000 });
    }
    assert.deepEqual(wrong, []);
    await close();
  });
}

test("the overview transfers less than 5 MB", async (t) => {
  const { page, close } = await open(base + "index.html");
  const { bytes, milliseconds } = await page.evaluate(() => {
    const entries = ["navigation", "resource"].flatMap((type) => performance.getEntriesByType(type));
    return { bytes: entries.reduce((sum, entry) => sum + entry.encodedBodySize, 0), milliseconds: entries[0].loadEventEnd };
  });
  assert.ok(bytes > 10_000 && bytes < 5_000_000, `${bytes}`);
  t.diagnostic(`the overview: ${bytes} bytes, loaded in ${Math.round(milliseconds)} ms`);
  await close();
});

test("planted steps are found in the tree, at their night and with their size", async () => {
  const { page, close } = await open(fromDisk("index.html"));
  const steps = truth.planted.filter(({ kind }) => kind === "step");
  assert.ok(steps.length >= 4);
  for (const step of steps) {
    for (const name of step.benchmarks) {
      await page.goto(fromDisk("index.html"));
      await page.goto(fromDisk(await pageOf(page, name, step.testbed)));
      const labels = await page.$$eval("svg.chart a.change", (links) => links.map((link) => link.getAttribute("aria-label")));
      const days = (text) => Math.abs(Date.parse(text.slice(0, 10)) - Date.parse(step.date)) / 86_400_000;
      const near = labels.filter((label) => days(label) <= 3);
      const percent = Math.abs((step.ratio - 1) * 100);
      const sized = near.filter((label) => Math.abs(Math.abs(Number(/\(([+−-])([\d.]+) %\)/.exec(label)?.[2])) - percent) < 3);
      assert.ok(sized.length === 1, `${name} ${step.date}: ${JSON.stringify(labels)}`);
      assert.ok(sized[0].includes(step.ratio > 1 ? "worse" : "better"), sized[0]);
    }
  }
  await close();
});

test("a benchmark that is slow now and then is listed since then, and only that one", async () => {
  const { page, close } = await open(fromDisk("index.html"));
  const unstable = (await rows(page)).filter((row) => row.state === "unstable").map((row) => [row.name, row.testbed]);
  assert.deepEqual(unstable, [[visible(truth.unstable.benchmark), "cpu"]]);
  const listed = await page.$$eval("#unstable li", (entries) => entries.map((entry) => entry.textContent));
  assert.equal(listed.length, 1);
  const since = Date.parse(/since (\d{4}-\d\d-\d\d)/.exec(listed[0])[1]);
  assert.ok(Math.abs(since - Date.parse(truth.unstable.since)) <= 14 * 86_400_000, listed[0]);
  await page.goto(fromDisk(await pageOf(page, truth.unstable.benchmark, "cpu")));
  assert.match(await page.textContent("p.unstable"), /^Unstable: .+ in \d+ of \d+ sessions/);
  await close();
});

test("a change names its commits and links them", async () => {
  const { page, close } = await open(fromDisk("index.html"));
  const step = truth.planted[0];
  await page.goto(fromDisk(await pageOf(page, step.benchmarks[0], step.testbed)));
  const links = await page.$$eval(".changes li a", (links) => links.map((link) => link.href));
  const commit = (night) => (0x5eed00000000 + night).toString(16).padStart(40, "0");
  const wanted = links.find((link) => link.startsWith("https://github.com/o/r/compare/"));
  assert.ok(wanted, links.join());
  const [from, to] = wanted.split("/compare/")[1].split("...");
  assert.ok(from < commit(step.night) && to >= commit(step.night), wanted);
  await close();
});

test("acceptances, toolchain, machine and quarantine are on the page of a benchmark", async () => {
  const { page, close } = await open(fromDisk("index.html"));
  await page.goto(fromDisk(await pageOf(page, "model-006/target/main", "cpu")));
  const events = await page.$$eval(".events li", (entries) => entries.map((entry) => [entry.className, entry.textContent]));
  for (const kind of ["toolchain", "machine"]) assert.ok(events.some(([name]) => name === kind), kind);
  assert.notEqual(await page.getAttribute("path.held", "d"), "");
  assert.ok(await page.$$eval("svg.strip", (strips) => strips.length) >= 1);
  await close();
});

test("what stopped reporting is listed with since when, and a replaced machine says so", async () => {
  const { page, close } = await open(fromDisk("index.html"));
  const silent = await page.$$eval(".silent li", (entries) => entries.map((entry) => [entry.className, entry.textContent]));
  const alarms = silent.filter(([kind]) => kind === "alarm");
  assert.equal(alarms.length, 1, JSON.stringify(silent));
  assert.ok(alarms[0][1].includes(truth.dropped.benchmark) && alarms[0][1].includes(truth.dropped.since));
  assert.ok(silent.some(([kind, text]) => kind === "explained" && text.includes("chip A") && text.includes("gpu-new-chip")));
  await close();
});

test("what is slower now stands first, with its machine, and is not listed again below what else moved this week", async () => {
  const { page, close } = await open(fromDisk("index.html"));
  const recent = truth.planted.find(({ night }) => night >= 725);
  assert.deepEqual(await page.$$eval("section:not(#open) > .cause", (causes) => causes.map((cause) => cause.textContent)), []);
  assert.match(await page.textContent("main"), /Also moved this weekNo other change of level/);
  assert.equal(await page.textContent("h2"), "Open slowdowns");
  const slower = await page.$$eval("#open .cause", (causes) => causes.map((cause) => cause.textContent));
  assert.ok(slower.some((text) => text.includes(visible(recent.benchmarks[0])) && text.includes(" on ")), slower.join("\n"));
  await close();
});

test("every link of every page leads somewhere", { timeout: 120_000 }, async () => {
  const { page, close } = await open(fromDisk("index.html"));
  const files = ["index.html", "compare.html", ...(await rows(page)).map((row) => row.href)];
  const missing = [];
  for (const file of files) {
    await page.goto(fromDisk(file));
    const links = await page.$$eval("a[href]", (links) => links.map((link) => [link.getAttribute("href"), link.href ?? ""]));
    for (const [href] of links) {
      if (href.startsWith("https://github.com/")) continue;
      if (href.startsWith("#")) {
        if (!await page.$(`[id="${href.slice(1)}"]`)) missing.push(`${file}: ${href}`);
      } else if (!fs.existsSync(path.join(site, path.dirname(file), href))) {
        missing.push(`${file}: ${href}`);
      }
    }
  }
  assert.deepEqual(missing, []);
  await close();
});

test("hostile names are text", async () => {
  const { page, wrong, close } = await open(base + "index.html");
  assert.equal(await page.title(), "Overview" + TITLE);
  const names = (await rows(page)).map((row) => row.name);
  for (const name of truth.planted.flatMap(({ benchmarks }) => benchmarks)) assert.ok(names.includes(visible(name)), name);
  assert.equal(await page.$$eval("table.benchmarks img, table.benchmarks script, table.benchmarks style", (found) => found.length), 0);
  assert.ok(!(await page.textContent("body")).includes("\u202e"));
  assert.deepEqual(wrong, []);
  await close();
});

for (const colorScheme of ["light", "dark"]) {
  for (const [size, viewport] of [["wide", { width: 1280, height: 900 }], ["phone", { width: 390, height: 844 }]]) {
    test(`axe finds nothing serious: ${colorScheme}, ${size}`, { timeout: 120_000 }, async () => {
      const { page, wrong, close } = await open(fromDisk("index.html"), { colorScheme, viewport });
      const step = truth.planted[0];
      const files = { overview: "index.html", compare: "compare.html", benchmark: await pageOf(page, step.benchmarks[0], step.testbed) };
      for (const [name, file] of Object.entries(files)) {
        await page.goto(fromDisk(file));
        if (name === "compare") await page.waitForSelector("#comparison tbody tr");
        await shot(page, `${name}-${colorScheme}-${size}`);
        const broad = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
        assert.ok(!broad, `${name} is wider than the screen`);
        await page.evaluate(axe);
        const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"], preload: false }));
        const serious = violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
        assert.deepEqual(serious.map(({ id, nodes }) => [id, nodes[0].html, nodes[0].failureSummary]), [], name);
      }
      assert.deepEqual(wrong, []);
      await close();
    });
  }
}

test("search and filters show what fits, also from the address", async () => {
  const { page, close } = await open(fromDisk("index.html"));
  const shown = () => page.$$eval("table.benchmarks tbody tr", (rows) => rows.filter((row) => !row.hidden).length);
  const whole = await shown();
  await page.keyboard.press("/");
  await page.keyboard.type("model-006");
  assert.equal(await shown(), 3);
  await page.selectOption("#testbed", "cpu");
  assert.equal(await shown(), 1);
  const address = page.url();
  await page.goto("about:blank");
  await page.goto(address);
  assert.equal(await shown(), 1);
  await page.fill("#search", "");
  await page.selectOption("#testbed", "");
  assert.equal(await shown(), whole);
  await page.selectOption("#state", "missing");
  assert.equal(await shown(), 13);
  await close();
});

test("the theme can be chosen and is kept", async () => {
  const { page, close } = await open(base + "index.html", { colorScheme: "light" });
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.equal(await ground(), "rgb(255, 255, 255)");
  await page.getByRole("button", { name: "Dark theme" }).press("Enter");
  assert.equal(await ground(), "rgb(13, 17, 23)");
  await page.goto(base + "compare.html");
  assert.equal(await ground(), "rgb(13, 17, 23)");
  await close();
});

test("a trend is zoomed and read by keyboard", async () => {
  const { page, close } = await open(fromDisk("index.html"));
  await page.goto(fromDisk(await pageOf(page, "model-006/target/main", "cpu")));
  const view = () => page.$eval("svg.window", (window) => window.getAttribute("viewBox"));
  const before = await view();
  await page.getByRole("button", { name: "90 days" }).first().press("Enter");
  assert.notEqual(await view(), before);
  const axis = await page.$$eval("svg.chart g.x text", (labels) => labels.map((label) => label.textContent));
  assert.ok(Date.parse(axis[0]) > Date.parse(truth.newest) - 95 * 86_400_000, axis.join());
  await page.getByRole("button", { name: "Previous session" }).first().press("Enter");
  const said = await page.textContent(".zoom output");
  assert.match(said, /^\d{4}-\d\d-\d\d: [\d.]+ ms \([\d.]+ ms – [\d.]+ ms\), commit [0-9a-f]{12}/);
  await close();
});

test("two sessions are compared", async () => {
  const { page, wrong, close } = await open(fromDisk("compare.html"));
  await page.waitForSelector("#comparison tbody tr");
  await page.selectOption("#timeline", { label: "zoo on cpu" });
  const step = truth.planted.find(({ night }) => night >= 725);
  await page.waitForFunction(() => document.querySelectorAll("#base option").length > 700);
  const options = await page.$$eval("#base option", (options) => options.map((option) => [option.value, option.textContent]));
  const before = options.find(([, text]) => Date.parse(text.slice(0, 10)) < Date.parse(step.date));
  await page.selectOption("#base", before[0]);
  await page.waitForFunction((name) => document.querySelector("#comparison tbody tr th").textContent === name, visible(step.benchmarks[0]));
  const first = await page.$$eval("#comparison tbody tr:first-child > *", (cells) => cells.map((cell) => cell.textContent));
  assert.match(first[3], /^\+\d/);
  assert.deepEqual(wrong, []);
  await close();
});

test("all of it can be read without a script", async () => {
  const { page, close } = await open(fromDisk("index.html"), { javaScriptEnabled: false });
  assert.equal(await page.locator("table.benchmarks tbody tr").count(), 36);
  assert.equal(await page.locator(".filters").isVisible(), false);
  await page.locator("table.benchmarks tbody tr a").first().click();
  assert.ok(await page.locator("svg.chart").first().isVisible());
  assert.ok(await page.locator(".changes li, .note").count() > 0);
  await close();
});
