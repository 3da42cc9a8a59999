"""Stand-ins for what Bazel 4 downloads even for a plain C++ build.

Its own build files load rules_cc and rules_java, and each test names remote_coverage_tools. Bazel 4 has the C++, Java and
shell rules built in, so that the first ones need only pass those on. remote_coverage_tools is used by "bazel coverage" alone.
Debian's own bazel-rules-cc package does not load under Debian's Bazel.
"""

_RULES = {
    "rules_cc": {"cc/defs.bzl": ["cc_binary", "cc_import", "cc_library", "cc_test", "cc_toolchain", "cc_toolchain_suite"]},
    "rules_java": {"java/defs.bzl": ["java_binary", "java_import", "java_library", "java_runtime", "java_toolchain"]},
    "rules_shell": {
        "shell/sh_binary.bzl": ["sh_binary"],
        "shell/sh_library.bzl": ["sh_library"],
        "shell/sh_test.bzl": ["sh_test"],
    },
}

_COVERAGE_BUILD = """package(default_visibility = ["//visibility:public"])

sh_binary(
    name = "coverage_report_generator",
    srcs = ["refuse.sh"],
)

sh_binary(
    name = "lcov_merger",
    srcs = ["refuse.sh"],
)
"""

def _text_repository_impl(ctx):
    for path, text in ctx.attr.texts.items():
        ctx.file(path, text, executable = path.endswith(".sh"))

_text_repository = repository_rule(
    implementation = _text_repository_impl,
    attrs = {"texts": attr.string_dict(mandatory = True)},
    doc = "A repository whose files are written out here: path to text.",
)

def bazel4_repositories():
    """Declares the repositories that Bazel 4 would otherwise download."""
    for name, files in _RULES.items():
        texts = {"BUILD.bazel": ""}
        for path, rules in files.items():
            texts[path.split("/")[0] + "/BUILD.bazel"] = ""
            texts[path] = "".join(["{0} = native.{0}\n".format(rule) for rule in rules])
        _text_repository(name = name, texts = texts)
    _text_repository(name = "remote_coverage_tools", texts = {
        "BUILD.bazel": _COVERAGE_BUILD,
        "refuse.sh": "#!/bin/sh\necho 'bazel coverage is not set up' >&2\nexit 1\n",
    })
