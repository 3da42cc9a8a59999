#!/usr/bin/env python3
"""Fails where a test of tests/launcher neither runs with the portable backend nor is named, with the reason, in linux_alone.h
and docs/platforms.md; and where one of these names what is no test, or they differ."""
import os
import re
import subprocess
import unittest

FOLDER = "tests/launcher"
SHARED = ("mistake_test", "process_test", "run_test", "tree_test")
PORTABLE = {"exit_watch_test", "posix_test"}  # what that backend alone has
ENTRY = re.compile(r'\{"([^"]+)",\s*"([^"]+)"\}')
ROW = re.compile(r"^\| *((?:`[^`]+` *)+)\| (.*?) *\|$", re.M)
NAME = re.compile(r"`([^`]+)`")
TABLES = re.compile(r"^### Tests of both backends\n(.*?)^### Tests of the Linux backend alone\n(.*?)^##", re.M | re.S)


def runfile(*path):
    return os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"], *path)


def read(*path):
    with open(runfile(*path), encoding="utf-8") as file:
        return file.read()


def table(text):
    """(name, why) of each row; a row may have several names."""
    return [(name, why) for names, why in ROW.findall(text) for name in NAME.findall(names)]


def names_of_tests(listed):
    """What --gtest_list_tests prints: {"Suite.Test": [parameters]}."""
    tests, suite = {}, ""
    for line in listed.splitlines():
        line = line.split(" #")[0].rstrip()
        if line.endswith("."):
            suite = line.split("/")[-1]
        elif line.startswith("  ") and suite:
            name, _, parameter = line.strip().partition("/")
            tests.setdefault(suite + name, []).append(parameter)
    return tests


def mistakes(entries, documented, tests):
    """`entries` of linux_alone.h, rows of the page, and the tests that there are, by name, with their parameters."""
    yield from ("%s: not in docs/platforms.md, or with another reason" % name
                for name, why in entries if (name, why) not in documented)
    yield from ("%s: not in linux_alone.h" % name for name, why in documented if (name, why) not in entries)
    for name, _ in entries:
        test, _, parameter = re.split(r": ", name)[0].partition("/")
        fits = re.compile("Tier[AB]" + ".*".join(map(re.escape, parameter.split("*"))) + "$")
        if test not in tests or (parameter and not any(map(fits.match, tests[test]))):
            yield "%s: there is no such test" % name
    named = {name for name, _ in entries}
    for test, parameters in tests.items():
        if test not in named and not any(parameter.startswith("Portable") for parameter in parameters):
            yield "%s: runs with the Linux backend alone, and is not in linux_alone.h" % test


class LinuxAloneTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.both, cls.alone = map(table, TABLES.search(read("docs/platforms.md")).groups())

    def test_what_is_left_out_is_documented(self):
        tests = {}
        for name in SHARED:
            listed = subprocess.run([runfile(FOLDER, name), "--gtest_list_tests"], check=True, stdout=subprocess.PIPE, encoding="utf-8")
            tests.update(names_of_tests(listed.stdout))
        self.assertGreater(len(tests), 50)
        self.assertEqual([], list(mistakes(ENTRY.findall(read(FOLDER, "linux_alone.h")), self.both, tests)))

    def test_every_file_is_shared_or_documented(self):
        files = {name[:-len(".cc")] for name in os.listdir(runfile(FOLDER)) if name.endswith("_test.cc")}
        shared = {name for name in files if '"tests/launcher/linux_alone.h"' in read(FOLDER, name + ".cc")}
        self.assertEqual(set(SHARED), shared)
        self.assertEqual(sorted(files - shared - PORTABLE), sorted(name for name, _ in self.alone))

    def test_what_is_wrong_is_found(self):
        entries, tests = [("A.B/X*", "y"), ("A.C: d", "y")], {"A.B": ["TierAXz", "PortableZ"], "A.C": ["A", "Portable"]}
        self.assertEqual([], list(mistakes(entries, entries, tests)))
        for wrong in ((entries, entries[1:], tests), (entries, [("A.B/X*", "z"), entries[1]], tests), (entries[1:], entries, tests),
                      (entries, entries, {"A.C": ["Portable"]}), (entries, entries, {**tests, "A.B": ["TierAYz", "Portable"]}),
                      (entries, entries, {**tests, "A.D": ["TierA"]})):
            self.assertNotEqual([], list(mistakes(*wrong)), wrong)


if __name__ == "__main__":
    unittest.main()
