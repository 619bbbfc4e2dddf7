// ---- Memory ---------------------------------------------------------------------------------------

const memory = { separator: ":", depth: 1, samples: 2000, data: null };
/** The walk over all keys, while there is one. */
let walk = null;
/** Largest keys, and prefixes, that are kept of a walk. */
const [MOST_LARGE, MOST_PREFIXES] = [50, 5000];

const memoryParts = () => ({ separator: memory.separator || ":", depth: memory.depth });

async function estimate() {
  const parts = new URLSearchParams({ samples: memory.samples, ...memoryParts() });
  const data = await (await ask(withDatabase("/v1/memory?" + parts))).json();
  memory.data = data;
  if (data.complete) return;
  data.share = data.sampled / Math.max(1, data.keys);
}

/** Adds what a step of the walk has seen to what is known. */
function addStep(sum, step) {
  sum.keys += step.keys;
  sum.bytes += step.bytes;
  const add = (known, rows, name) => {
    for (const row of rows) {
      const key = name === "prefix" ? encoded(row[name]) : row[name];
      const before = known.get(key);
      if (before) {
        before.keys += row.keys;
        before.bytes += row.bytes;
      } else {
        known.set(key, { ...row });
      }
    }
  };
  add(sum.types, step.types, "type");
  add(sum.prefixes, step.prefixes, "prefix");
  add(sum.sizes, step.sizes, "up_to");
  if (sum.prefixes.size > 2 * MOST_PREFIXES) {
    // The small ones go together: there may be as many prefixes as keys.
    const sorted = [...sum.prefixes].sort((one, other) => other[1].bytes - one[1].bytes);
    sum.prefixes = new Map(sorted.slice(0, MOST_PREFIXES));
    for (const [, row] of sorted.slice(MOST_PREFIXES)) {
      sum.small.keys += row.keys;
      sum.small.bytes += row.bytes;
    }
  }
  // A key that has moved may be shown twice.
  for (const large of step.largest) sum.largest.set(encoded(large.key), large);
  const largest = [...sum.largest].sort((one, other) => other[1].bytes - one[1].bytes);
  sum.largest = new Map(largest.slice(0, MOST_LARGE));
}

/** Looks at all keys, step by step; goes on while another section is shown. */
async function walkAll() {
  const own = { cursor: "0", of: memory.data?.keys ?? 0, database, begun: Date.now() };
  walk = own;
  const sum = {
    keys: 0, bytes: 0, types: new Map(), prefixes: new Map(), sizes: new Map(), largest: new Map(),
    small: { prefix: "(small ones)", keys: 0, bytes: 0 },
  };
  own.sum = sum;
  try {
    while (own.cursor !== null) {
      const asked = performance.now();
      const parts = new URLSearchParams({ cursor: own.cursor, samples: 4000, ...memoryParts() });
      const step = await (await ask(withDatabase("/v1/memory?" + parts))).json();
      if (walk !== own) return;
      addStep(sum, step);
      own.cursor = step.cursor;
      own.of = step.of;
      showProgress();
      // The server has two thirds of the time for others.
      await new Promise((wake) => setTimeout(wake, Math.max(2, 2 * (performance.now() - asked))));
      if (walk !== own) return;
    }
    const rows = (map) => [...map.values()].sort((one, other) => other.bytes - one.bytes);
    const prefixes = rows(sum.prefixes);
    if (sum.small.keys) prefixes.push(sum.small);
    memory.data = {
      keys: sum.keys, bytes: sum.bytes, sampled: sum.keys, complete: true, walked: new Date(),
      types: rows(sum.types), prefixes, sizes: [...sum.sizes.values()], largest: rows(sum.largest),
    };
  } finally {
    if (walk === own) walk = null;
    if (section === "memory") memoryView($("main"));
  }
}

function showProgress() {
  const [bar, text] = [$("walked"), $("walked-text")];
  if (!walk || !bar) return;
  const part = walk.of ? Math.min(1, walk.sum.keys / walk.of) : 0;
  bar.value = part;
  const left = part > 0.02 ? ((Date.now() - walk.begun) / 1000) * (1 / part - 1) : NaN;
  text.textContent =
    `${count(walk.sum.keys)} of ${count(walk.of)} keys` + (Number.isFinite(left) && left > 2 ? `, ${span(left)} left` : "");
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

/** What the figures are of. */
function memoryScope(data) {
  if (data.walked) return `of all ${count(data.keys)} keys, at ${clock(data.walked)}`;
  if (data.complete) return `of all ${count(data.keys)} keys`;
  const percent = 100 * data.share;
  return `in a sample of ${percent < 0.1 ? "less than 0.1" : percent.toFixed(percent < 10 ? 1 : 0)} %`;
}

function memoryView(main) {
  const again = () => attempt(main, async () => {
    walk = null;
    await estimate();
    if (section === "memory") memoryView(main);
  });
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
  const button = (label, onclick) => make("button", { type: "button", onclick }, label);
  const tools = make(
    "div",
    { className: "row" },
    make("label", { className: "quiet" }, "Prefixes end with ", separator),
    make("label", { className: "quiet" }, "and have parts: ", depth),
    button("Another sample", again),
    walk ? null : button("Look at all keys", () => { act(walkAll); memoryView(main); }),
  );
  const walking = make(
    "div",
    { className: "row", hidden: !walk },
    make("progress", { id: "walked", max: 1, value: 0, ariaLabel: "Keys that were looked at" }),
    make("span", { id: "walked-text", className: "quiet" }),
    button("Stop", () => { walk = null; memoryView(main); }),
  );
  if (!data) {
    main.replaceChildren(tools, walking, make("p", { className: "empty" }, "…"));
    showProgress();
    return;
  }
  const whole = data.complete ? "All keys were looked at." : `Estimated from ${data.sampled} of ${count(data.keys)} keys.`;
  const names = (rows, name) => rows.map((row) => ({ ...row, name: shown(row[name]) || "(no prefix)" }));
  const sizes = data.sizes.map((row) => ({ ...row, name: row.up_to === null ? "more" : `up to ${bytes(row.up_to)}` }));
  main.replaceChildren(
    tools,
    walking,
    make("p", { className: "quiet" }, whole),
    make(
      "div",
      { className: "grid" },
      bars("By type", names(data.types, "type")),
      bars("By prefix", names(data.prefixes, "prefix").slice(0, 20)),
      bars("By size of the key", sizes.filter((row) => row.keys > 0)),
      make(
        "section",
        { className: "card wide" },
        make("h2", {}, "Largest keys " + memoryScope(data)),
        table(
          [["Key", "key"], ["Type"], ["Memory", "number"], ["Elements", "number"], ["Expires in", "number"]],
          data.largest.map((large) => [
            keyLink(large.key), large.type, bytes(large.bytes), length(large.type, large.elements),
            large.ttl === null ? "–" : span(large.ttl),
          ]),
          "There are no keys.",
        ),
      ),
    ),
  );
  showProgress();
}

