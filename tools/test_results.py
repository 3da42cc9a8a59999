#!/usr/bin/env python3
"""Counts the test cases of one "bazel test", from the file that --build_event_json_file wrote.

    tools/test_results.py EVENTS [--expected-skips FILE]

Prints a line for each case that failed or was skipped, then "N passed, N failed". A target that Bazel could not build or that
died before it could write its results counts as one failure. So does a skip that FILE doesn't name, if the option is given.
FILE has one "Suite.Case reason" a line.
"""
import argparse
import json
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree


def read_events(path):
    """Returns (the labels of all tests asked for, {label: passed?}, {label: the files with its cases})."""
    asked, passed, files = set(), {}, {}
    with open(path, encoding="utf-8") as lines:
        for event in map(json.loads, lines):
            identity = event["id"]
            if "configured" in event and event["configured"].get("testSize"):
                asked.add(identity["targetConfigured"]["label"])
            elif "testSummary" in event:
                passed[identity["testSummary"]["label"]] = event["testSummary"]["overallStatus"] == "PASSED"
            elif "testResult" in event:
                outputs = event["testResult"].get("testActionOutput", [])
                uris = [output.get("uri", "") for output in outputs if output["name"] == "test.xml"]
                files[identity["testResult"]["label"]] = [urllib.parse.unquote(uri[len("file://"):]) for uri in uris]
    return asked, passed, files


def read_cases(path):
    """Yields (name, "passed" | "failed" | "skipped", message) for each case of a JUnit file."""
    for case in ElementTree.parse(path).iter("testcase"):
        if case.get("status") == "notrun":
            continue
        name = ".".join(filter(None, [case.get("classname"), case.get("name")]))
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            yield name, "failed", ""
        elif skipped is not None or case.get("result") == "skipped":
            yield name, "skipped", " ".join(skipped.get("message", "").split()) if skipped is not None else ""
        else:
            yield name, "passed", ""


def cases_of(label, files):
    try:
        return [case for path in files.get(label, []) for case in read_cases(path)]
    except (OSError, ElementTree.ParseError):
        return []


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("events")
    arguments.add_argument("--expected-skips")
    options = arguments.parse_args()
    expected = None
    if options.expected_skips:
        with open(options.expected_skips, encoding="utf-8") as lines:
            expected = {line.split()[0] for line in lines if line.strip() and not line.startswith("#")}

    counts = {"passed": 0, "failed": 0}
    asked, passed, files = read_events(options.events)
    for label in sorted(asked | set(passed)):
        cases = cases_of(label, files)
        for name, outcome, message in cases:
            if outcome == "skipped":
                unexpected = expected is not None and name not in expected
                print("%s %s %s: %s" % ("UNEXPECTED SKIP" if unexpected else "SKIP", label, name, message))
                counts["failed"] += unexpected
                continue
            counts[outcome] += 1
            if outcome == "failed":
                print("FAIL %s %s" % (label, name))
        if not passed.get(label) and all(outcome != "failed" for _, outcome, _ in cases):
            print("FAIL %s: not built, or ended before its results were written" % label)
            counts["failed"] += 1
    print("%(passed)d passed, %(failed)d failed" % counts)
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
