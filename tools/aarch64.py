#!/usr/bin/env python3
"""Compiles for aarch64 what users get: the keeper, and every source in compile_commands.json but tests and benchmarks.

    tools/compile_commands.py && tools/aarch64.py        after a build, for the headers that are made in it

Each is compiled as Bazel compiles it, with Debian's cross compiler in place of the host's. The libraries' headers come from
/usr/include, which as a whole belongs to the host: a folder with links to those libraries alone stands in for it.
"""
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COMPILER = "aarch64-linux-gnu-g++"
LEFT_OUT = ("tests/", "bench/")
HEADERS = ("absl", "asio", "asio.hpp", "nlohmann", "seccomp.h", "seccomp-syscalls.h", "sodium")
# The target whose command compiles and links the keeper, and the compiler in that command.
KEEPER = "//launcher/keeper:keeper"
KEEPER_COMPILER = re.compile(r"(?:/usr/bin/|(?<=[\s;]))(?:gcc|clang)(?=\s)")


def bazel(*arguments):
    command = ["bazel", *arguments, "--ui_event_filters=-info"]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode()


def keeper_compiles():
    """Whether the keeper's own command gives an aarch64 program."""
    graph = json.loads(bazel("aquery", 'mnemonic("Genrule", %s)' % KEEPER, "--output=jsonproto"))
    command = graph["actions"][0]["arguments"][-1]
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "keeper")
        cross = re.sub(r"-o \S+", "-o " + program, KEEPER_COMPILER.sub("aarch64-linux-gnu-gcc", command))
        result = subprocess.run(["bash", "-c", cross], cwd=bazel("info", "execution_root").strip(), stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, check=False)
        made = result.returncode == 0 and b"AArch64" in subprocess.run(
            ["readelf", "--file-header", program], stdout=subprocess.PIPE, check=False).stdout
    if not made:
        print("FAIL %s\n%s" % (KEEPER, result.stdout.decode(errors="replace")))
    return made


def cross_command(entry, include):
    """The command of entry for aarch64, with its result thrown away."""
    command = [COMPILER, "-isystem", include]
    arguments = iter(entry["arguments"][1:])
    for argument in arguments:
        if argument in ("-o", "-MF"):
            next(arguments)
        elif argument != "-MD":
            command.append(argument)
    return command + ["-o", "/dev/null"]


def compile_one(entry, include):
    result = subprocess.run(cross_command(entry, include), cwd=entry["directory"], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, check=False)
    if result.returncode != 0:
        print("FAIL %s\n%s" % (entry["file"], result.stdout.decode(errors="replace")))
    return result.returncode == 0


def main():
    with open(os.path.join(ROOT, "compile_commands.json"), encoding="utf-8") as text:
        entries = [entry for entry in json.load(text)
                   if not os.path.relpath(entry["file"], ROOT).startswith(LEFT_OUT)]
    with tempfile.TemporaryDirectory() as include:
        for name in HEADERS:
            os.symlink(os.path.join("/usr/include", name), os.path.join(include, name))
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            good = list(pool.map(lambda entry: compile_one(entry, include), entries))
    keeper = keeper_compiles()
    print("aarch64: %d of %d sources compile; the keeper %s" % (sum(good), len(entries), "too" if keeper else "does not"))
    return 0 if entries and all(good) and keeper else 1


if __name__ == "__main__":
    sys.exit(main())
