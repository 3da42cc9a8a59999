"""@com_google_absl from the system's libabsl-dev (Debian 12: 20220623.1-1+deb12u2).

Debian installs an archive and a pkg-config file for each of abseil's CMake targets. Each such file becomes a cc_library in the
root package of the repository; the packages absl/... hold aliases with the labels that abseil's own Bazel build uses. A label
whose pkg-config file does not exist in the installed version (absl/log in Debian 12) does not exist here either.
"""

# Bazel package: its targets. The pkg-config name is absl_PACKAGE_TARGET or absl_TARGET, or what stands behind "=".
_LABELS = {
    "algorithm": ["algorithm", "container"],
    "base": ["base", "config", "core_headers", "dynamic_annotations", "endian", "log_severity", "nullability"],
    "cleanup": ["cleanup"],
    "container": ["btree", "fixed_array", "flat_hash_map", "flat_hash_set", "inlined_vector", "node_hash_map", "node_hash_set"],
    "debugging": ["failure_signal_handler", "leak_check", "stacktrace", "symbolize"],
    "functional": ["any_invocable", "bind_front", "function_ref"],
    "hash": ["hash"],
    "log": ["absl_check", "absl_log", "check", "globals", "initialize", "log"],
    "memory": ["memory"],
    "meta": ["type_traits"],
    "numeric": ["bits", "int128"],
    "random": ["bit_gen_ref", "distributions", "random"],
    "status": ["status", "statusor"],
    "strings": ["cord", "str_format", "string_view=strings", "strings"],
    "synchronization": ["synchronization"],
    "time": ["time"],
    "types": ["any", "compare", "optional", "span", "variant"],
    "utility": ["utility"],
}

_PKGCONFIG_FOLDERS = [
    "/usr/lib/x86_64-linux-gnu/pkgconfig",
    "/usr/lib/aarch64-linux-gnu/pkgconfig",
    "/usr/lib64/pkgconfig",
    "/usr/lib/pkgconfig",
    "/usr/local/lib/pkgconfig",
]

_LIBRARY = """cc_library(
    name = "{name}",
    srcs = {srcs},
    linkopts = {linkopts},
    deps = {deps},
)
"""

_ALIAS = """alias(
    name = "{name}",
    actual = "//:{actual}",
)
"""

_LOAD = "load(\"@rules_cc//cc:defs.bzl\", \"cc_library\")\n"
_PUBLIC = "package(default_visibility = [\"//visibility:public\"])\n"

def _find_folder(ctx):
    for folder in _PKGCONFIG_FOLDERS:
        if ctx.path(folder + "/absl_base.pc").exists:
            return folder
    fail("absl_base.pc is in none of %s; install the package libabsl-dev" % ", ".join(_PKGCONFIG_FOLDERS))

def _field(text, key):
    for line in text.split("\n"):
        if line.startswith(key + ":"):
            return line[len(key) + 1:].strip()
    return ""

def _library(ctx, folder, name, names):
    """The cc_library of one pkg-config file; links its archive where there is one (header-only targets have none)."""
    text = ctx.read("%s/%s.pc" % (folder, name))
    own = "-l" + name
    archive = ctx.path("%s/../lib%s.a" % (folder, name))
    srcs = []
    if archive.exists:
        srcs = ["lib%s.a" % name]
        ctx.symlink(archive, srcs[0])
    required = [part.strip().split(" ")[0] for part in _field(text, "Requires").split(",")]
    return _LIBRARY.format(
        name = name,
        srcs = repr(srcs),
        linkopts = repr([opt for opt in _field(text, "Libs").split(" ") if opt.startswith("-l") and opt != own]),
        deps = repr([":" + dep for dep in sorted({dep: None for dep in required}) if dep in names]),
    )

def _aliases(package, targets, names):
    found = []
    for target in targets:
        label, _, given = target.partition("=")
        for name in ["absl_%s_%s" % (package, label), "absl_" + (given or label)]:
            if name in names:
                found.append(_ALIAS.format(name = label, actual = name))
                break
    return found

def _system_abseil_impl(ctx):
    folder = _find_folder(ctx)
    names = {}
    for entry in ctx.path(folder).readdir():
        if entry.basename.startswith("absl_") and entry.basename.endswith(".pc"):
            names[entry.basename[:-len(".pc")]] = None
    libraries = [_library(ctx, folder, name, names) for name in sorted(names)]
    ctx.file("BUILD.bazel", "\n".join([_LOAD, _PUBLIC] + libraries), executable = False)
    for package, targets in _LABELS.items():
        text = "\n".join([_PUBLIC] + _aliases(package, targets, names))
        ctx.file("absl/%s/BUILD.bazel" % package, text, executable = False)

system_abseil = repository_rule(
    implementation = _system_abseil_impl,
    configure = True,
    doc = "Abseil as the system has it, under the labels of abseil's own build.",
    local = True,
)
