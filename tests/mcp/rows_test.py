#!/usr/bin/env python3
"""Fails where tests/mcp/DESIGN.md names a test that is none, or lacks a row. Reads the TEST lines of the sources."""
import os
import re
import unittest

TEST = re.compile(r"^TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", re.M)
ROW = re.compile(r"^\| ([A-Z]\d+) +\|[^|]*\|([^|]*)\|$", re.M)
NAME = re.compile(r"`([^`]+)`")

# The numbers that there are; those that are missing have nothing to do with stdio.
ROWS = (
    [f"S{n}" for n in range(1, 36)]
    + [f"A{n}" for n in range(1, 37) if n not in (24, 26, 34)]
    + [f"B{n}" for n in range(1, 14) if n not in (9, 10)]
    + [f"C{n}" for n in range(1, 14) if n not in (10, 12)]
    + [f"D{n}" for n in range(1, 11)]
    + [f"E{n}" for n in range(1, 11) if n != 6]
    + ["H1", "H3", "H4", "H5", "H6", "H7"]
)


def project_root():
    return os.path.dirname(
        os.path.realpath(os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"], "BUILD.bazel"))
    )


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def names_of_tests(text):
    return {".".join(match) for match in TEST.findall(text)}


def tests_of(root):
    found = set()
    for folder, _, files in os.walk(os.path.join(root, "tests")):
        for name in files:
            if name.endswith("_test.cc"):
                found |= names_of_tests(read(folder, name))
    return found


def mistakes(text, tests, root):
    rows = ROW.findall(text)
    numbers = [number for number, _ in rows]
    yield from (f"{number} is missing" for number in ROWS if number not in numbers)
    for number, cell in rows:
        if number not in ROWS or cell is not next(other for name, other in rows if name == number):
            yield f"{number} is not known, or there twice"
        names = NAME.findall(cell)
        if not names:
            yield f"{number} names no test"
        for name in names:
            if name not in tests and not (name.startswith("tests/") and os.path.isfile(os.path.join(root, name))):
                yield f"{number}: there is no test {name}"


class RowsTest(unittest.TestCase):
    def test_every_name_is_a_test(self):
        root = project_root()
        tests = tests_of(root)
        self.assertGreater(len(tests), 500)
        self.assertEqual([], list(mistakes(read(root, "tests", "mcp", "DESIGN.md"), tests, root)))

    def test_what_is_wrong_is_found(self):
        text = "".join(f"| {number} | x | `A.B` |\n" for number in ROWS)
        root = project_root()
        self.assertEqual([], list(mistakes(text, {"A.B"}, root)))
        for wrong in (
            text.replace("| A1 | x | `A.B` |\n", ""),
            text.replace("`A.B`", "`A.C`", 1),
            text.replace("`A.B`", "`tests/no/such`", 1),
            text.replace("`A.B`", "", 1),
            text + "| A1 | x | `A.B` |\n",
            text + "| Z9 | x | `A.B` |\n",
        ):
            self.assertEqual(1, len(list(mistakes(wrong, {"A.B"}, root))), wrong)

    def test_tests_are_found_in_sources(self):
        text = "TEST_F(One, Two) {\n// TEST(Not, This)\nTEST(\n    Three, Four) {\nTEST_P(Five, Six) {}\n"
        self.assertEqual({"One.Two", "Three.Four", "Five.Six"}, names_of_tests(text))


if __name__ == "__main__":
    unittest.main()
