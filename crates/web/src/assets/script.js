// Live rows, copy and keys. Pages work without this script.
const root = document.documentElement, body = document.body;
root.classList.add("js");
const policy = window.trustedTypes?.createPolicy("tarsy", { createHTML: (html) => html }) ?? { createHTML: (html) => html };
const $ = (id) => document.getElementById(id);
const rows = () => $("rows");

// Elements of this server, whose texts it has escaped.
function parse(html) {
  const template = document.createElement("template");
  template.innerHTML = policy.createHTML(html);
  return template.content;
}

// An element with an id that the page has replaces that one; any other row is appended. Returns how many were.
function apply(html) {
  let added = 0;
  for (const element of [...parse(html).children]) {
    const old = element.id && $(element.id);
    // A second agent has begun: from now on the rows name theirs.
    if (element.querySelector(".ag")) rows()?.classList.add("multi");
    if (!old) {
      if (element.matches("li")) rows()?.append(element);
      if (element.matches("li:not(.live)")) added += 1;
      continue;
    }
    const open = old.querySelector("details")?.open;
    old.replaceWith(element);
    const details = open && element.querySelector("details");
    if (details) details.open = true;
  }
  return added;
}

// ---- the live stream
let source = null, last = Number(rows()?.dataset.last ?? 0), since = 0, over = !body.dataset.live;
let deltas = new Map(), frame = 0, unread = 0, reading = 0, turn = Promise.resolve();
const isQueued = () => !!document.querySelector("#head .st.queued");

function net(state, word) {
  const element = $("net");
  element.className = state ? `net ${state}` : "net";
  element.lastElementChild.textContent = word;
}

const atEnd = () => (rows()?.getBoundingClientRect().bottom ?? 0) < innerHeight + 100;
const toEnd = () => rows()?.lastElementChild?.scrollIntoView({ block: "end" });

// A reader at the end stays there; for any other the new rows are counted.
function changed(before, added) {
  if (before && scrollY > 0) toEnd();
  unread = atEnd() ? 0 : unread + added;
  const note = document.querySelector(".new");
  if (!note) return;
  note.hidden = !unread;
  note.firstChild.textContent = `${unread} new row${unread === 1 ? "" : "s"} ↓`;
}
addEventListener("scroll", () => { if (unread && atEnd()) changed(false, 0); }, { passive: true });

function connect() {
  if (over || source || document.hidden) return;
  source = new EventSource(`${body.dataset.live}?after=${last}`);
  source.addEventListener("open", () => { since = 0; $("banner")?.replaceChildren(); });
  source.addEventListener("net", ({ data }) => net(data === "live" ? "on" : "off", data));
  source.addEventListener("rows", (message) => {
    const before = atEnd();
    deltas.clear();
    document.querySelectorAll("#rows > .live").forEach((row) => row.remove());
    const added = apply(message.data);
    last = Number(message.lastEventId);
    rows().dataset.last = last;
    changed(before, added);
    // Head and drawing name the owners.
    if (isQueued() && !reading || message.data.includes('class="r resume')) refresh();
  });
  source.addEventListener("delta", (message) => {
    deltas.set(/id="([\w-]+)"/.exec(message.data)?.[1], message.data);
    frame ||= requestAnimationFrame(() => { frame = 0; const before = atEnd(); deltas.forEach((html) => apply(html)); deltas.clear(); changed(before, 0); });
  });
  source.addEventListener("end", () => { close(); refresh(); });
  source.addEventListener("error", lost);
}

function close() { source?.close(); source = null; }

function lost() {
  if (over) return;
  since ||= Date.now();
  net("off", "not connected");
  const text = `Not connected since ${new Date(since).toTimeString().slice(0, 8)}. The rows are complete up to number ${last}. `;
  const again = document.createElement("a");
  again.href = location.href;
  again.textContent = "Try now";
  $("banner")?.replaceChildren(Object.assign(document.createElement("p"), { className: "banner", textContent: text }));
  $("banner")?.firstChild.append(again);
  // A stream that the browser has given up is opened again with the number of the last row.
  if (source?.readyState === EventSource.CLOSED) { close(); setTimeout(() => refresh().then(connect), 2000); }
}

// The page as it is for a reader who opens it now: after the queue, after a takeover, and at the end.
function refresh() {
  reading += 1;
  return turn = turn.then(read, read).finally(() => { reading -= 1; });
}

async function read() {
  const answer = await fetch(location.pathname, { headers: { accept: "text/html" } }).catch(() => null);
  const page = answer?.ok ? parse(await answer.text().catch(() => "")) : null;
  if (!page?.querySelector("#head")) return;
  over = !page.querySelector("#head :is(.running, .queued)");
  if (over) { close(); net("", ""); $("banner")?.replaceChildren(); }
  document.title = page.querySelector("title").textContent;
  const parts = over ? ["head", "answer", "thread", "lanes", "beside", "rows"] : ["head", "answer", "lanes", "beside"];
  for (const id of isQueued() ? ["main"] : parts) {
    const fresh = page.querySelector(`#${id}`), old = $(id);
    if (fresh && old) old.replaceWith(fresh); else if (fresh && id === "lanes") rows().parentElement.before(fresh);
  }
  if (!source) last = Math.max(last, Number(rows()?.dataset.last ?? 0));
  times();
}
// The clock of a running investigation, from the time that the page was made with.
setInterval(() => {
  const clock = over || document.querySelector("#head [data-ms]");
  if (!clock?.dataset) return;
  clock.seen ??= performance.now();
  const s = Math.floor((+clock.dataset.ms + performance.now() - clock.seen) / 1000), m = Math.floor(s / 60);
  clock.textContent = `for ${m >= 60 ? `${Math.floor(m / 60)} h ${m % 60} min` : m ? `${m} min ${s % 60} s` : `${s} s`}`;
}, 1000);

// An alert that joins another one, or ends without a session, gets no row.
setInterval(() => { if (!over && !document.hidden && isQueued()) refresh(); }, 5000);

// A hidden tab holds no connection: a browser has six of them for all tabs of a site.
document.addEventListener("visibilitychange", () => { if (document.hidden) close(); else connect(); });
addEventListener("pagehide", close);
connect();

// ---- texts that are loaded when they are opened
async function load(element) {
  if (!element?.dataset.load) return;
  const answer = await fetch(element.dataset.load).catch(() => null);
  if (answer?.ok) element.replaceWith(parse(await answer.text()));
}

async function unfold(row) {
  const answer = await fetch(`${location.pathname}/rows${row.querySelector(".open").search}`).catch(() => null);
  if (answer?.ok) row.replaceWith(parse(await answer.text()));
}

document.addEventListener("toggle", (event) => {
  if (event.target.open) event.target.querySelectorAll("[data-load]").forEach(load);
}, true);

// A number that is in a folded range.
async function target() {
  const number = Number(location.hash.slice(1));
  if (!number || $(String(number))) return;
  const range = [...document.querySelectorAll("[data-from]")].find((row) => row.dataset.from <= number && number <= +row.dataset.to);
  if (!range) return;
  await unfold(range);
  location.replace(location.hash);
}
addEventListener("hashchange", target);
target();

// ---- copy and print
async function copy(button, text) {
  const word = button.textContent;
  await navigator.clipboard.writeText(text).then(() => { button.textContent = "Copied"; }, () => { button.textContent = "Not allowed"; });
  setTimeout(() => { button.textContent = word; }, 1500);
}

const link = (number) => location.origin + location.pathname + (number ? `#${number}` : "");

document.addEventListener("click", (event) => {
  const button = event.target.closest("button, a");
  if (!button) return;
  const data = button.dataset;
  if ("copyBefore" in data) copy(button, button.previousElementSibling.textContent);
  else if ("copyLink" in data) copy(button, link(data.copyLink));
  else if ("copyText" in data) copy(button, $(data.copyText).innerText);
  else if ("print" in data) print();
  else if ("local" in data) { localStorage.local = localStorage.local === "yes" ? "" : "yes"; times(); }
  else if (button.matches(".new a")) { event.preventDefault(); toEnd(); changed(false, 0); }
  else if (button.matches(".run .open")) { event.preventDefault(); unfold(button.closest("li")); }
});

// ---- times of the reader's own zone
function times() {
  const isLocal = localStorage.local === "yes";
  for (const time of document.querySelectorAll("time[datetime]")) {
    const utc = time.dataset.utc ??= time.textContent, at = new Date(time.dateTime);
    const shown = utc.replace(/^\d+ [A-Z][a-z]+(?= )/, at.toLocaleDateString("en-GB", { day: "numeric", month: "short" }));
    time.textContent = isLocal ? shown.replace(/\d\d:\d\d(:\d\d)?/, (part) => at.toTimeString().slice(0, part.length)) : utc;
  }
  const button = document.querySelector("[data-local]");
  if (button) button.previousElementSibling.textContent = isLocal ? "local" : "UTC", button.textContent = isLocal ? "UTC" : "local";
}
times();

// ---- keys
const items = () => [...document.querySelectorAll(".rows > .r, .srs > .sr")];
let here = null, prefix = "";

function go(row) {
  if (!row) return;
  here?.classList.remove("here");
  here = row;
  row.classList.add("here");
  (row.querySelector("summary, .sr > a") ?? row.querySelector("a"))?.focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
}

function step(by, select = () => true) {
  const all = items(), at = all.indexOf(here);
  for (let next = at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by; all[next]; next += by) if (select(all[next])) return go(all[next]);
}

const cited = (row) => row.classList.contains("cited");
const keys = {
  j: () => step(1),
  k: () => step(-1),
  o: () => { const details = here?.matches(".r") && here.querySelector("details"); if (details) details.open = !details.open; else if (here?.dataset.open) location.href = here.dataset.open; else here?.querySelector("a")?.click(); },
  c: () => here?.dataset.n && navigator.clipboard.writeText(link(here.dataset.n)),
  ".": () => go(items().at(-1)),
  "[": () => step(-1, cited),
  "]": () => step(1, cited),
  "/": () => $("q").focus(),
  f: () => $("find")?.focus(),
  "?": () => { location.href = "/keys"; },
  "g s": () => { location.href = "/"; },
  "g q": () => { location.href = "/queue"; },
};

document.addEventListener("keydown", (event) => {
  if (body.dataset.keys === "off" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select")) { if (event.key === "Escape") event.target.blur(); return; }
  const key = prefix ? `${prefix} ${event.key}` : event.key;
  prefix = key === "g" ? "g" : "";
  if (keys[key]) { event.preventDefault(); keys[key](); }
});
