#!/bin/bash
# .ci/run adds up what ./dev test and ./dev test-windows print, and fails if either did not go well. Both are imitated.
set -uo pipefail
root=$(mktemp -d "$TEST_TMPDIR/ci.XXXXXX")
mkdir "$root/.ci"
cp "$TEST_SRCDIR/$TEST_WORKSPACE/.ci/run" "$root/.ci/run"
mistakes=0

# expect LAST_LINE CODE TEST TEST_CODE WINDOWS WINDOWS_CODE: what the two print last, and how they end.
expect() {
  local out code
  # shellcheck disable=SC2016  # for the shell of the imitation
  printf '#!/bin/bash\necho "0 passed, 9 failed"\ncase $1 in test) echo "%s"; exit %d;; test-windows) echo "%s"; exit %d;; esac\n' \
    "${@:3}" >"$root/dev"
  chmod +x "$root/dev"
  out=$("$root/.ci/run")
  code=$?
  [[ ${out##*$'\n'} == "$1" && $code == "$2" ]] && return
  mistakes=$((mistakes + 1))
  printf 'FAILED %s: the last line is "%s", the code %s\n' "$*" "${out##*$'\n'}" "$code"
}

expect '5 passed, 0 failed' 0 '2 passed, 0 failed' 0 '3 passed, 0 failed' 0
expect '5 passed, 1 failed' 1 '2 passed, 1 failed' 1 '3 passed, 0 failed' 0
expect '5 passed, 4 failed' 1 '2 passed, 0 failed' 0 '3 passed, 4 failed' 1
# One that is silent, and one that fails after all that it counted has passed.
expect '3 passed, 1 failed' 1 'killed' 0 '3 passed, 0 failed' 0
expect '2 passed, 1 failed' 1 '2 passed, 0 failed' 0 'failed: building' 1
expect '5 passed, 1 failed' 1 '2 passed, 0 failed' 1 '3 passed, 0 failed' 0
expect '5 passed, 1 failed' 1 '2 passed, 0 failed' 0 '3 passed, 0 failed' 1
[[ $mistakes == 0 ]]
