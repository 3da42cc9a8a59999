#!/bin/bash
# Attacks against the jail, each tried without it first: see escape.py.
#
#   [BULKHEAD=path] tests/escape/run.sh [--matrix] [WORD...]     only the attacks whose name holds every WORD
#
# Needs python3 and a C++ compiler; for --matrix also bubblewrap and firejail, if they are to be compared. Started as root,
# everything is tried as root and as the user BULKHEAD_TEST_USER (bulkhead-test), who is made for the time of the test if he
# doesn't exist.
set -euo pipefail
umask 022
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bulkhead=${BULKHEAD:-$here/../../bin/bulkhead}
export PYTHONDONTWRITEBYTECODE=1 BULKHEAD_TEST_USER=${BULKHEAD_TEST_USER:-bulkhead-test}
[[ -x $bulkhead ]] || {
  echo "tests/escape: $bulkhead is missing; run ./dev build first" >&2
  exit 1
}

# Where every user can start them; firejail lets them start nothing in /var/tmp.
if [[ $EUID -eq 0 ]]; then tools=/opt; else tools=/var/tmp; fi
BULKHEAD_ESCAPE_TOOLS=$(mktemp -d -p "$tools")
export BULKHEAD_ESCAPE_TOOLS
made_user=
finish() {
  rm -rf "$BULKHEAD_ESCAPE_TOOLS"
  if [[ -n $made_user ]]; then userdel "$BULKHEAD_TEST_USER"; fi
}
trap finish EXIT
chmod 755 "$BULKHEAD_ESCAPE_TOOLS"
install -m 755 "$bulkhead" "$BULKHEAD_ESCAPE_TOOLS/bulkhead"
"${CXX:-c++}" -std=c++17 -O1 -static "$here"/*.cc -o "$BULKHEAD_ESCAPE_TOOLS/attacker"
"${CXX:-c++}" -std=c++17 -O1 -static "$here/../programs/deny.cc" -o "$BULKHEAD_ESCAPE_TOOLS/deny"
if [[ $EUID -eq 0 ]] && ! id -u "$BULKHEAD_TEST_USER" > /dev/null 2>&1; then
  useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin "$BULKHEAD_TEST_USER"
  made_user=yes
fi
timeout --kill-after=10 600 python3 "$here/escape.py" "$@"
