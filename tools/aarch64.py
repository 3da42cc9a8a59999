#!/usr/bin/env python3
"""Compiles for aarch64 what users get: every source in compile_commands.json but tests and benchmarks.

    tools/compile_commands.py && tools/aarch64.py

Each is compiled as Bazel compiles it, with Debian's cross compiler in place of the host's. The libraries' headers come from
/usr/include, which as a whole belongs to the host: a folder with links to those libraries alone stands in for it.
"""
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COMPILERS = {"c": "aarch64-linux-gnu-gcc", "cc": "aarch64-linux-gnu-g++"}
LEFT_OUT = ("tests/", "bench/")
HEADERS = ("absl", "asio", "asio.hpp", "CLI", "nlohmann", "seccomp.h", "seccomp-syscalls.h")
HOST_ONLY = ("-m64", "-march=", "-mtune=", "-msse", "-mno-sse", "-mno-red-zone", "-mgeneral-regs-only")


def cross_command(entry, include):
    """The command of entry for aarch64, with its result thrown away."""
    command = [COMPILERS[entry["file"].rsplit(".", 1)[1]], "-isystem", include]
    arguments = iter(entry["arguments"][1:])
    for argument in arguments:
        if argument in ("-o", "-MF"):
            next(arguments)
        elif argument not in ("-MD",) and not argument.startswith(HOST_ONLY):
            command.append(argument)
    return command + ["-o", "/dev/null"]


def compile_one(entry, include):
    result = subprocess.run(cross_command(entry, include), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            check=False)
    if result.returncode != 0:
        print("FAIL %s\n%s" % (entry["file"], result.stdout.decode(errors="replace")))
    return result.returncode == 0


def main():
    with open(os.path.join(ROOT, "compile_commands.json"), encoding="utf-8") as text:
        entries = [entry for entry in json.load(text) if not entry["file"].startswith(LEFT_OUT)]
    with tempfile.TemporaryDirectory() as include:
        for name in HEADERS:
            os.symlink(os.path.join("/usr/include", name), os.path.join(include, name))
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            good = list(pool.map(lambda entry: compile_one(entry, include), entries))
    print("aarch64: %d of %d sources compile" % (sum(good), len(entries)))
    return 0 if entries and all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
