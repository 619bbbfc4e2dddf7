// The server as @upstash/redis meets it, which sends commands over HTTP.
//
// usage: node upstash.js PORT      (NODE_PATH names the folder that holds the library)
"use strict";

const assert = require("node:assert/strict");
const { Redis } = require("@upstash/redis");

const url = `http://127.0.0.1:${process.argv[2]}`;

async function flow(redis) {
  await redis.flushdb();
  assert.equal(await redis.ping(), "PONG");
  assert.equal(await redis.echo("grüße \u{1f600}"), "grüße \u{1f600}");
  // Strings, and the objects that the library makes of JSON.
  assert.equal(await redis.set("text", "value"), "OK");
  assert.equal(await redis.get("text"), "value");
  assert.equal(await redis.set("OK", "OK"), "OK");
  assert.equal(await redis.get("OK"), "OK");
  assert.equal(await redis.get("none"), null);
  assert.equal(await redis.set("object", { a: [1, "x"], b: null }, { ex: 100, nx: true }), "OK");
  assert.deepEqual(await redis.get("object"), { a: [1, "x"], b: null });
  assert.equal(await redis.set("object", "other", { nx: true }), null);
  assert.ok((await redis.ttl("object")) > 90);
  assert.equal(await redis.incrby("count", 41), 41);
  assert.equal(await redis.incr("count"), 42);
  assert.deepEqual(await redis.mget("text", "none", "count"), ["value", null, 42]);
  assert.equal(await redis.exists("text", "none"), 1);
  assert.equal(await redis.type("text"), "string");
  // Collections.
  assert.equal(await redis.hset("hash", { field: "value", number: 5, nested: { x: 1 } }), 3);
  assert.deepEqual(await redis.hgetall("hash"), { field: "value", number: 5, nested: { x: 1 } });
  assert.equal(await redis.hget("hash", "field"), "value");
  assert.deepEqual(await redis.hmget("hash", "number", "none"), { number: 5, none: null });
  assert.equal(await redis.rpush("list", "a", "b", { c: 1 }), 3);
  assert.deepEqual(await redis.lrange("list", 0, -1), ["a", "b", { c: 1 }]);
  assert.equal(await redis.lpop("list"), "a");
  assert.equal(await redis.sadd("set", "x", "y"), 2);
  assert.deepEqual((await redis.smembers("set")).sort(), ["x", "y"]);
  assert.equal(await redis.zadd("zset", { score: 1.5, member: "a" }, { score: 2, member: "b" }), 2);
  assert.deepEqual(await redis.zrange("zset", 0, -1, { withScores: true }), ["a", 1.5, "b", 2]);
  assert.equal(await redis.zscore("zset", "a"), 1.5);
  let cursor = "0";
  const names = new Set();
  do {
    const [next, keys] = await redis.scan(cursor, { match: "*set", count: 100 });
    keys.forEach((key) => names.add(key));
    cursor = next;
  } while (cursor !== "0");
  assert.deepEqual([...names].sort(), ["set", "zset"]);
  // Errors, rows of commands, and commands as one.
  await assert.rejects(redis.lpush("text", "x"), /WRONGTYPE/);
  const pipeline = redis.pipeline();
  pipeline.set("p", 1);
  pipeline.incr("p");
  pipeline.get("none");
  assert.deepEqual(await pipeline.exec(), ["OK", 2, null]);
  const transaction = redis.multi();
  transaction.incr("p");
  transaction.hgetall("hash");
  const [count, hash] = await transaction.exec();
  assert.equal(count, 3);
  assert.equal(hash.field, "value");
  await assert.rejects(redis.multi().lpush("text", "x").exec(), /WRONGTYPE/);
  assert.equal(await redis.del("text", "p"), 2);
}

(async () => {
  const token = "secret";
  await flow(new Redis({ url, token }));
  await flow(new Redis({ url, token, responseEncoding: false }));
  await flow(new Redis({ url, token, enableAutoPipelining: true }));
  const wrong = new Redis({ url, token: "wrong", retry: false });
  await assert.rejects(wrong.get("x"), /NOAUTH/);
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
