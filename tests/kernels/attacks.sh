#!/bin/sh
# The attacks of tests/escape, as far as they need no more than their own program and a stage that a shell can make: part
# of inside.sh. Each is tried without a jail, where it must succeed to count, then in tiers A and B. What a tier does not
# promise is in not_promised.json, as for escape.py.

# shellcheck disable=SC2086 # no path here has a space
TOKEN=stage-of-this-attack

# The files as escape.py's Stage makes them. Whom the working folders belong to: $1.
make_stage() {
  rm -rf $STAGE.template
  mkdir -p $STAGE.template
  cd $STAGE.template || exit 1
  mkdir -p home/.ssh home/empty work data project/sub/.git run
  echo the-secret-of-this-stage | tee home/.ssh/id_test project/.env $STAGE.shared >/dev/null
  echo a >home/.bashrc
  echo data >data/file
  echo config >project/sub/.git/config
  cp /tests/probe home/tool
  cp /tests/probe data/tool
  ln -s $STAGE/home/.ssh/id_test work/planted
  ln -s $STAGE/home work/home
  chown -R "$person" .
  chown -R "$1" work project
  cd /
}

# attack NAME PREFIX...: "got", "held ..." or "untried ..."
attack() {
  name=$1
  shift
  rm -rf $STAGE
  cp -a $STAGE.template $STAGE
  for copy in /tmp/$TOKEN.$person /dev/shm/$TOKEN.$person; do
    cp $STAGE.shared "$copy"
    chown "$person" "$copy"
  done
  said=$(
    exec 7<$STAGE/home/.ssh/id_test 8<$STAGE/home/.ssh 9</
    cd $STAGE/work || exit 1
    BULKHEAD_ESCAPE_CANARY=canary-of-this-stage TERM=dumb SSH_AUTH_SOCK=$STAGE/run/agent.sock \
      GITHUB_TOKEN=/nonexistent NODE_OPTIONS=/nonexistent LD_LIBRARY_PATH=/nonexistent PYTHONPATH=/nonexistent \
      "$@" /tests/attacker "$name" token=$TOKEN.$person canary=canary-of-this-stage home=$STAGE/home \
      work=$STAGE/work data=$STAGE/data project=$STAGE/project run=$STAGE/run host_tmp=/tmp/$TOKEN.$person \
      host_shm=/dev/shm/$TOKEN.$person victim="$victim" victim_fd=7 leaked_file=7 leaked_folder=8 leaked_root=9 tcp=4321 \
      "control=$control" 2>&1
  )
  code=$?
  said=$(echo "$said" | grep -v '^bulkhead: note: ' | tail -n 1)
  case $name in
    leave_*)
      [ $code -ne 0 ] || alive "token=$TOKEN.$person" || { code=1 said="held: nobody is left"; }
      kill_all "token=$TOKEN.$person"
      ;;
    make_file_in_home) [ $code -ne 0 ] || [ -e $STAGE/home/.config-of-evil ] || { code=1 said="held: in a home of its own"; } ;;
  esac
  case $code in
    0) echo got ;;
    1 | 2) echo "$said" ;;
    *) echo "ended with $code: $said" ;;
  esac
}

person_runs() {
  if [ "$person" = root ]; then "$@"; else HOME=$STAGE/home setuidgid 1000 "$@"; fi
}

# Of one attack, in $tier.
try_attack_in() {
  limits=
  case $name in
    fork_bomb | thread_bomb | open_files | raise_open_files)
      limits='"processes": 20, "open_files": 64' ;;
  esac
  account=
  project=
  [ "$person:$tier" != root:B ] || account='"user": "user",'
  [ "$tier" = B ] || project=", \"$STAGE/project\""
  covers=
  [ "$tier" = B ] || covers=", \"protect\": [\"$STAGE/project/sub/.git\"], \"hide\": [\"$STAGE/project/.env\"]"
  printf '{"version": 1, "extends": ["preset:default"], "require": "%s", %s "limits": {%s}, "filesystem": {"rx": ["/tests/attacker"], "ro": ["%s/data"], "rw": ["%s/work"%s]%s}}\n' \
    "$tier" "$account" "$limits" $STAGE $STAGE "$project" "$covers" >$STAGE.json
  set -- bulkhead run --policy $STAGE.json --workspace $STAGE/work
  [ "$tier" = A ] || set -- /tests/deny --userns "$@"
  attack "$name" attack_as "$@"
}
attack_as() { person_runs timeout -s KILL 20 env HOME="$STAGE/home" "$@"; }

# All attacks of one person; one line for each cell in $results.
try_attacks_of() {
  be "$1"
  STAGE=/var/tmp/$TOKEN.$person
  results=/tmp/attacks.$person
  for name in $(/tests/attacker --list); do
    # These fill the machine, wait for the processor, signal all there is, or need a stage of more than files.
    case $name in
      fill_* | cpu_time | memory | large_file* | *_stdin | tio* | *terminal* | started_in_descriptor* | open_dev_tty) continue ;;
      sigio_victim | setsig_victim | signal_everyone | udp_* | unix_* | sysv_* | posix_message_queue | see_hosts_unix_sockets | reopen_stdin_for_writing | dns_* | tcp_outside | metadata_address) continue ;;
    esac
    make_stage "$person"
    begin_victim
    control=1
    got=$(attack "$name" attack_as /tests/attacker --in-front /tests/attacker --in-front)
    control=
    end_victim
    [ "$got" = got ] || continue
    for tier in A B; do
      [ $tier = A ] || make_stage user
      begin_victim
      got=$(try_attack_in)
      end_victim
      if [ "$got" = got ] && grep -q "^ *\"$name\".*\"$tier, $person\"" /tests/not_promised.json; then got="not promised"; fi
      # With Landlock before ABI 3 and 6, as SECURITY.md says.
      case "$got $tier $name" in
        "got B truncate_"* | "got A "*signal_init | "got A tgkill_init" | "got A sigqueue_init") got="not promised" ;;
      esac
      echo "$name $tier $got"
    done
  done >$results
}
begin_victim() {
  victim=
  case $name in *victim*) ;; *) return ;; esac
  person_runs /tests/attacker --victim >/dev/null &
  victim=$!
}
end_victim() {
  [ -n "$victim" ] || return
  kill -9 "$victim"
  wait "$victim" 2>/dev/null
}

try_attacks() {
  mount -t tmpfs shm /dev/shm 2>/dev/null || { mkdir -p /dev/shm && mount -t tmpfs shm /dev/shm; }
  nc -ll -p 4321 -e true &
  for person in root user; do try_attacks_of $person & done
  wait %2 %3
  for person in root user; do
    while read -r name tier got; do
      check "attack $name, tier $tier, $person" "held*|untried*|not promised" "$got"
    done </tmp/attacks.$person
    say "attacks of $person that succeed without a jail: $(($(wc -l </tmp/attacks.$person) / 2)); not promised: $(grep -c 'not promised' /tmp/attacks.$person)"
  done
}
