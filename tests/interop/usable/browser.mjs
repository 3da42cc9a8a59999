// What servers that drive a browser do: start Chromium, speak to it over its debugging pipe, run a page. One line a
// thing that works.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";

// Chromium itself refuses to start as root with its own sandbox. In a jail nobody is root.
const ownSandbox = process.getuid() !== 0;

writeFileSync("page.html", "<canvas></canvas><script>document.title = `made by a script, ${6 * 7}`</script>");
const browser = spawn(
  "chromium-headless-shell",
  ["--remote-debugging-pipe", "--user-data-dir=profile", ...(ownSandbox ? [] : ["--no-sandbox"])],
  { stdio: ["ignore", "inherit", "pipe", "pipe", "pipe"] },
);
process.on("exit", () => browser.kill("SIGKILL"));
const ended = once(browser, "close");
let said = "";
browser.stderr.on("data", (data) => (said += data));
browser.on("exit", (code) => code && console.error(`the browser ended: ${code}\n${said}`));

// Messages end with a NUL each.
const [toBrowser, fromBrowser] = browser.stdio.slice(3);
const waiting = new Map();
let text = "";
fromBrowser.setEncoding("utf8").on("data", (data) => {
  const messages = (text + data).split("\0");
  text = messages.pop();
  for (const message of messages) {
    const { id, method, result, error, params } = JSON.parse(message);
    waiting.get(id ?? method)?.(error ? Promise.reject(new Error(error.message)) : (result ?? params));
  }
});
const answer = (key) => new Promise((resolve) => waiting.set(key, resolve));
let calls = 0;
let sessionId;
const call = (method, params = {}) => {
  toBrowser.write(`${JSON.stringify({ id: ++calls, method, params, sessionId })}\0`);
  return answer(calls);
};

const { targetId } = await call("Target.createTarget", { url: "about:blank" });
({ sessionId } = await call("Target.attachToTarget", { targetId, flatten: true }));
await call("Page.enable");
const loaded = answer("Page.loadEventFired");
await call("Page.navigate", { url: new URL("page.html", `file://${process.cwd()}/`).href });
await loaded;
const evaluate = async (expression) => {
  const { result, exceptionDetails } = await call("Runtime.evaluate", { expression, awaitPromise: true });
  if (exceptionDetails) throw new Error(exceptionDetails.exception.description);
  return result.value;
};
console.log("page:", await evaluate("document.title"));
console.log("canvas:", await evaluate("document.querySelector('canvas').toDataURL().slice(0, 22)"));
console.log(
  "wasm:",
  await evaluate("WebAssembly.instantiate(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])).then((m) => typeof m)"),
);
console.log(
  "worker:",
  await evaluate(`new Promise((resolve) => {
    const worker = new Worker(URL.createObjectURL(new Blob(["postMessage(6 * 7)"])));
    worker.onmessage = ({ data }) => resolve(data);
  })`),
);
const { data } = await call("Page.captureScreenshot");
console.log("screenshot:", Buffer.from(data, "base64").subarray(1, 4).toString());

// A renderer in a process id namespace of its own has a number in each.
const renderers = readdirSync("/proc").filter((name) => {
  try {
    return /^\d+$/.test(name) && readFileSync(`/proc/${name}/cmdline`, "latin1").includes("--type=renderer");
  } catch {
    return false; // gone, or not ours to see
  }
});
const isApart = (pid) => /^NSpid:(\t\d+){2,}$/m.test(readFileSync(`/proc/${pid}/status`, "latin1"));
if (renderers.length === 0) throw new Error("no renderer is there");
if (ownSandbox && !renderers.every(isApart)) throw new Error("a renderer is not in the browser's own sandbox");

sessionId = undefined;
await call("Browser.close");
const [code] = await ended;
console.log("exit code:", code);
