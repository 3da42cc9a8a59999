// What programs for Node count on. One line a thing that works; "network" among the arguments: over loopback, too.
import assert from "node:assert";
import { fork, execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import fs from "node:fs";
import http from "node:http";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";

const self = fileURLToPath(import.meta.url);

if (!isMainThread) {
  const cells = new Int32Array(workerData);
  Atomics.add(cells, 0, 41);
  parentPort.postMessage("added");
} else if (process.argv[2] === "child") {
  process.on("message", (text) => process.send(text.toUpperCase(), () => process.disconnect()));
} else {
  const shared = new SharedArrayBuffer(4);
  const workers = [1, 2, 3, 4].map(() => new Worker(self, { workerData: shared }));
  await Promise.all(workers.map((worker) => once(worker, "message")));
  assert.equal(new Int32Array(shared)[0], 4 * 41);
  console.log("worker threads");

  // (func (export "add") (param i32 i32) (result i32) local.get 0 local.get 1 i32.add)
  const add = [0, 97, 115, 109, 1, 0, 0, 0, 1, 7, 1, 96, 2, 127, 127, 1, 127, 3, 2, 1, 0, 7, 7, 1, 3, 97, 100, 100, 0, 0];
  add.push(10, 9, 1, 7, 0, 32, 0, 32, 1, 106, 11);
  const { instance } = await WebAssembly.instantiate(new Uint8Array(add));
  assert.equal(instance.exports.add(40, 2), 42);
  console.log("WebAssembly");

  const child = fork(self, ["child"]);
  child.send("hello");
  assert.deepEqual((await once(child, "message"))[0], "HELLO");
  await once(child, "exit");
  console.log("a child with a channel");

  const { stdout } = await promisify(execFile)("sh", ["-c", "echo $((6 * 7)) | cat"]);
  assert.equal(stdout, "42\n");
  console.log("a shell and a pipe");

  const watcher = fs.watch(".");
  const changed = once(watcher, "change", { signal: AbortSignal.timeout(20_000) });
  fs.writeFileSync("watched.txt", "x");
  await changed;
  watcher.close();
  console.log("fs.watch");

  assert.equal(createHash("sha256").update("").digest("hex").slice(0, 8), "e3b0c442");
  console.log("crypto");

  if (process.argv.includes("network")) {
    const server = http.createServer((_, response) => response.end("served")).listen(0, "127.0.0.1");
    await once(server, "listening");
    const answer = await fetch(`http://127.0.0.1:${server.address().port}/`);
    assert.equal(await answer.text(), "served");
    server.closeAllConnections();
    server.close();
    console.log("a server and fetch");
  }
}
