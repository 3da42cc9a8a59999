// The TypeScript SDK's client (2.x), measured by session_bench.cc, which says what to do next:
//
//   node sdk_client.mjs FOLDER_WITH_NODE_MODULES SERVER
//
// Each line of stdin is [what, count, bytes]; each line of stdout the microseconds of one of the `count`, or why there
// is none. "to" and "from" are the direction of a large message.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, command] = process.argv.slice(2);
const require = createRequire(join(modules, "package.json"));
const load = async (name) => import(pathToFileURL(require.resolve(name)));
const { Client } = await load("@modelcontextprotocol/client");
const { StdioClientTransport } = await load("@modelcontextprotocol/client/stdio");
const timeout = 120_000;

async function connected() {
  const client = new Client({ name: "bench", version: "1" });
  await client.connect(new StdioClientTransport({ command }));
  return client;
}

const call = (client, args) => client.callTool({ name: "t", arguments: args }, { timeout });
const things = {
  connect: async (count) => {
    const clients = [];
    for (let i = 0; i < count; ++i) clients.push(await connected());
    return () => Promise.all(clients.map((client) => client.close()));
  },
  ping: async (count) => {
    for (let i = 0; i < count; ++i) await main.ping();
  },
  pings: (count) => Promise.all(Array.from({ length: count }, () => main.ping({ timeout }))),
  to: async (count, bytes) => {
    const text = "x".repeat(bytes);
    for (let i = 0; i < count; ++i) await call(main, { text });
  },
  from: async (count, bytes) => {
    for (let i = 0; i < count; ++i) {
      const { content } = await call(main, { bytes });
      if (content[0].text.length !== bytes) throw new Error("another answer");
    }
  },
};

process.removeAllListeners("warning"); // of a thousand writers that wait for one pipe
let main = await connected();
for await (const line of createInterface({ input: process.stdin })) {
  const [what, count, bytes] = JSON.parse(line);
  try {
    const begin = process.hrtime.bigint();
    const after = await things[what](count, bytes);
    const microseconds = Number(process.hrtime.bigint() - begin) / 1000 / count;
    if (typeof after === "function") await after();
    console.log(microseconds);
  } catch (error) {
    console.log(String(error.message).replaceAll("\n", " "));
    await main.close().catch(() => {});
    main = await connected();
  }
}
await main.close();
