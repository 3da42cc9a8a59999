#!/bin/bash
# Shows what Bulkhead takes away from an MCP server: each call is made without Bulkhead first, where it works, and then
# with it, where it must not. `./dev demo` runs this.
#
#   BULKHEAD=path DEMO_SERVER=path examples/demo.sh
#
# Needs bash, coreutils and python3; the last part needs npx and the npm registry and is left out without npx. Leaves
# nothing behind. Exit code 0 only if everything was as this script says.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
BULKHEAD=$(realpath "${BULKHEAD:-$here/../bin/bulkhead}")
DEMO_SERVER=$(realpath "${DEMO_SERVER:-$here/../bin/demo-server}")

folder=$(mktemp -d "${TMPDIR:-/tmp}/bulkhead-demo.XXXXXX")
trap 'cd / && chmod -R u+rwX "$folder" && rm -rf "$folder"' EXIT
chmod 755 "$folder"

# The server as everyone can run it, wherever the checkout is.
install -m 755 "$DEMO_SERVER" "$folder/demo-server"

# The user of this story: a home with a key in it, and a token in the environment.
export HOME=$folder/home XDG_CACHE_HOME=$folder/cache
mkdir -p "$HOME/.ssh" "$folder/data" "$folder/project"
echo "the-private-key-of-this-demo" > "$HOME/.ssh/id_test"
echo "Hello from a file that the server was given." > "$folder/data/hello.txt"
export DEMO_API_TOKEN=the-token-of-this-demo
cd "$folder/project" # the workspace, which a server may read

mistakes=0

fail() {
  echo "  NOT AS CLAIMED: $1"
  mistakes=$((mistakes + 1))
}

# host REQUESTS COMMAND...: the answers, one a line.
host() {
  python3 "$here/mcp_host.py" "$@" 2> "$folder/stderr" || {
    cat "$folder/stderr"
    return 1
  }
}

# expect TITLE PATTERN TEXT: shows the answer beside its title, and that it is what it should be.
expect() {
  printf '  %-18s %.100s\n' "$1" "$3"
  # shellcheck disable=SC2053 # $2 is a pattern
  [[ $3 == $2 ]] || fail "\"$1\" should have answered \"$2\""
}

call() { # call NAME ARGUMENTS: one request, for host
  echo "[[\"tools/call\", {\"name\": \"$1\", \"arguments\": $2}]]"
}

# The strongest tier that this machine gives. What is weaker than A has to be asked for.
jail=("$BULKHEAD" run)
if ! refusal=$("$BULKHEAD" run "$folder/demo-server" < /dev/null 2>&1); then
  jail+=(--require B)
  "${jail[@]}" "$folder/demo-server" < /dev/null || {
    echo "demo: FAILED: Bulkhead can't start the demo server here"
    exit 1
  }
  echo "This machine can't give tier A, so this is tier B. Bulkhead said:"
  echo "  $refusal"
  echo
fi

echo "1. A private key in the user's home, ~/.ssh/id_test"
request=$(call read_file "{\"path\": \"$HOME/.ssh/id_test\"}")
expect "without Bulkhead:" "ok the-private-key-of-this-demo" "$(host "$request" "$folder/demo-server")"
expect "with Bulkhead:" "error *: @(No such file or directory|Permission denied)" \
  "$(host "$request" "${jail[@]}" "$folder/demo-server")"

echo "2. A token in the environment, \$DEMO_API_TOKEN"
request=$(call env '{"name": "DEMO_API_TOKEN"}')
expect "without Bulkhead:" "ok the-token-of-this-demo" "$(host "$request" "$folder/demo-server")"
expect "with Bulkhead:" "error DEMO_API_TOKEN is not set" "$(host "$request" "${jail[@]}" "$folder/demo-server")"

echo "3. A process left in the background, after the host was killed"
word=86400.$$$RANDOM # an argument of sleep that no other process has
request=$(call spawn "{\"command\": [\"sleep\", \"$word\"], \"background\": true}")
expect "without Bulkhead:" "left 1" "$(host --outlive "$word" "$request" "$folder/demo-server" | tail -n 1)"
expect "with Bulkhead:" "left 0" \
  "$(host --outlive "$word" "$request" "${jail[@]}" "$folder/demo-server" | tail -n 1)"

echo "4. A server from npm, @modelcontextprotocol/server-filesystem, given one folder"
if command -v npx > /dev/null; then
  # Started as root in tier B, nothing can be shown as the server's own: an account is named, and owns the folder.
  if [[ $EUID -eq 0 && ${#jail[@]} -gt 2 ]]; then
    chown nobody "$folder/data"
    echo '{"version": 1, "extends": ["preset:npx"], "require": "B", "user": "nobody"}' > "$folder/npx.json"
    jail+=(--policy "$folder/npx.json")
  fi
  requests="[[\"tools/list\", {}],
    [\"tools/call\", {\"name\": \"read_text_file\", \"arguments\": {\"path\": \"$folder/data/hello.txt\"}}]]"
  jail+=(--rw "$folder/data")
  answers=$(host "$requests" "${jail[@]}" npx -y @modelcontextprotocol/server-filesystem "$folder/data") ||
    fail "the server should have answered, not: $answers"
  expect "tools/list:" "ok read_file, *" "$(sed -n 1p <<< "$answers")"
  expect "read_text_file:" "ok Hello from a file*" "$(sed -n 2p <<< "$answers")"
else
  echo "  left out: npx is not installed"
fi

echo
if [[ $mistakes -ne 0 ]]; then
  echo "demo: FAILED: $mistakes answers were not as claimed"
  exit 1
fi
echo "demo: OK: the same calls work without Bulkhead and not with it, and no process is left"
