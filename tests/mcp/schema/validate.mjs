// Checks lines that the client wrote, as tests/mcp/client_fixture.cc and written_lines.cc keep them: {"test", "version",
// "line", "answers", "own"}. "answers" is the method of the server's request that it answers, if known; "own", whether the
// test may have made up methods, as hosts may: of one that no version knows only the envelope is checked.
//
//   node validate.mjs FOLDER_WITH_NODE_MODULES LINES.jsonl...
//
// Each line must be what a client may send in that version: by the schemas of the SDKs (@modelcontextprotocol/sdk for
// the legacy era, @modelcontextprotocol/core for the modern one), and by the specification's JSON Schema where
// MCP_SCHEMA_DIR names a folder that has them. Before that, lines that are known to be right and wrong must be taken
// for what they are, so that a check that checks nothing is noticed.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [modules, ...files] = process.argv.slice(2);
const require = createRequire(join(modules, "package.json"));
const versions = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
const modern = "2026-07-28";

// How many lines there have to be at least, or something was not recorded: of each version, and of each file's tests.
const linesMin = { "2024-11-05": 25, "2025-03-26": 35, "2025-06-18": 30, "2025-11-25": 2000, "2026-07-28": 500 };
const suitesMin = {
  LegacyCall: 20, Probe: 30, LegacyRequest: 100, Input: 50, Destroying: 5, // Client
  DeliverTest: 30, LinesTest: 50, PipesTest: 50, RestartTest: 50, StopTest: 20, TokensTest: 5, // Session, Deliver
  TalkTest: 50, // the command line
};
if (process.env.BULKHEAD_MCP_LINES) {
  Object.assign(suitesMin, { "interop legacy": 40, "interop modern": 15, "interop session": 30 });
}

// What the server's requests have to be answered with.
const resultOf = {
  ping: "EmptyResult",
  "roots/list": "ListRootsResult",
  "sampling/createMessage": "CreateMessageResult",
  "elicitation/create": "ElicitResult",
};

// What a client may send in some version. Any other method is the host's own.
const known = new Set(["initialize", "ping", "logging/setLevel", "completion/complete", "server/discover",
  "subscriptions/listen", "tools/list", "tools/call", "resources/list", "resources/templates/list", "resources/read",
  "resources/subscribe", "resources/unsubscribe", "prompts/list", "prompts/get", "tasks/get", "tasks/list",
  "tasks/result", "tasks/cancel", "notifications/initialized", "notifications/cancelled", "notifications/progress",
  "notifications/roots/list_changed", "notifications/tasks/status"]);

// --- The two sources ---
// Each is a function of a version that returns a function of {message, answers} that returns why it is not valid.

function sdkChecks(version) {
  const types = require(version === modern ? "@modelcontextprotocol/core" : "@modelcontextprotocol/sdk/types.js");
  const by = (name, value) => {
    const { success, error } = types[`${name}Schema`].safeParse(value);
    return success ? [] : [`${name}: ${error.message}`];
  };
  return ({ message, answers, isOwn }) => {
    const mistakes = by("JSONRPCMessage", message);
    if ("error" in message || isOwn) return mistakes;
    if ("result" in message) return [...mistakes, ...by(resultOf[answers] ?? "ClientResult", message.result)];
    const { jsonrpc, id, ...rest } = message;
    return [...mistakes, ...by(id === undefined ? "ClientNotification" : "ClientRequest", rest)];
  };
}

function schemaChecks(version) {
  const schema = JSON.parse(readFileSync(join(process.env.MCP_SCHEMA_DIR, version, "schema.json"), "utf8"));
  const is2020 = schema.$schema.includes("2020-12");
  const Ajv = require(is2020 ? "ajv/dist/2020.js" : "ajv").default;
  const ajv = new Ajv({ strict: false, allErrors: false });
  require("ajv-formats").default(ajv);
  // Where the schema names a format that JSON Schema does not have, there is nothing to check.
  for (const format of ["byte"]) ajv.addFormat(format, true);
  const definitions = schema.$defs ? "$defs" : "definitions";
  ajv.addSchema(schema, "mcp");
  const by = (name, value) => {
    const validate = ajv.getSchema(`mcp#/${definitions}/${name}`);
    return validate(value) ? [] : [`${name}: ${ajv.errorsText(validate.errors)}`];
  };
  const envelope = "JSONRPCErrorResponse" in schema[definitions]
    ? { error: "JSONRPCErrorResponse", result: "JSONRPCResultResponse" }
    : { error: "JSONRPCError", result: "JSONRPCResponse" };
  return ({ message, answers, isOwn }) => {
    if ("error" in message) return by(envelope.error, message);
    if ("result" in message) {
      const name = resultOf[answers] in schema[definitions] ? resultOf[answers] : "ClientResult";
      return [...by(envelope.result, message), ...by(name, message.result)];
    }
    const kind = "id" in message ? "Request" : "Notification";
    return [...by(`JSONRPC${kind}`, message), ...(isOwn ? [] : by(`Client${kind}`, message))];
  };
}

// --- What no schema says ---

const metaKeys = ["protocolVersion", "clientInfo", "clientCapabilities"].map((key) => `io.modelcontextprotocol/${key}`);

function eraMistakes(version, message) {
  if (Array.isArray(message)) return ["is a batch"];
  if (version !== modern) return [];
  if (!("method" in message)) return ["a modern client must not answer"];
  if (!("id" in message)) return message.method === "notifications/cancelled" ? [] : ["no such notification"];
  const meta = message.params?._meta ?? {};
  return metaKeys.filter((key) => !(key in meta)).map((key) => `_meta has no ${key}`);
}

function mistakesIn(version, check, { line, answers, own }) {
  let message;
  try {
    message = JSON.parse(line);
  } catch (error) {
    return [error.message];
  }
  if (/[\r\n]/.test(line)) return ["is more than one line"];
  const mistakes = eraMistakes(version, message);
  return mistakes.length > 0 ? mistakes
    : check({ message, answers, isOwn: own === true && "method" in message && !known.has(message.method) });
}

// --- Lines that are known ---

function controls(version) {
  const implementation = { name: "c", version: "1" };
  const meta = Object.fromEntries(metaKeys.map((key, i) => [key, [version, implementation, {}][i]]));
  const line = (message) => ({ line: JSON.stringify({ jsonrpc: "2.0", ...message }), answers: "" });
  const params = version === modern ? { _meta: meta } : {};
  const opening = version === modern
    ? { method: "server/discover", params }
    : {
      method: "initialize",
      params: { protocolVersion: version, capabilities: {}, clientInfo: implementation },
    };
  const call = { id: 2, method: "tools/call", params: { ...params, name: "t", arguments: {} } };
  const right = [line({ id: 1, ...opening }), line(call),
    line({ method: "notifications/cancelled", params: { requestId: 2, reason: "r" } })];
  const wrong = [
    line({ ...call, id: null }),
    line({ ...call, params: { ...call.params, name: 5 } }),
    line({ ...call, params: [] }),
    line({ ...call, method: "x/y" }),
    { line: `[${right[0].line}]`, answers: "" },
    { line: `${right[0].line}\n`, answers: "" },
    { line: right[0].line.slice(1), answers: "" },
    { ...line({ ...call, params: { ...call.params, name: 5 } }), own: true },
    { ...line({ ...call, method: "x/y", id: null }), own: true },
  ];
  right.push({ ...line({ ...call, method: "x/y" }), own: true });
  if (version === modern) {
    wrong.push(line({ id: 1, result: {} }), line({ ...call, params: { name: "t" } }),
      line({ method: "notifications/initialized" }));
  } else {
    right.push(line({ id: 1, result: {} }), line({ id: "a", error: { code: -32601, message: "m" } }));
    wrong.push(line({ id: 1, ...opening, params: {} }), line({ id: 1, error: { code: "x", message: "m" } }),
      { ...line({ id: 1, result: {} }), answers: "roots/list" });
  }
  return { right, wrong };
}

// --- All of it ---

let passed = 0;
let failed = 0;
function report(what, mistakes) {
  if (mistakes.length === 0) {
    passed += 1;
    console.log(`ok    ${what}`);
  } else {
    failed += 1;
    console.log(`FAIL  ${what}`);
    for (const mistake of mistakes.slice(0, 20)) console.log(`        ${mistake}`);
  }
}

const records = files.flatMap((file) => readFileSync(file, "utf8").split("\n").filter(Boolean).map(JSON.parse));
const sources = { "the SDKs' schemas": sdkChecks };
if (process.env.MCP_SCHEMA_DIR) sources["the specification's schema"] = schemaChecks;

for (const [source, checksOf] of Object.entries(sources)) {
  for (const version of versions) {
    const check = checksOf(version);
    const { right, wrong } = controls(version);
    report(`${version}: ${source} tells right from wrong`, [
      ...right.flatMap((known) =>
        mistakesIn(version, check, known).map((mistake) => `refuses ${known.line}: ${mistake}`)),
      ...wrong.filter((known) => mistakesIn(version, check, known).length === 0)
        .map((known) => `accepts ${known.line}`),
    ]);
    const lines = records.filter((record) => record.version === version);
    report(`${version}: ${lines.length} lines by ${source}`, lines.length < linesMin[version] ? [`expected ${linesMin[version]}`]
      : lines.flatMap((record) => mistakesIn(version, check, record)
        .map((mistake) => `${record.test} wrote ${record.line}: ${mistake}`)));
  }
}
for (const [suite, min] of Object.entries(suitesMin)) {
  const count = records.filter((record) => record.test.split(".")[0] === suite).length;
  report(`${suite} wrote ${count} lines`, count < min ? [`expected ${min}`] : []);
}
const strangers = records.filter((record) => !versions.includes(record.version));
report("every line belongs to a version", strangers.map((record) => `${record.test} wrote ${record.line}`));
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;
