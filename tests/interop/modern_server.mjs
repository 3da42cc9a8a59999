// A server on the 2.x TypeScript SDK, which speaks both eras: a tool, a resource and a
// prompt. Lies beside node_modules when it is started.
import { McpServer, fromJsonSchema } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

const text = (value) => ({ content: [{ type: "text", text: value }] });
const oneText = (name) => fromJsonSchema({ type: "object", properties: { [name]: { type: "string" } }, required: [name] });

serveStdio(() => {
  const server = new McpServer({ name: "bulkhead-modern", version: "1.0.0" });
  server.registerTool("echo", { description: "Echoes.", inputSchema: oneText("message") }, async ({ message }) => text(`Echo: ${message}`));
  server.registerResource("note", "note://one", { mimeType: "text/plain" }, async (uri) => ({
    contents: [{ uri: uri.href, text: "a note" }],
  }));
  server.registerPrompt("greet", { argsSchema: oneText("name") }, async ({ name }) => ({
    messages: [{ role: "user", content: { type: "text", text: `Greet ${name}` } }],
  }));
  return server;
});
