"""A tiny MCP host for the demo: starts one server, asks it a few things, stops it. Python's standard library only.

    mcp_host.py [--outlive WORD] REQUESTS COMMAND [ARG...]

REQUESTS is a JSON list of [method, params] pairs, sent after the handshake, one after the other. For each the answer is
printed as one line:

    ok TEXT        the result: a tool's text, or the names of the tools
    error TEXT     the tool or the server said no

With --outlive the host is then killed with SIGKILL, as in a crash, and once the server has ended one more line says
what is left: `left N`, the number of living processes with the argument WORD. They are then ended.

Exit code 0 if every request was answered; 1, with a reason on stderr, if not.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time

ANSWER_SECONDS_MAX = 120  # npx may have to download the server first
END_SECONDS_MAX = 15


class Failed(Exception):
    pass


class Server:
    """A server and the conversation with it."""

    def __init__(self, command):
        try:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except OSError as error:
            raise Failed(f"cannot start {command[0]}: {error.strerror}") from error
        self.buffer = b""
        self.last_id = 0

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def read_line(self, deadline):
        while b"\n" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise Failed(f"no answer within {ANSWER_SECONDS_MAX} s")
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                raise Failed(f"the server ended (exit code {self.process.wait()}) before it answered")
            self.buffer += data
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line

    def request(self, method, params):
        """The answer to one request: its `result` or its `error`, as they came."""
        self.last_id += 1
        try:
            self.send({"id": self.last_id, "method": method, "params": params})
        except BrokenPipeError as error:
            raise Failed(f"the server ended (exit code {self.process.wait()}) before it was asked") from error
        deadline = time.monotonic() + ANSWER_SECONDS_MAX
        while True:
            message = json.loads(self.read_line(deadline))
            if message.get("id") == self.last_id and "method" not in message:
                return message

    def handshake(self):
        client = {"name": "bulkhead-demo", "version": "1.0.0"}
        answer = self.request(
            "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        )
        if "result" not in answer:
            raise Failed(f"the server refused the handshake: {answer}")
        self.send({"method": "notifications/initialized"})

    def close(self):
        """Stops the server as the specification says: end of input, then SIGTERM, then SIGKILL."""
        self.process.stdin.close()
        for step in (lambda: None, self.process.terminate, self.process.kill):
            step()
            try:
                self.process.wait(END_SECONDS_MAX / 3)
                return
            except subprocess.TimeoutExpired:
                pass
        raise Failed("the server does not end")


def in_words(answer):
    """One line for people: what an answer says."""
    if "error" in answer:
        return "error " + answer["error"]["message"]
    result = answer["result"]
    if "tools" in result:
        return "ok " + ", ".join(tool["name"] for tool in result["tools"])
    text = " ".join(part.get("text", "") for part in result.get("content", []))
    return ("error " if result.get("isError") else "ok ") + " ".join(text.split())


def converse(requests, command):
    server = Server(command)
    server.handshake()
    for method, params in requests:
        print(in_words(server.request(method, params)), flush=True)
    return server


def processes_with(word):
    """The living processes whose command line holds `word`, but this one."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) in (os.getpid(), os.getppid()):
            continue
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:  # it has ended meanwhile
            continue
        if word.encode() in words:
            found.append(int(entry))
    return found


def end(pid):
    try:
        pidfd = os.pidfd_open(pid)
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        select.select([pidfd], [], [], END_SECONDS_MAX)
    except ProcessLookupError:
        pass  # it has ended already


def outlive(word, requests, command):
    """Kills a host in the middle of its work, waits for the server's end, counts what stayed and ends that too."""
    read_end, write_end = os.pipe()
    host = os.fork()
    if host == 0:
        os.close(read_end)
        server = converse(requests, command)
        os.write(write_end, str(server.process.pid).encode())
        signal.pause()
    os.close(write_end)
    pid = os.read(read_end, 32)
    server = os.pidfd_open(int(pid)) if pid else None
    os.kill(host, signal.SIGKILL)
    os.waitpid(host, 0)
    if server is None:
        raise Failed("the host failed before it was killed")
    if not select.select([server], [], [], END_SECONDS_MAX)[0]:
        raise Failed(f"the server is still there {END_SECONDS_MAX} s after its host was killed")
    left = processes_with(word)
    for pid in left:
        end(pid)
    print(f"left {len(left)}", flush=True)


def main():
    arguments = sys.argv[1:]
    word = None
    if arguments[:1] == ["--outlive"]:
        word, arguments = arguments[1], arguments[2:]
    if len(arguments) < 2:
        sys.exit(__doc__)
    requests, command = json.loads(arguments[0]), arguments[1:]
    try:
        if word is None:
            converse(requests, command).close()
        else:
            outlive(word, requests, command)
    except Failed as error:
        sys.exit(f"mcp_host: {error}")


if __name__ == "__main__":
    main()
