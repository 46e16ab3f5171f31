// All runs, and two of them side by side.

import { badge, el, latencyText, moment, short, span, svg, table, told, whole } from "./elements.js";
import { lang, t } from "./words.js";

/** Asks the server; what goes wrong is shown instead of the answer. */
async function ask(main, path) {
  try {
    const answer = await fetch(path);
    if (answer.ok) return await answer.json();
    main.replaceChildren(el("p", { class: "empty bad" }, (await answer.text()) || answer.statusText));
  } catch {
    main.replaceChildren(el("p", { class: "empty bad" }, t("The server can't be reached. Is it still running?")));
  }
  return null;
}

const runsQuery = (folders) => `runs=${folders.map(encodeURIComponent).join(",")}`;

export function history(main) {
  ask(main, "/api/runs").then((runs) => { if (runs !== null) showRuns(main, runs); });
}

function showRuns(main, runs) {
  document.title = `${t("History")} – dyno`;
  if (runs.length === 0) {
    main.replaceChildren(el("div", { class: "empty" }, el("h1", {}, t("No run yet"))));
    return;
  }
  const chosen = new Set();
  const compare = el("button", { type: "button", disabled: true, onclick: () => { location.href = `/compare?${runsQuery([...chosen])}`; } });
  const tell = () => {
    compare.disabled = chosen.size !== 2;
    compare.textContent = chosen.size === 2 ? t("Compare the two") : t("Choose two runs to compare them");
  };
  const box = (run) => el("input", {
    type: "checkbox", "aria-label": t("Compare {run}", { run: run.folder }), disabled: run.trials === 0,
    onchange: (event) => { if (event.target.checked) chosen.add(run.folder); else chosen.delete(run.folder); tell(); },
  });
  tell();
  const columns = [
    [t("Choose"), box],
    [t("Run"), (run) => [el("a", { href: `/?run=${encodeURIComponent(run.folder)}` }, run.title || run.folder), el("small", {}, run.folder)], "wide"],
    [t("Status"), (run) => [badge(run.status), told(run.why) ? el("div", { class: "small bad" }, told(run.why)) : null]],
    [t("Targets"), (run) => run.targets.map((target) => el("div", {}, target)), "wide"],
    [t("Trials"), (run) => whole(run.trials), "n"],
    [t("Began"), (run) => moment(run.started_at), "keep"],
    [t("Took"), took, "keep"],
    [t("Paper"), papers, "keep"],
  ];
  main.replaceChildren(el("h1", {}, t("History")), el("div", { class: "tools" }, compare), table(null, columns, runs));
}

function took(run) {
  const seconds = (new Date(run.finished_at) - new Date(run.started_at)) / 1000;
  return run.finished_at && seconds >= 0 ? span(seconds) : "";
}

/** Papers that are made on request, and the files that are stored. */
function papers(run) {
  if (run.trials === 0) return "";
  // It would take a processor from what is measured.
  if (run.status === "running") return el("span", { class: "soft" }, t("when it has ended"));
  const query = runsQuery([run.folder]);
  const stored = run.papers.filter((name) => !name.endsWith(".html"));
  const file = (name) => [" ", el("a", { class: "small", href: `/runs/${encodeURIComponent(run.folder)}/${name}` }, name.replace("paper.", ""))];
  return [el("a", { href: `/paper?${query}&lang=en` }, "English"), " · ", el("a", { href: `/paper?${query}&lang=zh`, lang: "zh" }, "中文"),
    el("div", {}, stored.map(file))];
}

export function compare(main) {
  const folders = (new URLSearchParams(location.search).get("runs") ?? "").split(",").filter(Boolean);
  ask(main, `/api/compare?${runsQuery(folders)}`).then((compared) => { if (compared !== null) showCompared(main, folders, compared); });
}

function showCompared(main, folders, { targets, verdicts, gates, experiments }) {
  document.title = `${t("Comparison")} – dyno`;
  const runOf = new Map(targets);
  const paper = el("a", { href: `/paper?${runsQuery(folders)}&lang=${lang()}` }, t("The paper of these runs"));
  const legend = folders.map((folder, place) => el("div", {}, folders.length > 1 ? `${letter(place + 1)}: ` : "", el("a", { href: `/?run=${encodeURIComponent(folder)}` }, folder)));
  main.replaceChildren(el("h1", {}, t("Comparison")), el("div", { class: "tools" }, el("div", {}, legend), paper),
    ...judged(verdicts), ...held(gates),
    el("h2", {}, t("Load levels")), ...experiments.map((experiment) => section(experiment, runOf, folders.length)));
}

const letter = (number) => "ABCDEFGH"[number - 1] ?? String(number);

const CALLS = { faster: "good", slower: "bad", no_difference: "" };

/** The verdicts, a line for each load level and metric. */
function judged(verdicts) {
  const heading = el("h2", {}, t("Verdicts"));
  if (verdicts.length === 0) return [heading, el("p", { class: "soft" }, t("No two trials of these runs can be held against each other: they need the same experiment, load level and repeat on two targets."))];
  const lines = verdicts.flatMap((verdict) => verdict.rows.map((row, place) => ({ verdict, row, place })));
  const bounds = lines.flatMap(({ row }) => (row.interval ? [row.interval.low, row.interval.high] : [row.ratio]));
  const reach = Math.max(0.02, ...bounds.map((ratio) => Math.abs(Math.log(ratio))).filter(Number.isFinite));
  const columns = [
    [t("Experiment"), ({ verdict, place }) => (place > 0 ? "" : [verdict.title, el("small", { class: "soft" }, `${told(verdict.level)}, ${verdict.candidate} / ${verdict.baseline}${verdict.is_aa ? ` (${t("the same system twice")})` : ""}`), verdict.order === "blocks" ? el("small", { class: "warn" }, t("not interleaved: drift looks like a difference")) : null]), "wide"],
    [t("Metric"), ({ row }) => told(row.name)],
    [t("Baseline"), ({ row }) => short(row.baseline.median), "n"],
    [t("Candidate"), ({ row }) => short(row.candidate.median), "n"],
    [t("Ratio [95%]"), ({ row }) => (row.interval ? `${row.ratio.toFixed(3)} [${row.interval.low.toFixed(3)}, ${row.interval.high.toFixed(3)}]` : row.ratio.toFixed(3)), "n"],
    [t("Interval"), ({ row }) => forest(row, reach)],
    [t("Pairs"), ({ row }) => whole(row.pairs), "n"],
    [t("Verdict"), ({ row }) => el("span", { class: CALLS[row.call] ?? "warn" }, told(row.words)), "wide"],
  ];
  return [heading, table(null, columns, lines, ({ place }) => ({ class: place > 0 ? "part" : null }))];
}

/** The interval of a ratio around 1; `reach` is the largest distance shown, as a logarithm. */
function forest({ ratio, interval }, reach) {
  const x = (value) => 60 + Math.max(-1, Math.min(1, Math.log(value) / reach)) * 54;
  const low = x(interval?.low ?? ratio);
  const high = x(interval?.high ?? ratio);
  return svg("svg", { class: "forest", viewBox: "0 0 120 16", "aria-hidden": "true" },
    svg("line", { class: "base", x1: 60, x2: 60, y1: 0, y2: 16 }),
    svg("line", { class: "range", x1: low, x2: high, y1: 8, y2: 8 }),
    svg("circle", { class: "spot", cx: x(ratio), cy: 8, r: 3.2 }));
}

const RESULTS = { pass: ["kept", "good"], inconclusive: ["inconclusive", "warn"], broken: ["broken", "bad"] };

function held(gates) {
  if (gates.length === 0) return [];
  const result = ({ result, why }) => [el("span", { class: RESULTS[result][1] }, t(RESULTS[result][0])), told(why) ? el("small", {}, told(why)) : null];
  const columns = [
    [t("Gate"), (gate) => el("code", {}, gate.gate)],
    [t("Experiment"), (gate) => [gate.title, el("small", { class: "soft" }, `${told(gate.level)}, ${gate.target}`)], "wide"],
    [t("Figure"), (gate) => short(gate.value), "n"],
    [t("Result"), result, "wide"],
  ];
  return [el("h2", {}, t("Gates")), table(null, columns, gates)];
}

function section({ title, points }, runOf, runs) {
  const level = (point) => [point.workers === 1 ? t("1 worker") : t("{n} workers", { n: whole(point.workers) }), point.rate_per_s === null ? null : t("{rate} tx/s offered", { rate: short(point.rate_per_s) })].filter(Boolean).join(", ");
  const columns = [
    [t("Load"), level],
    runs > 1 ? [t("Run"), (point) => letter(runOf.get(point.target)), "keep"] : null,
    [t("Target"), (point) => point.target, "wide"],
    [t("Repeats"), (point) => whole(point.repeats), "n"],
    ["TPS", (point) => [short(point.tps.median), el("small", { class: "soft" }, ` ${short(point.tps.min)}–${short(point.tps.max)}`)], "n"],
    ["QPS", (point) => short(point.qps.median), "n"],
    [t("mean"), (point) => latencyText(point.mean_us?.median), "n"],
    ["p95", (point) => latencyText(point.p95_us?.median), "n"],
    ["p99", (point) => latencyText(point.p99_us?.median), "n"],
    [t("errors"), (point) => el("span", { class: point.errors > 0 ? "bad" : "" }, whole(point.errors)), "n"],
  ].filter((column) => column !== null);
  const key = (point) => [point.workers, point.rate_per_s ?? 0, runOf.get(point.target)];
  const sorted = [...points].sort((a, b) => key(a).map((part, place) => part - key(b)[place]).find((difference) => difference !== 0) ?? 0);
  return el("section", {}, table(title, columns, sorted));
}
