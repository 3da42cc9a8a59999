#!/bin/bash
# Is every line that the client writes in the tests valid under the specification? validate.mjs says how that is checked.
#
#   [MCP_SCHEMA_DIR=folder] [BULKHEAD_MCP_LINES=folder] [BAZEL="bazel OPTION..."] tests/mcp/schema/run.sh
#
# Builds and runs the tests that hold a conversation, of Client, Session, Deliver and the command line, collects what the
# client wrote, with what is in BULKHEAD_MCP_LINES already (by tests/interop/run.sh), and checks it: always against the
# schemas inside the MCP SDKs from npm, and with MCP_SCHEMA_DIR also against the specification's own JSON Schemas, which
# lie there as VERSION/schema.json. Needs bazel, node and npm. The npm packages are kept in a folder of everyone's
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
# Without Bazel's sandbox, in which there would be no such folder.
"${bazel[@]}" test --ui_event_filters=-info,-debug --noshow_progress --show_result=0 --test_output=errors \
  --test_summary=none --spawn_strategy=local --nocache_test_results --test_env=BULKHEAD_MCP_LINES="$lines" \
  //tests/mcp:{call,handshake,inbound,lifetime}_test //tests/mcp/session/... //tests/cli:talk_test >&2 || {
  echo "tests/mcp/schema: a test failed, so that what it wrote says nothing" >&2
  exit 1
}

if [[ -d ${BULKHEAD_MCP_LINES:-} ]]; then cp "$BULKHEAD_MCP_LINES"/*.jsonl "$lines"; fi
node "$here/validate.mjs" "$cache" "$lines"/*.jsonl
