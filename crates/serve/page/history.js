// All runs, and two of them side by side.

import { badge, el, latencyText, moment, short, span, table, whole } from "./elements.js";
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
    ["", box],
    [t("Run"), (run) => [el("a", { href: `/?run=${encodeURIComponent(run.folder)}` }, run.title || run.folder), el("small", {}, run.folder)], "wide"],
    [t("Status"), (run) => [badge(run.status), run.why ? el("div", { class: "small bad" }, run.why) : null]],
    [t("Targets"), (run) => run.targets.map((target) => el("div", {}, target))],
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

/** Made when they are asked for, and the files that are stored. */
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

function showCompared(main, folders, { targets, experiments }) {
  document.title = `${t("Comparison")} – dyno`;
  const runOf = new Map(targets);
  const paper = el("a", { href: `/paper?${runsQuery(folders)}&lang=${lang()}` }, t("The paper of these runs"));
  const legend = folders.map((folder, place) => el("div", {}, `${"AB"[place] ?? place + 1}: `, el("a", { href: `/?run=${encodeURIComponent(folder)}` }, folder)));
  main.replaceChildren(el("h1", {}, t("Comparison")), el("div", { class: "tools" }, el("div", {}, legend), paper),
    ...experiments.map((experiment) => section(experiment, runOf)));
}

function section({ title, points }, runOf) {
  const level = (point) => [point.workers === 1 ? t("1 worker") : t("{n} workers", { n: whole(point.workers) }), point.rate_per_s === null ? null : t("{rate} tx/s offered", { rate: short(point.rate_per_s) })].filter(Boolean).join(", ");
  const columns = [
    [t("Load"), level],
    [t("Run"), (point) => "AB"[runOf.get(point.target) - 1] ?? String(runOf.get(point.target)), "keep"],
    [t("Target"), (point) => point.target, "wide"],
    [t("Repeats"), (point) => whole(point.repeats), "n"],
    ["TPS", (point) => [short(point.tps.median), el("small", { class: "soft" }, ` ${short(point.tps.min)}–${short(point.tps.max)}`)], "n"],
    ["QPS", (point) => short(point.qps.median), "n"],
    [t("mean"), (point) => latencyText(point.mean_us?.median), "n"],
    ["p95", (point) => latencyText(point.p95_us?.median), "n"],
    ["p99", (point) => latencyText(point.p99_us?.median), "n"],
    [t("errors"), (point) => el("span", { class: point.errors > 0 ? "bad" : "" }, whole(point.errors)), "n"],
  ];
  const key = (point) => [point.workers, point.rate_per_s ?? 0, runOf.get(point.target)];
  const sorted = [...points].sort((a, b) => key(a).map((part, place) => part - key(b)[place]).find((difference) => difference !== 0) ?? 0);
  return el("section", {}, el("h2", {}, title), table(null, columns, sorted));
}
