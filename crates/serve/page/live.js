// The run that is executed: what the server tells of it, and how that is shown.

import { barList, lines } from "./charts.js";
import { badge, clock, el, latency, latencyText, percent, short, span, table, told, whole } from "./elements.js";
import { t } from "./words.js";

const EVENTS = 200;

/** Everything that is known; `trials` by number. */
const nothing = () => ({
  columns: [], run: null, progress: null, progressAt: 0, trials: new Map(), rows: [], nodes: [], queries: [], events: [],
  current: null, old: null,
});

/** Shows the run that the page's address names, or the one that is executed. */
export function live(main, connection) {
  const state = nothing();
  const wanted = new URLSearchParams(location.search).get("run");
  const source = new EventSource(wanted ? `/live?run=${encodeURIComponent(wanted)}` : "/live");
  let isDrawn = true;
  const redraw = () => {
    if (isLookedAt(main)) { setTimeout(redraw, 500); return; }
    isDrawn = true;
    show(main, state, draw);
  };
  const draw = () => {
    if (!isDrawn) return;
    isDrawn = false;
    requestAnimationFrame(redraw);
  };
  listen(source, state, draw, connection);
  // The guess of the rest goes down by the second.
  const ticking = setInterval(() => tick(state), 1000);
  return () => { source.close(); clearInterval(ticking); };
}

/** Whether someone reads off values or selects text, which new drawings would take away. */
function isLookedAt(main) {
  const selection = getSelection();
  const selects = selection !== null && !selection.isCollapsed && main.contains(selection.anchorNode);
  return selects || main.querySelector("svg.chart:hover") !== null;
}

function listen(source, state, draw, connection) {
  const on = (name, take) => source.addEventListener(name, (event) => { take(JSON.parse(event.data)); draw(); });
  const put = (trial) => state.trials.set(trial.number, trial);
  const progress = (told) => { state.progress = told; state.progressAt = Date.now(); };
  on("state", (told) => {
    Object.assign(state, nothing(), told, { trials: new Map(told.trials.map((trial) => [trial.number, trial])) });
    state.current = told.trials.at(-1)?.number ?? null;
    progress(told.progress);
    connection(t("connected"), "live");
  });
  on("run", (run) => { state.run = run; });
  on("trial", put);
  on("show", (trial) => {
    put(trial);
    Object.assign(state, { current: trial.number, rows: [], nodes: [], queries: [] });
  });
  on("rows", (rows) => { state.rows.push(...rows); });
  on("nodes", (rows) => { state.nodes.push(...rows); });
  on("queries", (queries) => { state.queries.push(...queries); });
  on("happened", (events) => { state.events = [...state.events, ...events].slice(-EVENTS); });
  on("progress", progress);
  source.addEventListener("goodbye", () => {
    source.close();
    connection(t("The server has ended; what it told last stays here. `dyno serve` shows it again."), "lost");
  });
  source.addEventListener("error", () => {
    const isGone = source.readyState === EventSource.CLOSED;
    connection(isGone
      ? t("Not connected. If the server was restarted, open the address that it printed.")
      : t("The connection is lost; trying again."), "lost");
  });
}

function show(main, state, draw) {
  const { run } = state;
  if (run === null) {
    document.title = "dyno";
    main.replaceChildren(el("div", { class: "empty" }, el("h1", {}, t("No run yet")),
      el("p", {}, t("As soon as a run begins in this folder, it is shown here."))));
    return;
  }
  document.title = `${run.status === "running" ? "● " : ""}${run.title} – dyno`;
  const scrolled = main.querySelector(".happened")?.scrollTop ?? 0;
  const focused = document.activeElement?.id;
  main.replaceChildren(head(run), progressBar(state), ...trial(state, draw), trials(state, draw), events(state));
  const list = main.querySelector(".happened");
  if (list !== null) list.scrollTop = scrolled;
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  tick(state);
}

function head(run) {
  const targets = run.targets.map((target) => [target.name, target.product, target.class].filter(Boolean).join(" · "));
  return el("div", {},
    el("h1", {}, run.title, " ", badge(run.status)),
    told(run.why) ? el("div", { class: "bad" }, told(run.why)) : null,
    el("div", { class: "soft small" }, [run.folder, ...targets, run.host && t("load made on {host}", { host: run.host })].filter(Boolean).join(" — "),
      run.targets.length > 1 ? [" — ", el("a", { id: "targets", href: `/compare?runs=${encodeURIComponent(run.folder)}` }, t("Compare the targets"))] : null));
}

function progressBar({ run, progress }) {
  if (!progress || progress.total === 0) return el("div");
  const { done, skipped, total } = progress;
  const count = skipped > 0 ? t("{done} of {total} steps done, {skipped} left out", { done, total, skipped }) : t("{done} of {total} steps done", { done, total });
  return el("div", { class: "progress" },
    el("div", { class: "words" },
      el("span", {}, count, doing(run, progress)),
      el("span", { id: "rest" })),
    el("progress", { max: total, value: done + skipped, "aria-label": count }));
}

function doing(run, { step, doing: what }) {
  if (run.status !== "running") return "";
  if (what === "prepare" || what === "cleanup") {
    const [experiment, target] = step.split("/");
    const place = { experiment, target };
    return " — " + (what === "prepare" ? t("now: data for {experiment} are loaded on {target}", place) : t("now: data of {experiment} are removed from {target}", place));
  }
  return "";
}

function tick({ progress, progressAt, run }) {
  const rest = document.getElementById("rest");
  if (rest === null || !progress) return;
  const gone = (Date.now() - progressAt) / 1000;
  if (progress.remaining_s === null || run?.status !== "running") { rest.textContent = ""; return; }
  const left = Math.max(0, progress.remaining_s - gone);
  const words = left < 1 ? t("nearly done") : progress.is_at_most ? t("at most {time} left", { time: span(left) }) : t("about {time} left", { time: span(left) });
  if (rest.textContent !== words) rest.textContent = words;
}

/** The trial that is looked at: an older one that was chosen, else the current one. */
function chosen(state) {
  if (state.old !== null) return { ...state.old, trial: state.trials.get(state.old.number) };
  return { trial: state.trials.get(state.current), rows: state.rows, nodes: state.nodes, queries: state.queries };
}

function trial(state, draw) {
  const { trial, rows, nodes, queries } = chosen(state);
  if (!trial) return [];
  const back = state.old === null ? null
    : el("button", { type: "button", id: "back", onclick: () => { state.old = null; draw(); } }, t("Back to the last trial"));
  const heading = el("div", { class: "trial" }, el("h2", {}, t("Trial {number}: {name}", { number: trial.number, name: nameOf(trial, state.run) })),
    el("span", { class: "soft" }, levelOf(trial)), badge(trial.status), back);
  const window = state.run.experiments.find((one) => one.name === trial.experiment)?.window_s;
  const parts = [heading];
  if (told(trial.why)) parts.push(el("p", { class: "bad" }, told(trial.why)));
  const at = Object.fromEntries(state.columns.map((name, place) => [name, place]));
  if (rows.length > 0) parts.push(tiles(trial, rows, at, window), charts(rows, at, nodes));
  if (queries.length > 0) parts.push(el("div", { class: "charts" }, queryBars(queries)));
  if (rows.length === 0 && queries.length === 0) {
    parts.push(el("p", { class: "soft" }, trial.status === "running" ? t("Workers are being connected.") : t("No interval was measured.")));
  }
  return parts;
}

const nameOf = (trial, run) => run.experiments.find((one) => one.name === trial.experiment)?.title ?? trial.test;

function levelOf(trial) {
  const parts = [t("on {target}", { target: trial.target })];
  if (trial.degree !== null) parts.push(t("degree {degree}", { degree: trial.degree }));
  else parts.push(trial.workers === 1 ? t("1 worker") : t("{n} workers", { n: whole(trial.workers) }));
  if (trial.rate_per_s !== null) parts.push(t("{rate} tx/s offered", { rate: short(trial.rate_per_s) }));
  if (trial.purpose === "search") parts.push(t("search"));
  if (trial.purpose === "confirm") parts.push(t("confirmation"));
  parts.push(t("repeat {n}", { n: trial.repeat }));
  return parts.join(t(", "));
}

function tiles(trial, rows, at, window) {
  const last = rows.at(-1);
  const value = (name) => last[at[name]];
  const isOver = trial.status !== "running";
  const gone = value("begins_s") + value("length_s");
  const measured = rows.filter((row) => row[at.measured] === 1);
  const errors = measured.reduce((sum, row) => sum + row[at.errors], 0);
  const tile = (word, [number, unit], kind = "") =>
    el("div", { class: `tile ${kind}` }, el("b", {}, number, unit ? el("small", {}, unit) : null), el("span", {}, word));
  const time = gone < 0 || value("measured") === 0 ? [span(Math.abs(gone)), t("to the window")] : [span(gone), window && !isOver ? t("of {window}", { window: span(window) }) : ""];
  const p = (name) => latency(isOver ? trial[name] : value(name));
  const list = [
    tile(isOver ? t("transactions per second") : t("transactions per second now"), [short(isOver ? trial.tps : value("tps")), ""]),
    tile(t("statements per second"), [short(isOver ? trial.qps : value("qps")), ""]),
    tile(t("95% are faster"), p("p95_us")),
    tile(t("99% are faster"), p("p99_us")),
    tile(t("slowest"), p("max_us")),
    tile(t("errors in the window"), [whole(isOver ? trial.errors : errors), ""], (isOver ? trial.errors : errors) > 0 ? "bad" : ""),
    tile(isOver ? t("measured") : t("in the window"), time),
  ];
  if (trial.measures.tpmc) list.unshift(tile("tpmC", [short(trial.measures.tpmc), ""]));
  return el("div", { class: "tiles" }, list);
}

function charts(rows, at, nodes) {
  // A point is drawn at the end of its interval: that is when it was known.
  const points = (name, keep = (y) => y) => rows.map((row) => [row[at.begins_s] + row[at.length_s], keep(row[at[name]])]);
  const positive = (y) => (y > 0 ? y : null);
  const one = (name, color, points, worst = false) => ({ name, color, points, worst });
  const drawn = [
    lines(t("Throughput"), [one("TPS", "c0", points("tps"))], short, { unit: t("transactions per second") }),
    lines(t("Latency"), [one("p50", "c2", points("p50_us", positive)), one("p95", "c0", points("p95_us", positive), true), one("p99", "c1", points("p99_us", positive), true), one(t("slowest"), "csoft", points("max_us", positive), true)], latencyText, { unit: t("log scale"), log: true }),
    lines(t("Load generator"), [one(t("busy"), "c0", points("host_cpu_share")), one(t("taken by the hypervisor"), "c1", points("host_steal_share"))], percent, { unit: t("share of its CPUs"), most: 1 }),
  ];
  drawn.push(lines(t("Errors and retries"), [one(t("retries"), "c4", points("retries"), true), one(t("errors"), "cbad", points("errors"), true)], whole, { unit: t("per interval"), count: true }));
  return el("div", { class: "charts" }, drawn, nodeCharts(nodes));
}

/** What nodes say: `[heading, unit, column, format, is growth since the line before, largest]`. */
const NODES = [
  ["Active sessions", "number", "active_sessions", short, false],
  ["Sessions that wait for a lock", "number", "waiting_sessions", short, false],
  ["CPU of the nodes", "share", "cpu_share", percent, false, 1],
  ["Pages read", "per second", "pages_read", short, true],
  ["Pages written", "per second", "pages_written", short, true],
  ["Log written", "MiB per second", "log_bytes", short, true],
  ["Dirty share of the memory for data", "share", "dirty_share", percent, false, 1],
  ["Replica lag", "seconds", "lag_s", short, false],
];

function nodeCharts(rows) {
  const names = [...new Set(rows.map((row) => row.node))];
  return NODES.filter(([, , column]) => rows.some((row) => (row[column] ?? null) !== null)).map(([heading, unit, column, format, isGrowth, most]) => {
    const series = names.map((name, place) => ({ name, color: `c${place % 7}`, worst: !isGrowth, points: nodePoints(rows.filter((row) => row.node === name), column, isGrowth) }));
    return lines(t(heading), series, format, { unit: t(unit), most });
  });
}

function nodePoints(rows, column, isGrowth) {
  const scale = column === "log_bytes" ? 1 / (1 << 20) : 1;
  return rows.map((row, place) => {
    const value = row[column] ?? null;
    if (value === null || !isGrowth) return [row.at_s, value];
    const length = place === 0 ? 0 : row.at_s - rows[place - 1].at_s;
    return [row.at_s, length > 0 ? (value * scale) / length : null];
  });
}

function queryBars(queries) {
  const several = new Set(queries.map((query) => query.stream)).size > 1;
  const items = queries.map((query) => ({
    name: several ? `${query.stream}: Q${query.query}` : `Q${query.query}`,
    value: query.seconds,
    color: query.outcome === "answered" ? "c0" : "cbad",
    text: `${short(query.seconds)} s${query.outcome === "answered" ? "" : ` ${t(query.outcome)}`}`,
  }));
  return barList(t("Queries that have ended"), t("seconds"), items);
}

function trials(state, draw) {
  const all = [...state.trials.values()].sort((a, b) => b.number - a.number);
  if (all.length === 0) return el("div");
  const passes = all.some((trial) => trial.pass_s !== null);
  const tpmc = all.some((trial) => trial.measures.tpmc);
  const isOver = (trial, text) => (trial.status === "running" ? "" : text);
  const open = (trial) => el("button", { type: "button", class: "plain", id: `trial-${trial.number}`, onclick: () => choose(state, trial, draw) }, String(trial.number));
  const columns = [
    [t("Trial"), open, "n"],
    [t("Experiment"), (trial) => [nameOf(trial, state.run), el("small", { class: "soft" }, ` ${trial.test}`)], "wide"],
    [t("Load"), levelOf],
    tpmc ? ["tpmC", (trial) => isOver(trial, trial.measures.tpmc ? short(trial.measures.tpmc) : "–"), "n"] : null,
    passes ? [t("Pass"), (trial) => isOver(trial, trial.pass_s === null ? "–" : `${short(trial.pass_s)} s`), "n"] : null,
    ["TPS", (trial) => isOver(trial, short(trial.tps)), "n"],
    ["QPS", (trial) => isOver(trial, short(trial.qps)), "n"],
    [t("mean"), (trial) => isOver(trial, latencyText(trial.mean_us)), "n"],
    ["p95", (trial) => isOver(trial, latencyText(trial.p95_us)), "n"],
    ["p99", (trial) => isOver(trial, latencyText(trial.p99_us)), "n"],
    [t("errors"), (trial) => isOver(trial, el("span", { class: trial.errors > 0 ? "bad" : "" }, whole(trial.errors))), "n"],
    [t("Status"), (trial) => badge(trial.status)],
  ].filter((column) => column !== null);
  const shown = chosen(state).trial?.number;
  return el("section", {}, el("h2", {}, t("Trials")),
    table(null, columns, all, (trial) => ({ class: trial.number === shown ? "shown" : null })));
}

/** Shows a trial that has ended. */
async function choose(state, trial, draw) {
  state.old = null;
  if (trial.number !== state.current) {
    const answer = await fetch(`/api/trial?run=${encodeURIComponent(state.run.folder)}&trial=${trial.number}`);
    if (answer.ok) state.old = { number: trial.number, ...(await answer.json()) };
  }
  draw();
}

function events({ events }) {
  if (events.length === 0) return el("div");
  const kinds = { error: "bad", server: "warn", reconnect: "warn" };
  const line = (event) => el("li", {},
    el("time", { datetime: event.at }, clock(event.at)),
    el("span", { class: kinds[event.kind] ?? "soft" }, t(event.kind), event.count > 1 ? ` ×${whole(event.count)}` : ""),
    el("p", {}, event.trial ? `${t("trial {n}", { n: event.trial })}${t(": ")}` : "", told(event.text)));
  return el("section", {}, el("h2", {}, t("Events")), el("ul", { class: "happened", id: "events", tabindex: "0" }, [...events].reverse().map(line)));
}
