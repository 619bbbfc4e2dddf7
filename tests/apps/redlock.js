// Redlock, as the library of that name does it, on three servers that know nothing of each other.
//
// usage: node redlock.js PORT PORT PORT      (NODE_PATH names the folder that holds the library)
"use strict";

const assert = require("node:assert/strict");
const { setTimeout: pause } = require("node:timers/promises");
const Redis = require("ioredis");
const Redlock = require("redlock");

const ports = process.argv.slice(2).map(Number);
const CLIENTS = 8;
const TURNS = 25;

function clients() {
  return ports.map((port) => new Redis({ port, host: "127.0.0.1" }));
}

// A sum that is read, and written some time later, is right only if nobody comes in between.
async function sums() {
  const redis = new Redis({ port: ports[0], host: "127.0.0.1" });
  await redis.set("sum", 0);
  let inside = 0;
  const run = async () => {
    const lock = new Redlock(clients(), { retryCount: -1, retryDelay: 5, retryJitter: 10 });
    for (let turn = 0; turn < TURNS; turn++) {
      const held = await lock.lock("locks:sum", 5000);
      assert.equal(++inside, 1, "two hold the lock");
      const sum = Number(await redis.get("sum"));
      await pause(1);
      await redis.set("sum", sum + 1);
      inside--;
      await held.unlock();
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, run));
  assert.equal(Number(await redis.get("sum")), CLIENTS * TURNS);
}

async function times() {
  const lock = new Redlock(clients(), { retryCount: 0 });
  const held = await lock.lock(["locks:a", "locks:b"], 300);
  await assert.rejects(lock.lock("locks:b", 300), Redlock.LockError);
  const longer = await held.extend(600);
  await pause(350);
  await assert.rejects(lock.lock("locks:a", 300), Redlock.LockError, "it was extended");
  await pause(350);
  const next = await lock.lock("locks:a", 300);
  await assert.rejects(longer.extend(300), Redlock.LockError, "it is another's");
  await next.unlock();
}

// With one of three servers that refuses, the others are a majority; with two there is none.
async function majority() {
  const lock = new Redlock(clients(), { retryCount: 0 });
  const others = clients();
  await others[0].set("locks:c", "taken");
  const held = await lock.lock("locks:c", 1000);
  await held.unlock();
  await others[1].set("locks:c", "taken");
  await assert.rejects(lock.lock("locks:c", 1000), Redlock.LockError);
  assert.equal(await others[2].exists("locks:c"), 0, "what was not won is given back");
}

async function main() {
  for (const flow of [sums, times, majority]) {
    const start = Date.now();
    try {
      await flow();
      console.log(`${flow.name}: ${Date.now() - start} ms`);
    } catch (error) {
      console.error(`${flow.name}: ${error.stack}`);
      process.exitCode = 1;
    }
  }
  process.exit();
}

main();
