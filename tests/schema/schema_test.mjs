// policy/schema/policy.schema.json and the parser judge alike: every policy of the documentation, every preset, every
// broken policy that is JSON, and thousands of made-up ones. Ajv judges by the schema, the program JUDGE by the parser.
// The last line is "N passed, N failed".
import { spawnSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [root, packages] = process.argv.slice(2);
const Ajv = createRequire(join(packages, "package.json"))("ajv");
const schema = JSON.parse(readFileSync(join(root, "policy/schema/policy.schema.json"), "utf8"));
const bySchema = new Ajv({ strict: true, strictTypes: false, strictRequired: false }).compile(schema);

// What a schema can't express: what depends on other files or on variables, what an entry means beside another one, the
// range of a quantity with a unit, lengths in bytes, and the names that inherit never lets pass.
const BEYOND_A_SCHEMA = [
  /is not set; /, /once expanded/, /can't be extended/, /is extended by itself/, /levels deep/, /one policy too many/,
  /is not (in )?what was extended/, /makes backoff_initial longer/, /"[0-9]+[A-Za-z]+" is out of range/,
  /is pinned already/, /never passes from the host/, /is longer than [0-9]+ bytes/, /holds more than [0-9]+ values/, /\/cwd\/allow: is empty/,
  /"[0-9]{18,}[A-Za-z]+" is not a (size|duration)/,
];

function fromJsonc(text) {
  return JSON.parse(text.replace(/("(?:[^"\\]|\\.)*")|\/\/[^\n]*|\/\*[^]*?\*\//g, (_, quoted) => quoted ?? " "));
}

const cases = [];
function add(what, policy) { cases.push({ what, policy, text: JSON.stringify(policy) }); }

for (const page of ["README.md", "docs/policy.md", "docs/cli.md"]) {
  const blocks = readFileSync(join(root, page), "utf8").matchAll(/^```jsonc?\n([^]*?)^```$/gm);
  for (const [, block] of blocks) {
    const policy = fromJsonc(block);
    if ("version" in policy) add(page, policy);
  }
}
const examples = cases.length;
for (const folder of ["policy/presets", "tests/policy/broken"]) {
  for (const name of readdirSync(join(root, folder)).filter((name) => name.endsWith(".json"))) {
    const text = readFileSync(join(root, folder, name), "utf8");
    if (name.includes("duplicate-key")) continue;  // JSON.parse keeps one and says nothing
    let policy;
    try { policy = fromJsonc(text); } catch { continue; }
    add(name, policy);
  }
}

// A generator with a fixed seed (mulberry32): a failure shows the policy.
let state = 1;
function random(below) {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) % below;
}
const pick = (list) => list[random(list.length)];

// Good ones and bad ones of each form.
const TEXTS = [
  "/srv", "/", "/srv/data/", "${workspace}", "${workspace}/out", "${home}/.cache", "${tmp}", "${cache}/x", "${env:PLACE}/x",
  "${var:DATA}", "${var:NOPE}", "/a/${home}b", "/a$b", "/a/../b", "..", "../a", "/a..b", "${home}x", "${home", "${HOME}", "~",
  "~/x", "", " ", "a b", "a\nb", "/a\u0001", ":runtime", ":x", "é", "/é", "npx", "node", ".", "./x", "bin/x", "preset:node",
  "preset:nodejs", "preset:", "a.json", "HOME", "LC_*", "*", "A?", "A=B", "BASH_FUNC_x%%", "BASH_FUNC_*", "1A", "A-B",
  "ProgramFiles(x86)", "() {", "value", "$", "$$", "a${var:DATA}b", "root", "auto", "-x", "0day", "x.y", "a".repeat(33),
  "0".repeat(64), "F".repeat(64), "api.example.com:443", "a:0", "a:65535", "a:65536", "[::1]:80", "[1]:80", "::1:80", "a:080",
  ":80", "-a:1", "ptrace", "Ptrace", "9p", "1GiB", "1GB", "1024", "5s", "5 s", "0ms", "1h", "1d", "A", "B", "D", "private",
  "host", "none", "allowlist", "baseline", "strict", "refuse", "checked", "inherit", "discard", "ro", "rw", "--inspect*",
];
const OTHERS = [0, 1, 2, 3, 256, 65536, 65537, 1048576, 1048577, 4194304, 4194305, 1000000, 1000001, -1, 1.5, true, false, null];

function anything(depth) {
  const kind = random(10);
  if (kind < 6 || depth === 0) return random(3) ? pick(TEXTS) : pick(OTHERS);
  if (kind < 8) return Array.from({ length: random(3) }, () => anything(depth - 1));
  return Object.fromEntries(Array.from({ length: random(3) }, () => [pick(["path", "optional", "file", "env", "fd", ...TEXTS]), anything(depth - 1)]));
}

function follow(node) {
  while (node.$ref) node = schema.definitions[node.$ref.split("/").pop()];
  return node;
}

// A value for `node` of the schema: most often of its shape, with texts of all forms.
function value(node) {
  node = follow(node);
  if (random(25) === 0) return anything(2);
  if (node.allOf && !node.properties && !node.pattern) return value(node.allOf[0]);
  if (node.anyOf) return value(pick(node.anyOf));
  if (node.enum) return random(8) ? pick(node.enum) : pick(TEXTS);
  if ("const" in node) return node.const;
  if (node.type === "array") return Array.from({ length: random(4) }, () => value(node.items));
  if (node.type === "integer") return random(3) ? pick([node.minimum, node.maximum, node.minimum + 1]) : pick(OTHERS);
  if (node.type === "boolean") return random(2) === 0;
  if (node.type === "string") return good(node);
  if (node.properties) {
    const fields = Object.keys(node.properties).filter(() => random(3) === 0);
    const made = Object.fromEntries(fields.map((key) => [key, value(node.properties[key])]));
    for (const key of node.required ?? []) if (random(10)) made[key] = value(node.properties[key]);
    if (random(20) === 0) made[pick(TEXTS)] = 1;
    return made;
  }
  return Object.fromEntries(Array.from({ length: random(3) }, () => [good(follow(node.propertyNames)), value(node.additionalProperties)]));
}

function good(node) {
  const fitting = TEXTS.filter((text) => node.pattern && new RegExp(node.pattern, "u").test(text));
  return random(8) && fitting.length ? pick(fitting) : pick(TEXTS);
}

for (let i = 0; i < 8000; ++i) {
  const policy = random(50) ? { version: 1 } : {};
  if (random(6) === 0) policy.extends = value(schema.properties.extends);
  const fields = Object.entries(schema.definitions.fields.properties);
  for (let n = 1 + random(3); n > 0; --n) {
    const [key, node] = pick(fields);
    policy[key] = value(node);
  }
  add(`made-up policy ${i}`, policy);
}

const judged = spawnSync(process.env.JUDGE, { input: cases.map(({ text }) => text + "\n").join(""), encoding: "utf8", maxBuffer: 1 << 28 });
if (judged.status !== 0) throw new Error(`${process.env.JUDGE} failed: ${judged.error ?? judged.stderr}`);
const verdicts = judged.stdout.trimEnd().split("\n");
if (verdicts.length !== cases.length) throw new Error("the parser has not judged each policy once");

let passed = 0, failed = 0, beyond = 0, good_ones = 0;
cases.forEach(({ what, policy, text }, i) => {
  const accepted = verdicts[i] === "ok";
  if (accepted) ++good_ones;
  if (bySchema(policy) === accepted) {
    ++passed;
  } else if (!accepted && BEYOND_A_SCHEMA.some((rule) => rule.test(verdicts[i]))) {
    ++beyond;
  } else if (++failed <= 20) {
    console.log(`${what}: ${text}\n  parser: ${verdicts[i]}\n  schema: ${JSON.stringify(bySchema.errors?.slice(0, 3).map(({ instancePath, message }) => instancePath + " " + message))}`);
  }
});
// Else it was shown of one half, or of nothing.
for (const [what, holds] of [["examples", examples > 10], ["good policies", good_ones > 1000],
                             ["bad policies", cases.length - good_ones > 1000]]) {
  if (holds) continue;
  console.log(`there are too few ${what}`);
  ++failed;
}
console.log(`${good_ones} good and ${cases.length - good_ones} bad policies; ${beyond} bad ones are so by rules that a schema can't express`);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
