#!/bin/bash
# Tries Bulkhead on Debian's own kernel, in a virtual machine whose cgroup v2 has the controllers: see inside.sh.
#
#   [BULKHEAD=path] [DEMO_SERVER=path] tests/kernels/vm.sh [--kernel VMLINUZ] [WORD]    only the parts whose name is WORD
#
# Needs qemu-system-x86_64, a static busybox, cpio, dpkg and a C++ compiler. The kernel is that of Debian's package
# linux-image-cloud-amd64, fetched by apt-get and kept in $BULKHEAD_KERNELS; it is not installed. KVM is not used unless
# BULKHEAD_VM_ACCEL says so: without it this works in any place, a virtual machine or a container too. The last line is
# "N passed, N failed".
set -euo pipefail
umask 022
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$here/../..
bulkhead=${BULKHEAD:-$root/bin/bulkhead}
demo_server=${DEMO_SERVER:-$root/bin/demo-server}
kernels=${BULKHEAD_KERNELS:-/var/tmp/bulkhead-kernels}
readonly SECONDS_MAX=1500 MEMORY_MIB=1024

fail() {
  echo "tests/kernels: $*" >&2
  echo "0 passed, 1 failed"
  exit 1
}

# The newest cloud kernel that apt knows; gives the path of its image.
fetch_kernel() {
  local package folder image
  package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)$/\1/p' | head -n 1)
  [[ -n $package ]] || fail "apt knows no linux-image-cloud-amd64"
  folder=$kernels/$package
  if [[ ! -d $folder ]]; then
    mkdir -p "$kernels"
    (
      cd "$(mktemp -d -p "$kernels")"
      apt-get -q download "$package" >&2
      dpkg -x ./*.deb files
      mv files "$folder"
      rm ./*.deb
      rmdir "$PWD"
    )
  fi
  image=$(echo "$folder"/boot/vmlinuz-*)
  [[ -f $image ]] || fail "no kernel in $folder"
  echo "$image"
}

kernel=
only=
while [[ $# -gt 0 ]]; do
  case $1 in
    --kernel)
      kernel=$2
      shift
      ;;
    *) only=$1 ;;
  esac
  shift
done
[[ -x $bulkhead && -x $demo_server ]] || fail "$bulkhead or $demo_server is missing; run ./dev build first"
[[ -n $kernel ]] || kernel=$(fetch_kernel)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/tree
mkdir -p "$tree"/{bin,usr/bin,proc,sys,dev,tmp,run,root,etc,home/user,tests}
chmod 1777 "$tree/tmp"
install -m 755 "$(command -v busybox)" "$tree/bin/busybox"
"$tree/bin/busybox" --list | while read -r applet; do ln -s busybox "$tree/bin/$applet" 2>/dev/null || true; done
install -m 755 "$bulkhead" "$tree/usr/bin/bulkhead"
install -m 755 "$demo_server" "$tree/tests/demo-server"
"${CXX:-c++}" -std=c++17 -O1 -static "$root"/tests/escape/*.cc -o "$tree/tests/attacker" &
"${CXX:-c++}" -std=c++17 -O1 -static "$root/tests/programs/deny.cc" -o "$tree/tests/deny" &
"${CXX:-c++}" -std=c++17 -O1 -static "$here/setuidgid.cc" -o "$tree/usr/bin/setuidgid" &
"${CXX:-c++}" -std=c++17 -O1 -static "$root"/tests/programs/probe*.cc -o "$tree/tests/probe"
wait
for program in "$tree"/{bin/busybox,usr/bin/bulkhead,usr/bin/setuidgid} "$tree"/tests/*; do
  if readelf --program-headers --wide "$program" | grep -q INTERP; then fail "$program is not static"; fi
done
install -m 755 "$here/inside.sh" "$tree/init"
# A disk of its own, since what the kernel unpacks its first files into can't be mounted for another user.
module=$(find "$(dirname "$kernel")/.." -name loop.ko)
[[ -f $module ]] || fail "$kernel has no loop.ko beside it"
install -m 644 "$module" "$tree/loop.ko"
install -m 644 "$here/attacks.sh" "$root/tests/escape/not_promised.json" "$tree/tests/"
printf 'root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/home/user:/bin/sh\n' >"$tree/etc/passwd"
printf 'root:x:0:\nuser:x:1000:\n' >"$tree/etc/group"
(cd "$tree" && find . | cpio --quiet --create --format=newc --owner=0:0) | gzip -1 >"$work/tree.cpio.gz"

# One serial line for the kernel's words, one for ours.
accel=()
for way in ${BULKHEAD_VM_ACCEL:-tcg}; do accel+=(-accel "$way"); done
status=0
timeout --kill-after=10 "$SECONDS_MAX" qemu-system-x86_64 "${accel[@]}" -cpu max -smp 2 -m "$MEMORY_MIB" -nodefaults \
  -display none -no-reboot -serial "file:$work/console" -serial stdio -kernel "$kernel" -initrd "$work/tree.cpio.gz" \
  -append "console=ttyS0 panic=-1 quiet no_timer_check lsm=landlock,lockdown,yama,integrity,apparmor only=$only" </dev/null |
  sed -u 's,\r$,,' | tee "$work/said" || status=$?
if [[ $status -ne 0 ]] || ! tail -n 1 "$work/said" | grep -qE '^[0-9]+ passed, [0-9]+ failed$'; then
  tail -n 60 "$work/console" >&2
  fail "the virtual machine ended without a result (code $status)"
fi
tail -n 1 "$work/said" | grep -qE '^[1-9][0-9]* passed, 0 failed$'
