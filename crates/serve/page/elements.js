// Elements without markup: what comes from servers and suites is always text.

import { lang, t } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";

/** An element: `el("a", { href: "/" }, "text", other)`. Handlers begin with `on`. */
export function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** The same for SVG. */
export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

/** A table: columns are `[heading, cell, class]`; `cell(row)` gives text, an element or a list. */
export function table(caption, columns, rows, rowAttributes = () => ({})) {
  const head = columns.map(([heading, , kind]) => el("th", { scope: "col", class: kind }, heading));
  const line = (row) => el("tr", rowAttributes(row), columns.map(([, cell, kind], place) =>
    el(place === 0 ? "th" : "td", place === 0 ? { scope: "row", class: kind } : { class: kind }, cell(row))));
  return el("div", { class: "scroll" }, el("table", {}, caption ? el("caption", {}, caption) : null,
    el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows.map(line))));
}

/** What the server says in both languages, in that of the page. */
export const told = (text) => text?.[lang()] ?? "";

export const badge = (status) => el("span", { class: `badge ${status}` }, t(status));

/** 12,345 or 12.3 or 0.012: three digits that matter, all of those before the point. */
export function short(number) {
  if (number === null || number === undefined || !Number.isFinite(number)) return "–";
  const size = Math.abs(number);
  const digits = size >= 100 || size === 0 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
  return number.toLocaleString("en-US", { maximumFractionDigits: digits, minimumFractionDigits: size >= 1 ? digits : 0 });
}

/** A count. */
export const whole = (number) => number.toLocaleString("en-US");

/** Microseconds as `[number, unit]`. */
export function latency(us) {
  if (!(us > 0)) return ["–", ""];
  if (us < 1e3) return [short(us), "µs"];
  return us < 1e6 ? [short(us / 1e3), "ms"] : [short(us / 1e6), "s"];
}

export const latencyText = (us) => latency(us).join(" ").trim();

export const percent = (share) => `${short(share * 100)}%`;

/** Seconds as people say them. */
export function span(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  if (h > 0) return m > 0 ? t("{h} h {m} min", { h, m }) : t("{h} h", { h });
  if (m > 0 && s === 0) return t("{m} min", { m });
  return m > 0 ? t("{m} min {s} s", { m, s }) : t("{s} s", { s });
}

/** A time of day of an RFC 3339 time, in the reader's zone. */
export function clock(text) {
  const time = new Date(text);
  return Number.isNaN(time.getTime()) ? "" : time.toLocaleTimeString("en-GB");
}

/** Date and time in the reader's zone. */
export function moment(text) {
  const time = new Date(text);
  if (Number.isNaN(time.getTime())) return "";
  const two = (number) => String(number).padStart(2, "0");
  return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())} ${two(time.getHours())}:${two(time.getMinutes())}`;
}
