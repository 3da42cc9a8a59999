#!/bin/bash
# Is every line that the client writes in tests/mcp valid under the specification? validate.mjs says how that is checked.
#
#   [MCP_SCHEMA_DIR=folder] [BAZEL="bazel OPTION..."] tests/mcp/schema/run.sh
#
# Builds and runs the tests that hold a conversation, collects what the client wrote, and checks it: always against the
# schemas inside the MCP SDKs from npm, and with MCP_SCHEMA_DIR also against the specification's own JSON Schemas,
# which lie there as VERSION/schema.json. Needs bazel, node and npm. The npm packages are kept in a folder of everyone's
# reach: BULKHEAD_MCP_SCHEMA_CACHE, or /var/tmp/bulkhead-mcp-schema-UID. The last line is "N passed, N failed".
set -euo pipefail
umask 022

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
cache=${BULKHEAD_MCP_SCHEMA_CACHE:-/var/tmp/bulkhead-mcp-schema-$(id -u)}
read -r -a bazel <<< "${BAZEL:-bazel}"

for program in "${bazel[0]}" node npm; do
  command -v "$program" > /dev/null || {
    echo "tests/mcp/schema: $program is not installed; ./dev test sets everything up" >&2
    exit 1
  }
done

"$root/tests/npm_packages.sh" "$here/package.json" "$cache"

lines=$(mktemp -d)
trap 'rm -rf "$lines"' EXIT
cd "$root"
tests=(call_test handshake_test inbound_test lifetime_test)
"${bazel[@]}" build --ui_event_filters=-info,-debug --noshow_progress --show_result=0 "${tests[@]/#///tests/mcp:}"
built=$("${bazel[@]}" info --ui_event_filters=-info bazel-bin 2> /dev/null)/tests/mcp
for test in "${tests[@]}"; do
  BULKHEAD_MCP_LINES=$lines "$built/$test" > "$lines/$test.log" 2>&1 || {
    cat "$lines/$test.log"
    echo "tests/mcp/schema: $test failed, so that what it wrote says nothing" >&2
    exit 1
  }
done

node "$here/validate.mjs" "$cache" "$lines"/*.jsonl
