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
    await act(async () => {
      await commands([["CLIENT", "KILL", "ID", id]]);
      await clientsView(main);
    });
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
let section = "overview";
let running = false;

/** Does something, and says what went wrong with it. */
async function act(action) {
  try {
    await action();
  } catch (error) {
    if (error.status !== 401) note(error.message);
  }
}

/** Does what a section needs; what is refused is said in its place. */
async function attempt(main, action) {
  const asked = section;
  try {
    await action();
  } catch (error) {
    if (error.status === 401 || section !== asked) return;
    main.replaceChildren(make("p", { className: "warning", role: "alert" }, error.message));
  }
}

function showTabs() {
  $("tabs").replaceChildren(
    ...SECTIONS.map(([name, label]) =>
      make("button", { type: "button", role: "tab", ariaSelected: String(name === section), onclick: () => go(name) }, label),
    ),
  );
}

/** Goes to a section, or to a key: the address says where, so that Back and links work. */
function go(name, key = null) {
  const hash = "#" + name + (key === null ? "" : "/" + database + "/" + encoded(key));
  if (location.hash === hash) follow();
  else location.hash = hash;
}

/** Shows what the address says. */
function follow() {
  const [name, number, ...rest] = location.hash.slice(1).split("/");
  const before = section;
  section = SECTIONS.some(([known]) => known === name) ? name : "overview";
  const key = section === "keys" && number !== undefined && rest.length ? decoded(rest.join("/")) : null;
  if (key !== null && /^\d+$/.test(number) && Number(number) !== database) {
    choose(Number(number));
    $("main").replaceChildren();
  }
  showTabs();
  const main = $("main");
  if (section === "keys") {
    const shownKeys = before === "keys" ? main.querySelector(".browser") : null;
    const keys = shownKeys || keysView(main);
    if (key !== null || shownKeys) keys.open(key);
    else browser.open = null;
    return;
  }
  main.replaceChildren();
  if (section === "overview") overviewView(main);
  if (section === "console") consoleView(main);
  if (section === "clients") attempt(main, () => clientsView(main));
  if (section === "slow") attempt(main, () => slowView(main));
  if (section === "memory") {
    memoryView(main);
    if (memory.data === null) {
      attempt(main, async () => {
        await estimate();
        if (section === "memory") memoryView(main);
      });
    }
  }
}

addEventListener("hashchange", follow);

function choose(number) {
  database = number;
  sessionStorage.setItem("dunlin-db", String(number));
  $("db").value = String(number);
  Object.assign(browser, { keys: [], exact: null, facts: new Map(), cursor: "0", open: null });
  search += 1;
  walk = null;
  memory.data = null;
}

/** Since when the server does not answer. */
let gone = null;
/** Why the user is not told how the server does. */
let untold = null;

/** Says that the server is gone, or that it is back. */
function say(error) {
  if (error === null) {
    if (gone !== null) {
      note("The server answers again.");
      follow();
    }
    gone = null;
  } else {
    gone ??= new Date();
    // One that refuses has answered.
    const what = error instanceof Refused ? `The server has refused to answer since ${clock(gone)}: ${error.message}.` : `The server has not answered since ${clock(gone)}.`;
    $("gone").replaceChildren(what + " What you see is from before. The page goes on trying.");
  }
  $("gone").hidden = gone === null;
  document.body.classList.toggle("gone", gone !== null);
}

let looking = null;
/** Asks how the server does, one question at a time. */
function look() {
  looking ??= lookOnce().finally(() => { looking = null; });
  return looking;
}

async function lookOnce() {
  try {
    await collect();
    say(null);
    const again = untold !== null;
    untold = null;
    if (section === "overview") again ? overviewView($("main")) : overview();
  } catch (error) {
    if (error.status === 401) return;
    if (error.status !== 403) return say(error);
    say(null);
    const before = untold;
    untold = error.message;
    if (before !== untold && section === "overview") overviewView($("main"));
  }
}

async function tick() {
  if (!document.hidden && !$("login").open) await look();
  setTimeout(tick, untold === null ? 1000 : 10000);
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden && running && untold === null) look();
});
addEventListener("resize", () => charts.draw());

async function start() {
  $("logout").hidden = token === null;
  await look();
  if ($("login").open) return;
  // Who is not told how many databases there are may try the usual ones.
  const databases = told?.server.databases ?? 16;
  if (database >= databases) database = 0;
  const options = Array.from({ length: databases }, (_, number) =>
    make("option", { value: number, selected: number === database }, String(number)));
  $("db").replaceChildren(...options);
  follow();
  if (!running) {
    running = true;
    setTimeout(tick, 1000);
  }
}

$("db").addEventListener("change", () => {
  choose(Number($("db").value));
  $("main").replaceChildren();
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

start();
