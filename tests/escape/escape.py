"""Attacks against the jail: run.sh sets up what this needs and starts it.

    escape.py [--matrix] [WORD...]     only the attacks whose name holds every WORD

Each attack of the program `attacker` is tried without a jail first, where it must succeed; one that can't be done there (a
kernel without the feature, or for want of rights) proves nothing and is listed as not tried. Then in tiers A and B, as root
and as the ordinary user. What a tier does not promise is in NOT_PROMISED, with the sentence of SECURITY.md; everything else
must be held. With --matrix the same attacks are also tried in bubblewrap and firejail, if these are installed, and the table
is printed; their columns never fail.

The last line is "N passed, N failed".
"""

import concurrent.futures
import ctypes
import fcntl
import json
import os
import pty
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOOLS = os.environ["BULKHEAD_ESCAPE_TOOLS"]  # bulkhead, attacker, deny: where every user can start them
BULKHEAD, ATTACKER, DENY = (os.path.join(TOOLS, name) for name in ("bulkhead", "attacker", "deny"))
USER = os.environ["BULKHEAD_TEST_USER"]
SECRET, EVIL, CANARY = "the-secret-of-this-stage", "written-by-the-attacker", "canary-of-this-stage"
SECONDS_MAX = 20
# What ends otherwise than by the attacker's own word: a limit kills it, or Bulkhead refuses to start it.
ENDED = ("cpu_time", "started_in_descriptor", "started_in_descriptor_up", "large_file", "large_file_by_truncate",
         "large_file_by_fallocate")
LIMITED = ("fork_bomb", "thread_bomb", "open_files", "raise_open_files", "cpu_time", "memory", *ENDED)
LIMITS = {"processes": 20, "open_files": 64, "file_size": "512KiB", "cpu_time": "1s", "memory": "32MiB"}

with open(os.path.join(HERE, "not_promised.json"), encoding="utf-8") as not_promised_file:
    NOT_PROMISED = json.load(not_promised_file)
with open(os.path.join(HERE, "published.json"), encoding="utf-8") as published_file:
    PUBLISHED = json.load(published_file)  # escapes from other sandboxes, and what tries them here


class Person:
    def __init__(self, name, uid, gid):
        self.name, self.uid, self.gid = name, uid, gid

    def popen(self):
        return {} if self.uid == os.getuid() else {"user": self.uid, "group": self.gid, "extra_groups": []}

    def own(self, path):
        if self.uid != os.getuid():
            os.chown(path, self.uid, self.gid, follow_symlinks=False)


def people():
    if os.getuid() != 0:
        return [Person("user", os.getuid(), os.getgid())]
    user = pwd.getpwnam(USER)
    return [Person("root", 0, 0), Person("user", user.pw_uid, user.pw_gid)]


class Stage:
    """What an attack wants: made anew for each, so that none sees what another did."""

    def __init__(self, person, attack, owner):
        self.person, self.attack, self.owner = person, attack, owner
        self.open, self.processes, self.files = [], [], []
        self.folder = tempfile.mkdtemp(prefix="bulkhead-escape.", dir="/var/tmp")
        os.chmod(self.folder, 0o755)
        person.own(self.folder)
        self.token = os.path.basename(self.folder)
        self.words = {"token": self.token, "canary": CANARY}
        for name in ("home", "home/.ssh", "home/empty", "work", "data", "project", "project/sub", "project/sub/.git", "run"):
            os.mkdir(self.path(name), 0o755)
            self.owner_of(name).own(self.path(name))
        for name, text in (
            ("home/.ssh/id_test", SECRET),
            ("home/.bashrc", "a\n"),
            ("data/file", "data\n"),
            ("project/.env", SECRET),
            ("project/sub/.git/config", "config\n"),
        ):
            self.write(self.path(name), text, self.owner_of(name))
        for name in ("home/tool", "data/tool"):
            shutil.copyfile("/bin/true", self.path(name))
            os.chmod(self.path(name), 0o755)
            person.own(self.path(name))
        os.symlink(self.path("home/.ssh/id_test"), self.path("work/planted"))
        os.symlink(self.path("home"), self.path("work/home"))
        for key in ("home", "work", "data", "project", "run"):
            self.words[key] = self.path(key)
        self.words["host_tmp"], self.words["host_shm"] = f"/tmp/{self.token}", f"/dev/shm/{self.token}"
        for key in ("host_tmp", "host_shm"):
            self.write(self.words[key], SECRET)
            self.files.append(self.words[key])
        self.listen()
        self.share()
        self.victim()
        self.leak()

    def path(self, name):
        return os.path.join(self.folder, name)

    def owner_of(self, name):
        """What is granted to write has to belong to the server's account where tier B names one."""
        return self.owner if name.split("/")[0] in ("work", "project") else self.person

    def write(self, path, text, owner=None):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        (owner or self.person).own(path)

    def listen(self):
        def keep(one, address=None, stream=True):
            if address is not None:
                one.bind(address)
            if stream:
                one.listen(8)
            self.open.append(one)
            return one

        self.words["tcp"] = keep(socket.socket(), ("127.0.0.1", 0)).getsockname()[1]
        try:
            self.words["tcp6"] = keep(socket.socket(socket.AF_INET6), ("::1", 0)).getsockname()[1]
        except OSError:
            pass
        self.udp = keep(socket.socket(type=socket.SOCK_DGRAM), ("127.0.0.1", 0), False)
        self.words["udp"] = self.udp.getsockname()[1]
        self.words["abstract"] = self.token
        unix = socket.AF_UNIX
        keep(socket.socket(unix), f"\0{self.token}")
        keep(socket.socket(unix, socket.SOCK_DGRAM), f"\0{self.token}-dgram", False)
        for name, kind in (
            ("agent.sock", socket.SOCK_STREAM),
            ("docker.sock", socket.SOCK_STREAM),
            ("seq.sock", socket.SOCK_SEQPACKET),
            ("log.sock", socket.SOCK_DGRAM),
        ):
            keep(socket.socket(unix, kind), self.path(f"run/{name}"), kind != socket.SOCK_DGRAM)
            os.chmod(self.path(f"run/{name}"), 0o777)
            self.person.own(self.path(f"run/{name}"))

    def share(self):
        """IPC of System V and a POSIX queue, made by the person."""
        key = int.from_bytes(os.urandom(3), "big") + 1
        self.words["ipc_key"], self.words["queue"] = key, self.token.replace(".", "-")
        make = (
            "import ctypes,sys\n"
            "c=ctypes.CDLL(None); k=int(sys.argv[1])\n"
            "print(c.shmget(k,4096,0o1600), c.semget(k,1,0o1600), c.msgget(k,0o1600), c.mq_open(sys.argv[2].encode(),0o102,0o600,None))\n"
        )
        words = ["/usr/bin/python3", "-c", make, str(key), "/" + self.words["queue"]]
        self.ipc = subprocess.run(words, check=True, capture_output=True, text=True, **self.person.popen()).stdout.split()

    def unshare(self):
        c = ctypes.CDLL(None)
        memory, semaphores, messages, _ = (int(word) for word in self.ipc)
        c.shmctl(memory, 0, None)
        c.semctl(semaphores, 0, 0, 0)
        c.msgctl(messages, 0, None)
        c.mq_unlink(("/" + self.words["queue"]).encode())

    def victim(self):
        key = os.open(self.path("home/.ssh/id_test"), os.O_RDONLY)
        env = {"CANARY": CANARY}
        self.victim_process = subprocess.Popen(
            [ATTACKER, "--victim"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            cwd=self.path("home/.ssh"),
            env=env,
            pass_fds=[key],
            **self.person.popen(),
        )
        os.close(key)
        self.victim_process.stdout.readline()
        self.words["victim"], self.words["victim_fd"] = self.victim_process.pid, key
        self.processes.append(self.victim_process)
        master, slave = pty.openpty()
        self.words["other_tty"] = os.ttyname(slave)
        self.person.own(self.words["other_tty"])
        self.open += [os.fdopen(master), os.fdopen(slave)]

    def leak(self):
        self.leaked = []
        for key, path in (
            ("leaked_file", self.path("home/.ssh/id_test")),
            ("leaked_folder", self.path("home/.ssh")),
            ("leaked_root", "/"),
        ):
            fd = os.open(path, os.O_RDONLY)
            self.leaked.append(fd)
            self.words[key] = fd

    def arguments(self, is_control):
        words = [f"{key}={value}" for key, value in self.words.items()]
        return [self.attack, *words, *(["control=1"] if is_control else [])]

    def program(self):
        """Whose program may be overwritten has one that nobody else runs meanwhile."""
        if self.attack != "overwrite_own_program":
            return ATTACKER
        copy = f"{ATTACKER}-{self.token}"
        if copy not in self.files:
            shutil.copy(ATTACKER, copy)
            self.person.own(copy)
            self.files.append(copy)
        return copy

    def run(self, prefix, is_control):
        """"got", "untried: why" or "held: why"."""
        command = [*prefix, self.program(), *self.arguments(is_control)]
        env = {
            "PATH": "/usr/bin:/bin",
            "HOME": self.path("home"),
            "TERM": "() { :; }" if self.attack == "env_function_value" else "dumb",
            "BULKHEAD_ESCAPE_CANARY": CANARY,
            "SSH_AUTH_SOCK": self.path("run/agent.sock"),
        }
        for name in ("GITHUB_TOKEN", "LD_LIBRARY_PATH", "NODE_OPTIONS", "PYTHONSTARTUP", "PYTHONPATH", "BASH_ENV"):
            env[name] = "/nonexistent"
        env["BASH_FUNC_ls%%"] = "() { :; }"
        for name in ("LD_PRELOAD", "LD_AUDIT"):
            if self.attack == f"env_{name.lower()}":
                env[name] = "/nonexistent.so"
        stdin, terminal, cwd = subprocess.DEVNULL, None, self.path("work")
        if self.attack.endswith("_stdin") or self.attack == "reopen_stdin_for_writing":
            is_file = self.attack == "reopen_stdin_for_writing"
            stdin = os.open(self.path("data/file" if is_file else "home/.ssh"), os.O_RDONLY)
            self.leaked.append(stdin)
        if self.attack in ("tiocsti", "tiocsti_64_bits", "tioclinux", "tiocsetd", "open_dev_tty") or "terminal_" in self.attack:
            master, stdin = pty.openpty()
            self.person.own(os.ttyname(stdin))
            self.open += [os.fdopen(master), os.fdopen(stdin, closefd=False)]
            self.leaked.append(stdin)
            terminal = stdin
        if self.attack.startswith("started_in_descriptor"):
            cwd = f"/proc/self/fd/{self.words['leaked_folder']}"
        passed = [self.words[key] for key in ("leaked_file", "leaked_folder", "leaked_root")]

        def before():
            os.chdir(cwd)
            if terminal is not None:
                os.setsid()
                fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)

        process = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            pass_fds=passed,
            preexec_fn=before,
            **self.person.popen(),
        )
        try:
            said, complaint = (text.decode(errors="replace").strip() for text in process.communicate(timeout=SECONDS_MAX))
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return "ended: it had to be killed"
        said = (said or complaint or "\n").splitlines()[-1]
        if process.returncode == 2 and said.startswith("untried"):
            return said.replace("untried", "untried:", 1)
        if process.returncode == 1 and said.startswith("held"):
            return said.replace("held", "held:", 1)
        if process.returncode != 0:
            return f"ended: {said or process.returncode}"
        if self.attack.startswith("leave_") and not self.survivors():
            return "held: nothing survived"
        if self.attack in ("sigio_victim", "setsig_victim", "signal_everyone") and not self.victim_has_signal():
            return "held: nothing arrived"
        if self.attack in ("udp_loopback", "udp_connected") and not self.heard():
            return "held: nothing was heard"
        if self.attack == "make_file_in_home" and not os.path.exists(self.path("home/.config-of-evil")):
            return "held: in a home of its own"
        return "got"

    def survivors(self):
        found = []
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) == os.getpid():
                continue
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            if f"token={self.token}".encode() in words:
                found.append(int(name))
        return found

    def heard(self):
        try:
            return bool(self.udp.recv(64, socket.MSG_DONTWAIT))
        except BlockingIOError:
            return False

    def victim_has_signal(self):
        with open(f"/proc/{self.victim_process.pid}/status", encoding="ascii") as file:
            pending = [line for line in file if line.startswith(("SigPnd", "ShdPnd"))]
        return any(int(line.split()[1], 16) for line in pending)

    def close(self):
        for pid in self.survivors():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for process in self.processes:
            process.kill()
            process.communicate()
        for one in self.open:
            one.close()
        for fd in self.leaked:
            try:
                os.close(fd)
            except OSError:
                pass
        self.unshare()
        for path in self.files:
            if os.path.lexists(path):
                os.unlink(path)
        subprocess.run(["chmod", "-R", "u+rwX", self.folder], check=False, capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def jail(stage, tier):
    policy = {
        "version": 1,
        "extends": ["preset:default"],
        "require": tier,
        "filesystem": {
            "rx": [stage.program()],
            "ro": [stage.path("data")],
            "rw": [stage.path("work")] + ([stage.path("project")] if tier == "A" else []),
        },
        "limits": LIMITS if stage.attack in LIMITED else {},
    }
    if stage.person.uid == 0:
        policy["user"] = USER if tier == "B" else "auto"
    if tier == "A":
        policy["filesystem"]["protect"] = [stage.path("project/sub/.git")]
        policy["filesystem"]["hide"] = [stage.path("project/.env")]
    path = stage.path("policy.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(policy, file)
    run = [BULKHEAD, "run", "--policy", path, "--workspace", stage.path("work")]
    if stage.attack.startswith("started_in_descriptor"):
        run += ["--cwd", f"/proc/self/fd/{stage.words['leaked_folder']}"]
    return run if tier == "A" else [DENY, "--userns", *run]


def bubblewrap(stage, _):
    words = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--proc", "/proc", "--dev", "/dev"]
    words += ["--tmpfs", "/tmp", "--ro-bind", TOOLS, TOOLS, "--bind", stage.path("work"), stage.path("work")]
    words += ["--ro-bind", stage.path("data"), stage.path("data")]
    for path in ("/usr", "/lib", "/lib64", "/bin", "/etc/passwd", "/etc/group"):
        if os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
        elif os.path.exists(path):
            words += ["--ro-bind", path, path]
    return words


def firejail(stage, _):
    return ["firejail", "--quiet", "--noprofile", "--net=none", "--caps.drop=all", "--seccomp", "--nonewprivs"] + [
        "--keep-var-tmp",  # where the stage lies
        f"--blacklist={stage.path('home')}",
        f"--read-only={stage.path('data')}",
    ]


WALLS = {"A": jail, "B": jail}
OTHERS = {"bwrap": bubblewrap, "firejail": firejail}


def one_cell(person, attack, wall, prefix):
    stage = Stage(person, attack, people()[-1] if wall == "B" else person)
    try:
        if wall == "control":
            return stage.run([ATTACKER, "--in-front", ATTACKER, "--in-front"], True)
        return stage.run(prefix(stage, wall), False)
    finally:
        stage.close()


def try_attack(person, attack, with_others):
    """{wall: what came of it}."""
    row = {"control": one_cell(person, attack, "control", None)}
    if row["control"] != "got":
        return person, attack, row
    walls = dict(WALLS)
    if with_others:
        walls.update({name: prefix for name, prefix in OTHERS.items() if shutil.which(prefix(Named, None)[0])})
    for wall, prefix in walls.items():
        row[wall] = one_cell(person, attack, wall, prefix)
    return person, attack, row


class Named:
    """A stage for asking what program a wall is."""

    @staticmethod
    def path(name):
        return name


def missing_of_published(attacks):
    for one in PUBLISHED.values():
        yield from (name for name in one.get("attacks", ()) if name not in attacks)
        for file, name in one.get("tests", ()):
            with open(os.path.join(HERE, "../..", file), encoding="utf-8") as source:
                if f", {name})" not in source.read():
                    yield f"{name} of {file}"


def main():
    words = [word for word in sys.argv[1:] if word != "--matrix"]
    matrix = "--matrix" in sys.argv
    names = subprocess.run([ATTACKER, "--list"], check=True, capture_output=True, text=True).stdout.split()
    names = [name for name in names if all(word in name for word in words)]
    unknown = [] if words else [f"not_promised.json names {name}" for name in NOT_PROMISED if name not in names]
    unknown += [] if words else [f"published.json names {name}" for name in missing_of_published(names)]
    started = time.monotonic()
    passed, failed, untried, got = 0, len(unknown), 0, {}
    for name in unknown:
        print(f"FAILED  {name}, which is not there")
    with concurrent.futures.ProcessPoolExecutor(3) as pool:
        rows = [pool.submit(try_attack, person, name, matrix) for name in names for person in people()]
        for future in rows:
            person, attack, row = future.result()
            if row["control"] != "got":
                untried += 1
                if words or matrix:
                    print(f"untried {attack}, {person.name}: {row['control']}")
                continue
            for wall, said in row.items():
                got.setdefault(wall, []).append(said == "got")
            if matrix:
                cells = [f"{wall} {'GOT' if said == 'got' else said.split(':')[0]}" for wall, said in row.items() if wall != "control"]
                print(f"{attack:40} {person.name:5} {', '.join(cells)}")
            for tier in WALLS:
                promised = f"{tier}, {person.name}" not in NOT_PROMISED.get(attack, {}).get("where", ())
                if row[tier].startswith("ended") and attack not in ENDED:
                    failed += 1
                    print(f"FAILED  {attack}, tier {tier}, {person.name}: it was not tried: {row[tier]}")
                elif row[tier] != "got" or not promised:
                    passed += 1
                else:
                    failed += 1
                    print(f"FAILED  {attack}, tier {tier}, {person.name}: it got what it wanted")
    if matrix:
        sums = [f"{wall} {sum(cells)} of {len(cells)}" for wall, cells in got.items() if wall != "control"]
        print(f"attackers that got what they wanted: {', '.join(sums)}")
    print(f"{len(names)} attacks, {untried} could not be tried here; they took {time.monotonic() - started:.0f} s")
    print(f"{passed} passed, {failed} failed")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
