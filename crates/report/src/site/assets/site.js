// What a page gains from a script: a theme of one's choice, a search, a window into the trend, and comparing. All of
// it reads what the page already says; nothing is fetched from anywhere but the site's own folder.
"use strict";

const benchgate = (() => {
  const $ = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  function element(name, properties = {}, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }

  // Theme. A page from a disk may have no storage.
  const stored = {
    get() { try { return localStorage.getItem("benchgate-theme"); } catch { return null; } },
    set(theme) { try { localStorage.setItem("benchgate-theme", theme); } catch { /* it holds for this page */ } },
  };
  const chosen = stored.get();
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;

  function isDark() {
    const theme = document.documentElement.dataset.theme;
    return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  function addThemeButton() {
    const button = element("button", { type: "button" });
    const show = () => { button.textContent = isDark() ? "Light theme" : "Dark theme"; };
    button.addEventListener("click", () => {
      document.documentElement.dataset.theme = isDark() ? "light" : "dark";
      stored.set(document.documentElement.dataset.theme);
      show();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
    show();
    $("header").append(button);
  }

  // Overview: search and filters, kept in the address so that a view can be shared.
  function addFilters() {
    const box = $(".filters");
    if (!box) return;
    box.hidden = false;
    const rows = all("table.benchmarks tbody tr");
    const texts = rows.map((row) => $("th", row).textContent.toLowerCase());
    const fields = ["search", "suite", "testbed", "state"];
    const field = (name) => document.getElementById(name);
    const given = new URLSearchParams(location.hash.slice(1));
    for (const name of fields) if (given.has(name)) field(name).value = given.get(name);
    function apply() {
      const words = field("search").value.toLowerCase().split(/\s+/).filter(Boolean);
      const fits = (row) => ["suite", "testbed", "state"].every((name) =>
        !field(name).value || row.dataset[name] === field(name).value);
      let count = 0;
      rows.forEach((row, at) => {
        const shown = fits(row) && words.every((word) => texts[at].includes(word));
        row.hidden = !shown;
        count += shown;
      });
      field("matches").textContent = `${count} of ${rows.length}`;
      const kept = fields.filter((name) => field(name).value).map((name) => [name, field(name).value]);
      const hash = new URLSearchParams(kept).toString();
      try { history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search); } catch { /* file:// */ }
    }
    box.addEventListener("input", apply);
    document.addEventListener("keydown", (event) => {
      if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) {
        event.preventDefault();
        field("search").focus();
      }
    });
    apply();
  }

  // Numbers as the pages write them.
  function significant(value, size) {
    return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
  }
  function percent(change) {
    const size = Math.abs(change);
    const text = size.toFixed(size < 0.1 ? 2 : 1);
    const sign = Number(text) === 0 ? "" : change > 0 ? "+" : "−";
    return `${sign}${text} %`;
  }
  function quantity(value, unit, size = Math.abs(value)) {
    const scales = {
      ns: [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]],
      bytes: [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]],
    }[unit] ?? [[1, unit === "count" ? "" : unit]];
    const [divisor, suffix] = scales.find(([least]) => size >= least) ?? scales.at(-1);
    const whole = suffix === "" && Number.isInteger(value);
    return `${whole ? value : significant(value / divisor, size / divisor)} ${suffix}`.trim();
  }
  const date = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 10);

  // A window into a trend: the drawing stays, its inner viewBox moves, and the axes get other labels.
  function addWindow(chart) {
    const data = chart.nextElementSibling;
    const inner = $("svg.window", chart);
    if (!data || data.type !== "application/json" || !inner) return;
    const { t, v, l, h, c, q } = JSON.parse(data.textContent);
    if (t.length < 2) return;
    const number = (name) => Number(chart.dataset[name]);
    const [from, span, low, high, unit] = [number("from"), number("span"), number("low"), number("high"), chart.dataset.unit];
    const [, , width, height] = inner.getAttribute("viewBox").split(" ").map(Number);
    const [left, top] = [Number(inner.getAttribute("x")), Number(inner.getAttribute("y"))];
    const held = new Set(q);
    const x = (second) => (second - from) / span * width * 0.99 + width * 0.005;
    const second = (at) => from + (at - width * 0.005) / (width * 0.99) * span;
    const y = (value) => (high - value) / (high - low) * height;
    const svg = (name, attributes) => {
      const made = document.createElementNS("http://www.w3.org/2000/svg", name);
      for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
      return made;
    };
    const cursor = svg("line", { class: "cursor", y1: 0, y2: height, visibility: "hidden" });
    inner.append(cursor);
    let view = [0, width];
    let selected = t.length - 1;

    function look(start, end) {
      const least = width * Math.min(1, 5 * 86400 / span);
      const size = Math.min(width, Math.max(least, end - start));
      start = Math.min(Math.max(0, start), width - size);
      view = [start, size];
      // As high as what is in sight.
      const inSight = v.map((value, at) => [x(t[at]), value]).filter(([at]) => at >= start && at <= start + size).map(([, value]) => value);
      let [bottom, ceiling] = size >= width || !inSight.length ? [low, high] : [Math.min(...inSight), Math.max(...inSight)];
      const pad = size >= width ? 0 : Math.max((ceiling - bottom) * 0.08, Math.abs(ceiling) * 0.01);
      [bottom, ceiling] = [bottom - pad, ceiling + pad];
      inner.setAttribute("viewBox", `${start} ${y(ceiling)} ${size} ${y(bottom) - y(ceiling)}`);
      for (const line of all("line", inner)) { line.setAttribute("y1", y(ceiling)); line.setAttribute("y2", y(bottom)); }
      for (const box of all("rect", inner)) { box.setAttribute("y", y(ceiling)); box.setAttribute("height", y(bottom) - y(ceiling)); }
      // Marks of points beyond the edge hold for the whole trend.
      const outside = $("path.outside", inner);
      if (outside) outside.style.display = size >= width ? "" : "none";
      const screenX = (at) => left + (at - start) / size * width;
      const screenY = (value) => top + (ceiling - value) / (ceiling - bottom) * height;
      const xs = $("g.x", chart), ys = $("g.y", chart);
      const baseline = $("text", xs)?.getAttribute("y") ?? top + height + 18;
      const days = [0.5, 1.5, 2.5, 3.5, 4.5, 5.5].map((at) => start + at / 6 * size).map((place) => [place, date(second(place))]);
      xs.replaceChildren(...days.filter(([, day], at) => at === 0 || day !== days[at - 1][1]).map(([place, day]) => {
        const label = svg("text", { x: screenX(place), y: baseline, "text-anchor": "middle" });
        label.textContent = day;
        return label;
      }));
      const rough = (ceiling - bottom) / 4, power = 10 ** Math.floor(Math.log10(rough));
      const step = [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough);
      const labels = [];
      for (let value = Math.ceil(bottom / step) * step; value <= ceiling && labels.length < 16; value += step) {
        const label = svg("text", { x: left - 6, y: screenY(value) + 4, "text-anchor": "end" });
        label.textContent = quantity(value, unit);
        labels.push(svg("line", { class: "grid", x1: left, x2: left + width, y1: screenY(value), y2: screenY(value) }), label);
      }
      ys.replaceChildren(...labels);
    }

    const says = element("output");
    function point(at) {
      selected = Math.min(Math.max(0, at), t.length - 1);
      const place = x(t[selected]);
      cursor.setAttribute("x1", place);
      cursor.setAttribute("x2", place);
      cursor.setAttribute("visibility", "visible");
      const interval = l[selected] < h[selected] ? ` (${quantity(l[selected], unit)} – ${quantity(h[selected], unit)})` : "";
      const excluded = held.has(selected) ? ", quarantined" : "";
      says.textContent = `${date(t[selected])}: ${quantity(v[selected], unit)}${interval}, commit ${c[selected] ?? "unknown"}${excluded}`;
      if (place < view[0] || place > view[0] + view[1]) look(place - view[1] / 2, place + view[1] / 2);
    }
    const nearest = (event) => {
      const box = chart.getBoundingClientRect();
      const at = (event.clientX - box.left) / box.width * chart.viewBox.baseVal.width;
      const wanted = second(view[0] + (at - left) / width * view[1]);
      return t.reduce((best, second, index) => Math.abs(second - wanted) < Math.abs(t[best] - wanted) ? index : best, 0);
    };
    chart.addEventListener("pointermove", (event) => point(nearest(event)));

    const box = element("div", { className: "zoom", role: "group" });
    box.setAttribute("aria-label", `Window of ${chart.getAttribute("aria-label")}`);
    const buttons = [["All", Infinity], ["1 year", 365], ["90 days", 90], ["30 days", 30]].map(([name, days]) => {
      const button = element("button", { type: "button", textContent: name });
      button.addEventListener("click", () => {
        for (const other of buttons) other.setAttribute("aria-pressed", other === button);
        look(days === Infinity ? 0 : x(t.at(-1) - days * 86400), width);
      });
      button.setAttribute("aria-pressed", days === Infinity);
      return button;
    });
    const move = (name, label, work) => {
      const button = element("button", { type: "button", textContent: name, ariaLabel: label });
      button.addEventListener("click", work);
      return button;
    };
    const middle = () => view[0] + view[1] / 2;
    box.append(...buttons,
      move("◀", "Earlier", () => look(view[0] - view[1] / 2, view[0] + view[1] / 2)),
      move("▶", "Later", () => look(view[0] + view[1] / 2, view[0] + view[1] * 1.5)),
      move("+", "Zoom in", () => look(middle() - view[1] / 4, middle() + view[1] / 4)),
      move("−", "Zoom out", () => look(middle() - view[1], middle() + view[1])),
      move("‹", "Previous session", () => point(selected - 1)),
      move("›", "Next session", () => point(selected + 1)), says);
    data.after(box);
    chart.addEventListener("dblclick", (event) => {
      const place = x(t[nearest(event)]);
      look(place - view[1] / 4, place + view[1] / 4);
    });
  }

  // Comparing: a session is a script, because a page from a disk may not fetch data.
  const waiting = new Map();
  function loaded(path, content) { waiting.get(path)?.(content); }
  const cache = new Map();
  function load(path) {
    if (!cache.has(path)) {
      cache.set(path, new Promise((resolve, reject) => {
        waiting.set(path, resolve);
        const script = element("script", { src: document.body.dataset.root + path });
        script.addEventListener("error", () => reject(new Error(`${path} can't be loaded`)));
        document.head.append(script);
      }));
    }
    return cache.get(path);
  }

  function addComparison() {
    const data = document.getElementById("timelines");
    if (!data) return;
    $(".chooser").hidden = false;
    $(".noscript").hidden = true;
    const timelines = JSON.parse(data.textContent);
    const field = (name) => document.getElementById(name);
    const status = field("compared"), table = field("comparison");
    const options = (select, entries) => select.replaceChildren(...entries.map(([value, text]) => element("option", { value, textContent: text })));
    options(field("timeline"), timelines.map(({ suite, testbed }, at) => [at, `${suite} on ${testbed}`]));
    let index;
    // The address names what is compared, so that it can be shared.
    const given = new URLSearchParams(location.hash.slice(1));
    const from = (name, select) => {
      const wanted = given.get(name);
      given.delete(name);
      if (wanted && [...select.options].some((option) => option.value === wanted)) select.value = wanted;
    };
    const wanted = timelines.findIndex(({ folder }) => folder === given.get("of"));
    if (wanted >= 0) field("timeline").value = wanted;
    async function choose() {
      const timeline = timelines[Number(field("timeline").value)];
      if (!timeline) { status.textContent = "There is no session yet."; return; }
      index = await load(`${timeline.folder}/index.js`);
      const entries = index.sessions.map(([file, began, commit, held]) => [file, `${began} ${commit ?? "unknown"}${held ? " (quarantined)" : ""}`]).reverse();
      options(field("base"), entries);
      options(field("head"), entries);
      field("base").selectedIndex = Math.min(7, entries.length - 1);
      from("base", field("base"));
      from("head", field("head"));
      await compare();
    }
    async function compare() {
      const timeline = timelines[Number(field("timeline").value)];
      const [base, head] = await Promise.all(["base", "head"].map((side) => load(`${timeline.folder}/${field(side).value}.js`)));
      const metrics = [...new Set([...base, ...head].map(([, metric]) => metric))].sort((a, b) => (b === "latency") - (a === "latency") || (a < b ? -1 : 1));
      const before = field("metric").value;
      options(field("metric"), metrics.map((metric) => [metric, metric]));
      if (metrics.includes(before)) field("metric").value = before;
      from("metric", field("metric"));
      const address = { of: timeline.folder, base: field("base").value, head: field("head").value, metric: field("metric").value };
      try { history.replaceState(null, "", `#${new URLSearchParams(address)}`); } catch { /* file:// */ }
      show(base, head, field("metric").value);
    }
    function show(base, head, metric) {
      const of = (rows) => new Map(rows.filter(([, name]) => name === metric).map((row) => [row[0], row]));
      const [old, now] = [of(base), of(head)];
      const names = [...new Set([...old.keys(), ...now.keys()])];
      const worse = (at) => old.has(at) && now.has(at) ? (now.get(at)[4] / old.get(at)[4]) ** now.get(at)[3] : 0;
      const apart = (a, b) => a && b && (a[6] < b[5] || b[6] < a[5]);
      names.sort((a, b) => worse(b) - worse(a));
      const counts = { slower: 0, faster: 0, unclear: 0, missing: 0 };
      $("tbody", table).replaceChildren(...names.map((at) => {
        const [name, page] = index.benchmarks[at];
        const [a, b] = [old.get(at), now.get(at)];
        const cell = (text, className = "n") => element("td", { className, textContent: text });
        // One unit for both sides of a row.
        const size = Math.max(Math.abs(a?.[4] ?? 0), Math.abs(b?.[4] ?? 0));
        const value = (row) => cell(row ? quantity(row[4], row[2], size) : "not measured");
        const ratio = a && b ? b[4] / a[4] : NaN;
        const result = !a || !b ? "missing" : !apart(a, b) ? "unclear" : worse(at) > 1 ? "slower" : "faster";
        counts[result] += 1;
        const said = { slower: "worse", faster: "better", unclear: "intervals overlap", missing: "on one side only" }[result];
        const change = Number.isFinite(ratio) ? percent((ratio - 1) * 100) : "";
        const direction = { slower: "n worse", faster: "n better" }[result] ?? "n";
        const link = element("a", { href: page }, element("bdi", { textContent: name }));
        return element("tr", {}, element("th", { scope: "row" }, link), value(a), value(b), cell(change, direction), cell(said, ""));
      }));
      table.hidden = false;
      const worst = names[0] !== undefined && worse(names[0]) > 1 && counts.slower > 0 ? `, at worst +${((worse(names[0]) - 1) * 100).toFixed(1)} %` : "";
      field("verdict").textContent = `${counts.slower} of ${names.length} worse${worst}; ${counts.faster} better, ${counts.unclear} unclear`
        + (counts.missing ? `, ${counts.missing} on one side only` : "");
      field("verdict").className = counts.slower ? "worse" : "";
      field("verdict").hidden = false;
      status.textContent = `${names.length} ${names.length === 1 ? "benchmark" : "benchmarks"}, the worst change first`;
    }
    const failed = (error) => { status.textContent = `Failed: ${error.message}`; };
    field("timeline").addEventListener("change", () => choose().catch(failed));
    for (const name of ["base", "head", "metric"]) field(name).addEventListener("change", () => compare().catch(failed));
    choose().catch(failed);
  }

  document.addEventListener("DOMContentLoaded", () => {
    addThemeButton();
    addFilters();
    all("svg.chart:not(.strip)").forEach(addWindow);
    addComparison();
  });
  return { loaded };
})();
