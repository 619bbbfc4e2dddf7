// An HTTP service whose clients may send so many requests in a window, however many processes of it run:
//
//     node gate.mjs [port to serve on]
//
// PORT is the port of Dunlin (6379), LIMIT and WINDOW_MS are the limit (5 in 10000). A client is who its header
// X-Client says, or else its address. Take what the client cannot choose, such as the user who has logged in.

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import Redis from "ioredis";

const limit = Number(process.env.LIMIT ?? 5);
const window = Number(process.env.WINDOW_MS ?? 10000);
const port = Number(process.env.PORT ?? 6379);

// A request must not wait for a server that is away.
const server = new Redis({ port, maxRetriesPerRequest: 0, commandTimeout: 1000 });
server.on("error", (error) => console.error(error.message));

const library = readFileSync(new URL("limits.lua", import.meta.url), "utf8");
await server.function("LOAD", "REPLACE", library);

/** Whether a request of this client may pass, and what to tell it. */
async function allow(client) {
  const [passes, left, wait] = await server.fcall("limits_allow", 1, `limit:{${client}}`, limit, window);
  return { passes: passes === 1, left, wait };
}

const gate = createServer(async (request, answer) => {
  const client = request.headers["x-client"] ?? request.socket.remoteAddress;
  let verdict;
  try {
    verdict = await allow(client);
  } catch (error) {
    // Without Dunlin nobody is refused: an application that must not be flooded chooses the other way.
    console.error(error.message);
    verdict = { passes: true, left: 0, wait: 0 };
  }
  answer.setHeader("RateLimit-Remaining", verdict.left);
  if (verdict.passes) return answer.end("welcome\n");
  answer.writeHead(429, { "Retry-After": Math.ceil(verdict.wait / 1000) });
  answer.end("too many requests\n");
});

gate.listen(Number(process.argv[2] ?? 0), "127.0.0.1", () => console.log(gate.address().port));
process.on("SIGTERM", () => process.exit());
