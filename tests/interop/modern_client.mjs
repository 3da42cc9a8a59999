// The 2.x TypeScript SDK's own client with the server of modern_server.mjs: prints what it was told, one line of JSON.
//
//   node modern_client.mjs APP MODE COMMAND...
//
// APP is the folder with node_modules; MODE is "auto", "legacy" or a version to be pinned to.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [app, mode, command, ...args] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${app}/`));
const { Client } = await import(pathToFileURL(require.resolve("@modelcontextprotocol/client")));
const { StdioClientTransport } = await import(pathToFileURL(require.resolve("@modelcontextprotocol/client/stdio")));

const client = new Client({ name: "bulkhead-interop", version: "1.0.0" }, {
  capabilities: { elicitation: {} },
  versionNegotiation: { mode: /^\d/.test(mode) ? { pin: mode } : mode },
});
const said = {};
const changed = new Promise((resolve) => client.setNotificationHandler("notifications/resources/updated", resolve));
client.setRequestHandler("elicitation/create", async () => ({ action: "accept", content: { name: "the crew" } }));
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
said.server = client.getServerVersion();
said.version = client.getNegotiatedProtocolVersion();
said.tools = await client.listTools();
said.echo = await client.callTool({ name: "echo", arguments: { message: "hello \u2028 \u{1f6a2}" } });
said.resources = await client.listResources();
said.templates = await client.listResourceTemplates();
said.resource = await client.readResource({ uri: "note://one" });
said.prompts = await client.listPrompts();
said.prompt = await client.getPrompt({ name: "greet", arguments: { name: "the crew" } });
said.completed = await client.complete({
  ref: { type: "ref/resource", uri: "note://{name}" },
  argument: { name: "name", value: "o" },
});
if (mode !== "legacy") {
  said.asked = await client.callTool({ name: "ask", arguments: {} });
  const subscription = await client.listen({ resourceSubscriptions: ["note://one"] });
  await client.callTool({ name: "change", arguments: {} });
  said.updated = (await changed).params.uri;
  await subscription.close();
}
said.unknown = await client.callTool({ name: "nothing", arguments: {} }).catch((error) => `${error}`);
await client.close();
console.log(JSON.stringify(said));
