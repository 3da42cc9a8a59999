"""Everything that the build needs and that is not ours, for a Bazel that reads WORKSPACE."""

load("//third_party:bazel4.bzl", "bazel4_repositories")
load("//third_party:system.bzl", "system_library")
load("//third_party/abseil:abseil.bzl", "system_abseil")

# name of the repository: (its folder here, a header of it, its Debian package)
_LIBRARIES = {
    "asio": ("asio", "/usr/include/asio.hpp", "libasio-dev"),
    "com_github_google_benchmark": ("benchmark", "/usr/include/benchmark/benchmark.h", "libbenchmark-dev"),
    "com_google_googletest": ("googletest", "/usr/include/gmock/gmock.h", "libgmock-dev"),
    "libseccomp": ("libseccomp", "/usr/include/seccomp.h", "libseccomp-dev"),
    "libsodium": ("libsodium", "/usr/include/sodium.h", "libsodium-dev"),
    "nlohmann_json": ("nlohmann_json", "/usr/include/nlohmann/json.hpp", "nlohmann-json3-dev"),
}

def bulkhead_repositories():
    """Declares all of them; a project that uses Bulkhead calls this from its own WORKSPACE."""
    bazel4_repositories()
    system_abseil(name = "com_google_absl")
    for name, (folder, header, package) in _LIBRARIES.items():
        system_library(
            name = name,
            build_file = Label("//third_party/%s:system.BUILD" % folder),
            header = header,
            package = package,
        )
