// Small charts: lines over the seconds of a trial, and bars.

import { el, short, span, svg } from "./elements.js";
import { t } from "./words.js";

const [WIDTH, HEIGHT] = [640, 210];
const PLACE = { left: 52, right: 12, top: 10, bottom: 24 };
/** More points than this can't be seen. */
const POINTS = 400;

/** 1, 2 or 5 times a power of ten: about `count` steps up to `size`. */
function step(size, count) {
  const raw = size / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].find((factor) => factor * power >= raw) * power;
}

/** Points so thinned that each stretch shows its `worst` (the largest) or its mean. */
function thinned(points, worst) {
  if (points.length <= POINTS) return points;
  const size = Math.ceil(points.length / POINTS);
  const result = [];
  for (let from = 0; from < points.length; from += size) {
    const part = points.slice(from, from + size);
    const values = part.map(([, y]) => y).filter((y) => y !== null);
    const mean = values.reduce((sum, y) => sum + y, 0) / values.length;
    const y = values.length === 0 ? null : worst ? Math.max(...values) : mean;
    result.push([part[0][0], y]);
  }
  return result;
}

function scaleOf(values, { log, most, count }) {
  const known = values.filter((y) => y !== null && (!log || y > 0));
  const top = Math.max(...known, log ? 1e-9 : 0);
  if (!log) {
    const high = most ?? (top > 0 ? top * 1.06 : 1);
    const gap = count ? Math.max(1, step(high, 4)) : step(high, 4);
    const ticks = [];
    for (let tick = 0; tick <= high + gap / 1e6; tick += gap) ticks.push(tick);
    return { y: (value) => value / high, ticks };
  }
  const low = 10 ** Math.floor(Math.log10(Math.min(...known, top)) + 1e-9);
  const high = Math.max(10 ** Math.ceil(Math.log10(top) - 1e-9), low * 10);
  const ticks = [];
  for (let tick = low; tick <= high * 1.001; tick *= 10) ticks.push(tick);
  const decades = Math.log10(high / low);
  return { y: (value) => Math.log10(Math.max(value, low) / low) / decades, ticks };
}

/**
 * Lines over seconds. `series` are `{ name, color, points: [[x, y or null]], worst }`; `format(y)` makes a
 * value readable; options: `unit`, `log`, `most` (the largest value possible), `count` (whole numbers only), `bars`.
 */
export function lines(title, series, format, options = {}) {
  const all = series.map((one) => ({ ...one, points: thinned(one.points, one.worst) }));
  const points = all.flatMap((one) => one.points);
  const last = (one) => one.points.findLast(([, y]) => y !== null)?.[1];
  const legend = el("ul", { class: "legend" }, all.map((one) =>
    el("li", { class: one.color }, el("i"), `${one.name} `, el("b", {}, last(one) === undefined ? "–" : format(last(one))))));
  const caption = el("figcaption", {}, el("span", {}, title, options.unit ? el("span", { class: "unit" }, `, ${options.unit}`) : null), legend);
  const told = all.map((one) => `${one.name} ${last(one) === undefined ? "–" : format(last(one))}`).join(", ");
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title}: ${told}` });
  const figure = el("figure", {}, caption, drawing);
  if (points.length === 0) {
    drawing.append(svg("text", { x: WIDTH / 2, y: HEIGHT / 2, "text-anchor": "middle" }, t("Nothing yet.")));
    return figure;
  }
  const xs = points.map(([x]) => x);
  const from = Math.min(...xs, 0);
  const to = Math.max(...xs, from + 5);
  const scale = scaleOf(points.map(([, y]) => y), options);
  const plot = { width: WIDTH - PLACE.left - PLACE.right, height: HEIGHT - PLACE.top - PLACE.bottom };
  const at = {
    x: (x) => PLACE.left + ((x - from) / (to - from)) * plot.width,
    y: (y) => PLACE.top + (1 - scale.y(y)) * plot.height,
  };
  axes(drawing, at, scale, from, to, format);
  for (const one of all) drawing.append(options.bars ? bars(one, at, to - from) : line(one, at));
  hover(figure, drawing, all, at, [from, to], format);
  return figure;
}

function axes(drawing, at, scale, from, to, format) {
  const bottom = HEIGHT - PLACE.bottom;
  if (from < 0) {
    drawing.append(
      svg("rect", { class: "warm", x: at.x(from), y: PLACE.top, width: at.x(Math.min(0, to)) - at.x(from), height: bottom - PLACE.top }),
    );
    if (at.x(0) - at.x(from) > 70) drawing.append(svg("text", { x: at.x(from) + 5, y: bottom - 6 }, t("warm-up")));
  }
  scale.ticks.forEach((tick, place) => {
    const y = PLACE.top + (1 - scale.y(tick)) * (bottom - PLACE.top);
    drawing.append(
      svg("line", { class: place === 0 ? "base" : "grid", x1: PLACE.left, x2: WIDTH - PLACE.right, y1: y, y2: y }),
      svg("text", { x: PLACE.left - 6, y: y + 4, "text-anchor": "end" }, format(tick).replace(/\.0+(?!\d)/, "")),
    );
  });
  const gap = seconds(to - from);
  for (let tick = Math.ceil(from / gap) * gap; tick <= to; tick += gap) {
    const anchor = at.x(tick) > WIDTH - 40 ? "end" : "middle";
    drawing.append(svg("text", { x: Math.min(at.x(tick), WIDTH - PLACE.right + 8), y: HEIGHT - 7, "text-anchor": anchor }, tick === 0 ? "0 s" : span0(tick)));
  }
}

/** A step of the axis of time. */
const seconds = (size) => [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400].find((gap) => size / gap <= 8) ?? 28800;

const span0 = (x) => (x < 0 ? `−${span(-x)}` : span(x));

function line(one, at) {
  let path = "";
  let isOpen = false;
  for (const [x, y] of one.points) {
    if (y === null) { isOpen = false; continue; }
    path += `${isOpen ? "L" : "M"}${at.x(x).toFixed(1)} ${at.y(y).toFixed(1)}`;
    isOpen = true;
  }
  const end = one.points.findLast(([, y]) => y !== null);
  return svg("g", { class: one.color }, svg("path", { class: "line", d: path }),
    end ? svg("circle", { class: "dot", cx: at.x(end[0]), cy: at.y(end[1]), r: 3 }) : null);
}

function bars(one, at, length) {
  const width = Math.max(1.5, (at.x(length) - at.x(0)) / Math.max(one.points.length, 10) - 1);
  const shown = one.points.filter(([, y]) => y > 0);
  return svg("g", { class: one.color }, shown.map(([x, y]) =>
    svg("rect", { class: "bar", x: at.x(x), y: at.y(y), width, height: at.y(0) - at.y(y) })));
}

/** Values under the pointer. */
function hover(figure, drawing, all, at, [from, to], format) {
  const cursor = svg("line", { class: "cursor", y1: PLACE.top, y2: HEIGHT - PLACE.bottom, visibility: "hidden" });
  const tip = el("div", { class: "tip", hidden: true });
  drawing.append(cursor);
  figure.append(tip);
  const xs = [...new Set(all.flatMap((one) => one.points.map(([x]) => x)))].sort((a, b) => a - b);
  drawing.addEventListener("pointermove", (event) => {
    const box = drawing.getBoundingClientRect();
    const wanted = from + (((event.clientX - box.left) / box.width) * WIDTH - PLACE.left) / (WIDTH - PLACE.left - PLACE.right) * (to - from);
    const x = xs.reduce((best, x) => (Math.abs(x - wanted) < Math.abs(best - wanted) ? x : best), xs[0]);
    const values = all.map((one) => [one, one.points.find(([own]) => own === x)?.[1]]).filter(([, y]) => y !== undefined && y !== null);
    cursor.setAttribute("x1", at.x(x));
    cursor.setAttribute("x2", at.x(x));
    cursor.setAttribute("visibility", "visible");
    tip.hidden = false;
    tip.replaceChildren(el("div", {}, span0(x)), ...values.map(([one, y]) => el("div", {}, `${one.name} ${format(y)}`)));
    const middle = event.clientX - figure.getBoundingClientRect().left;
    const isRight = middle > figure.clientWidth / 2;
    tip.className = "tip";
    tip.style.top = `${box.top - figure.getBoundingClientRect().top}px`;
    tip.style.left = isRight ? "" : `${middle + 14}px`;
    tip.style.right = isRight ? `${figure.clientWidth - middle + 14}px` : "";
  });
  drawing.addEventListener("pointerleave", () => {
    cursor.setAttribute("visibility", "hidden");
    tip.hidden = true;
  });
}

/** Horizontal bars: `items` are `{ name, value, color, text }`. */
export function barList(title, unit, items) {
  const [row, left, right] = [19, 74, 92];
  const height = items.length * row + 12;
  const most = Math.max(...items.map((item) => item.value), 1e-9);
  const width = WIDTH - left - right;
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": title }, items.map((item, place) => {
    const y = 6 + place * row;
    const length = Math.max(1, (item.value / most) * width);
    return svg("g", { class: item.color },
      svg("text", { x: left - 8, y: y + 13, "text-anchor": "end" }, item.name),
      svg("rect", { class: "bar", x: left, y: y + 3, width: length, height: row - 6, rx: 2 }),
      svg("text", { x: left + length + 6, y: y + 13 }, item.text ?? short(item.value)));
  }));
  return el("figure", {}, el("figcaption", {}, el("span", {}, title, el("span", { class: "unit" }, `, ${unit}`))), drawing);
}
