#!/bin/bash
# Shows that Bazel itself refuses a dependency against the layering, by the visibility of the main targets. ./dev test runs this;
# a test inside Bazel can't ask Bazel. The last line is "N passed, N failed".
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# Packages that are not in the source tree, found through --package_path as if they were.
extra=$(mktemp -d)
trap 'rm -rf "$extra"' EXIT

# analyze FOLDER LABEL: whether Bazel accepts a library in FOLDER that depends on LABEL; what it says is in $said.
analyze() {
  mkdir -p "$extra/$1/layering_probe"
  printf 'load("@rules_cc//cc:defs.bzl", "cc_library")\n\ncc_library(\n    name = "probe",\n    deps = ["%s"],\n)\n' "$2" \
    >"$extra/$1/layering_probe/BUILD.bazel"
  said=$(bazel build --nobuild --package_path="%workspace%:$extra" "//$1/layering_probe:probe" 2>&1)
}

passed=0
failed=0

report() {
  if [[ $1 == good ]]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'FAIL %s\n%s\n' "$2" "$said"
  fi
}

accepts() {
  if analyze "$1" "$2"; then report good; else report bad "$1 may depend on $2"; fi
}

refuses() {
  if ! analyze "$1" "$2" && [[ $said == *"is not visible from"* ]]; then
    report good
  else
    report bad "$1 must not depend on $2"
  fi
}

# Control first: what is allowed works, so that a refusal is for the reason given.
accepts launcher //policy
accepts cli //policy
accepts cli //launcher
refuses policy //launcher
refuses jsonrpc //launcher
refuses jsonrpc //cli:request
refuses launcher //cli:request
refuses mcp //launcher/seccomp:filters

printf '%d passed, %d failed\n' "$passed" "$failed"
[[ $failed -eq 0 ]]
