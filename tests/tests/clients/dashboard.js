// The dashboard in a browser: node dashboard.js PORT PART, where a part is a set of checks.
// With SHOTS, the name of a directory, pictures are left there.
"use strict";

const assert = require("node:assert");
const { chromium } = require("playwright-core");

const [port, part] = process.argv.slice(2);
const base = `http://127.0.0.1:${port}`;
let headers = part === "password" ? { Authorization: "Bearer a secret" } : {};

async function run(...words) {
  const answer = await fetch(base + "/v1/command", { method: "POST", headers, body: JSON.stringify(words) });
  const told = await answer.json();
  assert.ok(!("error" in told), JSON.stringify(told));
  return told.result;
}

/** Names and values that would act if they became markup. */
const HOSTILE = '<img src=x onerror="alert(1)"><script>alert(2)</script>"\'`&amp;${1}';

async function fill() {
  await run("FLUSHALL");
  await run("SET", "greeting", '{"hello":"world","list":[1,2,3]}');
  await run("SET", HOSTILE, HOSTILE);
  await run("SET", "session:1", "x".repeat(300), "EX", "3600");
  await run("RPUSH", "queue:mail", "first", "second", "second", HOSTILE);
  await run("SADD", "tags", "red", "green", HOSTILE);
  await run("HSET", "user:1", "name", "Ada", "born", "1815", HOSTILE, HOSTILE);
  await run("ZADD", "scores", "1.5", "ada", "7", HOSTILE);
  await run("XADD", "events", "1-1", "kind", "login", HOSTILE, HOSTILE);
  for (let number = 0; number < 130; number += 1) {
    await run("SET", `user:${number + 2}:profile`, "y".repeat(number * 20));
  }
  await fetch(base + "/v1/keys/picture%ff", { method: "PUT", headers, body: Buffer.from([0xff, 0xd8, 0, 1]) });
}

async function open(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(25000);
  page.wrong = [];
  page.on("pageerror", (error) => page.wrong.push(String(error)));
  page.on("console", (message) => {
    // The browser itself notes statuses that the page expects.
    const expected = /status of (400|401|403|404|412)|ERR_INTERNET_DISCONNECTED/.test(message.text());
    if (message.type() === "error" && !expected) page.wrong.push(message.text());
  });
  page.answers = [];
  page.on("dialog", (dialog) => {
    if (dialog.type() === "alert") page.wrong.push("a value of a key has acted");
    const answer = page.answers.shift();
    return answer === null ? dialog.dismiss() : dialog.accept(answer);
  });
  await page.goto(base + "/");
  return page;
}

const shot = async (page, name) => {
  if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/${name}.png` });
};

/** Whether what is shown fits into the width, and every table into its own. */
async function fits(page, where) {
  const [width, room, cut] = await page.evaluate(() => [
    document.documentElement.scrollWidth, innerWidth,
    innerWidth < 500 ? [...document.querySelectorAll(".scroll")].filter((own) => own.scrollWidth > own.clientWidth).length : 0,
  ]);
  assert.ok(width <= room, `${where} is ${width} wide, of ${room}`);
  assert.strictEqual(cut, 0, `${where}: a table is wider than its place`);
}

const tab = (page, name) => page.getByRole("tab", { name, exact: true }).click();

async function sections(browser) {
  await fill();
  for (const [name, options] of [
    ["light", { colorScheme: "light" }],
    ["dark", { colorScheme: "dark" }],
    ["phone", { colorScheme: "light", viewport: { width: 390, height: 844 }, hasTouch: true }],
    ["phone-dark", { colorScheme: "dark", viewport: { width: 320, height: 640 } }],
  ]) {
    const page = await open(browser, options);
    await page.getByText("commands a second").first().waitFor();
    for (let number = 0; number < 4000; number += 200) {
      const many = Array.from({ length: 200 }, () => ["GET", "greeting"]);
      await fetch(base + "/v1/pipeline", { method: "POST", body: JSON.stringify(many) });
    }
    await page.getByText("139", { exact: true }).first().waitFor();
    await page.locator("td", { hasText: "greeting" }).first().waitFor();
    await page.getByText("Append-only file").waitFor();
    await page.waitForFunction(() => [...document.querySelectorAll(".chart path")].some((path) => path.getAttribute("d").includes("L")));
    // The axes have times and values, and the pointer shows those of a moment in every chart.
    const labels = await page.locator(".chart").first().locator("text").allTextContents();
    assert.ok(labels.some((label) => /^\d\d:\d\d(:\d\d)?$/.test(label)) && labels.includes("0"), labels.join());
    await page.locator(".chart").first().hover();
    const moments = await page.locator(".legend .time").allTextContents();
    assert.ok(/^\d\d:\d\d:\d\d$/.test(moments[0]) && moments.every((one) => one === moments[0]), moments.join());
    await page.getByText("worker 1").waitFor();
    assert.strictEqual(await page.getByText("Replication", { exact: true }).count(), 0, "there is none");
    await fits(page, "the overview");
    await shot(page, `${name}-overview`);
    await tab(page, "Memory");
    // A sample on a busy machine may have no time for all of them.
    await page.getByRole("button", { name: "Look at all keys" }).click();
    await page.getByRole("heading", { name: /^Largest keys of all 139 keys, at/ }).waitFor();
    await page.getByText("All keys were looked at.").waitFor();
    await page.locator(".bar", { hasText: "user:" }).first().waitFor();
    await page.locator("td", { hasText: "user:131:profile" }).first().waitFor();
    await fits(page, "the memory");
    await shot(page, `${name}-memory`);
    await tab(page, "Clients");
    await page.locator("td", { hasText: "127.0.0.1:" }).first().waitFor();
    await fits(page, "the clients");
    await shot(page, `${name}-clients`);
    await tab(page, "Slow commands");
    await page.locator("td", { hasText: "GET greeting" }).first().waitFor();
    await fits(page, "the slow commands");
    const slow = await page.locator("main").textContent();
    assert.ok(!/OVERVIEW|MEMORY/.test(slow), "what the page asks by itself is there");
    await shot(page, `${name}-slow`);
    await tab(page, "Console");
    const lines = ["SET 'a key' \"line\\none\"", "GET 'a key'", "HGETALL user:1", "NOSUCH", "DEL 'a key'"];
    for (const [at, line] of lines.entries()) {
      await page.getByLabel("Command").fill(line);
      await page.keyboard.press("Enter");
      // The command, and its answer.
      await page.locator("#console div").nth(2 * at + 1).waitFor();
    }
    const told = await page.locator("#console").textContent();
    assert.match(told, /line\none/);
    assert.match(told, /"name" => "Ada"/);
    assert.match(told, /\(error\) ERR unknown command 'NOSUCH'/);
    await page.keyboard.press("ArrowUp");
    assert.strictEqual(await page.getByLabel("Command").inputValue(), "DEL 'a key'");
    await fits(page, "the console");
    await shot(page, `${name}-console`);
    await tab(page, "Keys");
    await page.locator(".list button").nth(99).waitFor();
    await fits(page, "the keys");
    await shot(page, `${name}-keys`);
    await page.getByLabel("Keys that begin with").fill("user:1");
    await page.locator(".list button", { hasText: /^hash/ }).click();
    // On a narrow screen a cell says its column's name too.
    await page.locator("td", { hasText: /^Ada$/ }).waitFor();
    await page.locator(".facts", { hasText: "3 elements" }).waitFor();
    await fits(page, "a key");
    await shot(page, `${name}-hash`);
    assert.deepStrictEqual(page.wrong, []);
    await page.context().close();
  }
}

/** Opens a key by its name. */
async function show(page, key, prefix = key) {
  await page.getByLabel("Keys that begin with").fill(prefix);
  await page.locator(".list button").filter({ has: page.getByText(key, { exact: true }) }).click();
  await page.locator(".name", { hasText: key }).waitFor();
}

/** Waits until a key has this value. */
async function isSaved(key, expected) {
  for (let looks = 0; looks < 200 && (await run("GET", key)) !== expected; looks += 1) {
    await new Promise((done) => setTimeout(done, 50));
  }
  assert.strictEqual(await run("GET", key), expected);
}

/** Waits until a key is shown as it is now. */
async function isShown(page, key) {
  const answer = await fetch(`${base}/v1/keys/${encodeURIComponent(key)}`, { headers });
  await page.getByText("version " + answer.headers.get("ETag"), { exact: true }).waitFor();
}

async function keys(browser) {
  await fill();
  const page = await open(browser);
  await page.getByText("commands a second").first().waitFor();
  // By the keyboard alone: to the keys, into the search, down the list, into the value, and saved.
  await page.keyboard.press("2");
  await page.keyboard.press("/");
  await page.keyboard.type("greet");
  await page.locator(".list button").filter({ hasText: "greeting" }).waitFor();
  await page.waitForFunction(() => document.querySelectorAll(".list button").length === 1);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  const value = page.getByLabel("Value", { exact: true });
  await value.waitFor();
  await page.getByRole("button", { name: "Format JSON" }).click();
  assert.match(await value.inputValue(), /\n {2}"hello": "world"/);
  await value.fill("by hand");
  await value.press("Control+s");
  await page.getByText("Saved.").first().waitFor();
  assert.strictEqual(await run("GET", "greeting"), "by hand");
  await isShown(page, "greeting");
  await shot(page, "string");

  // Somebody else was first.
  await run("SET", "greeting", "theirs");
  await value.fill("mine");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Another client has changed this key").waitFor();
  assert.strictEqual(await run("GET", "greeting"), "theirs");
  await shot(page, "conflict");
  await page.getByRole("button", { name: "Show it as it is now" }).click();
  await page.waitForFunction(() => document.querySelector("textarea")?.value === "theirs");

  // Line ends stay as they were, and where no text area could keep them, nothing is edited.
  await run("SET", "lines:dos", "one\r\ntwo\r\n");
  await run("SET", "lines:mixed", "one\r\ntwo\nthree");
  await show(page, "lines:dos");
  await value.waitFor();
  await value.fill((await value.inputValue()).replace("two", "zwei"));
  await page.getByRole("button", { name: "Save" }).click();
  await isSaved("lines:dos", "one\r\nzwei\r\n");
  await show(page, "lines:mixed");
  await page.getByText("lines end in different ways").waitFor();
  assert.ok(!(await page.locator("textarea").isEditable()));

  // An expiry outlives an edit.
  await show(page, "session:1");
  await value.fill("short");
  await page.getByRole("button", { name: "Save" }).click();
  await isSaved("session:1", "short");
  const left = await run("TTL", "session:1");
  assert.ok(left > 3000 && left <= 3600, String(left));

  // Hash: a field is changed, added and removed.
  await show(page, "user:1");
  page.answers.push("Ada Lovelace");
  await page.getByRole("row", { name: /^name/ }).getByRole("button", { name: "Edit" }).click();
  await page.getByRole("cell", { name: "Ada Lovelace", exact: true }).waitFor();
  await page.getByLabel("Field").fill("city");
  await page.getByLabel("Value").fill("London");
  await page.getByRole("button", { name: "Add" }).click();
  await page.getByRole("cell", { name: "London", exact: true }).waitFor();
  await page.getByRole("button", { name: "Remove born" }).click();
  await page.waitForFunction(() => !document.querySelector("main").textContent.includes("1815"));
  assert.deepStrictEqual(await run("HGETALL", "user:1"), { name: "Ada Lovelace", [HOSTILE]: HOSTILE, city: "London" });
  // Somebody else changes it: an edit of what is shown fails.
  await run("HSET", "user:1", "name", "Byron");
  await page.getByRole("button", { name: "Remove city" }).click();
  await page.getByText("Another client has changed this key").waitFor();
  assert.strictEqual(await run("HGET", "user:1", "city"), "London");

  // A field that is no text is shown, and an edit does not add another one.
  await run("EVAL", "return redis.call('HSET', KEYS[1], '\\255\\254', 'bytes')", "1", "odd:hash");
  await show(page, "odd:hash");
  await page.getByRole("cell", { name: "\\xff\\xfe", exact: true }).waitFor();
  assert.strictEqual(await page.getByRole("button", { name: "Edit" }).count(), 0);

  // List: an element is removed by its place, though there are others like it.
  await show(page, "queue:mail");
  await page.getByRole("button", { name: "Remove 2" }).click();
  await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 3);
  page.answers.push("changed");
  await page.getByRole("row", { name: /^0/ }).getByRole("button", { name: "Edit" }).click();
  await page.getByRole("cell", { name: "changed", exact: true }).waitFor();
  assert.deepStrictEqual(await run("LRANGE", "queue:mail", "0", "-1"), ["changed", "second", HOSTILE]);

  await show(page, "tags");
  await page.getByLabel("Member").fill("blue");
  await page.getByRole("button", { name: "Add" }).click();
  await page.getByRole("cell", { name: "blue", exact: true }).waitFor();
  await page.getByRole("button", { name: "Remove red" }).click();
  await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 3);
  assert.deepStrictEqual((await run("SMEMBERS", "tags")).sort(), ["blue", "green", HOSTILE].sort());

  await show(page, "scores");
  page.answers.push("9.25");
  await page.getByRole("row", { name: /^ada/ }).getByRole("button", { name: "Edit" }).click();
  await page.getByRole("cell", { name: "9.25", exact: true }).waitFor();
  assert.strictEqual(await run("ZSCORE", "scores", "ada"), 9.25);

  await show(page, "events");
  await page.getByText("kind = login").waitFor();
  await page.getByLabel("Field").fill("kind");
  await page.getByLabel("Value").fill("logout");
  await page.getByRole("button", { name: "Add" }).click();
  await page.getByText("kind = logout").waitFor();
  await page.getByRole("button", { name: "Remove 1-1" }).click();
  await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 1);
  assert.strictEqual(await run("XLEN", "events"), 1);

  // Markup in names and values stays text.
  await show(page, HOSTILE, "<img");
  assert.strictEqual(await value.inputValue(), HOSTILE);
  assert.strictEqual(await page.locator("main img, main script").count(), 0);
  await shot(page, "hostile");

  // Bytes that are no text are shown.
  await page.getByLabel("Keys that begin with").fill("picture");
  await page.locator(".list button", { hasText: "picture\\xff" }).click();
  await page.getByText("The value is not text").waitFor();

  // A key is made, given an expiry, renamed and deleted.
  await page.getByRole("button", { name: "New" }).click();
  await page.getByLabel("Key", { exact: true }).fill("made here");
  await page.getByLabel("Type").selectOption("zset");
  await page.locator("form").getByLabel("Member").fill("one");
  await page.locator("form").getByLabel("Score").fill("1");
  await page.getByRole("button", { name: "Create" }).click();
  await page.locator(".name", { hasText: "made here" }).waitFor();
  assert.strictEqual(await run("ZSCORE", "made here", "one"), 1);
  page.answers.push("500");
  await page.getByRole("button", { name: "Expiry" }).click();
  await page.getByText(/expires in 8 min/).waitFor();
  page.answers.push("named anew");
  await page.getByRole("button", { name: "Rename" }).click();
  await page.locator(".name", { hasText: "named anew" }).waitFor();
  page.answers.push("");
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByText("named anew was deleted.").waitFor();
  assert.strictEqual(await run("EXISTS", "named anew", "made here"), 0);

  // Another database, and pages of a long collection.
  await run("SET", "only in the first", "1");
  const many = Array.from({ length: 250 }, (_, number) => `element ${number}`);
  await run("RPUSH", "long", ...many);
  await show(page, "long");
  await page.getByRole("button", { name: "Next page" }).click();
  await page.getByRole("cell", { name: "element 100", exact: true }).waitFor();
  await page.getByLabel("Database").selectOption("1");
  await page.getByText("No keys match.").waitFor();
  assert.deepStrictEqual(page.wrong, []);
}

/** What the server has kept, addresses, the walk over all keys, and a server that is gone. */
async function life(browser) {
  await fill();
  // A key of which a sample finds only one in ten, and long names before it.
  const many = Array.from({ length: 500 }, (_, number) => ["SET", `many:${number}`, "z"]);
  for (let part = 0; part < 50; part += 1) {
    const list = many.map(([set, key, value]) => [set, `${key}:${part}`, value]);
    await fetch(base + "/v1/pipeline", { method: "POST", body: JSON.stringify(list) });
  }
  await run("SET", "many:", "x".repeat(3e6));
  // The last seconds are there before the page has been open for one. Those in which the browser
  // started saw no command.
  const history = async () => (await (await fetch(base + "/v1/overview")).json()).history;
  for (let kept = await history(); kept.at.length < 3 || !kept.commands.some((rate) => rate > 0); kept = await history()) {
    await run("GET", "greeting");
    await new Promise((wake) => setTimeout(wake, 100));
  }
  const page = await open(browser);
  await page.getByText("commands a second").first().waitFor();
  const told = await page.evaluate(() => past.at.length);
  assert.ok(told >= 3, `${told} samples`);
  const kept = await history();
  assert.ok(kept.at.every((at, number) => number === 0 || at > kept.at[number - 1]), kept.at.join());
  assert.strictEqual(kept.workers.length, 2);
  for (const column of ["commands", "p99_us", "memory", "input"]) assert.strictEqual(kept[column].length, kept.at.length);
  assert.ok(kept.commands.some((rate) => rate > 0), kept.commands.join());
  const later = await (await fetch(`${base}/v1/overview?after=${kept.next}`)).json();
  assert.ok(later.history.at.every((at) => at > kept.at.at(-1)), "only what is new");
  assert.strictEqual((await fetch(base + "/v1/overview?after=x")).status, 400);
  assert.strictEqual((await fetch(base + "/v1/overview?nosuch=1")).status, 400);

  // Only a walk over all keys finds the largest one for sure.
  await tab(page, "Memory");
  await page.getByText(/^Largest keys in a sample of (less than )?[\d.]+ %$/).waitFor();
  await page.getByRole("button", { name: "Look at all keys" }).click();
  await page.getByText(/^Largest keys of all 25.1 k keys, at/).waitFor();
  await page.locator("td", { hasText: /^many:$/ }).waitFor();
  const sums = await page.evaluate(() => [memory.data.keys, memory.data.types.reduce((sum, row) => sum + row.keys, 0)]);
  const keys = await run("DBSIZE");
  assert.deepStrictEqual(sums, [keys, keys]);
  await shot(page, "walk");
  await page.locator("td a", { hasText: /^many:$/ }).click();
  await page.locator(".name", { hasText: "many:" }).waitFor();
  await page.getByText("The value is long").waitFor();

  // Back leads to where one was, and an address to what it names.
  await page.goBack();
  await page.getByRole("heading", { name: /^Largest keys/ }).waitFor();
  await tab(page, "Keys");
  const input = page.getByLabel("Keys that begin with");
  await input.fill("many:");
  // The exact key comes first, and a hundred others follow.
  const first = page.locator(".list button").first();
  await first.getByText("many:", { exact: true }).waitFor();
  await page.locator(".list button").nth(100).waitFor();
  await first.click();
  await page.locator(".name", { hasText: /^many:$/ }).waitFor();
  assert.match(page.url(), /#keys\/0\/many%3A$/);
  await page.goBack();
  await page.getByText("Choose a key.").waitFor();
  assert.strictEqual(await input.inputValue(), "many:");
  await page.goForward();
  await page.locator(".name", { hasText: /^many:$/ }).waitFor();
  // A search for what few keys begin with goes on until it has seen all.
  await input.fill("user:131:");
  const only = (text) => page.waitForFunction((text) => {
    const rows = [...document.querySelectorAll(".list button")].map((row) => row.textContent);
    return rows.length === 1 && rows[0].includes(text);
  }, text);
  await only("user:131:profile2.5 KiB");
  await input.fill("session:1");
  await only("session:1300 B · 59 min");
  // Names in addresses are as hostile as any.
  for (const [hash, name] of [
    ["#keys/0/" + encodeURIComponent(HOSTILE), HOSTILE],
    ["#keys/0/picture%ff", "picture\\xff"],
  ]) {
    await page.goto(base + "/" + hash);
    await page.locator(".name").getByText(name, { exact: true }).waitFor();
  }
  const saved = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download" }).click();
  const bytes = require("node:fs").readFileSync(await (await saved).path());
  assert.deepStrictEqual([...bytes], [0xff, 0xd8, 0, 1]);
  await page.goto(base + "/#keys/3/<img src=x onerror=alert(1)>");
  await page.getByText("There is no key <img src=x onerror=alert(1)> any more.").waitFor();
  assert.strictEqual(await page.getByLabel("Database").inputValue(), "3");
  assert.strictEqual(await page.locator("main img").count(), 0);
  await page.goto(base + "/#nosuch");
  await page.getByText("commands a second").first().waitFor();

  // The server is out of reach for a while.
  assert.deepStrictEqual(page.wrong, []);
  await page.context().setOffline(true);
  const gone = page.locator("#gone");
  await gone.getByText("The server has not answered since").waitFor();
  await shot(page, "gone");
  await page.context().setOffline(false);
  await gone.waitFor({ state: "hidden" });
  await page.getByText("The server answers again.").waitFor();
}

/** A user sees and does what its rights allow, and is told what they do not. */
async function rights(browser) {
  await fill();
  await run("SET", "shop:1", "apples");
  await run("ACL", "SETUSER", "reader", "on", ">reads", "~shop:*", "+@read", "-@dangerous", "-scan");
  await run("ACL", "SETUSER", "default", "resetpass", ">a secret");
  headers = { Authorization: "Bearer a secret" };
  const page = await open(browser);
  await page.getByLabel("User").fill("reader");
  await page.getByLabel("Password").fill("reads");
  await page.keyboard.press("Enter");
  await page.getByText(/^You may not see how the server does: /).waitFor();
  await tab(page, "Keys");
  await page.getByText("You may not list keys.").waitFor();
  await page.getByLabel("Keys that begin with").fill("shop:1");
  await page.locator(".list button", { hasText: "shop:1" }).click();
  await page.waitForFunction(() => document.querySelector("textarea")?.value === "apples");
  await page.getByLabel("Value", { exact: true }).fill("pears");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText(/NOPERM/).first().waitFor();
  for (const name of ["Memory", "Clients", "Slow commands"]) {
    await tab(page, name);
    await page.locator("main .warning", { hasText: "NOPERM" }).waitFor();
  }
  await tab(page, "Console");
  await page.getByLabel("Command").fill("GET user:1");
  await page.keyboard.press("Enter");
  await page.locator("#console", { hasText: "NOPERM" }).waitFor();
  assert.ok(!(await page.content()).includes("user:2:profile"), "names of other keys");
  assert.deepStrictEqual(page.wrong, []);
}

async function password(browser) {
  await fill();
  const page = await open(browser);
  const field = page.getByLabel("Password");
  await field.waitFor();
  await shot(page, "login");
  assert.ok(!(await page.locator("main").textContent()).includes("user:"), "nothing is shown without the password");
  await field.fill("wrong");
  await page.keyboard.press("Enter");
  await page.getByText("That is not right.").waitFor();
  await field.fill("a secret");
  await page.keyboard.press("Enter");
  await page.getByText("commands a second").first().waitFor();
  await tab(page, "Keys");
  await page.locator(".list button").nth(50).waitFor();
  // It is known until the tab is closed.
  await page.reload();
  await page.locator(".list button").nth(50).waitFor();
  await page.getByRole("button", { name: "Log out" }).click();
  await field.waitFor();
  assert.deepStrictEqual(page.wrong, []);
}

(async () => {
  // The sandbox needs rights that a container may lack; the pages are this test's own.
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
  try {
    await { sections, keys, life, rights, password }[part](browser);
  } finally {
    await browser.close();
  }
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
