#!/bin/bash
# Runs a test as the ordinary user bulkhead-test. Only root can, and Bazel starts it:
#
#   bazel test --config=user //...
#
# What root's Bazel built lies in a folder that only root may enter. So the test and all its data are copied to a folder that
# everyone may read, and the variables by which a test finds its things are pointed there. They mean what they always mean
# (https://bazel.build/reference/test-encyclopedia); HOME is an empty folder of the user's own.
set -euo pipefail

user=${BULKHEAD_TEST_USER:-bulkhead-test}
copy=$(mktemp -d /var/tmp/bulkhead-user.XXXXXX)
trap 'rm -rf "$copy"' EXIT
trap 'kill -TERM "$child" 2>/dev/null' TERM INT

cp -RL --preserve=mode "$TEST_SRCDIR" "$copy/runfiles"
mkdir "$copy/home" "$copy/tmp"
chown "$user:" "$copy/home" "$copy/tmp"
chmod 755 "$copy"

# Bazel names the test by its path in the runfiles, which is the folder it starts tests in.
program=$copy/runfiles/$TEST_WORKSPACE/${1#"$TEST_SRCDIR/$TEST_WORKSPACE/"}
shift
cd "$copy/runfiles/$TEST_WORKSPACE"
# GoogleTest writes TEST_PREMATURE_EXIT_FILE without asking whether it can.
setpriv --reuid="$user" --regid="$user" --init-groups --inh-caps=-all env --unset=TEST_PREMATURE_EXIT_FILE \
  HOME="$copy/home" USER="$user" LOGNAME="$user" PWD="$PWD" \
  TEST_SRCDIR="$copy/runfiles" RUNFILES_DIR="$copy/runfiles" TEST_TMPDIR="$copy/tmp" \
  XML_OUTPUT_FILE="$copy/tmp/test.xml" \
  "$program" "$@" <&0 &
child=$!
status=0
wait "$child" || status=$?

if [[ -f $copy/tmp/test.xml ]]; then
  cp "$copy/tmp/test.xml" "$XML_OUTPUT_FILE"
fi
exit "$status"
