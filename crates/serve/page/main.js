// Which page it is, and in which language.

import { el } from "./elements.js";
import { compare, history } from "./history.js";
import { live } from "./live.js";
import { lang, other, setLang, t } from "./words.js";

const PAGES = { "/": live, "/history": history, "/compare": compare };
const NAV = [["/", "Live"], ["/history", "History"]];

const main = document.getElementById("main");
const link = document.getElementById("link");
const button = document.getElementById("lang");

/** What the page says of its connection: a text and `live`, `lost` or nothing. */
export function connection(text, kind = "") {
  link.textContent = text;
  link.className = `link ${kind}`;
}

let leave = () => {};

function open() {
  leave();
  document.documentElement.lang = lang();
  const own = location.pathname in PAGES ? location.pathname : "/";
  document.getElementById("nav").replaceChildren(...NAV.map(([path, word]) =>
    el("a", { href: path, "aria-current": path === own ? "page" : null }, t(word))));
  [button.lang, button.textContent] = other();
  connection("");
  main.replaceChildren();
  leave = PAGES[own](main, connection) ?? (() => {});
}

button.addEventListener("click", () => { setLang(button.lang); open(); });
open();
