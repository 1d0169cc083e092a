// The dashboard: live updates, the chart and the actions. All HTML is rendered by the service.
const find = (what) => document.querySelector(what);
const csrf = find('meta[name="csrf"]').content;
const dark = matchMedia("(prefers-color-scheme: dark)");
const TIMEOUT = 10000; // ms for a response
const REFRESH_INTERVAL = 10000; // ms between refreshes without any event
const MIN_INTERVAL = { live: 400, chart: 1500 }; // ms between updates
let updated = Date.now();

async function get(url) {
  const answer = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT) });
  if (answer.status === 401 || answer.redirected) location.assign("/login");
  if (answer.status === 404) location.reload(); // erased: the reloaded page says so
  if (!answer.ok) throw new Error(`${answer.status}`);
  return answer;
}

function showConnection(ok) {
  const banner = find("#banner");
  if (!ok) banner.textContent = `Connection lost: the page shows the state of ${new Date(updated).toLocaleTimeString([], { timeZoneName: "short" })}. Reconnecting …`;
  else updated = Date.now();
  banner.hidden = ok;
}

// Limit calls to one per interval; the last request is always followed by a call.
function throttle(ms, act) {
  let scheduled = false, busy = false, again = false, last = -ms;
  const run = async () => {
    scheduled = false;
    busy = true;
    try { await act(); showConnection(true); } catch { showConnection(false); }
    busy = false;
    last = performance.now();
    if (again) { again = false; request(); }
  };
  const request = () => {
    if (busy) again = true;
    else if (!scheduled) { scheduled = true; setTimeout(run, Math.max(0, last + ms - performance.now())); }
  };
  return request;
}

// Replace a part only if it differs, so that focus and selection elsewhere survive.
function swap(old, fresh) {
  if (old.innerHTML === fresh.innerHTML) return;
  const focus = old.contains(document.activeElement) ? document.activeElement.id : "";
  old.replaceChildren(...fresh.childNodes);
  if (focus) document.getElementById(focus)?.focus({ preventScroll: true });
}

// Update the parts of this page that the fetched one also has.
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

// Subscribe to studies; the callback gets null if events may have been missed. Returns a function that unsubscribes.
function listen(names, onStatus) {
  const query = new URLSearchParams(names.map((name) => ["study", name]));
  let stream, timer, attempts = 0;
  const connect = () => {
    stream = new EventSource(`/v1/events?${query}`);
    stream.addEventListener("status", (message) => onStatus(JSON.parse(message.data)));
    stream.addEventListener("open", () => { attempts = 0; onStatus(null); });
    stream.addEventListener("error", () => {
      showConnection(false);
      // On a status other than 200, such as 429, browsers give up: reconnect with exponential backoff and jitter.
      if (stream.readyState !== EventSource.CLOSED) return;
      const wait = Math.min(1000 * 2 ** attempts++, 30000) * (0.5 + Math.random());
      timer = setTimeout(() => { connect(); onStatus(null); }, wait);
    });
  };
  const end = () => { clearTimeout(timer); stream.close(); };
  connect();
  addEventListener("pagehide", end);
  return end;
}

function watchFleet(list) {
  let names = [], changed = new Set(), end = () => {};
  const refresh = throttle(MIN_INTERVAL.live, async () => {
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
  // The page decides which studies are listed, so created and erased ones are noticed, too.
  const refreshPage = throttle(MIN_INTERVAL.live, async () => {
    swapParts(new DOMParser().parseFromString(await (await get(location.href)).text(), "text/html"));
    subscribe();
  });
  const onStatus = (status) => { if (status) { changed.add(status.name); refresh(); } else refreshPage(); };
  const subscribe = () => {
    const now = [...list.querySelectorAll("tr[data-study]")].map((row) => row.dataset.study).sort();
    if (now.join() === names.join()) return;
    names = now;
    end();
    end = names.length ? listen(names, onStatus) : () => {};
  };
  subscribe();
  setInterval(refreshPage, REFRESH_INTERVAL);
}

function watchStudy(title) {
  const name = title.dataset.study, chart = find("#chart");
  const refresh = throttle(MIN_INTERVAL.live, async () => {
    swapParts(parse(await (await get(`/studies/${name}/live`)).text()));
  });
  const draw = throttle(MIN_INTERVAL.chart, async () => {
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
  setInterval(refresh, REFRESH_INTERVAL);
  find("main").addEventListener("click", (event) => {
    const button = event.target.closest("[data-action]");
    if (button) ask(name, button.dataset, refresh);
  });
}

// Plotly sets some styles as attributes, which the content security policy forbids; as properties they are allowed.
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
  if (about.field === "correct") listFields(field, JSON.parse(about.fields));
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

// List the settings that can be changed, with their present values.
function listFields(field, fields) {
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

// Parse JSON, else keep the text. Refuse Infinity: it would be sent as null, which clears the setting.
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
  return fetch(url, { method, headers, body: JSON.stringify(body), signal: AbortSignal.timeout(TIMEOUT) });
}

if (find("#list")) watchFleet(find("#list"));
if (find("#study")) watchStudy(find("#study"));
