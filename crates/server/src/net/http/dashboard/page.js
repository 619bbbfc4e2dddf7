// The dashboard. It asks the server for what any client may ask for, and shows it.
//
// Whatever comes from the server becomes text of an element, never markup: `make` is the only way in
// which elements come about.
"use strict";

const $ = (id) => document.getElementById(id);

/** Makes an element with properties and children. Children that are no elements become text. */
function make(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key in element && key !== "list") element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

function drawn(name, attributes = {}) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

function note(text) {
  const line = make("p", {}, text);
  $("notes").append(line);
  setTimeout(() => line.remove(), 5000);
}

// ---- How things read ------------------------------------------------------------------------------

function count(value) {
  if (!Number.isFinite(value)) return "–";
  if (value >= 1e9) return (value / 1e9).toFixed(2) + " G";
  if (value >= 1e6) return (value / 1e6).toFixed(2) + " M";
  if (value >= 1e4) return (value / 1e3).toFixed(1) + " k";
  return value >= 100 || Number.isInteger(value) ? String(Math.round(value)) : value.toFixed(1);
}

function bytes(value) {
  if (!Number.isFinite(value)) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (value >= 1024 && at + 1 < units.length) {
    value /= 1024;
    at += 1;
  }
  return (at === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)) + " " + units[at];
}

function time(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds < 1e-3) return Math.round(seconds * 1e6) + " µs";
  if (seconds < 1) return (seconds * 1e3).toFixed(seconds < 0.01 ? 1 : 0) + " ms";
  return seconds.toFixed(1) + " s";
}

function span(seconds) {
  if (seconds < 60) return Math.round(seconds) + " s";
  if (seconds < 3600) return Math.floor(seconds / 60) + " min " + Math.round(seconds % 60) + " s";
  if (seconds < 86400) return Math.floor(seconds / 3600) + " h " + Math.floor((seconds % 3600) / 60) + " min";
  return Math.floor(seconds / 86400) + " d " + Math.floor((seconds % 86400) / 3600) + " h";
}

/** A string of the server: text, or bytes that are no text. */
const isBinary = (value) => value !== null && typeof value === "object" && typeof value.base64 === "string";

/** A name in an object: one that is no text is the text of its base64 form. */
const named = (name) => (/^\{"base64":"[A-Za-z0-9+/=]*"\}$/.test(name) ? JSON.parse(name) : name);

function shown(value) {
  if (isBinary(value)) {
    return Array.from(atob(value.base64), (c) => {
      const code = c.charCodeAt(0);
      return code >= 32 && code < 127 ? c : "\\x" + code.toString(16).padStart(2, "0");
    }).join("");
  }
  return value !== null && typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** A key as the end of an address. */
function encoded(key) {
  if (!isBinary(key)) return encodeURIComponent(key);
  return Array.from(atob(key.base64), (c) => "%" + c.charCodeAt(0).toString(16).padStart(2, "0")).join("");
}

// ---- The server -----------------------------------------------------------------------------------

let password = sessionStorage.getItem("dunlin-password");
let database = Number(sessionStorage.getItem("dunlin-db") || 0);

class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

async function ask(path, options = {}) {
  const headers = { ...options.headers };
  if (password !== null) headers.Authorization = "Bearer " + password;
  // Without credentials, the browser does not open a window of its own when the password is missing.
  const answer = await fetch(path, { ...options, headers, credentials: "omit", cache: "no-store" });
  if (answer.status === 401) {
    logIn(password !== null);
    throw new Refused(401, "The password is missing.");
  }
  if (!answer.ok && answer.status !== 304) {
    const text = await answer.text();
    let reason = text;
    try {
      reason = JSON.parse(text).error || text;
    } catch {
      // It is said as it came.
    }
    throw new Refused(answer.status, reason || "status " + answer.status);
  }
  return answer;
}

const withDatabase = (path) => path + (path.includes("?") ? "&" : "?") + "db=" + database;

async function commands(list, address = "/v1/pipeline") {
  const answer = await ask(withDatabase(address), { method: "POST", body: JSON.stringify(list) });
  return (await answer.json()).map((one) => {
    if ("error" in one) throw new Refused(400, one.error);
    return one.result;
  });
}

function logIn(wrong) {
  $("login-reason").textContent = wrong ? "That is not the password." : "This server asks for its password.";
  if (!$("login").open) $("login").showModal();
  $("password").focus();
}

$("login").addEventListener("cancel", (event) => event.preventDefault());
$("login").addEventListener("submit", () => {
  password = $("password").value;
  $("password").value = "";
  sessionStorage.setItem("dunlin-password", password);
  start();
});
$("logout").addEventListener("click", () => {
  password = null;
  sessionStorage.removeItem("dunlin-password");
  location.reload();
});

// ---- Figures --------------------------------------------------------------------------------------

/** Reads the figures of /metrics: name to samples of labels and a value. */
function parseFigures(text) {
  const figures = new Map();
  for (const line of text.split("\n")) {
    if (line === "" || line[0] === "#") continue;
    const split = line.lastIndexOf(" ");
    const brace = line.indexOf("{");
    const name = line.slice(0, brace < 0 ? split : brace);
    const labels = {};
    if (brace >= 0) {
      for (const found of line.slice(brace + 1, split - 1).matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/g)) {
        labels[found[1]] = found[2].replace(/\\(.)/g, (_, c) => (c === "n" ? "\n" : c));
      }
    }
    if (!figures.has(name)) figures.set(name, []);
    figures.get(name).push({ labels, value: Number(line.slice(split + 1)) });
  }
  return figures;
}

const POINTS = 120;
let last = null;
let figures = null;
const history = { ops: [], p50: [], p99: [], memory: [], input: [], output: [] };

const figure = (name, labels = {}) => {
  const fits = (sample) => Object.entries(labels).every(([key, value]) => sample.labels[key] === value);
  return (figures?.get(name) || []).filter(fits).reduce((sum, sample) => sum + sample.value, 0);
};

/** The counts of a histogram by its bounds, all commands together. */
function latencies(of) {
  const counts = new Map();
  for (const { labels, value } of of.get("dunlin_command_duration_seconds_bucket") || []) {
    // What the page asks for itself is no news.
    if (labels.command === "http|metrics") continue;
    const bound = labels.le === "+Inf" ? Infinity : Number(labels.le);
    counts.set(bound, (counts.get(bound) || 0) + value);
  }
  return counts;
}

/** The duration that this share of what came between two counts did not exceed. */
function quantile(now, before, share) {
  const bounds = [...now.keys()].sort((a, b) => a - b);
  const seen = (bound) => now.get(bound) - (before.get(bound) || 0);
  const all = bounds.length ? seen(bounds.at(-1)) : 0;
  if (all <= 0) return NaN;
  let [low, below] = [0, 0];
  for (const bound of bounds) {
    const here = seen(bound);
    if (here >= share * all) {
      if (bound === Infinity) return low;
      return low + ((bound - low) * (share * all - below)) / Math.max(here - below, 1);
    }
    [low, below] = [bound, here];
  }
  return low;
}

function remember(series, value) {
  series.push(value);
  if (series.length > POINTS) series.shift();
}

async function collect() {
  const text = await (await ask("/metrics")).text();
  figures = parseFigures(text);
  const now = {
    at: performance.now(),
    commands: figure("dunlin_commands_processed_total"),
    input: figure("dunlin_network_input_bytes_total"),
    output: figure("dunlin_network_output_bytes_total"),
    latencies: latencies(figures),
  };
  if (last) {
    const seconds = (now.at - last.at) / 1000;
    const rate = (name) => Math.max(0, now[name] - last[name]) / seconds;
    remember(history.ops, rate("commands"));
    remember(history.input, rate("input"));
    remember(history.output, rate("output"));
    remember(history.p50, quantile(now.latencies, last.latencies, 0.5));
    remember(history.p99, quantile(now.latencies, last.latencies, 0.99));
  }
  remember(history.memory, figure("dunlin_memory_used_bytes"));
  last = now;
  const build = figures.get("dunlin_build_info")?.[0]?.labels.version || "";
  $("server").textContent =
    `${location.host} · ${build} · up ${span(figure("dunlin_uptime_seconds"))}` +
    (figure("dunlin_loading") ? " · loading" : "");
}

/** A line, or two, of the last minutes. */
function chart(title, series, format, names) {
  const all = series.flat().filter(Number.isFinite);
  const most = Math.max(...all, 1e-9) * 1.1;
  const picture = drawn("svg", { class: "chart", viewBox: "0 0 120 100", preserveAspectRatio: "none" });
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", title);
  for (const y of [0.5, 50, 99.5]) picture.append(drawn("line", { x1: 0, x2: 120, y1: y, y2: y }));
  series.forEach((values, number) => {
    let path = "";
    let pen = false;
    values.forEach((value, at) => {
      if (!Number.isFinite(value)) {
        pen = false;
        return;
      }
      const x = POINTS - values.length + at;
      path += `${pen ? "L" : "M"}${x} ${(100 - (value / most) * 100).toFixed(2)}`;
      pen = true;
    });
    const line = drawn("path", { d: path });
    if (number === 1) line.setAttribute("class", "two");
    picture.append(line);
  });
  const legend = series.map((values, number) => {
    const text = `${names[number]} ${format(values.findLast(Number.isFinite))}`;
    return make("span", { className: number === 1 ? "two" : "one" }, text);
  });
  return make(
    "section",
    { className: "card" },
    make("h2", {}, title),
    picture,
    make("div", { className: "legend" }, legend, make("span", {}, "up to " + format(most / 1.1))),
  );
}

function facts(title, pairs) {
  const list = make("dl");
  for (const [name, value, kind] of pairs) {
    list.append(make("dt", {}, name), make("dd", kind ? { className: kind } : {}, value));
  }
  return make("section", { className: "card" }, make("h2", {}, title), list);
}

function table(columns, rows, empty) {
  if (!rows.length) return make("p", { className: "empty" }, empty);
  const head = columns.map(([name, kind]) => make("th", { className: kind || "", scope: "col" }, name));
  const body = rows.map((row) =>
    make("tr", {}, row.map((cell, at) => make("td", { className: columns[at][1] || "" }, cell))),
  );
  const whole = make("table", {}, make("thead", {}, make("tr", {}, head)), make("tbody", {}, body));
  return make("div", { className: "scroll" }, whole);
}

function keyLink(key, db) {
  const open = () => {
    if (db !== undefined && db !== database) choose(db);
    browser.wanted = key;
    go("keys");
  };
  return make("button", { type: "button", className: "link", onclick: open }, shown(key));
}

// ---- Overview -------------------------------------------------------------------------------------

let persistence = {};
let replication = {};
let hot = [];

async function lookAround() {
  const [told, found] = await Promise.all([
    commands([["INFO", "persistence", "replication"]]),
    ask("/v1/hotkeys?limit=10").then((answer) => answer.json()),
  ]);
  const pairs = Object.fromEntries(
    told[0].split("\r\n").filter((line) => line.includes(":")).map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon), line.slice(colon + 1)];
    }),
  );
  persistence = pairs;
  replication = pairs;
  hot = found;
}

function overview(main) {
  const latest = (series) => series.findLast(Number.isFinite);
  const keys = (figures.get("dunlin_keys") || []).reduce((sum, sample) => sum + sample.value, 0);
  const hits = figure("dunlin_keyspace_hits_total");
  const reads = hits + figure("dunlin_keyspace_misses_total");
  const limit = figure("dunlin_memory_max_bytes");
  const tile = (value, name) => make("div", { className: "card tile" }, make("b", {}, value), make("span", {}, name));
  const tiles = make(
    "div",
    { className: "tiles" },
    tile(count(latest(history.ops)), "commands a second"),
    tile(time(latest(history.p99)), "99 % of commands within"),
    tile(bytes(figure("dunlin_memory_used_bytes")), limit ? `of ${bytes(limit)} memory` : "memory in use"),
    tile(count(keys), "keys"),
    tile(count(figure("dunlin_connected_clients")), "clients"),
    tile(reads ? ((100 * hits) / reads).toFixed(1) + " %" : "–", "of reads find their key"),
    tile(count(figure("dunlin_expired_keys_total")), "keys expired"),
    tile(count(figure("dunlin_evicted_keys_total")), "keys evicted"),
  );
  const ago = (stamp) => (Number(stamp) ? span(Date.now() / 1000 - Number(stamp)) + " ago" : "never");
  const state = (text) => [text, text === "ok" ? "good" : "bad"];
  const listeners = (figures.get("dunlin_listener_connections") || []).filter((sample) => sample.value > 0);
  const stages = ["queue", "execute", "commit", "flush"].map((stage) => {
    const seen = figure("dunlin_stage_duration_seconds_count", { stage });
    const sum = figure("dunlin_stage_duration_seconds_sum", { stage });
    return [stage, seen ? time(sum / seen) + " on average" : "–"];
  });
  const cards = make(
    "div",
    { className: "grid" },
    chart("Throughput", [history.ops], count, ["commands a second"]),
    chart("Latency", [history.p99, history.p50], time, ["99 %", "50 %"]),
    chart("Network", [history.output, history.input], (value) => bytes(value) + "/s", ["out", "in"]),
    chart("Memory", [history.memory], bytes, ["in use"]),
    facts("Persistence", [
      ["Snapshot", ...state(persistence.rdb_last_bgsave_status || "–")],
      ["Last save", ago(persistence.rdb_last_save_time)],
      ["Changes since", count(Number(persistence.rdb_changes_since_last_save))],
      ["Being saved", persistence.rdb_bgsave_in_progress === "1" ? "yes" : "no"],
      ["Append-only file", persistence.aof_enabled === "1" ? "on" : "off"],
      ...(persistence.aof_enabled === "1"
        ? [
            ["Its last write", ...state(persistence.aof_last_write_status)],
            ["Its size", bytes(Number(persistence.aof_current_size))],
          ]
        : []),
    ]),
    facts("Replication", [
      ["Role", replication.role || "–"],
      ["Replicas", replication.connected_slaves || "0"],
      ["Offset", replication.master_repl_offset || "0"],
      ["Identifier", replication.master_replid || "–"],
    ]),
    facts("A command's way", stages),
    facts("Connections", [
      ...listeners.map((sample) => [sample.labels.listener, count(sample.value)]),
      ["blocked", count(figure("dunlin_blocked_clients"))],
      ["refused so far", count(figure("dunlin_connections_rejected_total"))],
    ]),
    make(
      "section",
      { className: "card wide" },
      make("h2", {}, "Hot keys"),
      table(
        [["Key", "key"], ["Database", "number"], ["Commands a second", "number"], ["Share", "number"]],
        hot.map((one) => [
          keyLink(one.key, one.db), String(one.db), count(one.commands_per_second), (100 * one.share).toFixed(1) + " %",
        ]),
        "No key stands out: no key is named more often than chance explains.",
      ),
    ),
  );
  main.replaceChildren(tiles, cards);
}

// ---- Memory ---------------------------------------------------------------------------------------

const memory = { separator: ":", depth: 1, samples: 2000, data: null, largest: new Map() };

async function estimate() {
  const parts = new URLSearchParams({ samples: memory.samples, separator: memory.separator || ":", depth: memory.depth });
  memory.data = await (await ask(withDatabase("/v1/memory?" + parts))).json();
  // The largest keys of all samples so far, since each sample finds others.
  if (memory.data.complete) memory.largest.clear();
  for (const large of memory.data.largest) memory.largest.set(encoded(large.key), large);
}

function bars(title, rows) {
  const most = Math.max(1, ...rows.map((row) => row.bytes));
  const lines = rows.map((row) => {
    const picture = drawn("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" });
    picture.append(drawn("rect", { width: (100 * row.bytes) / most, height: 10 }));
    return make(
      "div",
      { className: "bar" },
      make("span", { title: row.name }, row.name),
      picture,
      make("span", {}, `${bytes(row.bytes)} · ${count(row.keys)} ${row.keys === 1 ? "key" : "keys"}`),
    );
  });
  const body = rows.length ? make("div", { className: "bars" }, lines) : make("p", { className: "empty" }, "There are no keys.");
  return make("section", { className: "card" }, make("h2", {}, title), body);
}

function memoryView(main) {
  const again = async () => {
    await act(estimate);
    if (section === "memory") memoryView(main);
  };
  const separator = make("input", {
    value: memory.separator, size: 3, ariaLabel: "Separator",
    onchange: (event) => { memory.separator = event.target.value; again(); },
  });
  const depth = make(
    "select",
    { ariaLabel: "Depth", onchange: (event) => { memory.depth = event.target.value; again(); } },
    [1, 2, 3, 4].map((number) => make("option", { value: number, selected: number == memory.depth }, String(number))),
  );
  const data = memory.data;
  const tools = make(
    "div",
    { className: "row" },
    make("label", { className: "quiet" }, "Prefixes end with ", separator),
    make("label", { className: "quiet" }, "and have parts: ", depth),
    make("button", { type: "button", onclick: again }, "Another sample"),
  );
  if (!data) {
    main.replaceChildren(tools, make("p", { className: "empty" }, "…"));
    return;
  }
  const whole = data.complete ? "All keys were looked at." : `Estimated from ${data.sampled} of ${count(data.keys)} keys.`;
  const named = (rows, name) => rows.map((row) => ({ ...row, name: shown(row[name]) || "(no prefix)" }));
  const sizes = data.sizes.map((row) => ({ ...row, name: row.up_to === null ? "more" : `up to ${bytes(row.up_to)}` }));
  const largest = [...memory.largest.values()].sort((a, b) => b.bytes - a.bytes).slice(0, 50);
  main.replaceChildren(
    tools,
    make("p", { className: "quiet" }, whole),
    make(
      "div",
      { className: "grid" },
      bars("By type", named(data.types, "type")),
      bars("By prefix", named(data.prefixes, "prefix").slice(0, 20)),
      bars("By size of the key", sizes.filter((row) => row.keys > 0)),
      make(
        "section",
        { className: "card wide" },
        make("h2", {}, "Largest keys"),
        table(
          [["Key", "key"], ["Type"], ["Memory", "number"], ["Elements", "number"], ["Expires in", "number"]],
          largest.map((large) => [
            keyLink(large.key), large.type, bytes(large.bytes),
            large.type === "string" ? bytes(large.elements) : count(large.elements),
            large.ttl === null ? "–" : span(large.ttl),
          ]),
          "There are no keys.",
        ),
      ),
    ),
  );
}

// ---- Clients and slow commands ----------------------------------------------------------------------

async function clientsView(main) {
  const [text] = await commands([["CLIENT", "LIST"]]);
  const clients = text.trim().split("\n").map((line) =>
    Object.fromEntries(line.split(" ").map((pair) => {
      const equals = pair.indexOf("=");
      return [pair.slice(0, equals), pair.slice(equals + 1)];
    })),
  );
  clients.sort((a, b) => Number(b["tot-mem"]) - Number(a["tot-mem"]));
  const end = async (id) => {
    if (!confirm(`End the connection ${id}?`)) return;
    await act(() => commands([["CLIENT", "KILL", "ID", id]]));
    await act(() => clientsView(main));
  };
  if (section !== "clients") return;
  const rows = clients.slice(0, 500).map((client) => [
    client.id, client.addr, client.name || client["lib-name"] || "–", client.db, client.cmd,
    span(Number(client.age)), span(Number(client.idle)), bytes(Number(client["tot-mem"])), bytes(Number(client.omem)),
    make("button", { type: "button", className: "danger", onclick: () => end(client.id) }, "End"),
  ]);
  const columns = [
    ["Id", "number"], ["Address", "address"], ["Name"], ["Database", "number"], ["Last command"], ["Connected", "number"],
    ["Idle", "number"], ["Memory", "number"], ["Output", "number"], ["", "acts"],
  ];
  const title = `${clients.length} clients` + (clients.length > 500 ? ", of which these take most memory" : "");
  main.replaceChildren(make("section", { className: "card" }, make("h2", {}, title), table(columns, rows, "There are none.")));
}

async function slowView(main) {
  const [slow, settings] = await commands([["SLOWLOG", "GET", "128"], ["CONFIG", "GET", "slowlog-log-slower-than"]]);
  const threshold = settings["slowlog-log-slower-than"];
  if (section !== "slow") return;
  const rows = slow.map(([, at, microseconds, words, address, name]) => [
    new Date(at * 1000).toLocaleString(), time(microseconds / 1e6), words.map(shown).join(" ").slice(0, 600),
    shown(address), shown(name) || "–",
  ]);
  const clear = async () => {
    await act(() => commands([["SLOWLOG", "RESET"]]));
    await act(() => slowView(main));
  };
  const since = Number(threshold) < 0 ? "Slow commands are not logged: see slowlog-log-slower-than." :
    `Commands that took at least ${time(Number(threshold) / 1e6)}.`;
  main.replaceChildren(
    make(
      "section",
      { className: "card" },
      make("div", { className: "row" }, make("h2", { className: "grow" }, since), make("button", { type: "button", onclick: clear }, "Forget them")),
      table([["When"], ["Took", "number"], ["Command", "key"], ["Client", "key"], ["Name"]], rows, "No command was slow."),
    ),
  );
}

// ---- Keys -----------------------------------------------------------------------------------------

const PAGE = 100;
const browser = { prefix: "", keys: [], types: new Map(), cursor: "0", open: null, wanted: null };

async function listKeys(more) {
  const parts = new URLSearchParams({ prefix: browser.prefix, limit: PAGE, cursor: more ? browser.cursor : "0" });
  const page = await (await ask(withDatabase("/v1/keys?" + parts))).json();
  browser.keys = (more ? browser.keys.concat(page.keys) : page.keys).sort((a, b) => (shown(a) < shown(b) ? -1 : 1));
  browser.cursor = page.cursor;
  const named = page.keys.filter((key) => !isBinary(key));
  if (named.length) {
    const types = await commands(named.map((key) => ["TYPE", key]));
    named.forEach((key, at) => browser.types.set(key, types[at]));
  }
}

const sameKey = (one, other) => one !== null && other !== null && encoded(one) === encoded(other);

function keysView(main) {
  const search = make("input", {
    id: "search", className: "grow", type: "search", placeholder: "Keys that begin with …", value: browser.prefix,
    ariaLabel: "Keys that begin with", spellcheck: false,
  });
  const list = make("div", { className: "list", role: "group", ariaLabel: "Keys" });
  const detail = make("section", { className: "card", ariaLive: "polite" });
  const whole = make("div", { className: "browser" });
  const show = () => {
    const rows = browser.keys.map((key) =>
      make(
        "button",
        { type: "button", ariaCurrent: String(sameKey(key, browser.open)), onclick: () => open(key) },
        make("span", { className: "type" }, isBinary(key) ? "bytes" : browser.types.get(key) || ""),
        make("span", {}, shown(key) || "(empty)"),
      ),
    );
    if (!rows.length) rows.push(make("p", { className: "empty" }, browser.cursor === null ? "No keys match." : "None so far."));
    if (browser.cursor !== null) {
      rows.push(make("button", { type: "button", onclick: () => act(async () => { await listKeys(true); show(); }) }, "… more"));
    }
    list.replaceChildren(...rows);
  };
  const open = (key) => act(async () => {
    browser.open = key;
    show();
    whole.classList.add("open");
    await keyView(detail, key, again);
  });
  const again = async () => {
    await listKeys(false);
    show();
  };
  const back = () => {
    whole.classList.remove("open");
    list.querySelector('[aria-current="true"]')?.focus();
  };
  whole.back = back;
  let waiting = 0;
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => act(async () => { browser.prefix = search.value; await again(); }), 200);
  });
  whole.addEventListener("keydown", (event) => {
    if (event.key === "Escape") back();
    if ((event.key === "ArrowDown" || event.key === "ArrowUp") && (list.contains(event.target) || event.target === search)) {
      const buttons = [...list.querySelectorAll("button")];
      const at = buttons.indexOf(event.target) + (event.key === "ArrowDown" ? 1 : -1);
      (at < 0 ? search : buttons[Math.min(at, buttons.length - 1)])?.focus();
      event.preventDefault();
    }
  });
  whole.append(
    make(
      "section",
      { className: "card" },
      make("div", { className: "row" }, search, make("button", { type: "button", onclick: () => newKey(detail, whole, again) }, "New")),
      list,
    ),
    detail,
  );
  detail.append(make("p", { className: "empty" }, "Choose a key."));
  main.replaceChildren(whole);
  act(async () => {
    await again();
    const wanted = browser.wanted ?? browser.open;
    browser.wanted = null;
    if (wanted !== null) open(wanted);
  });
}

/** What a new key of a type begins with. */
const FIRST = {
  string: (key, [value]) => ["SET", key, value, "NX"],
  list: (key, [value]) => ["RPUSH", key, value],
  set: (key, [value]) => ["SADD", key, value],
  hash: (key, [field, value]) => ["HSET", key, field, value],
  zset: (key, [member, score]) => ["ZADD", key, score, member],
  stream: (key, [field, value]) => ["XADD", key, "*", field, value],
};
const FIELDS = {
  string: ["Value"], list: ["Element"], set: ["Member"], hash: ["Field", "Value"], zset: ["Member", "Score"],
  stream: ["Field", "Value"],
};

function newKey(detail, whole, again) {
  const name = make("input", { ariaLabel: "Key", value: browser.prefix, required: true });
  const type = make("select", {}, Object.keys(FIRST).map((one) => make("option", { value: one }, one)));
  const fields = make("div");
  const ask = () => fields.replaceChildren(...FIELDS[type.value].map((label) => make("label", { className: "field" }, label, make("input", {}))));
  type.addEventListener("change", ask);
  ask();
  const create = () => act(async () => {
    const values = [...fields.querySelectorAll("input")].map((input) => input.value);
    await changed(name.value, { "If-None-Match": "*" }, [FIRST[type.value](name.value, values)]);
    note(`${name.value} was created.`);
    browser.open = name.value;
    await again();
    await keyView(detail, name.value, again);
  });
  whole.classList.add("open");
  const form = make(
    "form",
    { onsubmit: (event) => { event.preventDefault(); create(); } },
    make("h2", {}, "A new key"),
    make("label", { className: "field" }, "Key", name),
    make("label", { className: "field" }, "Type", type),
    fields,
    make("div", { className: "row" }, make("button", { type: "submit", className: "primary" }, "Create"), make("button", { type: "button", className: "back", onclick: whole.back }, "Back")),
  );
  detail.replaceChildren(form);
  name.focus();
}

/** Runs commands on the condition that the key is as it was. */
async function changed(key, condition, list) {
  const address = withDatabase("/v1/transaction?key=" + encoded(key));
  const answer = await ask(address, { method: "POST", headers: condition, body: JSON.stringify(list) });
  for (const one of await answer.json()) {
    if ("error" in one) throw new Refused(400, one.error);
  }
}

const TEXT_MAX = 1 << 20;

async function keyView(detail, key, again, place = {}) {
  const address = withDatabase("/v1/keys/" + encoded(key));
  const headers = { Accept: "application/json", Range: `bytes=0-${TEXT_MAX - 1}` };
  let answer;
  try {
    const paging = place.cursor ? "&cursor=" + place.cursor : "";
    const [type] = isBinary(key) ? [null] : await commands([["TYPE", key]]);
    const collection = type !== null && type !== "string" && type !== "none";
    answer = await ask(address + (collection ? "&limit=" + PAGE + paging : ""), { headers });
  } catch (error) {
    if (error.status !== 404) throw error;
    detail.replaceChildren(make("p", { className: "empty" }, `There is no key ${shown(key)} any more.`));
    await again();
    return;
  }
  const view = {
    detail, key, again, place,
    tag: answer.headers.get("ETag"),
    type: answer.headers.get("X-Type") || "string",
    contentType: answer.headers.get("Content-Type"),
    cursor: answer.headers.get("X-Cursor"),
    address,
  };
  // The commands of a transaction are JSON, which has no bytes that are no text.
  view.fixed = isBinary(key);
  const [ttl, encoding, taken] = view.fixed ? [-1, "", NaN] :
    await commands([["PTTL", key], ["OBJECT", "ENCODING", key], ["MEMORY", "USAGE", key]]);
  view.ttl = ttl;
  const body = make("div");
  const remove = () => act(async () => {
    if (!confirm(`Delete ${shown(key)}?`)) return;
    await ask(address, { method: "DELETE", headers: { "If-Match": view.tag } });
    note(`${shown(key)} was deleted.`);
    browser.open = null;
    detail.replaceChildren(make("p", { className: "empty" }, "Choose a key."));
    detail.parentElement.classList.remove("open");
    await again();
  });
  const expire = () => act(async () => {
    const text = prompt("Seconds until the key expires; nothing for never:", ttl > 0 ? String(ttl / 1000) : "");
    if (text === null) return;
    const milliseconds = Math.round(Number(text) * 1000);
    await change(view, [text.trim() === "" ? ["PERSIST", key] : ["PEXPIRE", key, milliseconds]]);
  });
  const rename = () => act(async () => {
    const name = prompt("The new name:", key);
    if (name === null || name === key) return;
    await changed(key, { "If-Match": view.tag }, [["RENAMENX", key, name]]);
    browser.open = name;
    await again();
    await keyView(detail, name, again);
  });
  const plain = (label, action, kind) => make("button", { type: "button", className: kind || "", onclick: action }, label);
  detail.replaceChildren(
    make(
      "div",
      { className: "row" },
      plain("Back", () => detail.parentElement.back(), "back"),
      make("span", { className: "name grow" }, shown(key) || "(empty)"),
      view.fixed ? null : plain("Rename", rename),
      view.fixed ? null : plain("Expiry", expire),
      plain("Reload", () => act(() => keyView(detail, key, again, place))),
      plain("Delete", remove, "danger"),
    ),
    make(
      "div",
      { className: "facts" },
      make("span", {}, view.type + (encoding ? " · " + encoding : "")),
      make("span", {}, ttl > 0 ? "expires in " + span(ttl / 1000) : "does not expire"),
      Number.isFinite(taken) ? make("span", {}, bytes(taken)) : null,
      make("span", {}, "version " + (view.tag || "")),
    ),
    body,
  );
  if (view.type === "string") await stringView(body, view, answer);
  else collectionView(body, view, await answer.json());
}

/** Changes a key that is shown, if it is as it was shown, and shows it again. */
async function change(view, list) {
  try {
    await changed(view.key, { "If-Match": view.tag }, list);
  } catch (error) {
    if (error.status === 412) return conflict(view);
    throw error;
  }
  await keyView(view.detail, view.key, view.again, view.place);
}

function conflict(view) {
  if (view.detail.querySelector(".conflict")) return;
  const reload = make("button", { type: "button", onclick: () => act(() => keyView(view.detail, view.key, view.again, view.place)) }, "Show it as it is now");
  const text = "Another client has changed this key since it was shown. Nothing was saved. ";
  view.detail.insertBefore(make("p", { className: "warning conflict", role: "alert" }, text, reload), view.detail.children[1]);
}

/** The line ends that all lines of a text have; null if they differ. A text area knows "\n" alone. */
function lineEnds(text) {
  const ends = new Set(text.match(/\r\n|\r|\n/g));
  return ends.size > 1 ? null : [...ends][0] ?? "\n";
}

async function stringView(body, view, answer) {
  const data = new Uint8Array(await answer.arrayBuffer());
  const whole = answer.status === 200 || Number(answer.headers.get("Content-Range")?.split("/")[1]) === data.length;
  let text = null;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data);
  } catch {
    // It is shown as bytes.
  }
  const ends = text === null ? null : lineEnds(text);
  if (ends === null || !whole) {
    const part = Array.from(data.slice(0, 4096), (byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : "\\x" + byte.toString(16).padStart(2, "0"))).join("");
    let reason = "The value is long: only its beginning is shown, and it cannot be edited here.";
    if (text === null) reason = "The value is not text: it can be viewed but not edited here.";
    else if (ends === null) reason = "The value's lines end in different ways: it can be viewed but not edited here.";
    body.append(make("p", { className: "warning" }, reason), make("textarea", { readOnly: true, value: text?.slice(0, 65536) ?? part }));
    return;
  }
  const area = make("textarea", { value: text, spellcheck: false, ariaLabel: "Value" });
  const save = () => act(async () => {
    const headers = { "If-Match": view.tag, "Content-Type": view.contentType };
    const ttl = view.fixed ? -1 : (await commands([["PTTL", view.key]]))[0];
    const address = view.address + (ttl > 0 ? "&ttl=" + ttl / 1000 : "");
    try {
      await ask(address, { method: "PUT", headers, body: area.value.replaceAll("\n", ends) });
    } catch (error) {
      if (error.status === 412) return conflict(view);
      throw error;
    }
    note("Saved.");
    await keyView(view.detail, view.key, view.again);
  });
  const format = () => {
    try {
      area.value = JSON.stringify(JSON.parse(area.value), null, 2);
    } catch (error) {
      note("This is not JSON: " + error.message);
    }
  };
  area.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "s") {
      event.preventDefault();
      save();
    }
  });
  body.append(
    area,
    make(
      "div",
      { className: "row" },
      make("button", { type: "button", className: "primary", onclick: save }, "Save"),
      make("button", { type: "button", onclick: format }, "Format JSON"),
      make("span", { className: "quiet" }, `${bytes(data.length)} · ${view.contentType}`),
    ),
  );
}

/** How a collection's elements are rows, and how they change. */
const KINDS = {
  list: {
    columns: [["Index", "number"], ["Element", "key"]],
    rows: (data, from) => data.map((value, at) => ({ cells: [String(from + at), value], at: from + at })),
    set: (key, row, value) => [["LSET", key, row.at, value]],
    remove: (key, row) => {
      // No element is found by its place to be removed: it is marked first.
      const mark = "dunlin-removed-" + crypto.getRandomValues(new Uint32Array(4)).join("-");
      return [["LSET", key, row.at, mark], ["LREM", key, 1, mark]];
    },
    add: (key, [value]) => ["RPUSH", key, value],
  },
  set: {
    columns: [["Member", "key"]],
    rows: (data) => data.map((value) => ({ cells: [value] })),
    set: (key, row, value) => [["SREM", key, row.cells[0]], ["SADD", key, value]],
    remove: (key, row) => [["SREM", key, row.cells[0]]],
    add: (key, [value]) => ["SADD", key, value],
  },
  hash: {
    columns: [["Field", "key"], ["Value", "key"]],
    rows: (data) => Object.entries(data).map(([field, value]) => ({ cells: [named(field), value] })),
    set: (key, row, value) => [["HSET", key, row.cells[0], value]],
    remove: (key, row) => [["HDEL", key, row.cells[0]]],
    add: (key, [field, value]) => ["HSET", key, field, value],
  },
  zset: {
    columns: [["Member", "key"], ["Score", "number"]],
    rows: (data) => data.map((one) => ({ cells: [one.member, String(one.score)] })),
    set: (key, row, value) => [["ZADD", key, "XX", value, row.cells[0]]],
    remove: (key, row) => [["ZREM", key, row.cells[0]]],
    add: (key, [member, score]) => ["ZADD", key, score, member],
  },
  stream: {
    columns: [["Entry", "key"], ["Fields", "key"]],
    rows: (data) => data.map((one) => ({
      cells: [one.id, Object.entries(one.fields).map(([name, value]) => `${shown(named(name))} = ${shown(value)}`).join("\n")],
    })),
    remove: (key, row) => [["XDEL", key, row.cells[0]]],
    add: (key, [field, value]) => ["XADD", key, "*", field, value],
  },
};

function collectionView(body, view, data) {
  const kind = KINDS[view.type];
  const from = view.type === "list" ? Number(view.place.cursor || 0) : 0;
  const rows = kind.rows(data, from);
  const edit = (row) => act(async () => {
    const value = prompt("The new value:", row.cells.at(-1));
    if (value !== null && value !== row.cells.at(-1)) await change(view, kind.set(view.key, row, value));
  });
  const remove = (row) => act(() => change(view, kind.remove(view.key, row)));
  const cells = rows.map((row) => {
    const fixed = view.fixed || row.cells.some(isBinary);
    const acts = make("span", {});
    // A prompt has one line, and would leave out the ends of others.
    const oneLine = !/[\r\n]/.test(row.cells.at(-1));
    if (!fixed && kind.set && oneLine) acts.append(make("button", { type: "button", onclick: () => edit(row) }, "Edit"));
    if (!fixed) acts.append(make("button", { type: "button", className: "danger", ariaLabel: "Remove " + row.cells[0], onclick: () => remove(row) }, "Remove"));
    return [...row.cells.map(shown), acts];
  });
  if (!view.fixed) {
    const inputs = FIELDS[view.type].map((label) => make("input", { className: "grow", placeholder: label, ariaLabel: label }));
    const add = (event) => {
      event.preventDefault();
      act(() => change(view, [kind.add(view.key, inputs.map((input) => input.value))]));
    };
    body.append(make("form", { className: "row", onsubmit: add }, inputs, make("button", { type: "submit" }, "Add")));
  }
  body.append(table([...kind.columns, ["", "acts"]], cells, "Nothing is left."));
  const turn = (cursor) => act(() => keyView(view.detail, view.key, view.again, { cursor }));
  const pages = make("div", { className: "row" });
  if (view.place.cursor) pages.append(make("button", { type: "button", onclick: () => turn(null) }, "From the start"));
  if (view.cursor) pages.append(make("button", { type: "button", onclick: () => turn(view.cursor) }, "Next page"));
  body.append(pages);
}

// ---- Console --------------------------------------------------------------------------------------

const typed = { lines: [], at: 0, shown: [] };

/** Takes a line apart as redis-cli does: quotes hold words together. */
function words(line) {
  const found = [];
  const parts = /"((?:[^"\\]|\\.)*)"|'([^']*)'|(\S+)/g;
  for (const [, double, single, plain] of line.matchAll(parts)) {
    const escapes = { n: "\n", t: "\t", r: "\r" };
    if (double !== undefined) found.push(double.replace(/\\(.)/g, (_, c) => escapes[c] ?? c));
    else found.push(single ?? plain);
  }
  return found;
}

function printed(value, indent = "") {
  if (value === null) return "(nil)";
  if (isBinary(value)) return `"${shown(value)}"`;
  if (typeof value === "string") return value.includes("\n") || value.includes("\r") ? value : JSON.stringify(value);
  if (typeof value === "number") return `(number) ${value}`;
  if (typeof value === "boolean") return `(${value})`;
  if (Array.isArray(value)) {
    if (!value.length) return "(empty)";
    return value.map((one, at) => `${at ? indent : ""}${at + 1}) ${printed(one, indent + "   ")}`).join("\n");
  }
  const pairs = Object.entries(value);
  if (!pairs.length) return "(empty)";
  return pairs.map(([name, one], at) => `${at ? indent : ""}${JSON.stringify(name)} => ${printed(one, indent + "   ")}`).join("\n");
}

function consoleView(main) {
  const output = make("div", { id: "console", tabIndex: 0, role: "log", ariaLabel: "Answers" });
  const add = (text, kind) => {
    output.append(make("div", kind ? { className: kind } : {}, text));
    output.scrollTop = output.scrollHeight;
  };
  const say = (text, kind) => {
    typed.shown.push([text, kind]);
    if (typed.shown.length > 500) typed.shown.shift();
    add(text, kind);
  };
  typed.shown.forEach(([text, kind]) => add(text, kind));
  const input = make("input", { className: "grow", ariaLabel: "Command", placeholder: "A command, such as GET key", spellcheck: false, autocomplete: "off", autocapitalize: "off" });
  const run = async (event) => {
    event.preventDefault();
    const line = input.value.trim();
    if (!line) return;
    typed.lines.push(line);
    typed.at = typed.lines.length;
    input.value = "";
    say(`${database}> ${line}`, "asked");
    try {
      const answer = await ask(withDatabase("/v1/command"), { method: "POST", body: JSON.stringify(words(line)) });
      say(printed((await answer.json()).result));
    } catch (error) {
      say("(error) " + error.message, "bad");
    }
  };
  input.addEventListener("keydown", (event) => {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!step) return;
    typed.at = Math.max(0, Math.min(typed.lines.length, typed.at + step));
    input.value = typed.lines[typed.at] || "";
    event.preventDefault();
  });
  main.replaceChildren(
    make(
      "section",
      { className: "card" },
      output,
      make("form", { className: "row", onsubmit: run }, input, make("button", { type: "submit", className: "primary" }, "Run")),
    ),
  );
  input.focus();
}

// ---- Sections -------------------------------------------------------------------------------------

const SECTIONS = [
  ["overview", "Overview"], ["keys", "Keys"], ["memory", "Memory"], ["clients", "Clients"], ["slow", "Slow commands"],
  ["console", "Console"],
];
let section = SECTIONS.some(([name]) => "#" + name === location.hash) ? location.hash.slice(1) : "overview";
let running = false;

/** Does something, and says what went wrong with it. */
async function act(action) {
  try {
    await action();
  } catch (error) {
    if (error.status !== 401) note(error.message);
  }
}

function showTabs() {
  $("tabs").replaceChildren(
    ...SECTIONS.map(([name, label]) =>
      make("button", { type: "button", role: "tab", ariaSelected: String(name === section), onclick: () => go(name) }, label),
    ),
  );
}

function go(name) {
  section = name;
  if (location.hash !== "#" + name) location.replace("#" + name);
  showTabs();
  const main = $("main");
  main.replaceChildren();
  if (name === "overview" && figures) overview(main);
  if (name === "keys") keysView(main);
  if (name === "console") consoleView(main);
  if (name === "clients") act(() => clientsView(main));
  if (name === "slow") act(() => slowView(main));
  if (name === "memory") {
    memoryView(main);
    act(async () => {
      await estimate();
      if (section === "memory") memoryView(main);
    });
  }
}

function choose(number) {
  database = number;
  sessionStorage.setItem("dunlin-db", String(number));
  $("db").value = String(number);
  Object.assign(browser, { keys: [], types: new Map(), cursor: "0", open: null });
  memory.data = null;
  memory.largest.clear();
}

let rounds = 0;
async function tick() {
  if (!document.hidden && !$("login").open) {
    try {
      await collect();
      // What changes slowly is asked for now and then.
      if (section === "overview" && rounds % 3 === 0) await lookAround();
      rounds += 1;
      if (section === "overview") overview($("main"));
    } catch (error) {
      if (error.status !== 401) $("server").textContent = "The server does not answer: " + error.message;
    }
  }
  setTimeout(tick, 1000);
}

async function start() {
  try {
    const [setting] = await commands([["CONFIG", "GET", "databases"]], "/v1/pipeline");
    const databases = Number(setting.databases);
    $("logout").hidden = password === null;
    if (database >= databases) database = 0;
    const options = Array.from({ length: databases }, (_, number) =>
      make("option", { value: number, selected: number === database }, String(number)));
    $("db").replaceChildren(...options);
  } catch (error) {
    if (error.status === 401) return;
    note(error.message);
  }
  go(section);
  if (!running) {
    running = true;
    tick();
  }
}

$("db").addEventListener("change", () => {
  choose(Number($("db").value));
  go(section);
});
$("theme").addEventListener("click", () => {
  const dark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("dunlin-theme", document.documentElement.dataset.theme);
});
const theme = localStorage.getItem("dunlin-theme");
if (theme) document.documentElement.dataset.theme = theme;

document.addEventListener("keydown", (event) => {
  const writes = event.target.closest("input, textarea, select, dialog");
  if (writes || event.ctrlKey || event.metaKey || event.altKey) return;
  const at = Number(event.key) - 1;
  if (SECTIONS[at]) go(SECTIONS[at][0]);
  else if (event.key === "?") $("help").showModal();
  else if (event.key === "/") {
    event.preventDefault();
    if (section !== "keys") go("keys");
    $("search").focus();
  }
});

showTabs();
start();
