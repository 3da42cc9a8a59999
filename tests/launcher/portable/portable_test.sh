#!/bin/bash
# Compiles the portable backend and what it uses with an include path in which the headers that only Linux has are errors.
# Asio is told not to use them either. backend.cc is the one file that knows the systems, and is left out.
set -euo pipefail
sources=$TEST_SRCDIR/$TEST_WORKSPACE
folder=$(mktemp -d "$TEST_TMPDIR/portable.XXXXXX")

for header in elf.h asm/unistd.h sys/{capability,epoll,eventfd,fsuid,inotify,prctl,random,sendfile,signalfd,syscall,timerfd,vfs}.h \
  linux/{audit,bpf,capability,filter,fs,landlock,magic,memfd,mount,nsfs,openat2,prctl,sched,seccomp}.h; do
  mkdir -p "$folder/poison/$(dirname "$header")"
  echo "#error $header is of Linux alone" >"$folder/poison/$header"
done
ln -s "$sources" "$folder/bulkhead"

compile() {
  "${CXX:-g++}" -std=c++17 -fsyntax-only -w -DASIO_STANDALONE -DASIO_DISABLE_EPOLL -DASIO_DISABLE_EVENTFD -DASIO_DISABLE_TIMERFD \
    -isystem "$folder/poison" -I "$folder" "$1"
}

# First: the poison works.
echo '#include <linux/landlock.h>' >"$folder/control.cc"
if compile "$folder/control.cc" 2>/dev/null; then
  echo "a header of Linux's was not noticed" >&2
  exit 1
fi

export -f compile
export folder
all=("$sources"/launcher/*.cc "$sources"/launcher/posix/*.cc)
count=${#all[@]}
# shellcheck disable=SC2016  # the inner shell expands it
printf '%s\0' "${all[@]}" | xargs -0 -P 2 -I {} bash -euc 'compile "$1"' compile {}
[[ $count -ge 13 ]] || {
  echo "only $count sources were found" >&2
  exit 1
}
echo "$count sources compile without Linux's headers"
