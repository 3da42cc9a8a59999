#!/bin/bash
# The JSON Schema of a policy and the parser judge alike: see schema_test.mjs. The last line is "N passed, N failed".
#
#   [JUDGE=path] tests/schema/run.sh
#
# Needs node and npm, and Bazel where JUDGE, the program //tests/schema:judge, is not given. The npm packages are kept in
# BULKHEAD_SCHEMA_CACHE, or /var/tmp/bulkhead-schema-UID, so that the second run needs no registry.
set -euo pipefail
umask 022

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
cache=${BULKHEAD_SCHEMA_CACHE:-/var/tmp/bulkhead-schema-$(id -u)}

"$root/tests/npm_packages.sh" "$here/package.json" "$cache"

if [[ -z ${JUDGE:-} ]]; then
  (cd "$root" && bazel build --ui_event_filters=-info //tests/schema:judge >&2)
  JUDGE=$(cd "$root" && bazel info --ui_event_filters=-info bazel-bin 2> /dev/null)/tests/schema/judge
fi
export JUDGE
exec timeout 120 node "$here/schema_test.mjs" "$root" "$cache"
