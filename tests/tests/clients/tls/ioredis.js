// The server as ioredis meets it over TLS.
//
// usage: node ioredis.js PORT AUTHORITY CERTIFICATE KEY OTHER_AUTHORITY
//                                              (NODE_PATH names the folder that holds the library)
//
// It says that all is well, or fails.
"use strict";

const assert = require("node:assert/strict");
const { readFileSync } = require("node:fs");
const { once } = require("node:events");
const { setTimeout: pause } = require("node:timers/promises");
const Redis = require("ioredis");

const [port, ...files] = process.argv.slice(2);
const [ca, cert, key, otherCa] = files.map((name) => readFileSync(name));
const open = [];

function connect(tls) {
  const client = new Redis({
    port: Number(port),
    host: "127.0.0.1",
    tls,
    lazyConnect: true,
    retryStrategy: null,
    commandTimeout: 30_000,
  });
  client.failure = "";
  client.on("error", (error) => (client.failure ||= `${error.code} ${error.message}`));
  open.push(client);
  return client;
}

async function isRefused(tls) {
  const client = connect(tls);
  await assert.rejects(async () => {
    await client.connect();
    await client.ping();
  });
  return client.failure;
}

async function main() {
  const client = connect({ ca, cert, key });
  await client.connect();
  await client.flushall();
  const value = Buffer.alloc(1_024_000, Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)));
  assert.equal(await client.set("value", value), "OK");
  assert.ok(value.equals(await client.getBuffer("value")));
  for (const begin of ["pipeline", "multi"]) {
    const batch = client[begin]();
    for (let index = 0; index < 2000; index++) batch.rpush(begin, `item-${index}`);
    const replies = await batch.exec();
    assert.deepEqual(replies.at(-1), [null, 2000]);
    assert.equal((await client.lrange(begin, 0, -1)).length, 2000);
  }
  const waiting = connect({ ca, cert, key });
  const popped = waiting.blpop("queue", 30);
  await pause(100);
  await client.rpush("queue", "late");
  assert.deepEqual(await popped, ["queue", "late"]);
  const subscriber = connect({ ca, cert, key });
  await subscriber.subscribe("news");
  await subscriber.psubscribe("n*");
  for (const text of ["hello", "x".repeat(100_000)]) {
    const heard = Promise.all([once(subscriber, "message"), once(subscriber, "pmessage")]);
    assert.equal(await client.publish("news", text), 2);
    assert.deepEqual(await heard, [["news", text], ["n*", "news", text]]);
  }
  assert.match(await isRefused({ ca: otherCa, cert, key }), /UNABLE_TO_VERIFY|SELF_SIGNED|unable to/);
  await isRefused({ ca });
  console.log("all is well");
}

main()
  .catch((error) => {
    console.error(error);
    process.exitCode = 1;
  })
  .finally(() => open.forEach((client) => client.disconnect()));
