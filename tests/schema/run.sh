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

# A name in /var/tmp can be taken by anyone before us.
mkdir -p "$cache"
if [[ -L $cache || ! -O $cache ]]; then
  echo "tests/schema: $cache belongs to someone else; set BULKHEAD_SCHEMA_CACHE" >&2
  exit 1
fi

if ! cmp -s "$here/package.json" "$cache/installed.json"; then
  echo "installing the npm packages of tests/schema/package.json into $cache"
  cp "$here/package.json" "$cache/package.json"
  (
    cd "$cache"
    timeout 180 npm install --no-package-lock --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error
  )
  cp "$here/package.json" "$cache/installed.json"
fi

if [[ -z ${JUDGE:-} ]]; then
  (cd "$root" && bazel build --ui_event_filters=-info //tests/schema:judge >&2)
  JUDGE=$(cd "$root" && bazel info --ui_event_filters=-info bazel-bin 2> /dev/null)/tests/schema/judge
fi
export JUDGE
exec timeout 120 node "$here/schema_test.mjs" "$root" "$cache"
