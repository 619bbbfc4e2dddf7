// The dashboard in a browser: node dashboard.js PORT PART, where a part is a set of checks.
// With SHOTS, the name of a directory, pictures are left there.
"use strict";

const assert = require("node:assert");
const { chromium } = require("playwright-core");

const [port, part] = process.argv.slice(2);
const base = `http://127.0.0.1:${port}`;
const headers = part === "password" ? { Authorization: "Bearer a secret" } : {};

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
    const expected = /status of (400|401|404|412)/.test(message.text());
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

/** Whether what is shown fits into the width. */
async function fits(page, where) {
  const [width, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(width <= room, `${where} is ${width} wide, of ${room}`);
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
    await fits(page, "the overview");
    await shot(page, `${name}-overview`);
    await tab(page, "Memory");
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
    await page.getByRole("cell", { name: "Ada", exact: true }).waitFor();
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
  for (let looks = 0; looks < 200 && (await run("GET", "lines:dos")).includes("two"); looks += 1) {
    await page.waitForTimeout(50);
  }
  assert.strictEqual(await run("GET", "lines:dos"), "one\r\nzwei\r\n");
  await show(page, "lines:mixed");
  await page.getByText("lines end in different ways").waitFor();
  assert.ok(!(await page.locator("textarea").isEditable()));

  // An expiry outlives an edit.
  await show(page, "session:1");
  await value.fill("short");
  await page.getByRole("button", { name: "Save" }).click();
  await page.waitForFunction(() => document.querySelector("textarea")?.value === "short");
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

async function password(browser) {
  await fill();
  const page = await open(browser);
  const field = page.getByLabel("Password");
  await field.waitFor();
  await shot(page, "login");
  assert.ok(!(await page.locator("main").textContent()).includes("user:"), "nothing is shown without the password");
  await field.fill("wrong");
  await page.keyboard.press("Enter");
  await page.getByText("That is not the password.").waitFor();
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
    await { sections, keys, password }[part](browser);
  } finally {
    await browser.close();
  }
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
