"""Libraries that the system has installed and that the compiler finds by itself."""

def _system_library_impl(ctx):
    if not ctx.path(ctx.attr.header).exists:
        fail("%s is not there; install the package %s" % (ctx.attr.header, ctx.attr.package))
    ctx.symlink(ctx.attr.build_file, "BUILD.bazel")

# The headers stay where they are, in one of the compiler's own folders: naming that folder again with -isystem breaks
# #include_next <stdlib.h>. Bazel so does not see them change: run "bazel clean" after an upgrade of such a package.
system_library = repository_rule(
    implementation = _system_library_impl,
    attrs = {
        "build_file": attr.label(allow_single_file = True, mandatory = True, doc = "What the library offers."),
        "header": attr.string(mandatory = True, doc = "A file that is there if the package is."),
        "package": attr.string(mandatory = True, doc = "The Debian package to name when it is not."),
    },
    configure = True,
    doc = "A repository for a library of the system.",
    local = True,
)
