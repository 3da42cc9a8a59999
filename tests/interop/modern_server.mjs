// A server on the 2.x TypeScript SDK, which speaks both eras: tools, a resource, a template with completion and a prompt.
// Lies beside node_modules when it is started.
import { McpServer, ResourceTemplate, acceptedContent, fromJsonSchema, inputRequired } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

const text = (value) => ({ content: [{ type: "text", text: value }] });
const oneText = (name) => fromJsonSchema({ type: "object", properties: { [name]: { type: "string" } }, required: [name] });
const note = async (uri) => ({ contents: [{ uri: uri.href, text: "a note" }] });

serveStdio(() => {
  const server = new McpServer({ name: "bulkhead-modern", version: "1.0.0" }, {
    capabilities: { tools: { listChanged: true }, resources: { subscribe: true, listChanged: true } },
  });
  server.registerTool("echo", { description: "Echoes.", inputSchema: oneText("message") }, async ({ message }) => text(`Echo: ${message}`));
  server.registerTool("ask", { description: "Asks who calls." }, async ({ mcpReq }) => {
    const answer = acceptedContent(mcpReq.inputResponses, "who");
    if (answer !== undefined) return text(`${answer.name}, ${mcpReq.requestState()}`);
    return inputRequired({
      inputRequests: {
        who: inputRequired.elicit({
          message: "Who?",
          requestedSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
        }),
      },
      requestState: "opaque \u00e9",
    });
  });
  server.registerTool("change", { description: "Changes its lists." }, async () => {
    server.sendToolListChanged();
    await server.server.sendResourceUpdated({ uri: "note://one" });
    return text("changed");
  });
  server.registerResource("note", "note://one", { mimeType: "text/plain" }, note);
  const complete = { name: (begin) => ["one", "only", "two"].filter((name) => name.startsWith(begin)) };
  server.registerResource("notes", new ResourceTemplate("note://{name}", { list: undefined, complete }), {}, note);
  server.registerPrompt("greet", { argsSchema: oneText("name") }, async ({ name }) => ({
    messages: [{ role: "user", content: { type: "text", text: `Greet ${name}` } }],
  }));
  return server;
});
