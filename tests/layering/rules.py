"""The layering of DESIGN.md as tables: cli -> mcp -> {launcher, jsonrpc} -> policy."""
import re

# Folder: the folders it may use. What isn't named here (tests, bench, examples) may use everything and is used by nobody.
MAY_USE = {
    "policy": {"policy"},
    "jsonrpc": {"jsonrpc", "policy"},
    "launcher": {"launcher", "policy"},
    "mcp": {"mcp", "jsonrpc", "launcher", "policy"},
    "cli": {"cli", "mcp", "jsonrpc", "launcher", "policy"},
}

# A library of others: (how an #include of it begins, the files that may, the Bazel packages that may depend on it).
LIBRARIES = {
    "libseccomp": (r"seccomp\.h", r"launcher/seccomp/generate\w*\.cc", r"launcher/seccomp"),
    "libsodium": (r"sodium", r"launcher/content\.cc", r"launcher"),
    "nlohmann_json": (r"nlohmann/", r"(policy|jsonrpc|mcp)/(\w*json\w*|envelope)\.(h|cc)|cli/\w+\.(h|cc)", r"policy|jsonrpc|mcp|cli"),
    "asio": (r"asio[./]", r"(launcher|launcher/posix|launcher/windows|jsonrpc|mcp|cli)/\w+\.(h|cc)", r"launcher(/posix|/windows)?|jsonrpc|mcp|cli"),
}

# What one backend is made of. Above launcher/ nothing knows which is in use.
BACKENDS = r"bulkhead/launcher/(seccomp|keeper|posix|windows)/.*|bulkhead/launcher/linux\.h"

# policy/ holds pure values. These headers would give it processes, files, clocks or threads.
IMPURE_HEADER = re.compile(
    r"(unistd|fcntl|signal|poll|spawn|pthread|pwd|grp|dirent|sched|time|stdio)\.h|(sys|linux|asm|net|netinet|arpa)/.*"
    r"|absl/(time/clock|synchronization/.*)\.?h?|c(time|signal)|chrono|filesystem|fstream|thread|mutex|future|random")
PURE = r"policy/\w+\.(h|cc)"
# LoadPolicy, the one convenience that reads: a file's text, for ParsePolicy.
IMPURE_ALLOWED = r"policy/load\w*\.cc"

# The system calls that take rights away or change what a process sees. Only the keeper makes them, and what
# stands in for it on other systems.
RESTRICTING = (
    "capset chroot fsconfig fsmount fsopen landlock_add_rule landlock_restrict_self mount mount_setattr move_mount open_tree "
    "pivot_root prctl prlimit prlimit64 seccomp setdomainname setgid setgroups sethostname setns setregid setresgid setresuid "
    "setreuid setrlimit setuid umount umount2 unshare").split()
RESTRICTING_CALL = re.compile(
    r"(?<![\w.>])(?:::)?(%(names)s)\s*\(|\b(?:SYS_|__NR_)(%(names)s)\s*,[^}]*\)" % {"names": "|".join(RESTRICTING)})
RESTRICTING_ALLOWED = r"launcher/keeper/\w+\.(h|cc)|launcher/posix/child\.cc"

# The clock that people set, and that jumps: nothing that waits may go by it.
WALL_CLOCK = re.compile(r"\b(absl::Now|system_clock|system_timer|gettimeofday|CLOCK_REALTIME)\b")

# The keeper runs without a C library. One command of its own compiles it, for which headers have no prefix.
FREESTANDING = r"launcher/keeper/\w+\.(h|cc)"
FREESTANDING_HEADER = re.compile(r"(linux|asm|asm-generic)/.*|std(int|def|arg|bool)\.h|c?std(int|def)|bulkhead/.*")
