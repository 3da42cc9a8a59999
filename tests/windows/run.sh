#!/bin/bash
# run.sh BULKHEAD_EXE PROBE_EXE DEMO_SERVER_EXE: what bulkhead.exe does, tried under wine in a folder of its own. The last line is "N passed, N failed".
set -uo pipefail
bulkhead=$(readlink -f "$1")
probe_file=$(readlink -f "$2")
demo_file=$(readlink -f "$3")
folder=$(mktemp -d)
export WINEPREFIX=$folder/wine WINEDEBUG=-all WINEDLLOVERRIDES=mscoree,mshtml,winemenubuilder.exe=
trap 'wineserver --kill >/dev/null 2>&1; rm -rf "$folder"' EXIT
mkdir "$folder/work"
cd "$folder/work" || exit 1
passed=0 failed=0

bh() { timeout 60 wine "$bulkhead" "$@" 2>&1 </dev/null; }

# expect NAME CODE WORDS COMMAND...: COMMAND ends with CODE, and its output has WORDS.
expect() {
  local name=$1 code=$2 words=$3 out got
  shift 3
  out=$("$@")
  got=$?
  if [[ $got == "$code" && $out == *"$words"* ]]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'FAILED %s: code %s, expected %s; expected to see: %s\n%s\n' "$name" "$got" "$code" "$words" "$out"
  fi
}

# On a busy machine the first start takes minutes. A process that stays saves the others the start of Windows' own.
timeout 600 wine wineboot --init >/dev/null 2>&1
cp "$probe_file" probe.exe
wine probe.exe stay >/dev/null 2>&1 </dev/null &

printf '{"version": 1, "command": {"allow": ["node"]}}' >good.json
printf '{"version": 1, "filesystem": {"ro": ["data"]}}' >bad.json
printf '{"version": 1,\r\n "colour": 1}\r\n' >unknown.json
cp good.json 'Größe 水.json'

expect "a policy is checked" 0 "good.json: ok" bh check good.json
expect "a mistake has its line and column" 1 'bad.json:1:38: /filesystem/ro/0: "data" is not absolute' bh check bad.json
expect "lines may end as Windows ends them" 1 'unknown.json:2:' bh check unknown.json
expect "a name that is not ASCII is found" 0 'Größe 水.json": ok' bh check 'Größe 水.json'
expect "a file that is missing is named" 1 'no.json' bh check no.json
expect "the presets are listed" 0 "npx" bh presets
expect "a preset is printed" 0 '"version": 1' bh presets node
carriage_returns() { bh presets node | grep -c $'\r'; }
expect "no line end is changed" 1 "0" carriage_returns
expect "a wrong flag is a mistake of usage" 64 "see: bulkhead" bh check --no-such-flag

# Starting a server. PROBE is its full name, as Windows says it.
probe="Z:${folder//\//\\}\\work\\probe.exe"
printf '{"version": 1, "require": "C", "network": {"mode": "host"}}' >c.json
printf '{"version": 1, "require": "C", "network": {"mode": "host"}, "command": {"batch_files": "checked"}}' >batch.json
windows_bulkhead=$(sed 's|/|\\|g; s|^|Z:|' <<<"$bulkhead")
outside() { timeout 60 wine probe.exe "$@" 2>&1 </dev/null; }
run() { bh run --policy c.json "$@"; }
# The same, with nothing around what it prints.
exactly() { printf '<%s>' "$("$@" | tr -d '\r')"; }

# shellcheck disable=SC1003  # backslashes that are meant
expect "arguments arrive exactly" 0 '<[a b][][q"x][c:\d\][e\\"f][\\][ä 水][%PATH%][*]>' \
  exactly run "$probe" argv 'a b' '' 'q"x' 'c:\d\' 'e\\"f' '\\' 'ä 水' '%PATH%' '*'
# Half of a pair of surrogates has no UTF-8: 0xD8 is 216, and U+FFFD would be another text.
expect "control: half of a pair is an argument" 216 "" outside unpaired "$probe" unit @
expect "it is refused, not replaced" 64 "argument 2 is not UTF-8" \
  outside unpaired "$windows_bulkhead" run --policy c.json "$probe" unit @
# The golden lines of tests/policy/windows_command_test.cc, as CreateProcessW gave them to a program.
golden() {
  local line=$1
  shift
  expect "the golden line: $line" 0 "<\"$probe\" line $line>" exactly run "$probe" line "$@"
}
golden 'server.js --port=1' server.js --port=1
golden '"x  y" "" "\""' 'x  y' '' '"'
# shellcheck disable=SC1003  # backslashes that are meant
golden '"C:\a b\\" C:\a\' 'C:\a b\' 'C:\a\'
golden $'"tab\there" "line\nbreak"' $'tab\there' $'line\nbreak'
golden 'a&calc %PATH% ^ !x! | <>' 'a&calc' '%PATH%' '^' '!x!' '|' '<>'
golden 'é' 'é'
expect "the code is the server's" 7 "" run "$probe" exit 7
expect "a large code is kept" 255 "" run "$probe" exit 255
export SECRET_TOKEN=x
expect "control: the host's variables are inherited" 0 "SECRET_TOKEN" outside environ
# wine adds its own.
names() { run "$probe" environ | tr ' ' '\n' | grep -vE '^(WINE.*|\r?)$' | tr '\n' ' '; }
expect "the environment is the policy's" 0 \
  "APPDATA ComSpec HOMEDRIVE HOMEPATH LOCALAPPDATA PATH PATHEXT PROCESSOR_ARCHITECTURE ProgramFiles SystemDrive SystemRoot TEMP USERNAME USERPROFILE" \
  names
secrets() { run "$probe" environ | grep -c SECRET; }
expect "and nothing more" 1 "0" secrets
expect "sockets work, for which SystemRoot has to pass" 0 "socket" run "$probe" socket

# What would be started.
explain() { bh explain --policy c.json "$@"; }
explained() { local words=$1; shift; explain "$@" | tr -d '\r' | tr -s ' ' | grep -F -- "$words"; }
# shellcheck disable=SC1003  # backslashes that are meant
expect "explain shows the line that Windows is given" 0 "line \"$probe\" argv \"a b\" \"\" \"q\\\"x\" c:\\d\\" \
  explained " line " "$probe" argv 'a b' '' 'q"x' 'c:\d\'
expect "and the program" 0 "program" explained probe.exe "$probe"
expect "and where a variable is from" 0 "PATH from the host (default)" explained " PATH " "$probe"
expect "and never its value" 1 "" explained "system32" "$probe"
expect "and that files are not kept from it" 0 "tier C keeps the server from no others" explained "files (" "$probe"
expect "and that there is no SIGTERM" 0 "this system has no SIGTERM" explained term_grace "$probe"
expect "and no filter" 0 "none: there is no filter here" explained "no filter" "$probe"
expect "and what is not enforced" 0 " of its own, no AppContainer" explained AppContainer "$probe"
expect "and the steps" 0 "put it into its job" explained "job object" -v "$probe"
json_line() { explain --json "$@" | tr -d '\r' | python3 -c 'import json, sys; print(json.load(sys.stdin)["command_line"])'; }
expect "explain as JSON has the line" 0 "\"$probe\" \"a b\"" json_line "$probe" 'a b'

# What the server may not have of the user's, whoever starts it: wine's user is an administrator with every privilege.
expect "control: the user has privileges" 0 "SeDebugPrivilege" outside token
expect "control: and is an administrator" 0 " administrator" outside token
expect "the server is not, and has none" 0 "<SeChangeNotifyPrivilege no administrator>" exactly run "$probe" token

# Paths are Windows'. Here they all lie on Z:, which is the root of the system.
mkdir data other
here="Z:${folder//\//\\}\\work"
json_here=${here//\\/\\\\}
printf '{"version": 1, "require": "C", "network": {"mode": "host"}, %s}' "\"filesystem\": {\"ro\": [\"$json_here\\\\data\"]}" >ro.json
printf '{"version": 1, "require": "C", "network": {"mode": "host"}, %s}' "\"filesystem\": {\"ro\": [\"$json_here\\\\no\"]}" >no-such.json
printf '{"version": 1, "require": "C", "network": {"mode": "host"}, "filesystem": {"ro": ["/data"]}}' >no-drive.json
printf '{"version": 1, "require": "C", "network": {"mode": "host"}, "filesystem": {"ro": ["C:\\\\data\\\\NUL.txt"]}}' >device.json
printf '{"version": 1, "require": "C", "network": {"mode": "host"}, "cwd": {"allow": ["%s"]}}' "$json_here\\\\data" >cwd.json
expect "a path with a drive is a grant" 0 "" bh run --policy ro.json "$probe" exit 0
expect "and is explained" 0 'work\\data' bh explain --policy ro.json "$probe"
expect "and must be there" 126 "cannot grant" bh run --policy no-such.json "$probe" exit 0
expect "a path without a drive is a mistake" 1 "does not begin with a drive" bh check no-drive.json
expect "and so is a device" 1 "for a device" bh check device.json
expect "a flag's path may be relative" 0 "" bh run --policy c.json --rw '..\work\data' "$probe" exit 0
expect "a folder that is allowed" 0 "" bh run --policy cwd.json --cwd "$here\\data" "$probe" exit 0
expect "another is not" 126 "is not allowed" bh run --policy cwd.json --cwd "$here\\other" "$probe" exit 0
expect "nor one that leads out of it" 126 "is not allowed" bh run --policy cwd.json --cwd "$here\\data\\..\\other" "$probe" exit 0
for preset in node npx python uvx; do  # they limit processes, which wine doesn't
  expect "the preset $preset can be used" 0 "processes in the job" bh explain --preset "$preset" --require C --network host "$probe"
done
printf '{"version": 1, "extends": ["base.json"]}' >data/extends.json
cp c.json data/base.json
printf '{"version": 1, "colour": 1}' >base.json
expect "a policy extends a file of its own folder" 0 "" bh run --policy "$here\\data\\extends.json" "$probe" exit 0

# stderr in a file.
stderr_to() {
  printf '{"version": 1, "require": "C", "network": {"mode": "host"}, "stderr": {"file": "%s"}}' "$json_here\\\\$1" >stderr.json
  bh run --policy stderr.json "$probe" complain "said$1" 3
}
expect "stderr goes to a file" 3 "" stderr_to data.log
expect "and is appended to it" 3 "" stderr_to data.log
expect "both times" 0 "<saiddata.logsaiddata.log>" exactly cat data.log
printf 'theirs' >other/log
ln -s other/log link.log
ln -s other link
expect "a link is not followed" 125 "there is a link" stderr_to link.log
expect "nor a folder's" 125 "there is a link" stderr_to 'link\\log'
expect "nor one to a file that is not there" 125 "there is a link" stderr_to 'link\\new'
expect "what it leads to is as it was" 0 "<theirs>" exactly cat other/log
expect "and nothing was made" 1 "" test -e other/new
expect "a folder is no file" 125 "cannot append" stderr_to data
expect "a stream is none" 125 "for a stream" stderr_to data.log:s
expect "--stderr does the same" 4 "" bh run --policy c.json --stderr flag.log "$probe" complain flagged 4
expect "in the current folder" 0 "<flagged>" exactly cat flag.log

# Limits of the job: enforced, or refused where the system keeps none, as wine does.
printf '{"version": 1, "require": "C", "network": {"mode": "host"}, "limits": {"memory": "64MiB"}}' >memory.json
printf '{"version": 1, "require": "C", "network": {"mode": "host"}, "limits": {"processes": 1}}' >processes.json
printf '{"version": 1, "require": "C", "network": {"mode": "host"}, "limits": {"file_size": "1MiB"}}' >file-size.json
printf '{"version": 1, "require": "C", "network": {"mode": "host"}, "limits": {"cpu_time": "1s"}}' >cpu.json
limited() {
  local out
  out=$(bh run --policy "$@")
  [[ $out == *"this system does not keep the limit"* || $out == refused* || $out == "" ]] || { echo "$out"; return 1; }
}
expect "control: memory without a limit" 0 "committed" run "$probe" commit 200
expect "memory is limited or refused" 0 "" limited memory.json "$probe" commit 200
expect "control: processes without a limit" 0 "started" run "$probe" started
expect "processes are limited or refused" 0 "" limited processes.json "$probe" started
expect "control: time without a limit" 0 "burnt" run "$probe" burn 2
expect "time is limited or refused" 0 "" limited cpu.json "$probe" burn 2
expect "the time is explained" 0 "1 s of time of all processes" bh explain --policy cpu.json "$probe"
# What every preset limits, taken out as the message and the documentation say.
printf '{"version": 1, "extends": ["preset:python"], "require": "C", "network": {"mode": "host"},
  "without": {"limits": {"processes": 512}}}' >without.json
preset_runs() {
  local out
  out=$(bh run --preset python --require C --network host "$probe" exit 0)
  [[ $out == *'what a preset says of it by "without"'* || $out == "" ]] || { echo "$out"; return 1; }
}
expect "a preset runs, or says what to take out" 0 "" preset_runs
expect "and runs without it" 0 "" bh run --policy without.json "$probe" exit 0
expect "the limits are explained" 0 "memory of the whole job: 67108864 bytes" bh explain --policy memory.json "$probe"
expect "what a job has no limit for is refused" 125 "/limits/file_size" bh run --policy file-size.json "$probe" exit 0

# Not read to its end, which a process that lives on would keep away until it is too late to find it.
unread() { "$@" >unread.log 2>&1; }

expect "control: an inheritable handle is inherited" 0 "inherited" outside with-handle "$probe" handle @
expect "only stdio is inherited" 0 "not inherited" \
  outside with-handle "$windows_bulkhead" run --policy c.json "$probe" handle @

expect "control: a detached process outlives its parent" 0 "" unread outside tree outside.lock
expect "control: it still holds the file" 0 "held" outside is-held outside.lock
expect "a tree ends with its server" 0 "" unread run "$probe" tree inside.lock
expect "the file is free" 0 "free" outside is-held inside.lock
expect "the launcher is terminated" 0 "" unread outside kill-launcher killed.lock \
  "$windows_bulkhead" run --policy c.json "$probe" hold killed.lock
expect "so the server is, too" 0 "free" outside is-held killed.lock
expect "control: a process may ask to be in no job" 0 "" unread outside break-away away.lock
expect "in a job of ours it may not" 3 "cannot start" run "$probe" break-away broken.lock
expect "and is not there" 1 "" test -e broken.lock
# A server whose child is detached, and has a detached child itself. The last one is started when the others are there.
expect "control: a detached server is terminated" 0 "" unread outside kill-launcher alone.lock \
  "$probe" serve left.lock "$probe" hold alone.lock
expect "control: what it started lives on" 0 "held" outside is-held left.lock
tree_of() { echo "$probe" serve "$1-child.lock" "$probe" serve "$1-grandchild.lock" "$probe" hold "$1.lock"; }
# gone LOCK...: all of them are free.
gone() {
  local lock
  for lock; do [[ $(outside is-held "$lock") == free* ]] || { echo "held: $lock"; return 1; }; done
}
# shellcheck disable=SC2046  # one word each
expect "the launcher of a tree is terminated" 0 "" unread outside kill-launcher deep.lock \
  "$windows_bulkhead" run --policy c.json $(tree_of deep)
expect "so all of the tree is gone" 0 "" gone deep.lock deep-child.lock deep-grandchild.lock
# shellcheck disable=SC2046  # one word each
expect "the host of a session with a tree is terminated" 0 "" unread outside kill-launcher session.lock \
  "$windows_bulkhead" call --tool echo --policy c.json $(tree_of session)
expect "so all of that tree is gone" 0 "" gone session.lock session-child.lock session-grandchild.lock

# Talking to a server.
cp "$demo_file" demo.exe
demo="Z:${folder//\//\\}\\work\\demo.exe"
printf '{"version": 1, "require": "C", "network": {"mode": "host"},
  "timeouts": {"probe": "500ms", "start": "1s"}}' >quick.json
printf '{"version": 1, "require": "C", "network": {"mode": "host"}, "timeouts": {"stdin_grace": "1s"}}' >grace.json
long=$(printf 'x%.0s' {1..20000})
head -c 700000 /dev/zero | tr '\0' y >large.txt
# A host that starts bulkhead.exe and is terminated itself; the server doesn't look at its stdin.
expect "the host of run is terminated" 0 "" unread outside kill-launcher hosted.lock "$probe" linger never.lock \
  "$windows_bulkhead" run --policy grace.json "$probe" serve hosted-child.lock "$probe" hold hosted.lock
expect "so the server and its child are gone after the grace" 0 "" gone hosted.lock hosted-child.lock
call() { bh call --policy c.json "$@"; }
# What a host sends through run, whose stdio is the server's own.
printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"host","version":"1"}}}' \
  '{"jsonrpc":"2.0","method":"notifications/initialized"}' '{"jsonrpc":"2.0","id":2,"method":"tools/list"}' \
  '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"text":"ä 水"}}}' >messages.txt
# Fails where a line is not an answer; ends with the server's code.
piped() {
  timeout 60 wine "$bulkhead" run --policy c.json "$demo" <messages.txt >answers.txt || return
  python3 -c '
import json
first, tools, echo = [json.loads(line) for line in open("answers.txt", "rb")]
print(first["result"]["serverInfo"]["name"], *[tool["name"] for tool in tools["result"]["tools"]], echo["result"]["content"][0]["text"])'
}
expect "a server behind run answers, and ends with its stdin" 0 "bulkhead-demo-server echo read_file env ä 水" piped
expect "explain shows it" 0 "line \"$demo\"" explained " line " "$demo"
expect "the tools of a server" 0 "Answers with the text it was given." bh tools --policy c.json "$demo"
# shellcheck disable=SC1003  # backslashes that are meant
expect "a call" 0 'ä "水" \' call --tool echo --arg 'text=ä "水" \' "$demo"
expect "a call with much to write" 0 "$long" call --tool echo --arg "text=$long" "$demo"
size_of_answer() { call --tool read_file --arg path=large.txt "$demo" | tr -cd y | wc -c; }
expect "a call with much to read" 0 "700000" size_of_answer
expect "a call whose tool fails" 1 "is not set" call --tool env --arg name=SECRET_TOKEN "$demo"
expect "a request" 0 '"name"' bh request --policy c.json --method tools/list --json "$demo"
expect "a server that ends says why" 125 "exited with code 3" call --tool echo "$probe" complain "no such thing" 3
expect "and its stderr is shown" 125 "no such thing" call --tool echo "$probe" complain "no such thing" 3
expect "a server that doesn't answer" 125 "is running" bh call --tool echo --policy quick.json "$probe" hold silent.lock
expect "is gone" 0 "free" outside is-held silent.lock
expect "a server is first told by the end of its stdin" 0 "here" \
  bh call --tool echo --arg text=here --policy grace.json "$probe" linger lingers.lock "$demo"
expect "has its grace" 0 "" test -e lingers.lock
expect "and then is terminated" 0 "free" outside is-held lingers.lock
expect "a tree ends with its session" 0 "here" call --tool echo --arg text=here "$probe" serve served.lock "$demo"
expect "nothing of it is left" 0 "free" outside is-held served.lock
expect "the host is terminated while it waits" 0 "" unread outside kill-launcher waiting.lock \
  "$windows_bulkhead" call --tool echo --policy c.json "$probe" hold waiting.lock
expect "so its server is, too" 0 "free" outside is-held waiting.lock

printf '@echo off\r\necho batch [%%~1]\r\n' >server.cmd
batch="Z:${folder//\//\\}\\work\\server.cmd"
expect "a batch file is refused" 126 "batch" run "$batch" a
expect "a checked one runs" 0 "batch [a b]" bh run --policy batch.json "$batch" "a b"
# shellcheck disable=SC1003  # backslashes that are meant
expect "a backslash at the end is two" 0 'batch [a b\\]' bh run --policy batch.json "$batch" 'a b\'
# What only looks like more than a word.
for argument in ' ' '   ' 'a,b;c=d' '*' 'a b c' '/c' '@x' '~' "it's"; do
  expect "a checked one is given $argument" 0 "batch [$argument]" bh run --policy batch.json "$batch" "$argument"
done
for argument in 'a"b' 'a%b' 'a&b' 'a|b' 'a<b' 'a>b' 'a^b' 'a!b' 'a(b' 'a)b' '%PATH%' $'a\nb' $'a\rb' $'a\x1ab'; do
  expect "a checked one is not given $argument" 126 "batch" bh run --policy batch.json "$batch" "$argument"
done
# shellcheck disable=SC2016  # no variable
for disguise in . ' ' '. .' ':s' '::$DATA'; do
  expect "a batch file in disguise is refused: $disguise" 126 "" bh run --policy batch.json "$batch$disguise" a
done
# A file that takes the quotes off lets a parenthesis end its own block, and another command begin.
printf '@echo off\r\nif exist no-such-file (echo %%~1)\r\n' >block.cmd
injected() { timeout 60 wine cmd /d /s /c "$here\\block.cmd" 'x) else (echo injected' 2>&1 </dev/null; }
expect "control: a parenthesis is a command's end" 0 "injected" injected
expect "a checked one is not given it" 126 "has a ')'" bh run --policy batch.json "$here\\block.cmd" 'x) else (echo injected'
# The shell is the system's, whatever is called so.
cp probe.exe cmd.exe
printf '{"version": 1, "require": "C", "network": {"mode": "host"}, "command": {"batch_files": "checked"},
  "env": {"set": {"ComSpec": "%s"}}}' "$json_here\\\\probe.exe" >comspec.json
expect "ComSpec is not asked, nor the current folder" 0 "batch [line]" bh run --policy comspec.json "$batch" line
rm cmd.exe
mkdir 'a&b' 'a (b)'
cp server.cmd 'a&b/' && cp server.cmd 'a (b)/'
expect "a folder's name may be a command, too" 126 "has a '&'" bh run --policy batch.json "$here\\a&b\\server.cmd" x
expect "one with parentheses is none" 0 "batch [x]" bh run --policy batch.json "$here\\a (b)\\server.cmd" x

mkdir path
cp probe.exe path/tool.exe
printf '@echo off\r\necho cmd\r\n' >path/tool.cmd
cp probe.exe here.exe
printf '{"version": 1, "require": "C", "network": {"mode": "host"}, "env": {"set": {"Path": "%s"}}}' \
  "Z:${folder//\//\\\\}\\\\work\\\\path" >path.json
expect "a bare name is found by PATH and PATHEXT" 0 "[x]" bh run --policy path.json tool argv x
names_of_path() { bh run --policy path.json tool environ | tr ' ' '\n' | grep -ic '^path$'; }
expect "a variable has one name, whatever its case" 0 "1" names_of_path
cp probe.exe path/both.com
printf '@echo off\r\necho cmd\r\n' >path/both.bat
pathext() {
  printf '{"version": 1, "require": "C", "network": {"mode": "host"}, "command": {"batch_files": "checked"},
    "env": {"set": {"Path": "%s", "PATHEXT": "%s"}}}' "Z:${folder//\//\\\\}\\\\work\\\\path" "$1" >pathext.json
  bh run --policy pathext.json both argv x
}
refused_pathext() {
  printf '{"version": 1, "require": "C", "network": {"mode": "host"},
    "env": {"set": {"Path": "%s", "PATHEXT": ".BAT"}}}' "Z:${folder//\//\\\\}\\\\work\\\\path" >pathext.json
  bh run --policy pathext.json both argv x
}
expect "PATHEXT's order counts" 0 "[x]" pathext '.COM;.BAT'
expect "also the other way round" 0 "cmd" pathext '.BAT;.COM'
expect "what PATHEXT doesn't name is not found" 127 "not in" pathext '.EXE'
expect "what only the shell opens is not found" 127 "not in" pathext '.JS'
expect "a bare name that leads to a batch file is refused" 126 "batch" refused_pathext
# shellcheck disable=SC1003  # backslashes that are meant
for entries in . '' ';;' '..\\work' '\\' 'Z:' 'Z:.' '%CD%' '"."'; do
  printf '{"version": 1, "require": "C", "network": {"mode": "host"}, "env": {"set": {"PATH": "%s"}}}' "${entries//\"/\\\"}" >entries.json
  expect "PATH=$entries does not lead to the current folder" 127 "not in" bh run --policy entries.json here argv x
done
expect "the current folder is not looked in" 127 "not in" bh run --policy path.json here argv x
expect "a missing program is not found" 127 "no such file" run 'C:\no\such.exe'
printf 'junk' >junk.exe
expect "what is no program is not started" 126 "" run "Z:${folder//\//\\}\\work\\junk.exe"

expect "tier A is refused" 125 "can't give tier A" bh run --network host "$probe" exit 0
expect "no network is refused" 125 "can't keep a server from the network" bh run --require C "$probe" exit 0
expect "the report is written" 0 "" run --report report.json "$probe" exit 0
expect "and says which tier, and how it ended" 0 '"tier":"C"' cat report.json

printf '%s passed, %s failed\n' "$passed" "$failed"
[[ $failed == 0 ]]
