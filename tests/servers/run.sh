#!/bin/bash
# The policies of docs/servers.md with the servers they are for: see servers_test.py. The last line is "N passed, N failed".
#
#   [BULKHEAD=path] tests/servers/run.sh
#
# Needs node, npm, python3 and git. The npm packages are those of tests/interop, kept in the same folder.
set -euo pipefail
umask 022

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
cache=${BULKHEAD_INTEROP_CACHE:-/var/tmp/bulkhead-interop-$(id -u)}
export PYTHONDONTWRITEBYTECODE=1
export BULKHEAD=${BULKHEAD:-$root/bin/bulkhead}

[[ -x $BULKHEAD ]] || {
  echo "tests/servers: $BULKHEAD is missing; run ./dev build first" >&2
  exit 1
}
"$root/tests/npm_packages.sh" "$root/tests/interop/package.json" "$cache/app"
exec timeout --kill-after=10 180 python3 "$here/servers_test.py" "$cache/app"
