#!/bin/bash
# Run by "./dev bench [ROUNDS]": the benchmarks, one after the other, and the memory of our own processes.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-100}
bulkhead=${BULKHEAD:-$PWD/bin/bulkhead}

# In a place that the server's user can reach when root runs this (Bazel's folders lie in root's home), and that bwrap
# shows (its /tmp is its own).
folder=$(mktemp -d -p /var/tmp)
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder"
install -m 755 "$BENCH_BIN/tiny" "$folder/tiny"

echo "== launching"
"$BENCH_BIN/launch_bench" "$bulkhead" "$folder/tiny" "$rounds" 10
"$BENCH_BIN/launch_bench" "$bulkhead" "$folder/tiny" "$rounds" 2048

echo "== messages"
"$BENCH_BIN/messages/message_bench" "$BENCH_BIN/messages/echo"

echo "== sessions"
modules=${BULKHEAD_BENCH_CACHE:-/var/tmp/bulkhead-bench-$(id -u)}
tests/npm_packages.sh bench/session/package.json "$modules"
install -m 755 "$BENCH_BIN/session/echo_server" "$folder/echo_server"
"$BENCH_BIN/session/session_bench" "$folder/echo_server" bench/session/sdk_client.mjs "$modules"

echo "== memory of keeper and jail init beside a server"
coproc SERVER { exec "$bulkhead" run /bin/sh -c 'echo up; exec cat'; }
keeper=$SERVER_PID
read -r _ <&"${SERVER[0]}"
for pid in $keeper $(cat "/proc/$keeper/task/$keeper/children"); do
  printf '  %-16s %4d KiB PSS\n' "$(cat "/proc/$pid/comm")" "$(awk '/^Pss:/ { print $2 }' "/proc/$pid/smaps_rollup")"
done
echo "  Both show the same pages: they share one address space, so together they take what one line says."
eval "exec ${SERVER[1]}>&-"
wait "$keeper"
