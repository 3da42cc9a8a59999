#!/bin/bash
# Real MCP servers and real hosts, with and without Bulkhead: see interop.py for what is tested.
#
#   [BULKHEAD=path] [DEMO_SERVER=path] [BAZEL="bazel OPTION..."] tests/interop/run.sh [WORD...]
#
# Only the cases whose name holds every WORD. What our client writes is kept in BULKHEAD_MCP_LINES, if that names a
# folder, for tests/mcp/schema. Needs bazel, node, npm, python3 and a C++ compiler. The npm packages of package.json, and npm's own caches, are kept in a
# folder of everyone's reach, so that the second run needs no registry for them: BULKHEAD_INTEROP_CACHE, or
# /var/tmp/bulkhead-interop-UID. Everything else is in a temporary folder that goes away.
#
# Started as root, every case runs as root and as the user BULKHEAD_TEST_USER (bulkhead-test), who is made for the time
# of the test if he doesn't exist. Otherwise every case runs as whoever started it.
set -euo pipefail
umask 022

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
export PYTHONDONTWRITEBYTECODE=1
export BULKHEAD=${BULKHEAD:-$root/bin/bulkhead}
export DEMO_SERVER=${DEMO_SERVER:-$root/bin/demo-server}
export BULKHEAD_INTEROP_CACHE=${BULKHEAD_INTEROP_CACHE:-/var/tmp/bulkhead-interop-$(id -u)}
export BULKHEAD_TEST_USER=${BULKHEAD_TEST_USER:-bulkhead-test}

read -r -a bazel <<< "${BAZEL:-bazel}"
for program in "${bazel[0]}" node npm npx python3; do
  command -v "$program" > /dev/null || {
    echo "tests/interop: $program is not installed; ./dev test sets everything up" >&2
    exit 1
  }
done
for program in "$BULKHEAD" "$DEMO_SERVER"; do
  [[ -x $program ]] || {
    echo "tests/interop: $program is missing; run ./dev build first" >&2
    exit 1
  }
done

cd "$root"
"${bazel[@]}" build --ui_event_filters=-info,-debug --noshow_progress --show_result=0 //tests/interop:session_talk
SESSION_TALK=$("${bazel[@]}" info --ui_event_filters=-info bazel-bin 2> /dev/null)/tests/interop/session_talk
export SESSION_TALK

# A name in /var/tmp can be taken by anyone before us.
mkdir -p "$BULKHEAD_INTEROP_CACHE"
if [[ -L $BULKHEAD_INTEROP_CACHE || ! -O $BULKHEAD_INTEROP_CACHE ]]; then
  echo "tests/interop: $BULKHEAD_INTEROP_CACHE belongs to someone else; set BULKHEAD_INTEROP_CACHE" >&2
  exit 1
fi

# The tests give npm other home folders, so that what ~/.npmrc says about the registry has to be passed on.
for key in registry cafile; do
  value=$(npm config get "$key")
  if [[ $value != null && $value != undefined ]]; then export "npm_config_$key=$value"; fi
done

app=$BULKHEAD_INTEROP_CACHE/app
"$root/tests/npm_packages.sh" "$here/package.json" "$app"

# build SOURCE PROGRAM [OPTION...], if it is newer.
build() {
  [[ ! $1 -nt $BULKHEAD_INTEROP_CACHE/$2 ]] || "${CXX:-c++}" -std=c++17 -O1 "${@:3}" "$1" -o "$BULKHEAD_INTEROP_CACHE/$2"
}
build "$here/../programs/deny.cc" deny -static
build "$here/usable/threads.cc" threads -pthread

# An npx that is killed while it installs leaves a half package behind, which it takes for a whole one ever after.
unfinished=$BULKHEAD_INTEROP_CACHE/unfinished
if [[ -e $unfinished ]]; then rm -rf "$BULKHEAD_INTEROP_CACHE"/home-* "$BULKHEAD_INTEROP_CACHE"/cache-root-*; fi
touch "$unfinished"

made_user=
interop=
finish() {
  if [[ -n $interop ]]; then kill "$interop" 2> /dev/null || true; fi
  wait
  if [[ -n $made_user ]]; then userdel "$BULKHEAD_TEST_USER"; fi
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
if [[ $EUID -eq 0 ]] && ! id -u "$BULKHEAD_TEST_USER" > /dev/null 2>&1; then
  useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin "$BULKHEAD_TEST_USER"
  made_user=yes
fi

timeout --kill-after=10 900 python3 "$here/interop.py" "$@" &
interop=$!
wait "$interop"
rm "$unfinished"
