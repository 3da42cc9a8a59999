#!/bin/bash
# Runs a test of sessions where the kernel has no more than a lower tier needs: in_tier.sh DENY TIER TEST
set -euo pipefail
deny=$1 tier=$2 test=$3

case $tier in
  B) lacks=(--namespaces) ;;
  C) lacks=(--namespaces --landlock) ;;
  *) exit 64 ;;
esac
export BULKHEAD_TEST_TIER=$tier
exec "$deny" "${lacks[@]}" "$test"
