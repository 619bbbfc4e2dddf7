// Writes on and on through the support of ioredis for clusters.
//
// usage: node ioredis.js PORTS     (of some nodes, with commas between them; NODE_PATH names the folder
//                                   that holds the library)
//
// It prints what was acknowledged: `count KEY`, `list KEY NUMBER`, `pipeline KEY NUMBER`, and `heard NUMBER` for a
// message that came. It ends with its standard input, and fails when it reads something else than it has written.
"use strict";

const { setTimeout: pause } = require("node:timers/promises");
const Redis = require("ioredis");

const NAME = "ioredis";
const KEYS = 40;

const places = process.argv[2].split(",").map((port) => ({ host: "127.0.0.1", port: Number(port) }));
const cluster = new Redis.Cluster(places, {
  // What a promise of a write waits for at most. A connection that hangs is given up.
  redisOptions: { commandTimeout: 2000 },
  shardedSubscribers: true,
});
cluster.on("error", (error) => console.error(`connection: ${error.message}`));
cluster.on("smessage", (channel, message) => console.log(`heard ${message}`));

let ended = false;
process.stdin.on("end", () => (ended = true)).resume();

async function write(number) {
  const count = `${NAME}:count:${number % KEYS}`;
  await cluster.incr(count);
  console.log(`count ${count}`);
  const list = `${NAME}:list:${number % KEYS}`;
  await cluster.rpush(list, number);
  const last = await cluster.lindex(list, -1);
  if (last !== String(number)) {
    console.error(`${list} ends with ${last}, not with ${number}`);
    process.exit(1);
  }
  console.log(`list ${list} ${number}`);
  if (number % 10 === 0) {
    await cluster.spublish(`${NAME}:news`, number);
    // All keys of a pipeline have to be on one node.
    const keys = Array.from({ length: 8 }, (_, at) => `{${NAME}}:pipeline:${at}`);
    const answers = await keys.reduce((own, key) => own.rpush(key, number), cluster.pipeline()).exec();
    answers.forEach(([error], at) => error || console.log(`pipeline ${keys[at]} ${number}`));
  }
}

async function run() {
  await cluster.ssubscribe(`${NAME}:news`);
  for (let number = 1; !ended; number++) {
    try {
      await write(number);
    } catch (error) {
      console.error(`${error.name}: ${error.message}`);
      await pause(50);
    }
  }
  cluster.disconnect();
}

run();
