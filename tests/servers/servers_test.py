"""docs/servers.md, tried: servers_test.py FOLDER, which holds the npm packages. run.sh starts it.

A comment above a block of the page says what it is:

    <!-- file: NAME -->      a policy, which is written to NAME
    <!-- server: NAME -->    the command that starts a server with it, from `bulkhead run --policy`
    <!-- answers: NAME -->   what that server, started, is asked in the jail and must answer
    <!-- refused: NAME -->   what works without Bulkhead and is refused in the jail

Lines "> TOOL ARGUMENTS" are sent with tools/call, after initialize and tools/list, which must have every TOOL. The lines
below are in the answer. A call is refused if it says so in the jail and was answered without it; a call of a refused block
that prepares one is answered in both. Lines "$ bulkhead run ..." are commands: without all up to the policy and its
workspace the program ends with 0, with it it doesn't, and says what is below.

The page's folders are in a new folder. Everything runs as an ordinary user, also when root runs the test.
"""

import json
import os
import re
import shlex
import shutil
import socket
import sys
import traceback

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path[:0] = [os.path.join(ROOT, "tests", "docs"), os.path.join(ROOT, "tests", "interop")]
import docs_test
import peer
from peer import Failed

PAGE = os.path.join(ROOT, "docs", "servers.md")
SERVERS_MIN = 5
PREPARES = ("git_set_working_dir",)  # tools that do nothing themselves


class Place(docs_test.Place):
    """The page's folders; /opt/mcp is the folder with the packages."""

    def __init__(self, packages):
        self.root = self.new_folder()
        self.is_root = os.geteuid() == 0
        self.packages = packages
        for folder in ("bin", "home/alice/.ssh", "opt", "srv/project", "srv/data", "srv/memory", "srv/database", "srv/repository"):
            os.makedirs(self.path(folder))
        shutil.copy(os.environ["BULKHEAD"], self.path("bin/bulkhead"))
        shutil.copytree(os.path.join(ROOT, "examples"), self.path("opt/examples"))
        # A Node that the system doesn't have is where no preset looks for it: it is copied and granted.
        self.copied_node = None
        if not os.path.realpath(shutil.which("node")).startswith("/usr/"):
            self.copied_node = shutil.copy(os.path.realpath(shutil.which("node")), self.path("bin/node"))
        for name, text in (("home/alice/.ssh/id_ed25519", "a key\n"), ("srv/data/list.txt", "two pears\n"),
                           ("srv/data/fruit.csv", "name,count\napple,3\npear,4\n"), ("srv/repository/list.txt", "two pears\n"),
                           ("home/alice/.bashrc", "")):
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write(text)
        self.hand_over()
        author = "-c user.name=Alice -c user.email=alice@example.com"
        done = self.run(
            f"cd ../repository && git init -q && git add . && git {author} commit -q -m 'Two pears' && echo more >> list.txt"
        )
        if done.returncode != 0:
            raise Failed(f"git init: {done.stdout}")

    def here(self, text):
        return super().here(re.sub(r"/opt/mcp(?=[/\"\s])", self.packages, text))

    def identity(self):
        uid = docs_test.USER if self.is_root else os.getuid()
        gid = docs_test.USER if self.is_root else os.getgid()
        return peer.Identity("user", uid, gid, "alice", self.path("home/alice"), self.is_root, "")

    def converse(self, command, calls):
        env = {"PATH": self.path("bin") + ":/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
        return peer.converse(command, peer.conversation(calls), self.identity(), self.path("srv/project"), env)

    def write_policy(self, name, text):
        """The policy as it is on the page, and a Node that was copied."""
        text = self.here(text)
        if self.copied_node is not None:
            policy = docs_test.from_jsonc(text)
            policy["filesystem"].setdefault("rx", []).append(self.copied_node)
            text = json.dumps(policy)
        self.write(name, text)


def steps(text, sign):
    """[what stands after a sign, the lines below it]."""
    parts = re.split(r"^%s (.*)\n" % re.escape(sign), text, flags=re.M)
    return list(zip(parts[1::2], parts[2::2]))


def without_bulkhead(words):
    """The server's own command, after `bulkhead run` and its flags, which all have a value here."""
    at = 2
    while words[at].startswith("--"):
        at += 2
    return words[at:]


def expect(condition, text):
    if not condition:
        raise Failed(text)


class Page:
    """The page's policies and servers, and what is said of them."""

    def __init__(self, place):
        self.place = place
        self.commands = {}
        self.environment = {}
        self.policies = set()
        self.cases = []  # (name, function)
        for block in docs_test.blocks(docs_test.read(PAGE)):
            self.take(block)

    def take(self, block):
        for key, name in block.says:
            where = f"docs/servers.md:{block.line}: {name}"
            if key == "file":
                self.place.write_policy(name, block.text)
                self.environment[name] = docs_test.from_jsonc(self.place.here(block.text)).get("env", {}).get("set", {})
                self.policies.add(name)
            elif key == "server":
                self.commands[name] = shlex.split(self.place.here(block.text))
            elif key in ("answers", "refused"):
                kind = "programs" if block.text.startswith("$") else "calls"
                function = getattr(self, f"{key}_{kind}")
                self.cases.append((f"{where}, {key}", lambda: function(name, block.text)))

    def calls(self, name, text, command):
        """What the server answered to each call of a block: [(tool, answer, what is shown)]."""
        shown = [(*line.split(" ", 1), below) for line, below in steps(self.place.here(text), ">")]
        outcome = self.place.converse(command, [(tool, json.loads(arguments)) for tool, arguments, _ in shown])
        answers = {number: json.loads(line) for number, line in outcome.answers.items()}
        expect("result" in answers[1], f"initialize: {answers[1]}")
        tools = [tool["name"] for tool in answers[2]["result"]["tools"]]
        result = []
        for number, (tool, _, below) in enumerate(shown, start=3):
            expect(tool in tools, f"tools/list has no {tool}: {tools}")
            result.append((tool, answers[number].get("result", {"isError": True, "error": answers[number]}), below))
        expect(not outcome.left, f"left behind: {outcome.left}")
        return result

    def answers_calls(self, name, text):
        expect(self.commands[name][:3] == ["bulkhead", "run", "--policy"], f"no policy: {self.commands[name]}")
        for tool, answer, below in self.calls(name, text, self.commands[name]):
            self.good(tool, answer, below)

    def refused_calls(self, name, text):
        command = self.commands[name]
        for tool, answer, _ in self.calls(name, text, self.unjailed(command)):
            expect(not answer.get("isError"), f"{tool} without Bulkhead: {answer}")
        self.undo()
        for tool, answer, below in self.calls(name, text, command):
            if tool in PREPARES:
                self.good(tool, answer, below)
                continue
            expect(answer.get("isError"), f"{tool} is not refused: {answer}")
            self.shown(tool, answer, below)

    def refused_programs(self, name, text):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = str(listener.getsockname()[1])
            for line, below in docs_test.steps(self.place.here(text)):
                words = shlex.split(line.replace("PORT", port))
                control = self.run(self.unjailed(words))
                expect(control.returncode == 0, f"without Bulkhead: {control.stdout}")
                self.undo()
                jailed = self.run(words)
                expect(jailed.returncode != 0, f"is not refused: {line}")
                missing = docs_test.missing_line(below, jailed.stdout)
                expect(missing is None, f"{line}: should print {missing!r}, but printed: {jailed.stdout}")

    def unjailed(self, command):
        """The same without Bulkhead: in the workspace, with the variables that the policy sets."""
        options = dict(zip(command[2::2], command[3::2]))
        variables = [f"{key}={value}" for key, value in self.environment[options["--policy"]].items()]
        return ["env", "-C", options.get("--workspace", "."), *variables, *without_bulkhead(command)]

    def run(self, words):
        return self.place.run(shlex.join(words))

    def undo(self):
        """What a control may have done that the jailed try would trip over."""
        self.place.run("""
            cd ..
            rm -f data/copy.db repository/.git/hooks/pre-commit repository/.git/commondir
            git -C repository reset -q
            git -C repository remote remove elsewhere
        """)

    def good(self, tool, answer, below):
        expect(not answer.get("isError"), f"{tool}: {answer}")
        self.shown(tool, answer, below)

    @staticmethod
    def shown(tool, answer, below):
        said = " ".join(part.get("text", "") for part in answer.get("content", []))
        missing = docs_test.missing_line(below, said)
        expect(missing is None and below.strip(), f"{tool}: should say {missing!r}, but said: {said[:2000]}")

    def complete(self):
        """Each policy has a server, each server an answer, and each policy something that it refuses."""
        expect(len(self.policies) >= SERVERS_MIN, f"only {self.policies}")
        for word in ("answers", "refused"):
            names = {case.split(": ")[1].split(",")[0] for case, _ in self.cases if case.endswith(word)}
            having = {self.commands[name][3] for name in names}
            expect(having == self.policies, f"{self.policies - having}: nothing {word}")


def main():
    peer.become_subreaper()
    place = Place(os.path.realpath(sys.argv[1]))
    passed = failed = 0
    try:
        page = Page(place)
        for name, function in page.cases + [("docs/servers.md: every policy is tried", page.complete)]:
            try:
                function()
                passed += 1
                print(f"passed {name}", flush=True)
            except Exception as error:
                failed += 1
                print(f"FAILED {name}: {error if isinstance(error, Failed) else traceback.format_exc()}", flush=True)
    finally:
        place.remove()
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
