"""Whole sessions with real servers: by Bulkhead's own client, and by real hosts in the modern era. For interop.py."""

import dataclasses
import json
import os
import subprocess
import tempfile
import time

import peer
from peer import Failed

STEP_SECONDS_MAX = 30
FEATURES = "demo://resource/static/document/features.md"


def expect(condition, text):
    if not condition:
        raise Failed(text)


@dataclasses.dataclass(frozen=True)
class Place:
    """Where things are."""

    app: str  # the folder with node_modules and our programs
    here: str
    policy: str  # a file, for node
    everything: str
    modern: str


class Talk:
    """session_talk with one server: a line each way at a time, and what the server says by itself."""

    def __init__(self, place, script, identity, work, lines):
        self.notifications = []
        self.stderr = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [f"{place.app}/bin/session_talk", place.policy, "node", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.stderr,
            cwd=place.app,
            env=identity.environment({"BULKHEAD_MCP_LINES": lines, "BULKHEAD_MCP_TEST": "interop session"}),
            **identity.popen_arguments(),
        )
        self.lines = peer.Lines(self.process.stdout.fileno())
        self.work = work

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        if not peer.wait(self.process, peer.END_SECONDS_MAX):
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.stderr.close()
        self.left = peer.end_children()

    def next(self):
        """The next line, which is None when it was a notification."""
        line = self.lines.next(time.monotonic() + STEP_SECONDS_MAX)
        if not line:
            self.stderr.seek(0)
            raise Failed(f"session_talk ended: {self.stderr.read()[-2000:]!r}")
        said = json.loads(line)
        if "notification" not in said:
            return said
        self.notifications.append(said)
        return None

    def read(self):
        """The next line that is no notification."""
        while (said := self.next()) is None:
            pass
        return said

    def write(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def call(self, method, params=None):
        self.write(f"call {method}" + (f" {json.dumps(params)}" if params is not None else ""))
        said = self.read()
        expect("result" in said, f"{method}: {said}")
        return said["result"]

    def tool(self, name, arguments=None, **more):
        return self.call("tools/call", {"name": name, "arguments": arguments or {}, **more})

    def text(self, name, arguments=None):
        return "".join(part.get("text", "") for part in self.tool(name, arguments)["content"])

    def await_notification(self, method):
        while all(one["notification"] != method for one in self.notifications):
            said = self.next()
            expect(said is None, f"instead of {method}: {said}")


def talk_to_everything(talk):
    """What its other cases, which are a process each, can't show: what server and client say to each other meanwhile."""
    expect(talk.read() == {"ready": "legacy"}, "era")
    talk.call("logging/setLevel", {"level": "debug"})
    talk.await_notification("notifications/tools/list_changed")
    expect("file:///srv" in talk.text("get-roots-list"), "our roots")
    expect("sampled" in talk.text("trigger-sampling-request", {"prompt": "p"}), "our sample")
    expect("the crew" in talk.text("trigger-elicitation-request"), "our input")
    talk.write(f"subscribe {json.dumps({'resourceSubscriptions': [FEATURES]})}")
    talk.await_notification("notifications/message")
    talk.write("notify notifications/roots/list_changed")
    expect(talk.read() == {"notified": True}, "notify")
    talk.text("toggle-subscriber-updates")
    research = {"name": "simulate-research-query", "arguments": {"topic": "walls"}, "task": {"ttl": 60000}}
    tasks = [talk.call("tools/call", research)["task"]["taskId"] for _ in range(2)]
    expect(talk.call("tasks/get", {"taskId": tasks[0]})["status"] == "working", "tasks/get")
    listed = [task["taskId"] for task in talk.call("tasks/list")["tasks"]]
    expect(sorted(listed) == sorted(tasks), f"tasks/list: {listed}, not {tasks}")
    expect(talk.call("tasks/cancel", {"taskId": tasks[1]})["status"] == "cancelled", "tasks/cancel")
    expect("walls" in json.dumps(talk.call("tasks/result", {"taskId": tasks[0]})), "tasks/result")
    talk.await_notification("notifications/tasks/status")
    talk.await_notification("notifications/resources/updated")
    talk.write("unsubscribe")


def talk_to_modern(talk):
    """Subscriptions and rounds of input, which need a session."""
    expect(talk.read() == {"ready": "modern"}, "era")
    expect("2026-07-28" in talk.call("server/discover")["supportedVersions"], "server/discover")
    wanted = {"resourceSubscriptions": ["note://one"], "toolsListChanged": True}
    talk.write(f"subscribe {json.dumps(wanted)}")
    talk.await_notification("notifications/subscriptions/acknowledged")
    expect(talk.text("ask") == "the crew, opaque \u00e9", "a round of input")
    talk.text("change")
    talk.await_notification("notifications/tools/list_changed")
    talk.await_notification("notifications/resources/updated")
    talk.write("unsubscribe")
    talk.call("tools/list")
    talk.notifications.clear()
    talk.text("change")
    talk.call("tools/list")
    expect(not talk.notifications, f"after the end of the subscription: {talk.notifications}")


def run_sessions(place, identity):
    """Bulkhead's own client, a whole session with each server."""
    results = []
    with tempfile.TemporaryDirectory(prefix="bulkhead-interop.") as work:
        os.chmod(work, 0o755)
        identity.own(work)
        lines = os.path.join(work, "lines")
        os.mkdir(lines)
        identity.own(lines)
        for name, script, speak in (
            ("everything, legacy", place.everything, talk_to_everything),
            ("modern_server.mjs, modern", place.modern, talk_to_modern),
        ):
            try:
                with Talk(place, script, identity, work, lines) as talk:
                    speak(talk)
                expect(talk.process.returncode == 0, f"exit code {talk.process.returncode}")
                expect(not talk.left, f"left behind: {talk.left}")
                results.append((f"session, {name}, {identity.name}", None))
            except (Failed, ValueError, KeyError) as error:
                results.append((f"session, {name}, {identity.name}", repr(error)))
        keep_lines(lines)
    return results


def keep_lines(folder):
    """What our client wrote, for tests/mcp/schema."""
    target = os.environ.get("BULKHEAD_MCP_LINES")
    for name in os.listdir(folder) if target else ():
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            text = file.read()
        with open(os.path.join(target, f"session-{name}"), "a", encoding="utf-8") as file:
            file.write(text)


# What the Inspector can ask in one go.
INSPECTED = (
    ("initialize",),
    ("tools/list",),
    ("tools/call", "--tool-name", "echo", "--tool-arg", "message=hello \u2028 \U0001f6a2"),
    ("resources/list",),
    ("resources/templates/list",),
    ("resources/read", "--uri", "note://one"),
    ("prompts/list",),
    ("prompts/get", "--prompt-name", "greet", "--prompt-args", "name=the crew"),
)


def run_modern_hosts(place, run_host, work, identity, with_inspector):
    """Real hosts in the modern era: each says the same with and without Bulkhead in front of the server.

    `run_host` takes a command and returns its stdout.
    """
    bulkhead = [f"{place.app}/bin/bulkhead", "run", "--workspace", place.app, "--policy", place.policy]
    servers = {"bare": ["node", place.modern], "jailed": [*bulkhead, "node", place.modern]}
    commands = {}  # by name: of a kind of server the host's command
    for mode in ("auto", "2026-07-28", "legacy"):
        client = ["node", f"{place.here}/modern_client.mjs", place.app, mode]
        commands[f"TypeScript SDK 2, {mode}"] = lambda kind, client=client: [*client, *servers[kind]]
    config = os.path.join(work, "config.json")
    with open(config, "w", encoding="utf-8") as file:
        entries = {
            kind: {"command": command[0], "args": command[1:], "protocolEra": "modern"}
            for kind, command in servers.items()
        }
        json.dump({"mcpServers": entries}, file)
    inspector = [f"{place.app}/node_modules/.bin/mcp-inspector", "--cli", "--config", config, "--format", "json"]
    for method, *words in INSPECTED if with_inspector else ():
        asked = ["--method", method, *words]
        commands[f"Inspector, {method}"] = lambda kind, asked=asked: [*inspector, "--server", kind, *asked]
    results = []
    for name, command in commands.items():
        why = None
        try:
            bare, jailed = run_host(command("bare")), run_host(command("jailed"))
            is_legacy = "legacy" in name or "Inspector" in name and "initialize" not in name  # or doesn't say
            expect(is_legacy or '"2026-07-28"' in bare, f"without Bulkhead it is not the modern era: {bare[:500]}")
            expect(bare and jailed == bare, f"said {jailed[:500]!r}, without Bulkhead {bare[:500]!r}")
        except Failed as error:
            why = str(error)
        results.append((f"modern era, {name}, {identity.name}", why))
    return results
