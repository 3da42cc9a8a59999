"""How mingw-w64, as Debian packages it, builds for Windows: the least that Bazel has to be told."""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "ACTION_NAMES")
load("@bazel_tools//tools/cpp:cc_toolchain_config_lib.bzl", "artifact_name_pattern", "feature", "flag_group", "flag_set", "tool_path")

_PREFIX = "/usr/bin/x86_64-w64-mingw32-"

_COMPILE = [ACTION_NAMES.c_compile, ACTION_NAMES.cpp_compile]
_LINK = [ACTION_NAMES.cpp_link_executable]

def _flags(name, actions, flags):
    return feature(
        name = name,
        enabled = True,
        flag_sets = [flag_set(actions = actions, flag_groups = [flag_group(flags = flags)])],
    )

def _impl(ctx):
    tools = {"ar": "ar", "cpp": "cpp-posix", "gcc": "g++-posix", "gcov": "gcov-posix", "ld": "ld", "nm": "nm", "objdump": "objdump", "strip": "strip"}

    # buildifier: disable=native-cc-common
    return cc_common.create_cc_toolchain_config_info(
        ctx = ctx,
        abi_libc_version = "mingw",
        abi_version = "mingw",
        # The system's own headers, those of the compiler for Windows.
        cxx_builtin_include_directories = ["/usr/lib/gcc/x86_64-w64-mingw32", "/usr/x86_64-w64-mingw32/include", "/usr/share/mingw-w64/include"],
        compiler = "mingw",
        features = [
            # UNICODE: every call is the one with a W. 0x0A00: Windows 10.
            _flags("windows", _COMPILE, ["-O2", "-DNDEBUG", "-DUNICODE", "-D_UNICODE", "-DNOMINMAX", "-DWIN32_LEAN_AND_MEAN", "-D_WIN32_WINNT=0x0A00"]),
            # One file: no DLL but the system's.
            _flags("static", _LINK, ["-static", "-municode", "-s"]),
        ],
        artifact_name_patterns = [artifact_name_pattern(category_name = "executable", prefix = "", extension = ".exe")],
        host_system_name = "local",
        target_cpu = "x64_windows",
        target_libc = "mingw",
        target_system_name = "x86_64-w64-mingw32",
        tool_paths = [tool_path(name = name, path = _PREFIX + tool) for name, tool in tools.items()],
        toolchain_identifier = "mingw-w64",
    )

mingw_config = rule(
    implementation = _impl,
    doc = "The configuration of a cc_toolchain.",
    provides = [CcToolchainConfigInfo],
)
