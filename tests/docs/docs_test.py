#!/usr/bin/env python3
"""Everything that the documentation shows is tried: what it says works, works, and prints what it says.

In README.md, SECURITY.md, CHANGELOG.md, DESIGN.md and docs/ each fenced block means:

    json, jsonc   a policy (it has "version"): `bulkhead check` accepts it; a host's configuration (it has "mcpServers"):
                  what it starts through Bulkhead has flags that `bulkhead` knows
    console       lines with "$ " are run; the lines below each are in what it prints, in this order, where "..." stands
                  for anything. How lines are wrapped and how many spaces there are does not count
    sh            lines that begin with "bulkhead run" or "bulkhead explain" have flags that `bulkhead` knows
    others        text for people

A comment just above a block, which readers of the page don't see, says more:

    <!-- file: NAME -->       the block is written to this file, for what follows on the page
    <!-- setup: COMMANDS -->  a shell runs these, as root if the test does
    <!-- same as: PATH -->    the block is this file of the repository
    <!-- deny: OPTIONS -->    the commands run below tests/programs/deny, which imitates what a kernel or a container lacks
    <!-- as: root -->         the commands are for root, and left out when the test is not root

Pages speak of /home/alice, /srv and /opt. These are folders in a new folder of the test's own, another one for each
page; /srv/project is the current one. Commands run as an ordinary user, also when root runs the test.
"""
import atexit
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PAGES = ("README.md", "SECURITY.md", "CHANGELOG.md", "DESIGN.md", "docs")
USER = 4242  # an ordinary user of no account, for root's tests
SECONDS_MAX = 20  # no command comes near it: it ends one that hangs
FENCE = re.compile(r"^(?P<comments>(?:[ \t]*<!--[^\n]*-->\n\s*)*)^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.M | re.S)
COMMENT = re.compile(r"<!-- ([\w ]+): (.*?) -->")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*")', re.S)


def runfile(path):
    return os.path.realpath(os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"], path))


def project_root():
    """The source tree: links may lead anywhere in it, so that this test runs outside Bazel's sandbox."""
    return os.path.dirname(runfile("BUILD.bazel"))


def pages(root):
    for name in PAGES:
        path = os.path.join(root, name)
        yield from ([path] if os.path.isfile(path) else
                    sorted(os.path.join(path, entry) for entry in os.listdir(path) if entry.endswith(".md")))


def read(path):
    with open(path, encoding="utf-8") as text:
        return text.read()


class Block:
    """A fenced block and what the comments above it say."""

    def __init__(self, match, page_text):
        self.line = page_text.count("\n", 0, match.start("kind")) + 1
        self.kind = match["kind"]
        self.text = match["text"]
        self.says = COMMENT.findall(match["comments"])

    def said(self, word):
        return next((value for key, value in self.says if key == word), None)


def blocks(text):
    return [Block(match, text) for match in FENCE.finditer(text)]


def from_jsonc(text):
    return json.loads(COMMENT_OR_STRING.sub(lambda match: match[1] or " ", text))


def words(text):
    return " ".join(text.split())


def missing_line(shown, printed):
    """The first line of `shown` that is not in `printed` after the ones before it, or nothing."""
    printed, at = words(printed), 0
    for line in filter(None, map(words, shown.splitlines())):
        pattern = ".*?".join(map(re.escape, line.split("...")))
        found = re.compile(pattern).search(printed, at)
        if found is None:
            return line
        at = found.end()
    return None


def steps(text):
    """A console block's [command, what it shows]."""
    parts = re.split(r"^\$ (.*)\n", text, flags=re.M)
    return list(zip(parts[1::2], parts[2::2]))


def slug(heading):
    """GitHub's name of a heading, for links."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


class Place:
    """The folders that one page speaks of."""

    PROGRAMS = {"bin/bulkhead": "cli/bulkhead", "bin/library-example": "examples/library-example",
                "bin/deny": "tests/programs/deny", "opt/demo-server": "examples/demo-server"}
    programs = None  # copies that everyone can run, for all places

    def __init__(self):
        self.root = self.new_folder()
        self.is_root = os.geteuid() == 0
        for folder in ("bin", "home/alice/.ssh", "opt", "srv/data", "srv/project"):
            os.makedirs(self.path(folder))
        if Place.programs is None:
            Place.programs = self.new_folder()
            atexit.register(shutil.rmtree, Place.programs)
            for target, program in self.PROGRAMS.items():
                copy = os.path.join(Place.programs, os.path.basename(target))
                shutil.copyfile(runfile(program), copy)
                os.chmod(copy, 0o755)
        for target in self.PROGRAMS:
            os.link(os.path.join(Place.programs, os.path.basename(target)), self.path(target))
        self.hand_over()

    @staticmethod
    def new_folder():
        folder = tempfile.mkdtemp(prefix="bh-docs-", dir="/tmp")
        os.chmod(folder, 0o755)
        return folder

    def hand_over(self):
        """What root made belongs to the ordinary user."""
        if not self.is_root:
            return
        for top in ("home", "srv"):
            for folder, _, files in os.walk(self.path(top)):
                for path in [folder] + [os.path.join(folder, name) for name in files]:
                    os.lchown(path, USER, USER)

    def path(self, name):
        return os.path.join(self.root, name)

    def here(self, text):
        """`text` with the pages' folders as they are called here."""
        return re.sub(r"(?<![\w.}/])/(srv|opt|home/alice)(?=[/\s\"',;:)]|$)", self.root + r"/\1", text)

    def run(self, command, as_root=False):
        other = {"user": USER, "group": USER, "extra_groups": []} if self.is_root and not as_root else {}
        env = {"HOME": self.path("home/alice"), "PATH": self.path("bin") + ":/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
        return subprocess.run(["bash", "-c", command], cwd=self.path("srv/project"), env=env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS_MAX, encoding="utf-8", **other)

    def write(self, name, text):
        path = os.path.join(self.path("srv/project"), name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        self.hand_over()
        return path

    def remove(self):
        shutil.rmtree(self.root)


class Reader:
    """Tries one page's blocks, from top to bottom. What is wrong is in `mistakes`."""

    def __init__(self, name, text):
        self.name = name
        self.blocks = blocks(text)
        self.mistakes = []
        self.tried = {}
        self.place = None

    def read(self):
        if not self.blocks:
            return self
        self.place = Place()
        try:
            for block in self.blocks:
                self.prepare(block)
                getattr(self, "try_" + block.kind, lambda block: None)(block)
        finally:
            self.place.remove()
        return self

    def wrong(self, block, what):
        self.mistakes.append("%s:%d: %s" % (self.name, block.line, what))

    def count(self, what):
        self.tried[what] = self.tried.get(what, 0) + 1

    def prepare(self, block):
        same_as = block.said("same as")
        if same_as is not None:
            self.count("same as")
            if read(os.path.join(project_root(), same_as)) != block.text:
                self.wrong(block, "is not " + same_as)
        for key, value in block.says:
            if key == "setup":
                done = self.place.run(self.place.here(value), as_root=True)
                self.place.hand_over()
                if done.returncode != 0:
                    self.wrong(block, "setup failed: " + done.stdout)
        name = block.said("file")
        if name is not None:
            self.place.write(self.place.here(name), self.place.here(block.text))

    def try_json(self, block):
        tree = from_jsonc(block.text)
        if "mcpServers" in tree:
            for server in tree["mcpServers"].values():
                if os.path.basename(server["command"]) == "bulkhead":
                    self.try_flags(block, ["bulkhead"] + server["args"], server.get("env", {}))
        elif "version" in tree:
            self.count("policy")
            path = self.place.write(block.said("file") or "unnamed.json", self.place.here(block.text))
            done = self.place.run("bulkhead check --var DATA=%s %s" % (self.place.path("srv/data"), path))
            if done.returncode != 0:
                self.wrong(block, "the policy is refused: " + done.stdout)

    try_jsonc = try_json

    def try_sh(self, block):
        for line in block.text.splitlines():
            if re.match(r"bulkhead (run|explain) ", line):
                self.try_flags(block, line.split("#")[0].split())

    def try_flags(self, block, command, env=None):
        """Usage is looked at before anything else, so that any other refusal shows that the flags are known."""
        self.count("flags")
        command = [word.replace("'", "").replace('"', "") for word in command]
        variables = ["%s=%s" % pair for pair in (env or {}).items()]
        explain = " ".join("'%s'" % word for word in ["env"] + variables + ["bulkhead", "explain"] + command[2:])
        done = self.place.run(explain)
        if done.returncode == 64:
            self.wrong(block, "%s: %s" % (" ".join(command), done.stdout))

    def try_console(self, block):
        as_root = block.said("as") == "root"
        if as_root and not self.place.is_root:
            return
        for command, shown in steps(block.text):
            self.count("command")
            command = self.place.here(command)
            denied = block.said("deny")
            if denied is not None:
                command = "exec deny %s bash -c %s" % (denied, "'%s'" % command.replace("'", "'\\''"))
            done = self.place.run(command, as_root)
            missing = missing_line(self.place.here(shown), done.stdout)
            if missing is not None:
                self.wrong(block, "$ %s\nshould print %r, but printed:\n%.2000s" % (command, missing, done.stdout))


def broken_links(root, path):
    text = read(path)
    for target in LINK.findall(re.sub(r"```.*?^```$", "", text, flags=re.M | re.S)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
        if not os.path.exists(file) or not file.startswith(root):
            yield "%s: link to %s: nothing is there" % (os.path.relpath(path, root), target)
        elif anchor and anchor not in map(slug, re.findall(r"^#+ (.*)$", read(file), re.M)):
            yield "%s: link to %s: there is no such heading" % (os.path.relpath(path, root), target)


def known_fields(place):
    """Every field of the policy file, by the parser's own account: unknown ones are answered with the known ones."""
    fields, level = [], [()]
    while level:
        for number, above in enumerate(level):
            policy = {"nothing": 1}
            for key in reversed(above):
                policy = {key: policy}
            place.write("%d.json" % number, json.dumps(dict(policy, version=1)))
        answers = place.run("bulkhead check %s" % " ".join("%d.json" % number for number in range(len(level)))).stdout
        level = [level[int(number)] + (key,) for number, keys in re.findall(r"^(\d+)\.json:1:\d+: .* there are (.*)$", answers, re.M)
                 for key in keys.split(", ")]
        fields += level
        level = [field for field in level if field != ("without",)]  # it has all the others again
    return fields


def holds(tree, field):
    """Whether a policy says something of the field."""
    for key in field:
        if not isinstance(tree, dict) or key not in tree:
            return False
        tree = tree[key]
    return True


class TheTestItself(unittest.TestCase):
    """Each rule is first shown to catch its breach."""

    def mistakes_of(self, text):
        return Reader("page.md", text).read().mistakes

    def test_a_wrong_policy_is_caught(self):
        self.assertEqual(self.mistakes_of('```json\n{ "version": 1 }\n```\n'), [])
        self.assertEqual(len(self.mistakes_of('```jsonc\n{ "version": 1, "filesystm": {} } // oh\n```\n')), 1)

    def test_a_wrong_configuration_is_caught(self):
        page = '```json\n{ "mcpServers": { "x": { "command": "/b/bulkhead", "args": ["run", "%s", "/srv", "cat"] } } }\n```\n'
        self.assertEqual(self.mistakes_of(page % "--rw"), [])
        self.assertEqual(len(self.mistakes_of(page % "--rv")), 1)
        self.assertEqual(len(self.mistakes_of(page.replace("/srv", "TOKEN") % "--env")), 1)
        page = page.replace('"args"', '"env": { "TOKEN": "x" }, "args"').replace("/srv", "TOKEN")
        self.assertEqual(self.mistakes_of(page % "--env"), [])
        self.assertEqual(len(self.mistakes_of("```sh\nbulkhead run --rv /srv cat\n```\n")), 1)

    def test_a_wrong_output_is_caught(self):
        self.assertEqual(self.mistakes_of("```console\n$ echo a  b; echo c\na b\nc\n```\n"), [])
        self.assertEqual(self.mistakes_of("```console\n$ echo a b c\na...c\n```\n"), [])
        self.assertEqual(len(self.mistakes_of("```console\n$ echo c; echo a\na\nc\n```\n")), 1)
        self.assertEqual(len(self.mistakes_of("```console\n$ true\na\n```\n")), 1)

    def test_a_copy_that_differs_is_caught(self):
        page = "<!-- same as: examples/library_example.cc -->\n\n```cpp\n%s```\n"
        self.assertEqual(self.mistakes_of(page % read(os.path.join(project_root(), "examples/library_example.cc"))), [])
        self.assertEqual(len(self.mistakes_of(page % "int main() {}\n")), 1)

    def test_a_broken_link_is_caught(self):
        with tempfile.TemporaryDirectory() as root:
            page = os.path.join(root, "a.md")
            for text, broken in (("# It's A\n[x](a.md#its-a) [y](#its-a) [z](https://example.com/)", 0), ("[x](b.md)", 1),
                                 ("[x](../a.md)", 1), ("[x](#b)", 1)):
                with open(page, "w", encoding="utf-8") as file:
                    file.write(text)
                self.assertEqual(len(list(broken_links(root, page))), broken, text)


class Documentation(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        root = project_root()
        cls.readers = [Reader(os.path.relpath(path, root), read(path)).read() for path in pages(root)]

    def test_every_example_does_what_the_page_says(self):
        mistakes = [mistake for reader in self.readers for mistake in reader.mistakes]
        self.assertFalse(mistakes, "\n" + "\n".join(mistakes))

    def test_there_are_examples_of_each_kind(self):
        for what in ("policy", "flags", "command", "same as"):
            self.assertGreater(sum(reader.tried.get(what, 0) for reader in self.readers), 0, what)

    def test_links_lead_somewhere(self):
        root = project_root()
        broken = [link for path in pages(root) for link in broken_links(root, path)]
        self.assertFalse(broken, "\n" + "\n".join(broken))

    def test_every_field_of_a_policy_is_described(self):
        place = Place()
        try:
            fields = known_fields(place)
        finally:
            place.remove()
        self.assertIn(("command", "args", "max"), fields)
        page = read(os.path.join(project_root(), "docs/policy.md"))
        missing = [".".join(field) for field in fields if "`%s`" % ".".join(field) not in page]
        self.assertEqual(missing, [])
        examples = [from_jsonc(block.text) for block in blocks(page) if block.kind in ("json", "jsonc")]
        without = [".".join(field) for field in fields if not any(holds(example, field) for example in examples)]
        # An example that is refused would be none; a list of addresses does nothing yet.
        self.assertEqual(without, ["network.allow"])


if __name__ == "__main__":
    unittest.main()
