
// ---- Figures --------------------------------------------------------------------------------------

/** What the server has told last, and its last minutes: columns of the same length. */
let told = null;
let past = { at: [] };
/** How much of the past is shown, in seconds. */
let shownSeconds = Number(sessionStorage.getItem("dunlin-seconds") || 300);
/** The time under the pointer, in milliseconds of Unix time. */
let pointed = null;

const COLUMNS = ["at", "commands", "hits", "misses", "input", "output", "p50_us", "p99_us", "memory", "clients", "other_threads"];

/** Adds the new samples to the past. */
function remember(run, history) {
  if (past.run !== run || !past.at.length) past = { run, workers: [], ...Object.fromEntries(COLUMNS.map((name) => [name, []])) };
  const before = past.at.length;
  for (const name of COLUMNS) past[name] = past[name].concat(history[name]).slice(-history.kept);
  // A worker's column is as long as all others, from whenever it is known.
  const workers = Math.max(past.workers.length, history.workers.length);
  const nothing = (length) => new Array(length).fill(null);
  past.workers = Array.from({ length: workers }, (_, number) => {
    const old = past.workers[number] || nothing(before);
    return old.concat(history.workers[number] || nothing(history.at.length)).slice(-history.kept);
  });
  past.next = history.next;
}

/** Asks for what is new. */
async function collect() {
  const after = past.run ? past.next : 0;
  const answer = await ask("/v1/overview?after=" + after, { signal: AbortSignal.timeout(8000) });
  told = await answer.json();
  if (past.run && past.run !== told.server.run_id) {
    note("The server was started again.");
    // What is known so far is of the one before it.
    past = { at: [] };
    if (after > 0) return collect();
  }
  remember(told.server.run_id, told.history);
  $("server").textContent =
    `${location.host} · ${told.server.version} · up ${span(told.server.uptime)}` + (told.server.loading ? " · loading" : "");
}

// ---- Charts ---------------------------------------------------------------------------------------

const clock = (at) => new Date(at).toLocaleTimeString([], { hour12: false });

/** Round values from zero to at least `most`; of bytes, in steps of powers of two. */
function ticks(most, isBytes) {
  const base = isBytes ? 2 : 10;
  const raw = most / 3;
  const power = base ** Math.floor(Math.log(raw) / Math.log(base));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= raw) * power;
  const values = [];
  for (let value = 0; value < most + step; value += step) values.push(value);
  return values;
}

/** Times at which the axis has a label: every so many seconds. */
function times(from, to) {
  const seconds = (to - from) / 1000;
  const step = [10, 30, 60, 120, 300].find((one) => seconds / one <= 5) || 600;
  const found = [];
  for (let at = Math.ceil(from / 1000 / step) * step * 1000; at <= to; at += step * 1000) found.push(at);
  return found;
}

const [LEFT, BOTTOM, TOP, HEIGHT] = [56, 18, 8, 150];

/** A chart of the past that stays in the page and is drawn again each second. */
class Chart {
  /** The lines are functions of the past that give a column each. The axis reaches `least` at least. */
  constructor(title, format, least, lines, isBytes = false) {
    Object.assign(this, { title, format, least, lines, isBytes });
    this.picture = drawn("svg", { class: "chart", role: "img", tabindex: "0", "aria-label": title });
    this.legend = make("div", { className: "legend" });
    this.element = make("section", { className: "card" }, make("h2", {}, title), this.picture, this.legend);
    const point = (event) => {
      const box = this.picture.getBoundingClientRect();
      const share = (event.clientX - box.left - LEFT) / (box.width - LEFT);
      const [from, to] = spanShown();
      pointed = share < 0 || share > 1 ? null : from + share * (to - from);
      charts.draw();
    };
    const leave = () => {
      pointed = null;
      charts.draw();
    };
    this.picture.addEventListener("pointermove", point);
    this.picture.addEventListener("pointerdown", point);
    this.picture.addEventListener("pointerleave", leave);
    this.picture.addEventListener("blur", leave);
    this.picture.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step || !past.at.length) return;
      const at = pointed === null ? past.at.length - 1 : nearest(pointed) + step;
      pointed = past.at[Math.max(0, Math.min(past.at.length - 1, at))];
      charts.draw();
      event.preventDefault();
      event.stopPropagation();
    });
  }

  draw() {
    const columns = this.lines.map(([, column]) => column(past) || []);
    const [from, to] = spanShown();
    const first = past.at.findIndex((at) => at >= from);
    const values = columns.flatMap((column) => (first < 0 ? [] : column.slice(first))).filter(Number.isFinite);
    const marks = ticks(Math.max(...values, this.least), this.isBytes);
    const most = marks.at(-1);
    const width = this.picture.clientWidth || 320;
    const x = (at) => LEFT + ((at - from) / (to - from)) * (width - LEFT);
    const y = (value) => TOP + (1 - value / most) * (HEIGHT - TOP - BOTTOM);
    const parts = [];
    const label = (text, attributes) => {
      const element = drawn("text", attributes);
      element.textContent = text;
      parts.push(element);
    };
    for (const mark of marks) {
      parts.push(drawn("line", { x1: LEFT, x2: width, y1: y(mark), y2: y(mark) }));
      label(this.format(mark), { x: LEFT - 5, y: y(mark) + 4, "text-anchor": "end" });
    }
    for (const at of times(from, to)) {
      if (x(at) < LEFT + 18 || x(at) > width - 18) continue;
      parts.push(drawn("line", { x1: x(at), x2: x(at), y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM + 3 }));
      label(clock(at).slice(0, shownSeconds > 120 ? 5 : 8), { x: x(at), y: HEIGHT - 3, "text-anchor": "middle" });
    }
    columns.forEach((column, number) => {
      let path = "";
      let pen = false;
      for (let at = Math.max(first, 0); first >= 0 && at < past.at.length; at += 1) {
        // A gap in time is a gap in the line.
        const follows = pen && past.at[at] - past.at[at - 1] < 3000;
        if (!Number.isFinite(column[at])) {
          pen = false;
          continue;
        }
        path += `${follows ? "L" : "M"}${x(past.at[at]).toFixed(1)} ${y(column[at]).toFixed(1)}`;
        pen = true;
      }
      parts.push(drawn("path", { d: path, class: "line" + (number + 1) }));
    });
    const at = pointed === null ? past.at.length - 1 : nearest(pointed);
    if (pointed !== null && at >= 0) {
      parts.push(drawn("line", { class: "pointed", x1: x(past.at[at]), x2: x(past.at[at]), y1: TOP, y2: HEIGHT - BOTTOM }));
      columns.forEach((column, number) => {
        if (Number.isFinite(column[at])) parts.push(drawn("circle", { class: "line" + (number + 1), cx: x(past.at[at]), cy: y(column[at]), r: 3 }));
      });
    }
    this.picture.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    this.picture.replaceChildren(...parts);
    const texts = this.lines.map(([name], number) =>
      make("span", { className: "line" + (number + 1) }, `${name} ${this.format(columns[number][at] ?? NaN)}`));
    this.legend.replaceChildren(...texts, make("span", { className: "time" }, at < 0 ? "" : pointed === null ? "now" : clock(past.at[at])));
  }
}

/** The times between which the charts are. */
function spanShown() {
  const to = past.at.at(-1) ?? Date.now();
  return [to - shownSeconds * 1000, to];
}

/** Which sample is the nearest to a time. */
function nearest(time) {
  let best = past.at.length - 1;
  past.at.forEach((at, number) => {
    if (Math.abs(at - time) < Math.abs(past.at[best] - time)) best = number;
  });
  return best;
}

const scaled = (column, factor) => column?.map((value) => (value === null ? null : value * factor));
const share = (value) => (Number.isFinite(value) ? Math.round(100 * value) + " %" : "–");
const each = (columns, join) => (columns?.length ? columns[0].map((_, at) => {
  const known = columns.map((column) => column[at]).filter(Number.isFinite);
  return known.length ? join(known) : null;
}) : []);

const charts = {
  all: [
    new Chart("Throughput", count, 10, [["commands a second", (own) => own.commands]]),
    new Chart("Latency", time, 1e-5, [["99 %", (own) => scaled(own.p99_us, 1e-6)], ["50 %", (own) => scaled(own.p50_us, 1e-6)]]),
    new Chart("Processors", share, 0.1, [
      ["busiest worker", (own) => each(own.workers, (all) => Math.max(...all))],
      ["mean of workers", (own) => each(own.workers, (all) => all.reduce((sum, one) => sum + one, 0) / all.length)],
      ["other threads", (own) => own.other_threads],
    ]),
    new Chart("Memory", bytes, 1 << 20, [["in use", (own) => own.memory]], true),
    new Chart("Network", (value) => bytes(value) + "/s", 1024, [["out", (own) => own.output], ["in", (own) => own.input]], true),
    new Chart("Reads", count, 10, [["found a second", (own) => own.hits], ["not found", (own) => own.misses]]),
  ],
  draw() {
    if (section === "overview") this.all.forEach((chart) => chart.draw());
  },
};

function facts(title, pairs) {
  const list = make("dl");
  for (const [name, value, kind] of pairs) {
    list.append(make("dt", {}, name), make("dd", kind ? { className: kind } : {}, value));
  }
  return make("section", { className: "card" }, make("h2", {}, title), list);
}

/** A table; on a narrow screen each row is a card whose cells have the columns' names. */
function table(columns, rows, empty) {
  if (!rows.length) return make("p", { className: "empty" }, empty);
  const head = columns.map(([name, kind]) => make("th", { className: kind || "", scope: "col", role: "columnheader" }, name));
  const body = rows.map((row) =>
    make("tr", { role: "row" }, row.map((cell, at) =>
      make("td", { className: columns[at][1] || "", role: "cell", "data-name": columns[at][0] }, cell))),
  );
  const whole = make("table", { role: "table" },
    make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, head)), make("tbody", { role: "rowgroup" }, body));
  return make("div", { className: "scroll" }, whole);
}

const keyLink = (key, db = database) =>
  make("a", { className: "link", href: "#keys/" + db + "/" + encoded(key) }, shown(key) || "(empty)");

// ---- Overview -------------------------------------------------------------------------------------

const parts = { tiles: make("div", { className: "tiles" }), cards: make("div", { className: "grid" }), hot: make("div") };

function overviewView(main) {
  if (untold !== null) {
    main.replaceChildren(make("p", { className: "warning" }, "You may not see how the server does: " + untold));
    return;
  }
  const choice = make(
    "select",
    {
      ariaLabel: "Time shown",
      onchange: (event) => {
        shownSeconds = Number(event.target.value);
        sessionStorage.setItem("dunlin-seconds", String(shownSeconds));
        charts.draw();
      },
    },
    [[60, "1 minute"], [300, "5 minutes"], [600, "10 minutes"]].map(([value, label]) =>
      make("option", { value, selected: value === shownSeconds }, label)),
  );
  main.replaceChildren(
    parts.tiles,
    make("div", { className: "row" }, make("label", { className: "quiet" }, "The last ", choice)),
    make("div", { className: "grid" }, charts.all.map((chart) => chart.element)),
    parts.cards,
    parts.hot,
  );
  overview();
}

/** Puts other children in place of those of a part, unless they are the same: what a reader has marked stays. */
function renew(part, ...children) {
  const fresh = make("div", {}, ...children);
  if (fresh.textContent !== part.textContent || fresh.childElementCount !== part.childElementCount) part.replaceChildren(...fresh.childNodes);
}

/** Shows what was told last. */
function overview() {
  if (!told) return;
  const { now, persistence, replication, stages } = told;
  const latest = (column) => column?.at(-1) ?? NaN;
  const reads = now.hits + now.misses;
  const tile = (value, name) => make("div", { className: "card tile" }, make("b", {}, value), make("span", {}, name));
  renew(
    parts.tiles,
    tile(count(latest(past.commands)), "commands a second"),
    tile(time(latest(past.p99_us) / 1e6), "99 % of commands within"),
    tile(bytes(now.memory), now.memory_max ? `of ${bytes(now.memory_max)} memory` : "memory in use"),
    tile(count(now.keys), "keys"),
    tile(count(now.clients), "clients"),
    tile(reads ? ((100 * now.hits) / reads).toFixed(1) + " %" : "–", "of reads find their key"),
    tile(count(now.expired), "keys expired"),
    tile(count(now.evicted), "keys evicted"),
  );
  charts.draw();
  const ago = (stamp) => (stamp ? span(Date.now() / 1000 - stamp) + " ago" : "never");
  const failed = (is) => (is ? ["failed", "bad"] : ["ok", "good"]);
  const cards = [
    workersCard(),
    facts("Persistence", [
      ["Snapshot", ...failed(persistence.save_failed)],
      ["Last save", ago(persistence.last_save)],
      ["Changes since", count(persistence.unsaved)],
      ["Being saved", persistence.saving ? "yes" : "no"],
      ["Append-only file", persistence.append_only ? "on" : "off"],
      ...(persistence.append_only
        ? [
            ["Its last write", ...failed(persistence.append_only_failed)],
            ["Its last rewrite", ...(persistence.rewriting ? ["under way"] : failed(persistence.rewrite_failed))],
            ["Its size", bytes(persistence.append_only_bytes)],
          ]
        : []),
    ]),
    facts("A command's way, on average", stages.map((one) => [one.stage, one.count ? time(one.mean_us / 1e6) : "–"])),
    facts("Connections", [
      ...Object.entries(now.listeners).filter(([, number]) => number > 0).map(([name, number]) => [name, count(number)]),
      ["blocked", count(now.blocked)],
      ["refused so far", count(now.rejected)],
    ]),
  ];
  if (replication) cards.push(replicationCard(replication));
  if (told.cluster) cards.push(clusterCard(told.cluster));
  renew(parts.cards, cards);
  // Who may not read all keys is told of none.
  const hot = told.hot_keys;
  renew(parts.hot, hot === null ? [] : make(
    "section",
    { className: "card" },
    make("h2", {}, "Hot keys"),
    table(
      [["Key", "key"], ["Database", "number"], ["Commands a second", "number"], ["Share", "number"]],
      hot.map((one) => [
        keyLink(one.key, one.db), String(one.db), count(one.commands_per_second), (100 * one.share).toFixed(1) + " %",
      ]),
      "No key stands out: no key is named more often than chance explains.",
    ),
  ));
}

/** What each worker used of a processor in the last second. */
function workersCard() {
  const rows = past.workers.map((column, number) => {
    const used = column.at(-1);
    const picture = drawn("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" });
    picture.append(drawn("rect", { width: 100 * Math.min(1, used ?? 0), height: 10 }));
    return make("div", { className: "bar narrow" }, make("span", {}, "worker " + number), picture, make("span", {}, share(used ?? NaN)));
  });
  const body = rows.length ? make("div", { className: "bars" }, rows) : make("p", { className: "empty" }, "The system does not tell it.");
  return make("section", { className: "card" }, make("h2", {}, "Processor time by worker"), body);
}

function clusterCard(own) {
  const pairs = [
    ["State", own.up ? "serves" : "does not serve", own.up ? "good" : "bad"],
    ["Role", own.primary ? "primary" : "replica"],
    ["Slots", `${own.slots} of its shard, ${own.served} served of 16384`],
    ["etcd", own.etcd_silent === null ? "has not answered yet" : `answered ${span(own.etcd_silent)} ago`],
  ];
  if (own.migrations) pairs.push(["Moves", String(own.migrations)]);
  for (const shard of own.shards) {
    const text = `${shard.primary ?? "no primary"}, ${shard.slots} slots, ${shard.alive} of ${shard.members} nodes`;
    pairs.push(["Shard " + shard.id.slice(0, 8), text, shard.primary && shard.alive === shard.members ? "good" : "bad"]);
  }
  pairs.push(["Node", own.node]);
  return facts("Cluster", pairs);
}

function replicationCard(own) {
  const pairs = [["Role", own.role]];
  if (own.primary) {
    pairs.push(["Primary", own.primary.address], ["Link", own.primary.link, own.primary.link === "up" ? "good" : "bad"]);
    if (own.primary.silent !== null) pairs.push(["Heard", span(own.primary.silent) + " ago"]);
  }
  for (const replica of own.replicas) {
    const lag = replica.lag === null ? replica.state : `${span(replica.lag)} behind, ${bytes(replica.waiting_bytes)} waiting`;
    pairs.push(["Replica " + replica.address, lag]);
  }
  pairs.push(["Offset", String(own.offset)], ["Identifier", own.history]);
  return facts("Replication", pairs);
}

