"""Real servers and real hosts, with and without Bulkhead. run.sh sets up what this needs and starts it.

For every server x {npx -y, node} x {tier A, tier B} x {root, the ordinary user}: the answers to initialize, tools/list
and each tools/call, compared by id, are the same bytes as without Bulkhead; the exit code is the same; the report names
the tier that was wanted and the network that was granted; nothing of ours is on stderr; nothing of the tree is left.
Tier B is reached by making user namespaces fail (tests/programs/deny.cc).

Then INTERFACE.md's host configuration, pasted as it is, driven by the TypeScript SDK's own client and by the Inspector;
`printf ... | bulkhead run ...`; an empty npm cache; and Bulkhead as the client, in both eras. In sessions.py whole
sessions of Bulkhead's client, and real hosts with a server of the modern era. And what servers are made
of: programs in usable/ that use much of Node, Python, git and the C++ library say in a jail what they say without one.

One line a case. Exit code 0 only if all passed.
"""

import concurrent.futures
import dataclasses
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

import peer
import sessions
from peer import Failed

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, "..", "programs")
CACHE = os.environ["BULKHEAD_INTEROP_CACHE"]
APP = os.path.join(CACHE, "app")
DENY = os.path.join(CACHE, "deny")
USER = os.environ["BULKHEAD_TEST_USER"]
MACHINE_CACHE = "/var/cache/bulkhead"
AT_ONCE = 3  # much of it waits for the registry
# The system's own: the first on the PATH may lie in the home of whoever set it up, where a jail doesn't look.
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else "python3"

with open(os.path.join(HERE, "package.json"), encoding="utf-8") as package_file:
    VERSIONS = json.load(package_file)["dependencies"]


@dataclasses.dataclass(frozen=True)
class Server:
    """A server, how it is started and what it is asked. {dir} is the folder that it is given."""

    name: str
    preset: str
    network: str
    command: tuple
    calls: tuple  # (tool, arguments)
    env: tuple = ()  # (name, value)


def npm_servers():
    files = "{dir}"
    thought = {"thought": "a door", "thoughtNumber": 1, "totalThoughts": 1, "nextThoughtNeeded": False}
    entities = [{"name": "bulkhead", "entityType": "wall", "observations": ["keeps water out"]}]
    memory = (("MEMORY_FILE_PATH", "{dir}/memory.jsonl"),)
    write = {"path": "{dir}/new.txt", "content": "written\n"}
    servers = (
        ("filesystem", (files,), (("write_file", write), ("read_text_file", {"path": "{dir}/hello.txt"})), ()),
        ("everything", (), (("echo", {"message": "hello \u2028 \U0001f6a2"}),), ()),
        ("memory", (), (("create_entities", {"entities": entities}), ("read_graph", {})), memory),
        ("sequential-thinking", (), (("sequentialthinking", thought),), ()),
    )
    for name, arguments, calls, env in servers:
        package = "@modelcontextprotocol/server-" + name
        npx = ("npx", "-y", f"{package}@{VERSIONS[package]}") + arguments
        node = ("node", f"{APP}/node_modules/{package}/dist/index.js") + arguments
        yield Server(f"{name} by npx", "npx", "host", npx, calls, env)
        yield Server(f"{name} by node", "node", "none", node, calls, env)


def other_servers():
    note = (("note", {"text": "h\u00e9llo"}),)
    python = f"{APP}/py_server.py"
    yield Server("python", "python", "none", (PYTHON, python, "{dir}"), note)
    yield Server("uvx stand-in", "uvx", "host", (f"{APP}/bin/uvx", python, "{dir}"), note)
    for server in npm_servers():
        if server.preset == "node":
            yield dataclasses.replace(server, name=f"{server.name}, strict", preset="node_strict")
    yield Server("python, strict", "python_strict", "none", (PYTHON, python, "{dir}"), note)
    read = (("read_file", {"path": "{dir}/hello.txt"}),)
    yield Server("demo server", "default", "none", (f"{APP}/bin/demo-server",), read)


def filled(value, folder):
    """`value` with {dir} replaced in every text of it."""
    if isinstance(value, str):
        return value.replace("{dir}", folder)
    if isinstance(value, dict):
        return {key: filled(one, folder) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [filled(one, folder) for one in value]
    return value


def node_elsewhere():
    """The folder of a Node that neither the system nor a version manager put there, which no preset can know; or None."""
    npx = os.path.realpath(shutil.which("npx") or "/usr/bin/npx")
    return None if npx.startswith("/usr/") else npx.split("/node_modules/")[0]


NODE_ELSEWHERE = node_elsewhere()


def new_folder(path, identity):
    """An empty folder with hello.txt in it, all of it the identity's own."""
    shutil.rmtree(path, ignore_errors=True)
    os.mkdir(path)
    with open(os.path.join(path, "hello.txt"), "w", encoding="utf-8") as file:
        file.write("hello from the host\n")
    identity.own(os.path.join(path, "hello.txt"))
    identity.own(path)


def expect(condition, text):
    if not condition:
        raise Failed(text)


class Jail:
    """The command in front of a server's command, for one tier."""

    def __init__(self, work, tier, identity, user):
        self.work = work
        self.tier = tier
        self.report = os.path.join(work, "report.json")
        # Started as root in tier B nothing can be shown as the server's own: an account is named, and owns the folder.
        self.named_user = user.login if tier == "B" and identity.name == "root" else None
        self.folder_owner = user if self.named_user else identity

    def prefix(self, server, folder):
        run = [f"{APP}/bin/bulkhead", "run", "--report", self.report, "--workspace", APP, "--rw", folder]
        for name, value in server.env:
            run += ["--env", f"{name}={filled(value, folder)}"]
        if self.named_user is not None:
            run += ["--policy", policy_file(server.preset, "as_user")]
        elif NODE_ELSEWHERE is not None or server.preset not in PRESETS:
            run += ["--policy", policy_file(server.preset, "elsewhere")]
        else:
            run += ["--preset", server.preset]
        if self.tier == "A":
            return run
        return [DENY, "--userns"] + run + ["--require", "B"]

    def check_report(self, server):
        try:
            with open(self.report, encoding="utf-8") as file:
                report = json.load(file)
        except (OSError, ValueError) as error:
            raise Failed(f"the report: {error}") from error
        expect(report.get("tier") == self.tier, f"tier {report.get('tier')} instead of {self.tier}")
        expect(report.get("network") == server.network, f"network {report.get('network')}, not {server.network}")


def compare(control, jailed):
    for number in sorted(control.answers.keys() | jailed.answers.keys(), key=str):
        here, there = control.answers.get(number), jailed.answers.get(number)
        if here != there:
            raise Failed(
                f"the answer {number} differs; without Bulkhead {here and here[:300]!r}, "
                f"with it {there and there[:300]!r}; stderr: {jailed.stderr[-1000:]}"
            )
    expect(
        control.exit_code == jailed.exit_code,
        f"exit code {jailed.exit_code}, without Bulkhead {control.exit_code}; stderr: {jailed.stderr[-1000:]}",
    )
    expect(not jailed.left, f"left behind: {jailed.left}")
    ours = [line for line in jailed.stderr.splitlines() if line.startswith("bulkhead")]
    expect(not ours, f"on stderr: {ours}")


def is_good(answer):
    message = json.loads(answer)
    return "result" in message and not message["result"].get("isError")


def run_server(server, identity, user, ask=peer.ask_in_turn, tiers=("A", "B")):
    """The cases of one server and identity: [(name, None or why it failed)]."""
    names = [f"{server.name}, tier {tier}, {identity.name}" for tier in tiers]
    with tempfile.TemporaryDirectory(prefix="bulkhead-interop.") as work:
        os.chmod(work, 0o755)
        identity.own(work)
        folder = os.path.join(work, "data")
        command, calls = filled(server.command, folder), filled(server.calls, folder)
        messages = peer.conversation(calls)
        env = {name: filled(value, folder) for name, value in server.env}
        try:
            new_folder(folder, identity)
            control = peer.converse(command, messages, identity, work, env, ask)
            bad = [number for number, answer in control.answers.items() if not is_good(answer)]
            expect(not bad and len(control.answers) == 2 + len(calls), f"without Bulkhead: {control}")
        except Failed as error:
            return [(name, f"the control, without Bulkhead: {error}") for name in names]
        results = []
        for name, tier in zip(names, tiers):
            jail = Jail(work, tier, identity, user)
            new_folder(folder, jail.folder_owner)
            try:
                jailed = peer.converse(jail.prefix(server, folder) + command, messages, identity, work, {}, ask)
                compare(control, jailed)
                jail.check_report(server)
                results.append((name, None))
            except Failed as error:
                results.append((name, str(error)))
    return results


def run_piped(identity, user):
    """printf ... | bulkhead run ...: everything is sent and stdin ends before the server has even started."""
    server = next(one for one in npm_servers() if one.name == "filesystem by node")
    read_only = dataclasses.replace(server, calls=server.calls[1:])  # all at once: in no particular order
    return [
        (name.replace("filesystem by node", "printf | filesystem"), why)
        for name, why in run_server(read_only, identity, user, peer.ask_at_once)
    ]


def run_cold(identity, user):
    """npx with an empty cache."""
    with tempfile.TemporaryDirectory(prefix="bulkhead-interop.") as cache:
        identity.own(cache)
        server = next(one for one in npm_servers() if one.name == "filesystem by npx")
        results = run_server(server, dataclasses.replace(identity, cache=cache), user, tiers=("A",))
        return [(name.replace("npx", "npx, cold cache"), why) for name, why in results]


class PastedConfig:
    """INTERFACE.md's configuration as it is, with what it names made; elsewhere where that is not possible.

    The cache is where Bulkhead puts it by itself. As root that is the machine's, which a test must neither fill nor
    depend on: the host sees a folder of ours in its place.
    """

    def __init__(self, identity, work):
        self.identity = identity
        self.prefix = ()
        self.work = work
        self.made = []
        self.path = os.path.join(HERE, "host_config.json")
        self.folder = "/srv/data"

    def __enter__(self):
        with open(self.path, encoding="utf-8") as file:
            text = file.read()
        replaced = text
        if os.getuid() == 0 and not os.path.exists("/usr/local/bin/bulkhead") and not os.path.exists("/srv/data"):
            self.made = ["/usr/local/bin/bulkhead", "/srv/data"]
            shutil.copy(f"{APP}/bin/bulkhead", "/usr/local/bin/bulkhead")
        else:
            self.folder = os.path.join(self.work, "data")
            replaced = replaced.replace("/srv/data", self.folder)
            replaced = replaced.replace("/usr/local/bin/bulkhead", f"{APP}/bin/bulkhead")
        if not os.path.exists("/usr/bin/npx"):
            replaced = replaced.replace("/usr/bin/npx", shutil.which("npx"))
        if replaced != text:
            self.path = os.path.join(self.work, "host_config.json")
            with open(self.path, "w", encoding="utf-8") as file:
                file.write(replaced)
        new_folder(self.folder, self.identity)
        if self.identity.uid == 0:
            if not os.path.exists(MACHINE_CACHE):
                os.mkdir(MACHINE_CACHE)
                self.made.append(MACHINE_CACHE)
            os.makedirs(self.identity.cache, exist_ok=True)
            script = 'mount --bind "$0" "$1" && shift && exec "$@"'
            self.prefix = ("unshare", "--mount", "sh", "-c", script, self.identity.cache, MACHINE_CACHE)
        return self

    def __exit__(self, *_):
        for path in self.made:
            if os.path.isdir(path):
                shutil.rmtree(path)
            elif os.path.exists(path):
                os.unlink(path)


def run_host(command, identity, work, prefix=()):
    """A host to its end: its stdout. Whatever it leaves behind is a failure."""
    process = subprocess.Popen(
        [*prefix, *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=work,
        env=identity.environment({"MCP_INSPECTOR_SECRET_STORE": "memory"}),
        **identity.popen_arguments(),
    )
    try:
        stdout, stderr = process.communicate(timeout=peer.ANSWER_SECONDS_MAX)
    except subprocess.TimeoutExpired as error:
        process.kill()
        process.communicate()
        raise Failed(f"the host did not end within {peer.ANSWER_SECONDS_MAX} s") from error
    finally:
        left = peer.end_children()
    text = stderr.decode(errors="replace")
    expect(process.returncode == 0, f"the host's exit code is {process.returncode}; stderr: {text[-2000:]}")
    expect(not left, f"left behind: {left}")
    return stdout.decode()


def run_pasted_host(command, config, work):
    """The same, where Bulkhead's cache is where it puts it by itself."""
    return run_host(command, dataclasses.replace(config.identity, cache=""), work, config.prefix)


def content_text(result):
    return "".join(part.get("text", "") for part in result.get("content", []))


def drive_by_sdk(config, work):
    arguments = json.dumps({"path": f"{config.folder}/hello.txt"})
    command = ["node", f"{HERE}/sdk_client.mjs", APP, config.path, "files", "read_text_file", arguments]
    said = json.loads(run_pasted_host(command, config, work))
    expect("write_file" in said["tools"], f"tools: {said['tools']}")
    expect(content_text(said["result"]) == "hello from the host\n", f"result: {said['result']}")
    expect(said["tree"] >= 3, f"only {said['tree']} processes were running")
    expect(not said["left"], f"left after close: {said['left']}")


def drive_by_inspector(config, work):
    inspector = [f"{APP}/node_modules/.bin/mcp-inspector", "--cli", "--config", config.path, "--server", "files"]
    inspector += ["--connect-timeout", str(peer.ANSWER_SECONDS_MAX * 1000), "--format", "json"]
    said = json.loads(run_pasted_host(inspector + ["--method", "tools/list"], config, work))
    names = [tool["name"] for tool in said["result"]["tools"]]
    expect("write_file" in names, f"tools: {names}")
    call = ["--method", "tools/call", "--tool-name", "read_text_file", "--tool-arg", f"path={config.folder}/hello.txt"]
    said = json.loads(run_pasted_host(inspector + call, config, work))
    expect(content_text(said["result"]) == "hello from the host\n", f"result: {said}")


def run_pasted(everyone):
    """All of it in one go, because the names of the configuration exist once."""
    results = []
    for identity in everyone:
        with tempfile.TemporaryDirectory(prefix="bulkhead-interop.") as work:
            os.chmod(work, 0o755)
            identity.own(work)
            with PastedConfig(identity, work) as config:
                for name, drive in (("TypeScript SDK", drive_by_sdk), ("Inspector", drive_by_inspector)):
                    try:
                        drive(config, work)
                        results.append((f"pasted configuration, {name}, {identity.name}", None))
                    except (Failed, ValueError, KeyError) as error:
                        results.append((f"pasted configuration, {name}, {identity.name}", str(error)))
    return results


EVERYTHING = f"{APP}/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
MODERN = f"{APP}/modern_server.mjs"
NOTE = "demo://resource/static/document/features.md"
PROMPT = {"type": "ref/prompt", "name": "completable-prompt"}

# (server, era, [(method, params)]): every method that each of them offers.
CONVERSATIONS = (
    (
        EVERYTHING,
        "legacy",
        (
            ("ping", None),
            ("logging/setLevel", {"level": "error"}),
            ("tools/list", None),
            ("tools/call", {"name": "get-sum", "arguments": {"a": 1, "b": 2}}),
            ("resources/list", None),
            ("resources/templates/list", None),
            ("resources/read", {"uri": NOTE}),
            ("resources/subscribe", {"uri": NOTE}),
            ("resources/unsubscribe", {"uri": NOTE}),
            ("prompts/list", None),
            ("prompts/get", {"name": "simple-prompt"}),
            ("completion/complete", {"ref": PROMPT, "argument": {"name": "department", "value": "E"}}),
        ),
    ),
    (
        MODERN,
        "modern",
        (
            ("server/discover", None),
            ("tools/list", None),
            ("tools/call", {"name": "echo", "arguments": {"message": "hello \u2028 \U0001f6a2"}}),
            ("resources/list", None),
            ("resources/templates/list", None),
            ("resources/read", {"uri": "note://one"}),
            ("prompts/list", None),
            ("prompts/get", {"name": "greet", "arguments": {"name": "the crew"}}),
        ),
    ),
)


def without_meta(result):
    """Of a modern result what a legacy one has, too."""
    for key in ("_meta", "resultType", "ttlMs", "cacheScope"):
        result.pop(key, None)
    return result


def run_client(identity):
    """Bulkhead as the client: each method gives what it gives to one that speaks to the server without Bulkhead."""
    results = []
    with tempfile.TemporaryDirectory(prefix="bulkhead-interop.") as work:
        os.chmod(work, 0o755)
        identity.own(work)
        for script, era, requests in CONVERSATIONS:
            name = f"client, {os.path.basename(script) if era == 'modern' else 'everything'}, {era}, {identity.name}"
            try:
                compare_client(script, era, requests, identity, work)
                results.append((name, None))
            except (Failed, ValueError, KeyError) as error:
                results.append((name, str(error)))
    return results


def compare_client(script, era, requests, identity, work):
    with_control = [one for one in requests if one[0] != "server/discover"]  # the control speaks legacy
    messages = [peer.INITIALIZE, peer.INITIALIZED]
    messages += [peer.request(2 + i, method, params or {}) for i, (method, params) in enumerate(with_control)]
    control = peer.converse(["node", script], messages, identity, work)
    lines = Tee(identity, work)
    expected = {method: json.loads(control.answers[2 + i])["result"] for i, (method, _) in enumerate(with_control)}
    for method, params in requests:
        command = [f"{APP}/bin/bulkhead", "request", "--json", "--workspace", APP, "--method", method]
        command += ["--params", json.dumps(params)] if params else []
        if NODE_ELSEWHERE is not None:
            command += ["--policy", policy_file("node", "elsewhere")]
        host = subprocess.run(
            command + lines.flags + lines.command(["node", script]),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=work,
            env=identity.environment({}),
            timeout=peer.ANSWER_SECONDS_MAX,
            check=False,
            **identity.popen_arguments(),
        )
        expect(host.returncode == 0, f"{method}: exit code {host.returncode}: {host.stderr[-1000:]!r}")
        said = json.loads(host.stdout)
        spoken = "modern" if "_meta" in said["request"].get("params", {}) else "legacy"
        expect(spoken == era, f"{method} was sent in the {spoken} era")
        result = said["response"]["result"]
        if method == "server/discover":
            expect("2026-07-28" in result["supportedVersions"], f"discover: {result}")
        else:
            wanted = without_meta(expected[method])
            expect(without_meta(result) == wanted, f"{method}: {result}, without Bulkhead {wanted}")
    lines.keep(f"interop {era}", "2026-07-28" if era == "modern" else "2025-11-25")


class Tee:
    """What our client writes, on its way to the server. For tests/mcp/schema, where BULKHEAD_MCP_LINES names a folder."""

    def __init__(self, identity, work):
        self.target = os.environ.get("BULKHEAD_MCP_LINES")
        self.path = os.path.join(work, "lines")
        self.flags = ["--rw", self.path] if self.target else []
        with open(self.path, "wb"):
            identity.own(self.path)

    def command(self, server):
        return ["sh", "-c", 'tee -a "$0" | "$@"', self.path, *server] if self.target else list(server)

    def keep(self, test, version):
        if not self.target:
            return
        with open(self.path, encoding="utf-8", newline="\n") as file:
            lines = file.read().split("\n")[:-1]
        expect(lines, "tee kept no line")
        with open(os.path.join(self.target, f"interop-{os.getpid()}.jsonl"), "a", encoding="utf-8") as file:
            for line in lines:
                modern = '"io.modelcontextprotocol/protocolVersion":"2026-07-28"' in line
                record = {"test": test, "version": "2026-07-28" if modern else version, "line": line}
                file.write(json.dumps(record) + "\n")


def place():
    return sessions.Place(APP, HERE, policy_file("node", "elsewhere"), EVERYTHING, MODERN)


def run_sessions(identity):
    return sessions.run_sessions(place(), identity)


def run_modern_hosts(identity, with_inspector):
    with tempfile.TemporaryDirectory(prefix="bulkhead-interop.") as work:
        os.chmod(work, 0o755)
        host = lambda command: run_host(command, identity, work)
        return sessions.run_modern_hosts(place(), host, work, identity, with_inspector)


def usable_programs():
    """(server, whether it also uses the network)."""
    node, python = f"{APP}/usable/node.mjs", f"{APP}/usable/python.py"
    yield Server("usable: Node", "node", "none", ("node", node), ())
    yield Server("usable: Node with the network", "node", "host", ("node", node, "network"), ())
    yield Server("usable: Python", "python", "none", (PYTHON, python), ())
    yield Server("usable: Python with the network", "python", "host", (PYTHON, python, "network"), ())
    yield Server("usable: git", "default", "none", ("sh", f"{APP}/usable/git.sh"), ())
    yield Server("usable: C++", "default", "none", (f"{APP}/usable/threads",), ())
    yield Server("usable: browser", "browser", "none", ("node", f"{APP}/usable/browser.mjs"), ())


# Without mounts there is no /dev/shm of the jail's own, and the machine's is refused; without Landlock's newest version no
# Unix socket, which one way of Python's multiprocessing takes. docs/troubleshooting.md says what people can do.
FLAGS_TO_USE = {"A": (), "B": ("--rw", "/dev/shm")}
WORDS_TO_USE = {"A": ("unix",), "B": ()}


def run_usable(server, identity, user):
    """A program says the same with and without Bulkhead, and leaves nothing behind."""
    results = []
    with tempfile.TemporaryDirectory(prefix="bulkhead-interop.") as work:
        os.chmod(work, 0o755)
        identity.own(work)
        folder = os.path.join(work, "data")

        def say(prefix, words):
            ended = subprocess.run(
                [*prefix, *server.command, *words],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                cwd=folder,
                env=identity.environment({}),
                timeout=peer.ANSWER_SECONDS_MAX,
                check=False,
                **identity.popen_arguments(),
            )
            left = peer.end_children()
            expect(ended.returncode == 0, f"exit code {ended.returncode}: {ended.stderr.decode()[-2000:]}")
            # Without Bulkhead Python's helpers are still there when the program has just ended.
            expect(not (prefix and left), f"left behind: {left}")
            return ended.stdout

        for tier in ("A",) if server.preset == "browser" else ("A", "B"):
            try:
                new_folder(folder, identity)
                control = say((), WORDS_TO_USE[tier])
                jail = Jail(work, tier, identity, user)
                new_folder(folder, jail.folder_owner)
                flags = ["--network", server.network, *FLAGS_TO_USE[tier]]
                jailed = say([*jail.prefix(server, folder), *flags], WORDS_TO_USE[tier])
                expect(control and jailed == control, f"said {jailed!r}, without Bulkhead {control!r}")
                jail.check_report(server)
                results.append((f"{server.name}, tier {tier}, {identity.name}", None))
            except (Failed, subprocess.TimeoutExpired) as error:
                results.append((f"{server.name}, tier {tier}, {identity.name}", str(error)))
    return results


class Stopped(BaseException):
    """SIGTERM came."""


class Worker:
    """What a process of the pool does with SIGTERM: its case cleans up after itself, and no other is begun."""

    is_busy = False
    is_stopped = False

    @classmethod
    def start(cls):
        peer.become_subreaper()
        signal.signal(signal.SIGTERM, cls.stop)

    @classmethod
    def stop(cls, *_):
        is_first, cls.is_stopped = not cls.is_stopped, True
        if cls.is_busy and is_first:
            raise Stopped

    @classmethod
    def run(cls, function, *arguments):
        """A case never takes the others with it."""
        if cls.is_stopped:
            return []
        try:
            cls.is_busy = True
            return function(*arguments)
        except Stopped:
            return []
        except Exception:  # pylint: disable=broad-except
            return [(f"{function.__name__} {arguments}", traceback.format_exc())]
        finally:
            cls.is_busy = False


def jobs(everyone):
    user = everyone[-1]
    yield "pasted configuration", run_pasted, (everyone,)  # first, since it takes the longest
    for identity in everyone:
        for server in (*npm_servers(), *other_servers()):
            yield server.name, run_server, (server, identity, user)
        for server in usable_programs():
            yield server.name, run_usable, (server, identity, user)
        yield "printf | filesystem", run_piped, (identity, user)
        yield "filesystem by npx, cold cache", run_cold, (identity, user)
        yield "client", run_client, (identity,)
        yield "session", run_sessions, (identity,)
        yield "modern era", run_modern_hosts, (identity, identity is user)


PRESETS = ("browser", "default", "node", "npx", "python", "uvx")


def policy_file(preset, kind):
    """The preset with more. It stays where it is, so that its ${cache} serves the next run, too."""
    return os.path.join(APP, f"{preset}_{kind}.json")


def prepare_app():
    """Beside the npm packages: our programs, where every identity can read and start them."""
    for preset in (*PRESETS, "node_strict", "python_strict"):
        extended = [f"preset:{one}" for one in reversed(preset.split("_"))]  # the later one has the last word
        policy = {"version": 1, "extends": extended}
        if NODE_ELSEWHERE is not None:
            policy["filesystem"] = {"rx": [NODE_ELSEWHERE]}
        for kind, more in (("elsewhere", {}), ("as_user", {"user": USER})):
            with open(policy_file(preset, kind), "w", encoding="utf-8") as file:
                json.dump({**policy, **more}, file)
    bin_folder = os.path.join(APP, "bin")
    os.makedirs(bin_folder, exist_ok=True)
    os.makedirs(os.path.join(APP, "usable"), exist_ok=True)
    for source, target in (
        (os.environ["BULKHEAD"], "bin/bulkhead"),
        (os.environ["DEMO_SERVER"], "bin/demo-server"),
        (os.environ["SESSION_TALK"], "bin/session_talk"),
        (os.path.join(PROGRAMS, "fake_uvx"), "bin/uvx"),
        (os.path.join(PROGRAMS, "py_server.py"), "py_server.py"),
        (os.path.join(HERE, "modern_server.mjs"), "modern_server.mjs"),
        (os.path.join(HERE, "usable", "node.mjs"), "usable/node.mjs"),
        (os.path.join(HERE, "usable", "python.py"), "usable/python.py"),
        (os.path.join(HERE, "usable", "git.sh"), "usable/git.sh"),
        (os.path.join(HERE, "usable", "browser.mjs"), "usable/browser.mjs"),
        (os.path.join(CACHE, "threads"), "usable/threads"),
    ):
        partial = os.path.join(APP, target + ".new")
        shutil.copyfile(source, partial)
        os.chmod(partial, 0o755)
        os.rename(partial, os.path.join(APP, target))


def main():
    words = sys.argv[1:]
    os.umask(0o022)
    prepare_app()
    everyone = peer.identities(CACHE, USER)
    if os.getuid() != 0:
        print("not started as root: the cases as root are not run")
    signal.signal(signal.SIGTERM, Worker.stop)
    started = time.monotonic()
    passed = failed = 0
    with concurrent.futures.ProcessPoolExecutor(
        AT_ONCE, multiprocessing.get_context("fork"), initializer=Worker.start
    ) as pool:
        pending = [
            pool.submit(Worker.run, function, *arguments)
            for name, function, arguments in jobs(everyone)
            if all(word in name for word in words)
        ]
        for future in concurrent.futures.as_completed(pending):
            for name, why in future.result():
                if why is None:
                    passed += 1
                    print(f"ok      {name}", flush=True)
                else:
                    failed += 1
                    print(f"FAILED  {name}: {why}", flush=True)
    print(f"interop took {time.monotonic() - started:.0f} s")
    print(f"{passed} passed, {failed} failed")
    return 0 if passed and not failed and not Worker.is_stopped else 1


if __name__ == "__main__":
    sys.exit(main())
