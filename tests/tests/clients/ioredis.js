// The server as ioredis meets it: every family through the library's own methods.
//
// usage: node ioredis.js PORT [NAME...]      (NODE_PATH names the folder that holds the library)
//
// Each check begins with an empty server. What fails is reported with its trace, and the exit code
// says whether anything did.
"use strict";

const assert = require("node:assert/strict");
const { setTimeout: pause } = require("node:timers/promises");
const Redis = require("ioredis");

const [port, ...names] = process.argv.slice(2);
// How long anything may take that another connection or the server has to bring about.
const PATIENCE = 30_000;
const checks = {};
const open = [];

function connect(options = {}) {
  const client = new Redis({ port: Number(port), host: "127.0.0.1", ...options });
  open.push(client);
  return client;
}

async function until(condition, what) {
  const end = Date.now() + PATIENCE;
  while (!(await condition())) {
    assert.ok(Date.now() < end, `${what} does not happen`);
    await pause(5);
  }
}

function range(count) {
  return [...Array(count).keys()];
}

checks.connections = async (r) => {
  assert.equal(await r.ping(), "PONG");
  assert.equal(await r.echo("grüße"), "grüße");
  assert.deepEqual(await r.echoBuffer(Buffer.from([0, 255])), Buffer.from([0, 255]));
  const named = connect({ connectionName: "a-name", db: 5 });
  assert.equal(await named.client("GETNAME"), "a-name");
  assert.match(await named.client("INFO"), / db=5 /);
  const id = await named.client("ID");
  assert.equal(await r.client("KILL", "ID", id), 1);
  // The library connects again, with its name and database.
  assert.ok((await named.client("ID")) > id);
  assert.match(await named.client("INFO"), / db=5 /);
  await assert.rejects(r.call("NOSUCH", "x"), /unknown command 'NOSUCH'/);
  await assert.rejects(r.call("GET"), /wrong number of arguments for 'get' command/);
};

checks.strings = async (r) => {
  assert.equal(await r.set("s", "value"), "OK");
  assert.equal(await r.get("none"), null);
  assert.equal(await r.set("s", "other", "PX", 100_000, "XX", "GET"), "value");
  assert.ok((await r.pttl("s")) > 0);
  assert.equal(await r.getex("s", "PERSIST"), "other");
  assert.equal(await r.ttl("s"), -1);
  assert.equal(await r.append("s", "!"), 6);
  assert.equal(await r.getrange("s", -3, -1), "er!");
  assert.equal(await r.incrby("n", 41), 41);
  assert.equal(await r.incrbyfloat("n", 0.5), "41.5");
  await assert.rejects(r.incr("s"), /not an integer/);
  assert.equal(await r.mset({ a: 1, b: "two" }), "OK");
  assert.equal(await r.mset(new Map([["c", 3]])), "OK");
  assert.deepEqual(await r.mget("a", "none", "b", "c"), ["1", null, "two", "3"]);
  const big = Buffer.alloc(3_000_000, "0123456789");
  assert.equal(await r.set("big", big), "OK");
  assert.ok(big.equals(await r.getBuffer("big")));
  assert.equal(await r.setbit("bits", 100, 1), 0);
  assert.equal(await r.bitcount("bits"), 1);
  assert.deepEqual(await r.bitfield("bits", "SET", "u8", 0, 200, "GET", "u4", 0), [0, 12]);
};

checks.keys = async (r) => {
  await r.mset({ a: 1, b: 2, c: 3 });
  assert.deepEqual((await r.keys("*")).sort(), ["a", "b", "c"]);
  assert.equal(await r.exists("a", "a", "x"), 2);
  assert.equal(await r.del("a", "x"), 1);
  assert.equal(await r.rename("b", "bb"), "OK");
  await assert.rejects(r.rename("none", "x"), /no such key/);
  assert.equal(await r.copy("bb", "copy"), 1);
  assert.equal(await r.type("copy"), "string");
  assert.equal(await r.object("ENCODING", "copy"), "int");
  assert.equal(await r.expire("copy", 100, "NX"), 1);
  assert.equal(await r.persist("copy"), 1);
  const payload = await r.dumpBuffer("copy");
  assert.equal(await r.restore("back", 0, payload), "OK");
  assert.equal(await r.get("back"), "2");
  await r.set("brief", 1, "PX", 1);
  await until(async () => (await r.get("brief")) === null, "the end of a key's time");
  assert.equal(await r.dbsize(), 4);
};

checks.collections = async (r) => {
  assert.equal(await r.rpush("l", 1, 2, 3), 3);
  assert.deepEqual(await r.lrange("l", 0, -1), ["1", "2", "3"]);
  assert.equal(await r.lmove("l", "m", "LEFT", "RIGHT"), "1");
  assert.deepEqual(await r.rpop("l", 5), ["3", "2"]);
  await assert.rejects(r.get("m"), /^ReplyError: WRONGTYPE/);
  assert.equal(await r.hset("h", { a: 1, b: "two" }), 2);
  assert.deepEqual({ ...(await r.hgetall("h")) }, { a: "1", b: "two" });
  assert.deepEqual(await r.hmget("h", "b", "x"), ["two", null]);
  assert.equal(await r.sadd("s", ["x", "y", "z"]), 3);
  assert.equal(await r.sadd("t", "y"), 1);
  assert.deepEqual((await r.sdiff("s", "t")).sort(), ["x", "z"]);
  assert.deepEqual(await r.smismember("s", "x", "q"), [1, 0]);
  assert.equal(await r.zadd("z", 1, "a", "+inf", "b", "-2.5", "c"), 3);
  assert.deepEqual(await r.zrange("z", 0, -1, "WITHSCORES"), ["c", "-2.5", "a", "1", "b", "inf"]);
  assert.deepEqual(await r.zrevrangebyscore("z", "+inf", "(1"), ["b"]);
  assert.deepEqual(await r.zpopmin("z"), ["c", "-2.5"]);
  assert.equal(await r.geoadd("g", 13.361389, 38.115556, "Palermo"), 1);
  assert.deepEqual(await r.geosearch("g", "FROMLONLAT", 15, 37, "BYRADIUS", 200, "km"), ["Palermo"]);
  assert.equal(await r.pfadd("p", "a", "b"), 1);
  assert.equal(await r.pfcount("p"), 2);
  await r.rpush("numbers", 3, 1, 2);
  assert.deepEqual(await r.sort("numbers", "DESC", "LIMIT", 0, 2), ["3", "2"]);
};

checks.scanStreams = async (r) => {
  const pipeline = r.pipeline();
  range(3000).forEach((index) => pipeline.set(`key:${index}`, index).sadd("set", index).hset("hash", index, 1));
  await pipeline.exec();
  const gathered = async (stream, step) => {
    const found = new Set();
    for await (const page of stream) {
      for (let index = 0; index < page.length; index += step) found.add(page[index]);
    }
    return found.size;
  };
  assert.equal(await gathered(r.scanStream({ match: "key:*", count: 200 }), 1), 3000);
  assert.equal(await gathered(r.scanStream({ type: "hash" }), 1), 1);
  assert.equal(await gathered(r.sscanStream("set"), 1), 3000);
  assert.equal(await gathered(r.hscanStream("hash"), 2), 3000);
};

checks.pipelines = async (r) => {
  const pipeline = r.pipeline();
  range(2000).forEach((index) => pipeline.incr("n").set(`k${index % 50}`, index));
  const results = await pipeline.exec();
  assert.equal(results.length, 4000);
  results.forEach(([error, result], index) => {
    assert.equal(error, null);
    assert.equal(result, index % 2 ? "OK" : index / 2 + 1);
  });
  const [set, failed] = await r.pipeline().set("s", "x").incr("s").exec();
  assert.deepEqual(set, [null, "OK"]);
  assert.match(failed[0].message, /not an integer/);
  // Calls that were not awaited are in order, too.
  const loose = await Promise.all(range(1000).map(() => r.incr("loose")));
  assert.deepEqual(loose, range(1000).map((index) => index + 1));
  const automatic = connect({ enableAutoPipelining: true });
  await Promise.all(range(500).map((index) => automatic.set(`auto:${index}`, index)));
  const read = await Promise.all(range(500).map((index) => automatic.get(`auto:${index}`)));
  assert.deepEqual(read, range(500).map(String));
};

checks.transactions = async (r) => {
  assert.deepEqual(await r.multi().set("a", 1).incr("a").lrange("none", 0, -1).exec(), [
    [null, "OK"],
    [null, 2],
    [null, []],
  ]);
  await r.multi({ pipeline: false });
  assert.equal(await r.set("a", 5), "QUEUED");
  assert.deepEqual(await r.exec(), [[null, "OK"]]);
  await assert.rejects(r.multi().set("a", 1).call("SET", "a").exec(), /EXECABORT/);
  const [, wrong] = await r.multi().set("a", 1).lpush("a", 1).exec();
  assert.match(wrong[0].message, /WRONGTYPE/);
  await r.watch("a");
  await connect().set("a", "meanwhile");
  assert.equal(await r.multi().set("a", "lost").exec(), null);
  assert.equal(await r.get("a"), "meanwhile");
};

checks.optimisticLocking = async (r) => {
  await r.set("counter", 0);
  await Promise.all(
    range(6).map(async () => {
      const own = connect();
      for (let done = 0; done < 25; ) {
        await own.watch("counter");
        const value = Number(await own.get("counter"));
        if (await own.multi().set("counter", value + 1).exec()) done += 1;
      }
    }),
  );
  assert.equal(await r.get("counter"), "150");
};

checks.publishing = async (r) => {
  const subscriber = connect();
  const heard = [];
  subscriber.on("message", (channel, message) => heard.push([channel, message]));
  subscriber.on("pmessage", (pattern, channel, message) => heard.push([pattern, channel, message]));
  assert.equal(await subscriber.subscribe("one", "two"), 2);
  assert.equal(await subscriber.psubscribe("p*"), 3);
  assert.equal(await r.publish("one", "hello"), 1);
  assert.equal(await r.publish("pattern", "there"), 1);
  assert.equal(await r.publish("three", "nobody"), 0);
  await until(() => heard.length === 2, "the arrival of both messages");
  assert.deepEqual(heard, [["one", "hello"], ["p*", "pattern", "there"]]);
  await assert.rejects(subscriber.get("a"), /subscriber mode/);
  // The library subscribes again after it lost its connection.
  assert.equal(await r.client("KILL", "TYPE", "pubsub"), 1);
  await until(async () => (await r.pubsub("NUMSUB", "one"))[1] === 1, "the second subscription");
  await until(async () => (await r.publish("one", "again")) === 1, "the second subscription");
  await until(() => heard.length === 3, "the arrival of the third message");
  assert.equal(await subscriber.unsubscribe("one", "two"), 1);
};

checks.blocking = async (r) => {
  const [one, two, three, four] = range(4).map(() => connect());
  const waiting = [
    one.blpop("none", "list", 30),
    two.blmove("other", "target", "RIGHT", "LEFT", 30),
    three.bzpopmin("sorted", 30),
    four.brpop("never", 0.05),
  ];
  await until(async () => /blocked_clients:3/.test(await r.info("clients")), "the waiting of three");
  await r.multi().rpush("list", "a", "b").rpush("other", "x").zadd("sorted", 1.5, "m").exec();
  const expected = [["list", "a"], "x", ["sorted", "m", "1.5"], null];
  assert.deepEqual(await Promise.all(waiting), expected);
  assert.deepEqual(await r.lrange("target", 0, -1), ["x"]);
  const id = await one.client("ID");
  const refused = assert.rejects(one.blpop("none", 30), /UNBLOCKED/);
  await until(async () => (await r.client("UNBLOCK", id, "ERROR")) === 1, "the waiting of one");
  await refused;
};

checks.manyConnections = async (r) => {
  const clients = range(100).map(() => connect());
  await Promise.all(
    clients.map(async (client, index) => {
      for (const number of range(20)) {
        await client.set(`${index}:${number}`, number);
        assert.equal(await client.get(`${index}:${number}`), String(number));
        await client.incr("total");
      }
    }),
  );
  assert.equal(await r.get("total"), "2000");
};

checks.administration = async (r) => {
  assert.match(await r.info(), /tcp_port:/);
  assert.deepEqual(await r.config("GET", "maxmemory"), ["maxmemory", "0"]);
  assert.equal(await r.config("SET", "maxmemory", "0"), "OK");
  assert.deepEqual(await r.command("GETKEYS", "GET", "k"), ["k"]);
  assert.ok((await r.command("COUNT")) > 150);
  assert.equal((await r.time()).length, 2);
  assert.equal((await r.role())[0], "master");
  // MONITOR shows what others send, on a connection of its own.
  const monitor = await r.monitor();
  open.push(monitor);
  const seen = [];
  monitor.on("monitor", (_time, words) => seen.push(words.join(" ")));
  await r.set("watched", 1);
  await until(() => seen.includes("set watched 1"), "the sight of a command");
};

async function main() {
  let failed = 0;
  let played = 0;
  const control = connect();
  for (const [name, check] of Object.entries(checks)) {
    if (names.length > 0 && !names.includes(name)) continue;
    await control.flushall();
    try {
      played += 1;
      await check(connect());
    } catch (error) {
      failed += 1;
      console.log(`---- ${name}\n${error.stack}`);
    }
  }
  open.forEach((client) => client.disconnect());
  console.log(`${played} checks, ${failed} failed`);
  process.exitCode = failed > 0 ? 1 : 0;
}

main();
