#!/usr/bin/env python3
"""Writes compile_commands.json in the root, for clang-tidy and clangd: how Bazel compiles each of our sources.

    tools/compile_commands.py [BAZEL_OPTION...]
"""
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Flags that Bazel gives to gcc and clang doesn't know.
GCC_ONLY = {"-fno-canonical-system-headers", "-Wunused-but-set-parameter", "-Wno-free-nonheap-object"}


def bazel(*arguments):
    command = ["bazel", *arguments, "--ui_event_filters=-info"]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode()


def compile_actions(options):
    """The command line of each C++ compilation in the build of //..."""
    graph = json.loads(bazel("aquery", 'mnemonic("CppCompile", //...)', "--output=jsonproto", *options))
    return [action["arguments"] for action in graph.get("actions", [])]


def main():
    entries = {}
    folder = bazel("info", "execution_root").strip()
    for arguments in compile_actions(sys.argv[1:]):
        # Header parsing and assembly have no "-c source.cc".
        source = arguments[arguments.index("-c") + 1] if "-c" in arguments else ""
        if source.endswith(".cc") and os.path.exists(os.path.join(ROOT, source)):
            kept = [argument for argument in arguments if argument not in GCC_ONLY]
            entries[source] = {"directory": folder, "file": os.path.join(ROOT, source), "arguments": kept}
    with open(os.path.join(ROOT, "compile_commands.json"), "w", encoding="utf-8") as out:
        json.dump([entries[source] for source in sorted(entries)], out, indent=1)
    print("compile_commands.json: %d sources" % len(entries))
    return 0


if __name__ == "__main__":
    sys.exit(main())
