// BullMQ on the server: jobs with delays, priorities, retries, rate limits and children, workers in
// processes of their own, one of which is killed, and one that finds what the others have left.
//
// usage: node bullmq.js PORT [NAME...]      (NODE_PATH names the folder that holds the library)
//
// What fails is reported with its trace, and the exit code says whether anything did.
"use strict";

const assert = require("node:assert/strict");
const { spawn } = require("node:child_process");
const { setTimeout: pause } = require("node:timers/promises");
const { FlowProducer, Queue, QueueEvents, UnrecoverableError, Worker } = require("bullmq");
const Redis = require("ioredis");

const [port, ...words] = process.argv.slice(2);
const connection = { host: "127.0.0.1", port: Number(port), maxRetriesPerRequest: null };
// How long anything may take.
const PATIENCE = 60_000;
// A lock that is not renewed so long has lost its worker.
const LOCK = { lockDuration: 1500, stalledInterval: 400, maxStalledCount: 3 };
const flows = {};

async function until(condition, what) {
  const end = Date.now() + PATIENCE;
  while (!(await condition())) {
    assert.ok(Date.now() < end, `${what} does not happen`);
    await pause(20);
  }
}

function range(count) {
  return [...Array(count).keys()];
}

// A worker that reports what it cannot do to whoever started the process.
function work(queue, handler, options = {}) {
  const worker = new Worker(queue, handler, { connection, ...LOCK, ...options });
  worker.on("error", (error) => {
    // A connection that is being closed is no error of the server's.
    if (!/closed|ECONN/i.test(String(error))) {
      console.error(error);
      process.exitCode = 1;
    }
  });
  return worker;
}

// Most jobs succeed at once; the others fail so often as their data says.
const JOBS = 2000;
const CONCURRENCY = 20;

function jobs() {
  return range(JOBS).map((number) => ({
    name: "job",
    data: { number, failures: number % 7 === 0 ? 1 + (number % 3) : 0 },
    opts: {
      jobId: `job-${number}`,
      attempts: 4,
      backoff: { type: "fixed", delay: 30 },
      ...(number % 5 === 0 ? { delay: (number * 37) % 1500 } : {}),
      ...(number % 4 === 1 ? { priority: 1 + (number % 10) } : {}),
    },
  }));
}

async function worker(name) {
  const redis = new Redis(connection);
  work(
    "jobs",
    async (job) => {
      await redis.hincrby("ran", job.id, 1);
      await redis.sadd(`by:${name}`, job.id);
      await pause(2);
      if (job.attemptsMade < job.data.failures) throw new Error("not yet");
      return job.data.number * 2;
    },
    { concurrency: CONCURRENCY },
  );
  process.send("ready");
}

function startWorker(name) {
  const child = spawn(process.execPath, [__filename, port, "--worker", name], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  return new Promise((resolve, reject) => {
    child.once("message", () => resolve(child));
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`a worker has ended with ${code}`)));
  });
}

flows.jobs = async (redis) => {
  const queue = new Queue("jobs", { connection });
  const list = jobs();
  for (let at = 0; at < JOBS; at += 500) await queue.addBulk(list.slice(at, at + 500));
  const victim = await startWorker("first");
  const second = await startWorker("second");
  await until(async () => (await queue.getCompletedCount()) > JOBS / 4, "a quarter");
  const done = await redis.smembers("by:first");
  assert.ok(done.length > 0, "the worker that is killed has worked");
  victim.removeAllListeners("exit");
  victim.kill("SIGKILL");
  const third = await startWorker("third");
  await until(async () => (await queue.getCompletedCount()) === JOBS, "the last job");
  const counts = await queue.getJobCounts();
  for (const [state, count] of Object.entries(counts)) {
    assert.equal(count, state === "completed" ? JOBS : 0, `jobs that are ${state}`);
  }
  const ran = await redis.hgetall("ran");
  let more = 0;
  for (const { data, opts } of list) {
    const times = Number(ran[opts.jobId]);
    assert.ok(times > data.failures, `${opts.jobId} ran ${times} times`);
    more += times - data.failures - 1;
  }
  assert.ok(more <= CONCURRENCY, `${more} jobs ran again, though fewer were lost`);
  const job = await queue.getJob("job-1234");
  assert.equal(job.returnvalue, 2468);
  for (const child of [second, third]) {
    child.removeAllListeners("exit");
    child.kill("SIGKILL");
  }
  await queue.obliterate({ force: true });
  await queue.close();
  assert.deepEqual(await redis.keys("bull:jobs:*"), []);
};

flows.priorities = async () => {
  const queue = new Queue("priorities", { connection });
  await queue.pause();
  const added = range(300).map((number) => ({ number, priority: 1 + ((number * 7919) % 20) }));
  await queue.addBulk(
    added.map((data) => ({ name: "job", data, opts: { priority: data.priority } })),
  );
  const order = [];
  const worker = work("priorities", async (job) => order.push(job.data), { concurrency: 1 });
  await queue.resume();
  await until(() => order.length === added.length, "the last job");
  const expected = [...added].sort((a, b) => a.priority - b.priority || a.number - b.number);
  assert.deepEqual(order, expected);
  await worker.close();
  await queue.close();
};

flows.delays = async () => {
  const queue = new Queue("delays", { connection });
  const ran = new Map();
  const worker = work("delays", async (job) => ran.set(job.id, Date.now()), { concurrency: 50 });
  const list = range(300).map((number) => ({
    name: "job",
    data: { due: Date.now() + ((number * 53) % 1000) },
    opts: { jobId: `delay-${number}`, delay: (number * 53) % 1000 },
  }));
  await queue.addBulk(list);
  await queue.add("far", {}, { jobId: "far", delay: 3_600_000 });
  assert.equal(await (await queue.getJob("far")).getState(), "delayed");
  await until(() => ran.size === 300, "the last job");
  for (const { data, opts } of list) {
    // The server's clock and ours may differ in rounding.
    assert.ok(ran.get(opts.jobId) >= data.due - 5, `${opts.jobId} ran too early`);
  }
  await (await queue.getJob("far")).promote();
  await until(() => ran.has("far"), "the job that was promoted");
  await worker.close();
  await queue.close();
};

flows.limits = async () => {
  const queue = new Queue("limits", { connection });
  await queue.addBulk(range(120).map((number) => ({ name: "job", data: { number } })));
  const times = [];
  const start = Date.now();
  const workers = range(2).map(() =>
    work("limits", async () => times.push(Date.now()), {
      concurrency: 10,
      limiter: { max: 40, duration: 400 },
    }),
  );
  await until(() => times.length === 120, "the last job");
  assert.ok(Date.now() - start >= 750, "three windows have two pauses between them");
  times.sort((a, b) => a - b);
  for (let at = 80; at < 120; at++) {
    assert.ok(times[at] - times[at - 80] >= 350, "more jobs than two windows may have");
  }
  await Promise.all(workers.map((worker) => worker.close()));
  await queue.close();
};

flows.children = async () => {
  const producer = new FlowProducer({ connection });
  const child = work("children", async (job) => job.data.value, { concurrency: 10 });
  const sums = new Map();
  const parent = work(
    "parents",
    async (job) => {
      const values = Object.values(await job.getChildrenValues());
      sums.set(
        job.data.number,
        values.reduce((sum, value) => sum + value, 0),
      );
    },
    { concurrency: 5 },
  );
  for (const number of range(40)) {
    await producer.add({
      name: "parent",
      queueName: "parents",
      data: { number },
      children: range(5).map((at) => ({
        name: "child",
        queueName: "children",
        data: { value: number * at },
      })),
    });
  }
  await until(() => sums.size === 40, "the last parent");
  for (const number of range(40)) assert.equal(sums.get(number), number * 10);
  await Promise.all([child.close(), parent.close()]);
  await producer.close();
};

flows.failures = async () => {
  const queue = new Queue("failures", { connection });
  const events = new QueueEvents("failures", { connection });
  await events.waitUntilReady();
  let broken = true;
  const worker = work("failures", async (job) => {
    await job.log("begun");
    await job.updateProgress(50);
    if (job.name === "hopeless") throw new UnrecoverableError("hopeless");
    if (broken) throw new Error("broken");
    return { answer: job.data };
  });
  const seen = [];
  events.on("progress", ({ jobId, data }) => seen.push([jobId, data]));
  const job = await queue.add("job", 42, { attempts: 2, backoff: 10 });
  await assert.rejects(job.waitUntilFinished(events, PATIENCE), /broken/);
  const hopeless = await queue.add("hopeless", {}, { attempts: 5 });
  await assert.rejects(hopeless.waitUntilFinished(events, PATIENCE), /hopeless/);
  const failed = await queue.getFailed();
  assert.deepEqual(failed.map((job) => job.attemptsMade).sort(), [1, 2]);
  broken = false;
  await (await queue.getJob(job.id)).retry();
  assert.deepEqual(await job.waitUntilFinished(events, PATIENCE), { answer: 42 });
  assert.equal((await queue.getJobLogs(job.id)).count, 3);
  await until(() => seen.filter(([id]) => id === job.id).length === 3, "three reports");
  await queue.clean(0, 100, "failed");
  assert.equal(await queue.getFailedCount(), 0);
  await worker.close();
  await events.close();
  await queue.close();
};

flows.schedules = async () => {
  const queue = new Queue("schedules", { connection });
  const ticks = [];
  const worker = work("schedules", async (job) => ticks.push([job.name, Date.now()]));
  await queue.upsertJobScheduler("tick", { every: 100 }, { name: "tick" });
  await queue.add("once", {}, { deduplication: { id: "same" }, delay: 50 });
  await queue.add("once", {}, { deduplication: { id: "same" }, delay: 50 });
  await until(() => ticks.filter(([name]) => name === "tick").length >= 8, "eight ticks");
  assert.equal(ticks.filter(([name]) => name === "once").length, 1);
  assert.equal(await queue.removeJobScheduler("tick"), true);
  await pause(250);
  const count = ticks.length;
  await pause(250);
  assert.equal(ticks.length, count, "a schedule that was removed goes on");
  await worker.close();
  await queue.close();
};

async function main() {
  if (words[0] === "--worker") return worker(words[1]);
  const redis = new Redis(connection);
  const chosen = words.length ? words : Object.keys(flows);
  for (const name of chosen) {
    await redis.flushall();
    const start = Date.now();
    try {
      await flows[name](redis);
      console.log(`${name}: ${Date.now() - start} ms`);
    } catch (error) {
      console.error(`${name}: ${error.stack}`);
      process.exitCode = 1;
    }
  }
  process.exit();
}

main();
