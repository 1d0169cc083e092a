// The dashboard: what changes on a page, the chart, and the actions. All text comes from pages that the service renders.
const find = (what) => document.querySelector(what);
const csrf = find('meta[name="csrf"]').content;
const dark = matchMedia("(prefers-color-scheme: dark)");
const PATIENCE = 10000; // ms that an answer may take
const BEAT = 10000; // ms after which a page looks again, although nothing was heard
const OFTEN = { live: 400, chart: 1500 }; // ms between two of a kind
let seen = Date.now();

async function get(url) {
  const answer = await fetch(url, { signal: AbortSignal.timeout(PATIENCE) });
  if (answer.status === 401 || answer.redirected) location.assign("/login");
  if (answer.status === 404) location.reload(); // it is gone: the page that says so
  if (!answer.ok) throw new Error(`${answer.status}`);
  return answer;
}

function lost(is) {
  const banner = find("#banner");
  if (is) banner.textContent = `Connection lost: the page shows the state of ${new Date(seen).toLocaleTimeString([], { timeZoneName: "short" })}. Reconnecting …`;
  else seen = Date.now();
  banner.hidden = !is;
}

// Call something at most so often, and once more after the last wish.
function often(ms, act) {
  let waits = false, busy = false, again = false, last = -ms;
  const run = async () => {
    waits = false;
    busy = true;
    try { await act(); lost(false); } catch { lost(true); }
    busy = false;
    last = performance.now();
    if (again) { again = false; wish(); }
  };
  const wish = () => {
    if (busy) again = true;
    else if (!waits) { waits = true; setTimeout(run, Math.max(0, last + ms - performance.now())); }
  };
  return wish;
}

// Only parts that differ are put in, so that focus and selection elsewhere stay.
function swap(old, fresh) {
  if (old.innerHTML === fresh.innerHTML) return;
  const focus = old.contains(document.activeElement) ? document.activeElement.id : "";
  old.replaceChildren(...fresh.childNodes);
  if (focus) document.getElementById(focus)?.focus({ preventScroll: true });
}

// The parts of a page that another one has, too.
function swapParts(fresh) {
  for (const part of fresh.querySelectorAll("[data-part]")) {
    const old = find(`main [data-part="${part.dataset.part}"]`);
    if (old) swap(old, part);
  }
}

const parse = (text, around = "div") => {
  const shell = document.createElement("template");
  shell.innerHTML = around === "table" ? `<table><tbody>${text}</tbody></table>` : text;
  return shell.content;
};

// Hear what happens to some studies; null where something may have been missed. Gives what ends it.
function listen(names, heard) {
  const query = new URLSearchParams(names.map((name) => ["study", name]));
  let stream, waits, tries = 0;
  const connect = () => {
    stream = new EventSource(`/v1/events?${query}`);
    stream.addEventListener("status", (message) => heard(JSON.parse(message.data)));
    stream.addEventListener("open", () => { tries = 0; heard(null); });
    stream.addEventListener("error", () => {
      lost(true);
      // After another answer than 200, such as 429, a browser gives up: come again, later each time, and not all at once.
      if (stream.readyState !== EventSource.CLOSED) return;
      const wait = Math.min(1000 * 2 ** tries++, 30000) * (0.5 + Math.random());
      waits = setTimeout(() => { connect(); heard(null); }, wait);
    });
  };
  const end = () => { clearTimeout(waits); stream.close(); };
  connect();
  addEventListener("pagehide", end);
  return end;
}

function watchFleet(list) {
  let names = [], changed = new Set(), end = () => {};
  const refresh = often(OFTEN.live, async () => {
    const wanted = [...changed];
    changed = new Set();
    if (!wanted.length) return;
    try {
      const text = await (await get(`/fleet/rows?${new URLSearchParams(wanted.map((name) => ["study", name]))}`)).text();
      for (const row of parse(text, "table").querySelectorAll("tr")) {
        const old = document.getElementById(row.id);
        if (old) { swap(old, row); old.dataset.needs = row.dataset.needs; }
      }
    } catch (error) { wanted.forEach((name) => changed.add(name)); throw error; }
  });
  // Which studies there are is what the page says: those that were made or erased meanwhile, too.
  const look = often(OFTEN.live, async () => {
    swapParts(new DOMParser().parseFromString(await (await get(location.href)).text(), "text/html"));
    hear();
  });
  const heard = (status) => { if (status) { changed.add(status.name); refresh(); } else look(); };
  const hear = () => {
    const now = [...list.querySelectorAll("tr[data-study]")].map((row) => row.dataset.study).sort();
    if (now.join() === names.join()) return;
    names = now;
    end();
    end = names.length ? listen(names, heard) : () => {};
  };
  hear();
  setInterval(look, BEAT);
}

function watchStudy(title) {
  const name = title.dataset.study, chart = find("#chart");
  const refresh = often(OFTEN.live, async () => {
    swapParts(parse(await (await get(`/studies/${name}/live`)).text()));
  });
  const draw = often(OFTEN.chart, async () => {
    const query = new URLSearchParams({ range: chart.dataset.range, dark: dark.matches });
    const answer = await get(`/studies/${name}/figure?${query}`);
    if (answer.status === 204) {
      globalThis.Plotly?.purge(chart);
      chart.replaceChildren(Object.assign(document.createElement("p"), { className: "quiet", textContent: "No rounds in this range yet." }));
      return;
    }
    const figure = await answer.json();
    if (!globalThis.Plotly) await load(chart.dataset.plotly);
    chart.querySelector(":scope > p")?.remove();
    figure.layout.autosize = true;
    if (innerWidth < 720) { figure.layout.margin.l = 44; figure.layout.font.size = 10; }
    await Plotly.react(chart, figure.data, figure.layout, { displayModeBar: false, responsive: true, scrollZoom: false });
    chart.dataset.drawn = (Number(chart.dataset.drawn) || 0) + 1;
  });
  dark.addEventListener("change", draw);
  draw();
  let last = -1;
  listen([name], (status) => { refresh(); if (!status || status.seq !== last) { last = status?.seq ?? last; draw(); } });
  setInterval(refresh, BEAT);
  find("main").addEventListener("click", (event) => {
    const button = event.target.closest("[data-action]");
    if (button) ask(name, button.dataset, refresh);
  });
}

// Plotly sets some style attributes as text, which the policy of these pages forbids; set as properties they are allowed.
function load(url) {
  const set = Element.prototype.setAttribute;
  Element.prototype.setAttribute = function (key, value) {
    if (key === "style") this.style.cssText = value;
    else set.call(this, key, value);
  };
  return new Promise((done, failed) => {
    const script = document.createElement("script");
    Object.assign(script, { src: url, onload: done, onerror: () => failed(new Error("no plotly.js")) });
    document.head.append(script);
  });
}

function ask(name, about, done) {
  const dialog = find("#dialog"), wrong = find("#dialog-wrong"), yes = find("#dialog-yes"), field = find("#dialog-field");
  find("#dialog-title").textContent = `${about.label}: ${name}`;
  find("#dialog-what").textContent = about.what;
  yes.textContent = about.label;
  find("#for-round").hidden = about.field !== "round";
  find("#for-correct").hidden = about.field !== "correct";
  find("#dialog-round").value = about.round;
  find("#dialog-round").required = about.field === "round";
  find("#dialog-why").value = "";
  wrong.hidden = true;
  if (about.field === "correct") offer(field, JSON.parse(about.fields));
  dialog.querySelector("form").onsubmit = async (event) => {
    if (event.submitter?.value === "no") return;
    event.preventDefault();
    yes.disabled = true;
    try {
      const answer = await send(name, about);
      if (answer.ok) { dialog.close(); done(); return; }
      wrong.textContent = (await answer.json()).detail ?? `The service refused the request (${answer.status}).`;
    } catch (error) {
      wrong.textContent = error instanceof RangeError ? error.message : "The service does not answer, so the change may be missing: reload the page and check.";
    } finally { yes.disabled = false; }
    wrong.hidden = false;
  };
  dialog.showModal();
}

// What may be corrected, as it is now.
function offer(field, fields) {
  const value = find("#dialog-value"), none = find("#dialog-none");
  const option = ([name, now]) => new Option(`${name} (now ${now === null ? "none" : written(now)})`, name);
  field.replaceChildren(...Object.entries(fields).map(option));
  none.onchange = () => { value.disabled = none.checked; };
  field.onchange = () => {
    const now = fields[field.value];
    value.value = now === null ? "" : written(now);
    none.checked = false;
    none.onchange();
  };
  field.onchange();
}

const written = (value) => (typeof value === "string" && isText(value) ? value : JSON.stringify(value));

function isText(text) {
  try { JSON.parse(text); return false; } catch { return true; }
}

// JSON, or else a text. Infinity would be sent as null, which takes a field away: that is said by ticking none.
function read(text) {
  if (!text) throw new RangeError("Enter a value, or tick Clear.");
  if (/^[-+]?(inf|infinity|nan)$/i.test(text)) throw new RangeError(`${text} is not a valid value: enter a number, or tick Clear.`);
  if (isText(text)) return Number.isFinite(Number(text)) ? Number(text) : text;
  const value = JSON.parse(text, (_, part) => {
    if (part === Infinity || part === -Infinity) throw new RangeError(`${text} is too large: enter a number up to 1e308, or tick Clear.`);
    return part;
  });
  if (value === null) throw new RangeError("null is not a valid value: enter a value, or tick Clear.");
  return value;
}

async function send(name, about) {
  const body = { why: find("#dialog-why").value }, headers = { "Content-Type": "application/json", "X-CSRF-Token": csrf };
  let url = `/v1/studies/${name}:${about.action}`, method = "POST";
  if (about.action === "undo") body.round = find("#dialog-round").valueAsNumber;
  if (about.action === "approve" || about.action === "reject") body.round = Number(about.round);
  if ("round" in body) {
    if (!Number.isInteger(body.round)) throw new RangeError("Enter a round as a whole number.");
    headers["If-Match"] = `"${about.seq}"`;
  }
  if (about.action === "correct") {
    const value = find("#dialog-none").checked ? null : read(find("#dialog-value").value.trim());
    [url, method, body.changes] = [`/v1/studies/${name}`, "PATCH", { [find("#dialog-field").value]: value }];
  }
  return fetch(url, { method, headers, body: JSON.stringify(body), signal: AbortSignal.timeout(PATIENCE) });
}

if (find("#list")) watchFleet(find("#list"));
if (find("#study")) watchStudy(find("#study"));
