#!/bin/sh
# The first process of the virtual machine of vm.sh, under busybox: what must hold on this kernel. Each fact is shown
# without Bulkhead first. Says a line for each that fails, and at the end "N passed, N failed"; then it powers off.
#
# The parts: doctor, limits, endings, leaving, demo, attacks. Every one is tried as root and as an ordinary user who has
# a delegated cgroup, as systemd gives to users.
export PATH=/bin:/usr/bin HOME=/root
passed=0
failed=0
C=/sys/fs/cgroup
U=$C/user
R=$C/root

# A disk, as machines have: moves there and starts again.
if [ -e /loop.ko ]; then
  mount -t devtmpfs dev /dev
  insmod /loop.ko
  truncate -s 256M /disk
  losetup /dev/loop0 /disk
  mke2fs /dev/loop0 >/dev/null
  mount -t ext4 /dev/loop0 /run
  cp -a /bin /usr /etc /home /tests /init /root /run/
  mkdir -m 1777 /run/tmp /run/var /run/var/tmp
  mkdir /run/proc /run/sys /run/dev /run/run
  umount /dev
  exec switch_root /run /init
fi
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t securityfs security /sys/kernel/security
mount -t cgroup2 -o nsdelegate cgroup2 $C
exec >/dev/ttyS1 2>&1 </dev/null
stty -F /dev/ttyS1 -opost 2>/dev/null
ip link set lo up
only=$(sed -n 's/.*only=\([a-z]*\).*/\1/p' /proc/cmdline)
say() { echo "$*"; }

# check WHAT PATTERNS TEXT: TEXT is as one of the shell patterns says, which have "|" between them.
check() {
  set -f
  IFS='|'
  # shellcheck disable=SC2086 # to be split
  matches "$3" $2
  found=$?
  unset IFS
  set +f
  if [ $found -eq 0 ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    say "FAILED  $1: expected \"$2\", got: $3"
  fi
}
matches() {
  text=$1
  shift
  for pattern; do
    # shellcheck disable=SC2254 # a pattern
    case $text in $pattern) return 0 ;; esac
  done
  return 1
}

# within SECONDS COMMAND...: until it succeeds.
within() {
  left=$(($1 * 10))
  shift
  while ! "$@"; do
    left=$((left - 1))
    [ "$left" -gt 0 ] || return 1
    usleep 100000 # a shell can't wait for another's process or for a cgroup to go, only ask again
  done
}

# ---- Who tries it, and where his cgroups are. $person: root or user; $groups: the folder that they lie in.

echo "+memory +pids" >$C/cgroup.subtree_control
mkdir -p $R/host.scope $U/host.scope $U/other.scope
echo "+memory +pids" >$R/cgroup.subtree_control
echo "+memory +pids" >$U/cgroup.subtree_control
chown user $U $U/cgroup.procs $U/cgroup.subtree_control
for scope in host other; do chown user $U/$scope.scope $U/$scope.scope/cgroup.procs $U/$scope.scope/cgroup.kill; done

be() {
  person=$1
  groups=$R
  [ "$person" = root ] || groups=$U
}
# as COMMAND...: as the person, in the host's cgroup.
as() {
  (
    exec 3>"$groups/host.scope/cgroup.procs"
    sh -c 'echo $PPID >&3' 2>/dev/null
    cd /
    if [ "$person" = root ]; then exec "$@"; fi
    HOME=/home/user exec setuidgid 1000 "$@" 3>&-
  )
}
groups_left() { find "$groups" -maxdepth 1 -name "bulkhead-*" | wc -l; }
no_groups_left() { [ "$(groups_left)" -eq 0 ]; }
# pids WORDS: of all processes that have them in their command line, but for those that busybox's timeout leaves to watch the
# clock, for up to a second after its command has ended.
pids() {
  for process in /proc/[0-9]*; do
    case $(tr '\0' ' ' <"$process/cmdline") in "timeout "*) ;; *"$1"*) [ "${process#/proc/}" = $$ ] || echo "${process#/proc/}" ;; esac
  done 2>/dev/null
}
# shellcheck disable=SC2046 # none or many
kill_all() { kill -9 $(pids "$1") 2>/dev/null; }
alive() { [ -n "$(pids "$1")" ]; }
gone() { ! alive "$1"; }
# No init of ours runs. A zombie is in no cgroup, and its parent here reaps nobody.
inits_gone() {
  # shellcheck disable=SC2013 # no path here has a space
  for init in $(grep -lx bulkhead-init /proc/[0-9]*/comm 2>/dev/null); do
    grep -q '^State:.*Z' "${init%comm}status" 2>/dev/null || return 1
  done
}

# policy LIMITS: makes /tmp/policy.json with them.
policy() {
  account=
  if [ "$person" = root ] && [ "$tier" = B ]; then account='"user": "user",'; fi
  printf '{"version": 1, "extends": ["preset:default"], "require": "%s", %s "filesystem": {"rx": ["/tests"]}, "limits": {%s}}\n' \
    "$tier" "$account" "$1" >/tmp/policy.json
}
# jail COMMAND...: with the policy; $? is its exit code; the report is in /tmp/report.$person.
jail() {
  if [ "$tier" = B ]; then set -- /tests/deny --userns "$@"; fi
  as "$@"
}
run() { jail bulkhead run --policy /tmp/policy.json --report "/tmp/report.$person" "$@"; }
report() { cat "/tmp/report.$person"; }
each() { for person in root user; do be $person; for tier in A B; do "$1"; done; done; }

# ---- doctor

try_doctor() {
  for person in root user; do
    be $person
    said=$(as bulkhead doctor)
    say "$said"
    check "doctor, $person: tier" "*tier A*succeeded*tier B*succeeded*" "$said"
    check "doctor, $person: landlock" "*ABI 2*" "$said"
    check "doctor, $person: cgroup" "*a launch makes a group in $groups for memory and for processes*" "$said"
  done
  be user
  said=$(cd /; setuidgid 1000 bulkhead doctor)
  check "doctor, user without a cgroup of his own" "*in the root group of*systemd-run --user --scope*" "$said"
  check "doctor, user without a cgroup of his own: tier" "*tier A*succeeded*" "$said"
}

# ---- Limits of the tree

try_limits() {
  who="$person, tier $tier"
  # shellcheck disable=SC2016 # for the server's shell
  fill='dd if=/dev/zero of=$HOME/fill bs=1M count=40 2>/dev/null; echo filled $?'
  policy ''
  check "memory, $who: without a limit" "*filled 0*" "$(run sh -c "$fill" 2>&1)"
  policy '"memory": "64MiB"'
  check "memory, $who: within it" "*filled 0*" "$(run sh -c "$fill" 2>&1)"
  check "memory, $who: within it, the report" '*"memory_kills":0,*' "$(report)"
  policy '"memory": "24MiB"'
  # In tier A the home folder is memory; else what is written to the disk can be taken back.
  if [ "$tier" = A ]; then
    check "memory, $who: beyond it" "*the server reached limits.memory*code 137" "$(run sh -c "$fill" 2>&1; echo code $?)"
    check "memory, $who: the report" '*"name":"cgroup","state":"full"*25165824 bytes of memory, none of it swapped out*"signal":9*"memory_kills":[1-9]*' "$(report)"
    check "memory, $who: the group" 0 "$(groups_left)"
  fi
  # Many processes, each within the limit.
  # shellcheck disable=SC2016 # for the server's shell
  many='for i in 1 2 3 4; do { x=$(yes | head -c 10000000); sleep 2; } & done; wait; echo all done'
  policy '"memory": "256MiB"'
  check "memory, $who: of many processes, within it" "*all done*" "$(run sh -c "$many" 2>&1)"
  policy '"memory": "24MiB"'
  check "memory, $who: of many processes, beyond it" "*the server reached limits.memory*" "$(run sh -c "$many" 2>&1)"
  check "memory, $who: of many processes, the report" '*"name":"cgroup","state":"full"*"memory_kills":[1-9]*' "$(report)"

  policy ''
  check "processes, $who: without a limit" "ok 25" "$(run /tests/probe forkbomb 25 2>&1)"
  policy '"processes": 20'
  check "processes, $who: one below it" "ok 18" "$(run /tests/probe forkbomb 18 2>&1)"
  check "processes, $who: at it" "ok 19" "$(run /tests/probe forkbomb 19 2>&1)"
  check "processes, $who: at it, the report" '*20 processes*"refused_processes":0}*' "$(report)"
  check "processes, $who: one above it" "error EAGAIN after 19*" "$(run /tests/probe forkbomb 20 2>&1)"
  check "processes, $who: the report" '*"refused_processes":[1-9]*' "$(report)"
  # Others of the same user don't count.
  for seconds in $(seq 4301 4325); do setuidgid 1000 sleep "$seconds" & done
  check "processes, $who: others of the user" "ok 19" "$(run /tests/probe forkbomb 19 2>&1)"
  kill_all 'sleep 43'
  bomb='b() { b | b & }; b; sleep 1; echo survived'
  check "processes, $who: a bomb" "*" "$(run timeout -s KILL 5 sh -c "$bomb" 2>&1 | tail -n 1)"
  check "processes, $who: what is left of the bomb" 0 "$(groups_left)"
}

# ---- Endings: nothing of the tree lives, and the groups are gone

start() { # starts a host that starts a server; $host and $keeper are their pids
  policy '"memory": "64MiB", "processes": 50'
  rm -f /tmp/host /tmp/up
  mkfifo /tmp/in.$$ 2>/dev/null
  sleep 1000 >/tmp/in.$$ &
  feeder=$!
  set -- bulkhead run --policy /tmp/policy.json sh -c 'setsid sleep 1234 & setsid setsid sleep 1234 & echo up; sleep 1234; :'
  [ "$tier" = A ] || set -- /tests/deny --userns "$@"
  # shellcheck disable=SC2016 # for the host's shell
  as sh -c 'echo $$ >/tmp/host; "$@" & exec sleep 1001' sh "$@" </tmp/in.$$ >/tmp/up 2>&1 &
  within 20 grep -q up /tmp/up || say "FAILED to start: $(cat /tmp/up)"
  host=$(cat /tmp/host)
  keeper=$(grep -lx bulkhead /proc/[0-9]*/comm | head -n 1 | tr -dc 0-9)
  check "endings, $who: it runs in groups" "[12]" "$(groups_left)"
}
finish() {
  check "$1: the tree" gone "$(within 20 gone 'sleep 1234' && echo gone)"
  check "$1: the init" gone "$(within 20 inits_gone && echo gone)"
  kill -9 "$host" "$feeder" 2>/dev/null
  wait 2>/dev/null
}

try_endings() {
  who="$person, tier $tier"
  policy '"memory": "64MiB"'
  check "endings, $who: normal" 7 "$(run sh -c 'exit 7' >/dev/null 2>&1; echo $?)"
  check "endings, $who: normal, groups" 0 "$(groups_left)"
  check "endings, $who: not found" 127 "$(run /tests/none >/dev/null 2>&1; echo $?)"
  check "endings, $who: not found, groups" 0 "$(groups_left)"

  start
  kill -9 "$host"
  finish "endings, $who: host killed"
  check "endings, $who: host killed, groups" gone "$(within 10 no_groups_left && echo gone)"

  start
  kill -9 "$keeper"
  finish "endings, $who: keeper killed"
  policy '"memory": "64MiB"'
  run true >/dev/null 2>&1
  check "endings, $who: keeper killed, groups after the next launch" 0 "$(groups_left)"

  # Who manages the host's group kills all in it at once: keeper and host.
  start
  echo 1 >"$groups/host.scope/cgroup.kill"
  finish "endings, $who: host's group killed"
  run true >/dev/null 2>&1
  check "endings, $who: host's group killed, groups after the next launch" 0 "$(groups_left)"
}

# ---- The server can't leave its group, nor widen it

try_leaving() {
  who="$person, tier $tier"
  leave="echo 0 >$groups/other.scope/cgroup.procs"
  be user
  leave="echo 0 >$U/other.scope/cgroup.procs"
  check "leaving, $who: without a jail" "*user/other.scope" "$(as sh -c "$leave; cat /proc/self/cgroup" 2>&1)"
  policy '"memory": "64MiB", "processes": 50'
  check "leaving, $who" "*[Pp]ermission denied*|*nonexistent directory*|*bulkhead-*" \
    "$(run sh -c "$leave; cat /proc/self/cgroup" 2>&1 | tr '\n' '|')"
  check "leaving, $who: it is still in it" "*/bulkhead-*" "$(run sh -c "$leave; cat /proc/self/cgroup" 2>/dev/null)"
  check "leaving, $who: widening, without a jail" widened \
    "$(as sh -c "mkdir $U/mine && echo max >$U/mine/memory.max && echo widened; rmdir $U/mine")"
  widen="for g in $U/bulkhead-*; do echo max >\$g/memory.max && echo widened; done"
  check "leaving, $who: widening" "not widened" "not $(run sh -c "$widen" 2>/dev/null)widened"
}

# ---- The demo's calls

try_demo() {
  who="$person, tier $tier"
  home=/root
  [ "$person" = root ] || home=/home/user
  mkdir -p $home/.ssh
  echo the-private-key >$home/.ssh/id_test
  chown -R "$person" $home
  policy ''
  call() { # call COMMAND...: asks the demo server for the key, then for the token
    printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' \
      '{"jsonrpc":"2.0","method":"notifications/initialized"}' \
      "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"read_file\",\"arguments\":{\"path\":\"$home/.ssh/id_test\"}}}" \
      '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"env","arguments":{"name":"DEMO_TOKEN"}}}' |
      DEMO_TOKEN=the-token "$@" 2>&1
  }
  check "demo, $who: without Bulkhead" "*the-private-key*the-token*" "$(call as /tests/demo-server)"
  said=$(call run /tests/demo-server)
  check "demo, $who: the key" "*such file*|*denied*" "$said"
  check "demo, $who: the token" "*DEMO_TOKEN is not set*" "$said"
}

say "Linux $(uname -r), $(cat /sys/kernel/security/lsm 2>/dev/null)"
# shellcheck disable=SC1091 # where it is in the virtual machine
. /tests/attacks.sh
part() {
  [ -z "$only" ] || [ "$only" = "$1" ] || return 0
  before=$(cut -d. -f1 /proc/uptime)
  shift
  "$@"
  say "== $*: $(($(cut -d. -f1 /proc/uptime) - before)) s"
}
part doctor try_doctor
part limits each try_limits
part endings each try_endings
part leaving each try_leaving
part demo each try_demo
part attacks try_attacks
say "$passed passed, $failed failed"
sync
poweroff -f
