"""Starts a server, talks to it, ends it, and says what it answered and what it left. For interop.py."""

import ctypes
import dataclasses
import json
import os
import pwd
import select
import signal
import subprocess
import tempfile
import time

PR_SET_CHILD_SUBREAPER = 36
ANSWER_SECONDS_MAX = 300  # a cold npx downloads the server first, on a busy machine or a slow line
END_SECONDS_MAX = 15

CLIENT = {"name": "bulkhead-interop", "version": "1.0.0"}


class Failed(Exception):
    """A case is not as it should be; the text says what."""


@dataclasses.dataclass(frozen=True)
class Identity:
    """As whom a case runs."""

    name: str  # "root" or "user"
    uid: int
    gid: int
    login: str
    home: str
    switch: bool  # whether we have to become it
    cache: str  # XDG_CACHE_HOME, or empty for Bulkhead's own choice

    def environment(self, more):
        env = {key: value for key, value in os.environ.items() if not key.startswith("XDG_")}
        env.update({"HOME": self.home, "USER": self.login, "LOGNAME": self.login})
        if self.cache:
            env["XDG_CACHE_HOME"] = self.cache
        env.update(more)
        return env

    def popen_arguments(self):
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if self.switch else {}

    def own(self, path):
        if self.switch:
            os.chown(path, self.uid, self.gid)


def identities(cache, user_name):
    """Root and the ordinary user when we are root, else ourselves; the user is last.

    Each has a home that stays, with npm's cache in it. Bulkhead's caches for root are kept apart from the system's own,
    by the user's uid, since he owns some of them and may be another the next time.
    """
    everyone = []
    home_root, home_user = os.path.join(cache, "home-root"), os.path.join(cache, "home-user")
    if os.getuid() == 0:
        user = pwd.getpwnam(user_name)
        cache_root = os.path.join(cache, f"cache-root-{user.pw_uid}")
        everyone.append(Identity("root", 0, 0, "root", home_root, False, cache_root))
        everyone.append(Identity("user", user.pw_uid, user.pw_gid, user_name, home_user, True, ""))
    else:
        login = pwd.getpwuid(os.getuid()).pw_name
        everyone.append(Identity("user", os.getuid(), os.getgid(), login, home_user, False, ""))
    for identity in everyone:
        os.makedirs(identity.home, exist_ok=True)
        os.chmod(identity.home, 0o700)
        if identity.switch and os.stat(identity.home).st_uid != identity.uid:
            subprocess.run(["chown", "-R", f"{identity.uid}:{identity.gid}", identity.home], check=True)
    return everyone


def become_subreaper():
    """Whatever is left of a tree that we started becomes our child, so that nothing can be overlooked."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def end_children():
    """Kills and reaps every child we have; returns the command lines of those that were still alive."""
    alive = []
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return alive
        if pid != 0:
            continue
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            children = [int(word) for word in file.read().split()]
        for child in children:
            with open(f"/proc/{child}/cmdline", "rb") as file:
                alive.append(file.read().replace(b"\0", b" ").decode(errors="replace").strip())
            os.kill(child, signal.SIGKILL)  # our own child, not reaped: its pid is not anyone else's
            os.waitpid(child, 0)


@dataclasses.dataclass
class Outcome:
    """What a conversation gave."""

    answers: dict  # id -> the line as it came, bytes
    exit_code: int  # as a shell shows it
    stderr: str
    left: list  # command lines of what was alive after the first process had ended


def request(number, method, params):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


INITIALIZE = request(
    1, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
)
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def conversation(calls):
    """The usual one: handshake, tools/list, then each (tool, arguments)."""
    messages = [INITIALIZE, INITIALIZED, request(2, "tools/list", {})]
    for number, (tool, arguments) in enumerate(calls, start=3):
        messages.append(request(number, "tools/call", {"name": tool, "arguments": arguments}))
    return messages


class Lines:
    """Lines of a pipe, each by a deadline."""

    def __init__(self, fd):
        self.fd = fd
        self.buffer = b""

    def next(self, deadline):
        """One line with its end, or what is left without one at the end of file."""
        while b"\n" not in self.buffer:
            if not select.select([self.fd], [], [], max(0, deadline - time.monotonic()))[0]:
                raise Failed(f"no answer within {ANSWER_SECONDS_MAX} s")
            data = os.read(self.fd, 65536)
            if not data:
                rest, self.buffer = self.buffer, b""
                return rest
            self.buffer += data
        line, newline, self.buffer = self.buffer.partition(b"\n")
        return line + newline


def answer_id(line):
    """The id that a line answers, or None."""
    try:
        message = json.loads(line)
    except ValueError as error:
        raise Failed(f"not JSON on stdout: {line[:200]!r}") from error
    return message.get("id") if "method" not in message else None


def shell_code(returncode):
    return returncode if returncode >= 0 else 128 - returncode


def wait(process, seconds):
    try:
        process.wait(seconds)
        return True
    except subprocess.TimeoutExpired:
        return False


def ask_in_turn(process, messages, answers):
    """Sends each message after the answer to the one before, as hosts do."""
    lines = Lines(process.stdout.fileno())
    for message in messages:
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        deadline = time.monotonic() + ANSWER_SECONDS_MAX
        while "id" in message and message["id"] not in answers:
            line = lines.next(deadline)
            if not line:
                raise Failed(f"stdout ended before the answer to {message['method']}")
            number = answer_id(line)
            if number is not None:
                answers[number] = line


def ask_at_once(process, messages, answers):
    """Sends everything and closes stdin, as `printf ... |` does."""
    lines = Lines(process.stdout.fileno())
    process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
    process.stdin.close()
    deadline = time.monotonic() + ANSWER_SECONDS_MAX
    while line := lines.next(deadline):
        number = answer_id(line)
        if number is not None:
            answers[number] = line


def converse(command, messages, identity, cwd, env=None, ask=ask_in_turn):
    """Starts `command`, asks, closes stdin and waits for the end; raises Failed with stderr when it goes wrong."""
    answers = {}
    with tempfile.TemporaryFile() as stderr:

        def stderr_text():
            stderr.seek(0)
            return stderr.read().decode(errors="replace").strip()

        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            cwd=cwd,
            env=identity.environment(env or {}),
            **identity.popen_arguments(),
        )
        try:
            ask(process, messages, answers)
            process.stdin.close()
            if not wait(process, END_SECONDS_MAX):
                raise Failed(f"still running {END_SECONDS_MAX} s after the end of its input")
        except (Failed, BrokenPipeError) as error:
            code = f"exit code {shell_code(process.returncode)}" if wait(process, 1) else "still running"
            raise Failed(f"{error} ({code}); stderr: {stderr_text()[-2000:]}") from error
        finally:
            process.stdout.close()
            if process.returncode is None:
                process.kill()
                process.wait()
            left = end_children()
        return Outcome(answers, shell_code(process.returncode), stderr_text(), left)
