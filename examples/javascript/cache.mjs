// A cache in an application that is never stale for long: it follows the change stream instead of guessing a
// time to live. Node 18 or newer, no packages:
//
//     node examples/javascript/cache.mjs [HTTP port]

const port = process.argv[2] ?? "8379";
const server = `http://127.0.0.1:${port}`;

/** Keeps the strings whose keys begin with a prefix, and calls back for each change. */
async function follow(prefix, changed) {
  const kept = new Map();
  const answer = await fetch(`${server}/v1/changes?prefix=${encodeURIComponent(prefix)}`);
  if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  const read = async () => {
    let text = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      text += value;
      // Events end with an empty line; the last part may be half an event.
      const events = text.split("\n\n");
      text = events.pop();
      for (const event of events) {
        const data = event.split("\n").find((line) => line.startsWith("data: "));
        if (!data) continue;
        const change = JSON.parse(data.slice("data: ".length));
        if (change.op === "set") kept.set(change.key, change.value);
        if (change.op === "delete") kept.delete(change.key);
        if (change.op === "flush") kept.clear();
        changed(change, kept);
      }
    }
  };
  return { kept, reading: read(), stop: () => reader.cancel() };
}

const put = (key, value) => fetch(`${server}/v1/keys/${key}`, { method: "PUT", body: value });
const remove = (key) => fetch(`${server}/v1/keys/${key}`, { method: "DELETE" });

const cache = await follow("price:", (change, kept) => {
  if (change.op !== "delete") return;
  console.log("kept", JSON.stringify(Object.fromEntries(kept)));
  cache.stop();
});
await put("price:tea", "3");
await put("price:milk", "1");
await remove("price:milk");
await cache.reading;
