// A host as people have it: reads a host's configuration file and drives one of its servers with the TypeScript SDK's
// own client (v1). Lists the tools, calls one, closes, and looks whether anything of the server's tree is still there.
//
//   node sdk_client.mjs APP CONFIG SERVER TOOL ARGUMENTS
//
// APP is the folder with node_modules. Prints one line of JSON:
// {tools: [names], result, tree: count, left: [command lines], closed_ms}.
import { createRequire } from "node:module";
import { readFileSync, readdirSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [app, configPath, serverName, tool, toolArguments] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${app}/`));
const sdk = (name) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/client/${name}.js`)));
const { Client } = await sdk("index");
const { StdioClientTransport } = await sdk("stdio");

// What /proc/PID/stat says, or null when there is no such process. A zombie counts: nobody reaped it.
function stat(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
    return { pid, parent: Number(fields[1]), started: fields[19], words: words || text };
  } catch {
    return null;
  }
}

// `pid` and everything below it.
function tree(pid) {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  const all = pids.map((name) => stat(Number(name))).filter(Boolean);
  const found = [pid];
  for (const known of found) found.push(...all.filter((one) => one.parent === known).map((one) => one.pid));
  return all.filter((one) => found.includes(one.pid));
}

const { command, args } = JSON.parse(readFileSync(configPath, "utf8")).mcpServers[serverName];
// As hosts do: the SDK passes HOME, PATH and a few more; what npm needs to find its registry is added.
const passed = /^(HOME|LOGNAME|PATH|SHELL|TERM|USER|NODE_EXTRA_CA_CERTS|npm_config_.*)$/;
const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => passed.test(name)));
const transport = new StdioClientTransport({ command, args, env });
const client = new Client({ name: "bulkhead-interop", version: "1.0.0" });
await client.connect(transport, { timeout: 240_000 });  // npx downloads the server first
const { tools } = await client.listTools();
const result = await client.callTool({ name: tool, arguments: JSON.parse(toolArguments) });
const running = tree(transport.pid);
const begin = Date.now();
await client.close();
const left = running.filter((one) => stat(one.pid)?.started === one.started);
const said = {
  tools: tools.map((one) => one.name),
  result,
  tree: running.length,
  left: left.map((one) => one.words),
  closed_ms: Date.now() - begin,
};
console.log(JSON.stringify(said));
