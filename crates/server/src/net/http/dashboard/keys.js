// ---- Keys -----------------------------------------------------------------------------------------

const PAGE = 100;
const browser = { prefix: "", exact: null, keys: [], facts: new Map(), cursor: "0", open: null };
/** The search that goes on: a newer one ends it. */
let search = 0;

/**
 * Lists keys until the page is full or there are no more. `show` shows the list so far; the key that is
 * exactly what is looked for comes first, wherever it is.
 */
async function listKeys(more, show) {
  search += 1;
  const own = search;
  const isOld = () => own !== search;
  browser.searching = true;
  browser.refused = null;
  if (!more) Object.assign(browser, { keys: [], exact: null, cursor: "0" });
  const full = browser.keys.length + PAGE;
  try {
    if (!more && browser.prefix !== "") {
      const [type] = await tries([["TYPE", browser.prefix]], () => "none");
      if (isOld()) return;
      if (type !== "none") browser.exact = browser.prefix;
      await describe(browser.exact === null ? [] : [browser.exact], isOld);
      if (isOld()) return;
      show();
    }
    while (browser.cursor !== null && browser.keys.length < full) {
      const parts = new URLSearchParams({ prefix: browser.prefix, limit: full - browser.keys.length, cursor: browser.cursor });
      const page = await (await ask(withDatabase("/v1/keys?" + parts))).json();
      if (isOld()) return;
      const known = new Set(browser.keys.map(encoded));
      if (browser.exact !== null) known.add(encoded(browser.exact));
      const fresh = page.keys.filter((key) => !known.has(encoded(key)) && known.add(encoded(key)));
      browser.keys = browser.keys.concat(fresh).sort((a, b) => (shown(a) < shown(b) ? -1 : 1));
      browser.cursor = page.cursor;
      if (fresh.length) show();
      await describe(fresh, isOld);
      if (isOld()) return;
    }
  } catch (error) {
    if (error.status !== 403 || isOld()) throw error;
    browser.refused = "You may not list keys. A key is found by its whole name.";
    browser.cursor = null;
  } finally {
    if (!isOld()) {
      browser.searching = false;
      show();
    }
  }
}

/** Finds out types, expiries and lengths, as far as the user may know them. */
async function describe(keys, isOld) {
  const named = keys.filter((key) => !isBinary(key));
  if (!named.length) return;
  const first = await tries(named.flatMap((key) => [["TYPE", key], ["PTTL", key]]), () => null);
  if (isOld()) return;
  const known = named.map((key, at) => ({ key, type: first[2 * at], ttl: first[2 * at + 1] }));
  const counted = known.filter((one) => one.type in LENGTH);
  const lengths = counted.length ? await tries(counted.map((one) => [LENGTH[one.type], one.key]), () => NaN) : [];
  counted.forEach((one, at) => { one.length = lengths[at]; });
  known.forEach((one) => browser.facts.set(one.key, one));
}

function keysView(main) {
  const input = make("input", {
    id: "search", className: "grow", type: "search", placeholder: "Keys that begin with …", value: browser.prefix,
    ariaLabel: "Keys that begin with", spellcheck: false,
  });
  const list = make("div", { className: "list", role: "group", ariaLabel: "Keys" });
  const detail = make("section", { className: "card", ariaLive: "polite" });
  const whole = make("div", { className: "browser" });
  // A row stays the same element while the list grows, so that a click or the focus is not lost.
  const known = new Map();
  const row = (key) => {
    const name = encoded(key);
    if (!known.has(name)) {
      const [type, length] = [make("span", { className: "type" }), make("span", { className: "length" })];
      const label = make("span", { className: "grow" }, shown(key) || "(empty)");
      const button = make("button", { type: "button", onclick: () => go("keys", key) }, type, label, length);
      known.set(name, { button, type, length });
    }
    const own = known.get(name);
    const facts = isBinary(key) ? { type: "bytes" } : browser.facts.get(key) || {};
    const texts = facts.type in LENGTH ? [length(facts.type, facts.length), facts.ttl > 0 ? lives(facts.ttl) : null] : [];
    own.type.textContent = facts.type || "";
    own.length.textContent = texts.filter(Boolean).join(" · ");
    own.button.ariaCurrent = String(sameKey(key, browser.open));
    return own.button;
  };
  const show = () => {
    const keys = browser.exact === null ? browser.keys : [browser.exact, ...browser.keys];
    const rows = keys.map(row);
    const said = (text) => rows.push(make("p", { className: "empty" }, text));
    const button = (label, onclick) => rows.push(make("button", { type: "button", onclick }, label));
    if (browser.refused) said(browser.refused);
    else if (!keys.length && !browser.searching) said("No keys match.");
    if (browser.searching) {
      said("Searching …");
      button("Stop", () => { search += 1; browser.searching = false; show(); });
    } else if (browser.cursor !== null) {
      button("… more", () => act(() => listKeys(true, show)));
    }
    let next = list.firstChild;
    for (const one of rows) {
      if (one === next) next = next.nextSibling;
      else list.insertBefore(one, next);
    }
    while (next) {
      const gone = next;
      next = next.nextSibling;
      gone.remove();
    }
  };
  const again = () => listKeys(false, show);
  whole.back = () => go("keys");
  /** Shows a key, or none. */
  whole.open = (key) => act(async () => {
    const before = browser.open;
    browser.open = key;
    show();
    whole.classList.toggle("open", key !== null);
    if (key !== null) return keyView(detail, key, again);
    detail.replaceChildren(make("p", { className: "empty" }, "Choose a key."));
    if (before !== null) list.querySelector("button")?.focus();
  });
  let waiting = 0;
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => act(async () => { browser.prefix = input.value; await again(); }), 200);
  });
  whole.addEventListener("keydown", (event) => {
    if (event.key === "Escape") whole.back();
    if ((event.key === "ArrowDown" || event.key === "ArrowUp") && (list.contains(event.target) || event.target === input)) {
      const buttons = [...list.querySelectorAll("button")];
      const at = buttons.indexOf(event.target) + (event.key === "ArrowDown" ? 1 : -1);
      (at < 0 ? input : buttons[Math.min(at, buttons.length - 1)])?.focus();
      event.preventDefault();
    }
  });
  whole.append(
    make(
      "section",
      { className: "card" },
      make("div", { className: "row" }, input, make("button", { type: "button", onclick: () => newKey(detail, whole, again) }, "New")),
      list,
    ),
    detail,
  );
  detail.append(make("p", { className: "empty" }, "Choose a key."));
  main.replaceChildren(whole);
  act(again);
  return whole;
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
    go("keys", name.value);
    await again();
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
    const [type] = isBinary(key) ? [null] : await tries([["TYPE", key]], () => null);
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
  // What the user may not ask for is left out.
  const age = Number(answer.headers.get("Cache-Control")?.match(/max-age=(\d+)/)?.[1]);
  const [ttl, encoding, taken, elements] = view.fixed ? [1000 * age || -1, "", NaN, NaN] :
    await tries([["PTTL", key], ["OBJECT", "ENCODING", key], ["MEMORY", "USAGE", key], [LENGTH[view.type], key]], () => NaN);
  if (browser.open === null || !sameKey(browser.open, key)) return;
  view.ttl = ttl;
  const body = make("div");
  const remove = () => act(async () => {
    if (!confirm(`Delete ${shown(key)}?`)) return;
    await ask(address, { method: "DELETE", headers: { "If-Match": view.tag } });
    note(`${shown(key)} was deleted.`);
    go("keys");
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
    go("keys", name);
    await again();
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
      view.type === "string" ? plain("Download", () => act(() => download(view))) : null,
      plain("Reload", () => act(() => keyView(detail, key, again, place))),
      plain("Delete", remove, "danger"),
    ),
    make(
      "div",
      { className: "facts" },
      make("span", {}, view.type + (encoding ? " · " + encoding : "")),
      Number.isFinite(elements) ? make("span", {}, length(view.type, elements)) : null,
      make("span", {}, ttl > 0 ? "expires in " + span(ttl / 1000) : "does not expire"),
      Number.isFinite(taken) ? make("span", {}, bytes(taken)) : null,
      make("span", {}, "version " + (view.tag || "")),
    ),
    body,
  );
  if (view.type === "string") await stringView(body, view, answer);
  else collectionView(body, view, await answer.json());
}

/** Saves the bytes of a string as a file. */
async function download(view) {
  const data = await (await ask(view.address, { headers: { Accept: "*/*" } })).blob();
  const link = make("a", { href: URL.createObjectURL(data), download: shown(view.key).replace(/[^\w.-]+/g, "_").slice(0, 120) || "value" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
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
