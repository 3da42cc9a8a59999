#!/usr/bin/env python3
"""Fails where a BUILD file or an #include goes against the layering in rules.py. Each rule is first shown to catch its breach."""
import ast
import os
import re
import sys
import unittest

sys.dont_write_bytecode = True  # the folder of rules.py is the source tree
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import rules  # noqa: E402

SKIPPED_FOLDERS = re.compile(r"bazel-.*|bin|node_modules|\..*")
COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)


def project_root():
    """The source tree. Bazel's sandbox shows a test only what it names, so that this test runs outside it."""
    return os.path.dirname(os.path.realpath(os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"],
                                                         "BUILD.bazel")))


def read_tree(root):
    """Returns {path below root: text} for all sources and BUILD files."""
    texts = {}
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not SKIPPED_FOLDERS.fullmatch(name)]
        for name in files:
            if name.endswith((".h", ".cc", ".S")) or name in ("BUILD", "BUILD.bazel"):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as text:
                    texts[os.path.relpath(path, root)] = text.read()
    return texts


def layer(path):
    return path.split("/")[0]


def check_include(path, quote, header):
    """What is wrong with this #include in this file, or nothing."""
    used = header.split("/")[1] if header.startswith("bulkhead/") else layer(header)
    if layer(path) in rules.MAY_USE:
        ours = header.startswith("bulkhead/")
        if used in rules.MAY_USE and header.endswith(".h") and not ours and not re.fullmatch(rules.FREESTANDING, path):
            yield 'is to be written "bulkhead/%s"' % header
        if (ours or used in rules.MAY_USE) and used not in rules.MAY_USE[layer(path)]:
            yield "goes against the layering: %s may use %s" % (layer(path), sorted(rules.MAY_USE[layer(path)]))
        for name, (beginning, allowed, _) in rules.LIBRARIES.items():
            if re.match(beginning, header) and not re.fullmatch(allowed, path):
                yield "%s is only for %s" % (name, allowed)
        if layer(path) != "launcher" and re.fullmatch(rules.BACKENDS, header):
            yield "above launcher/ nothing knows a backend"
    if re.fullmatch(rules.PURE, path) and not re.fullmatch(rules.IMPURE_ALLOWED, path):
        if rules.IMPURE_HEADER.fullmatch(header):
            yield "policy/ is pure"
    if re.fullmatch(rules.FREESTANDING, path) and quote == "<" and not rules.FREESTANDING_HEADER.fullmatch(header):
        yield "the keeper has no C library"


def check_source(path, text):
    for quote, header in INCLUDE.findall(text):
        for what in check_include(path, quote, header):
            yield "%s: #include of %s: %s" % (path, header, what)
    if layer(path) not in rules.MAY_USE:
        return
    code = COMMENT_OR_STRING.sub(lambda match: '""' if match.group().startswith('"') else " ", text)
    for clock in rules.WALL_CLOCK.finditer(code):
        yield "%s: %s: nothing waits by a clock that people set" % (path, clock.group())
    if not re.fullmatch(rules.RESTRICTING_ALLOWED, path):
        for call in rules.RESTRICTING_CALL.finditer(code):
            yield "%s: %s: only %s makes restricting system calls" % (path, call.group().split("\n")[0], "launcher/keeper")


def labels(node):
    """The strings anywhere in an expression: of a list, a sum of lists, the values of a select()."""
    return [part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)]


def check_dependency(package, label):
    if label.startswith("@"):
        library = label[1:].split("//")[0]
        allowed = rules.LIBRARIES.get(library, ("", "", ".*"))[2]
        if not re.fullmatch(allowed, package) and not re.fullmatch(allowed, layer(package)):
            yield "%s is only for %s" % (library, allowed)
    elif label.startswith("//") and label != "//conditions:default":
        used = layer(label[2:].split(":")[0])
        if used not in rules.MAY_USE[layer(package)]:
            yield "%s may depend on %s" % (layer(package), sorted(rules.MAY_USE[layer(package)]))


def check_build_file(path, text):
    package = os.path.dirname(path)
    if layer(package) not in rules.MAY_USE:
        return
    for call in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)):
        arguments = {keyword.arg: keyword.value for keyword in call.keywords}
        for attribute in ("deps", "implementation_deps"):
            for label in labels(arguments[attribute]) if attribute in arguments else []:
                for what in check_dependency(package, label):
                    yield "%s: dependency on %s: %s" % (path, label, what)
        for attribute in ("visibility", "default_visibility"):
            program = isinstance(call.func, ast.Name) and call.func.id == "cc_binary"
            if attribute in arguments and "//visibility:public" in labels(arguments[attribute]) and not program:
                yield "%s: public: name who may use it, or use api_visibility of //tools:layers.bzl" % path


def check(texts):
    for path, text in sorted(texts.items()):
        yield from (check_build_file if os.path.basename(path).startswith("BUILD") else check_source)(path, text)


def include(header):
    return '#include "%s"\n' % header


def library(dependency):
    return 'cc_library(\n    name = "x",\n    deps = ["%s"] + select({"a": ["%s"]}),\n)\n' % (dependency, dependency)


class Layering(unittest.TestCase):

    def assert_refused(self, path, text):
        self.assertNotEqual(list(check({path: text})), [], "%s: %s" % (path, text))

    def assert_allowed(self, path, text):
        self.assertEqual(list(check({path: text})), [])

    def test_an_include_against_the_layering_is_caught(self):
        for folder, allowed in rules.MAY_USE.items():
            for used in rules.MAY_USE:
                verdict = self.assert_allowed if used in allowed else self.assert_refused
                verdict(folder + "/x.h", include("bulkhead/%s/y.h" % used))
            self.assert_refused(folder + "/x.h", include("bulkhead/tests/y.h"))
        self.assert_refused("cli/x.cc", include("policy/y.h"))

    def test_a_dependency_against_the_layering_is_caught(self):
        for folder, allowed in rules.MAY_USE.items():
            for used in rules.MAY_USE:
                verdict = self.assert_allowed if used in allowed else self.assert_refused
                verdict(folder + "/BUILD.bazel", library("//%s:y" % used))
            self.assert_refused(folder + "/deeper/BUILD.bazel", library("//tests/policy:y"))
            self.assert_refused(folder + "/BUILD.bazel", 'cc_library(visibility = ["//visibility:public"])')
            self.assert_allowed(folder + "/BUILD.bazel", 'cc_binary(visibility = ["//visibility:public"])')

    def test_a_library_outside_its_place_is_caught(self):
        self.assert_allowed("launcher/seccomp/generate.cc", "#include <seccomp.h>\n")
        self.assert_refused("launcher/seccomp/filters.cc", "#include <seccomp.h>\n")
        self.assert_allowed("launcher/seccomp/BUILD.bazel", library("@libseccomp//:libseccomp"))
        self.assert_refused("launcher/BUILD.bazel", library("@libseccomp//:libseccomp"))
        self.assert_allowed("policy/json.cc", include("nlohmann/json.hpp"))
        self.assert_refused("policy/policy.cc", include("nlohmann/json.hpp"))
        self.assert_refused("launcher/plan.h", include("nlohmann/json.hpp"))
        self.assert_refused("launcher/BUILD.bazel", library("@nlohmann_json//:json"))
        self.assert_refused("policy/BUILD.bazel", library("@asio//:asio"))

    def test_what_knows_a_backend_is_caught(self):
        for header in ("seccomp/filters.h", "posix/posix.h", "windows/windows.h", "keeper/keeper.h", "linux.h"):
            self.assert_allowed("launcher/x.cc", include("bulkhead/launcher/" + header))
            self.assert_refused("cli/x.cc", include("bulkhead/launcher/" + header))
            self.assert_refused("mcp/x.h", include("bulkhead/launcher/" + header))
        self.assert_allowed("cli/x.cc", include("bulkhead/launcher/plan.h"))

    def test_an_impure_policy_is_caught(self):
        self.assert_allowed("policy/x.cc", "#include <string>\n")
        for header in ("unistd.h", "sys/stat.h", "fstream", "chrono", "absl/time/clock.h"):
            self.assert_refused("policy/x.cc", "#include <%s>\n" % header)

    def test_a_keeper_with_a_c_library_is_caught(self):
        self.assert_allowed("launcher/keeper/x.cc", "#include <linux/seccomp.h>\n" + include("launcher/keeper/y.h"))
        self.assert_refused("launcher/keeper/x.cc", include("cli/y.h"))
        self.assert_refused("launcher/keeper/x.cc", "#include <stdlib.h>\n")

    def test_a_restricting_system_call_outside_the_keeper_is_caught(self):
        for code in ("unshare(0);", "::prctl(1);", "syscall(SYS_landlock_restrict_self, fd, 0);", "Call(__NR_seccomp, 1);"):
            self.assert_refused("launcher/launch.cc", code)
            self.assert_refused("cli/run.cc", code)
            self.assert_allowed("launcher/keeper/steps.cc", code)
            self.assert_allowed("launcher/launch.cc", "// %s\n" % code)
            self.assert_allowed("launcher/launch.cc", 'Say("%s");' % code)
        self.assert_allowed("launcher/seccomp/lists.cc", "{SCMP_SYS(mount), EPERM}, {__NR_unshare, EPERM},")

    def test_a_clock_that_jumps_is_caught(self):
        self.assert_allowed("mcp/x.cc", "auto now = std::chrono::steady_clock::now();")
        for code in ("absl::Now()", "std::chrono::system_clock::now()", "clock_gettime(CLOCK_REALTIME, &now);"):
            self.assert_refused("mcp/x.cc", code)

    def test_this_project_keeps_to_all_rules(self):
        texts = read_tree(project_root())
        self.assertIn("policy/policy.h", texts)
        breaches = list(check(texts))
        self.assertEqual(breaches, [], "\n" + "\n".join(breaches))


if __name__ == "__main__":
    unittest.main()
