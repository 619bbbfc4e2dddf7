// Writes on and on through the support of ioredis for Sentinel.
//
// usage: node ioredis.js PORTS     (of the Sentinels, with commas between them; NODE_PATH names the
//                                   folder that holds the library)
//
// It prints the number of each write that was acknowledged, and ends with its standard input.
"use strict";

const { setTimeout: pause } = require("node:timers/promises");
const Redis = require("ioredis");

const sentinels = process.argv[2].split(",").map((port) => ({ host: "127.0.0.1", port: Number(port) }));
// What a promise of a write waits for at most. A connection that hangs is given up.
const client = new Redis({ sentinels, name: "main", commandTimeout: 1000, maxRetriesPerRequest: 1 });
client.on("error", (error) => console.error(`connection: ${error.message}`));

let ended = false;
process.stdin.on("end", () => (ended = true)).resume();

async function write() {
  for (let number = 1; !ended; number++) {
    try {
      await client.set("ioredis", number);
      console.log(number);
      await pause(5);
    } catch (error) {
      console.error(`${error.name}: ${error.message}`);
      await pause(50);
    }
  }
  client.disconnect();
}

write();
