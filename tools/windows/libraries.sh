#!/bin/bash
# libraries.sh FOLDER: what Bulkhead needs of other libraries, for Windows, as Bazel repositories below FOLDER. abseil comes
# as source from Debian's own package; Asio and nlohmann_json are headers of the system, copied so that no header of Linux's
# lies beside them.
set -euo pipefail
folder=$1
complete=complete-$(cksum <"$0" | cut -d " " -f 1)  # a newer script makes them anew
[[ ! -e $folder/$complete ]] || exit 0
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"

# apt's own lists say where Debian is; a second set of lists, with source packages switched on, leaves them as they are.
mkdir -p apt/parts apt/lists/partial
for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
  [[ ! -e $list ]] || sed 's/^deb\b/deb-src/' "$list" >"apt/parts/$(basename "$list")"
done
for list in /etc/apt/sources.list.d/*.sources; do
  [[ ! -e $list ]] || sed 's/^Types:.*/Types: deb-src/' "$list" >"apt/parts/$(basename "$list")"
done
apt=(apt-get -q -y -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$PWD/apt/parts"
  -o "Dir::State::lists=$PWD/apt/lists" -o APT::Sandbox::User=)
"${apt[@]}" update
"${apt[@]}" source abseil
mkdir -p abseil/src asio/src nlohmann_json/src
mv abseil-*/absl abseil/src/
find abseil -name BUILD.bazel -delete

# repository NAME COPTS LINKOPTS LABEL...: one library with all that lies in NAME/src; LABEL is PACKAGE:TARGET.
repository() {
  local name=$1 copts=$2 linkopts=$3 label package
  shift 3
  touch "$name/WORKSPACE"
  cat >"$name/BUILD.bazel" <<TEXT
cc_library(
    name = "all",
    srcs = glob(
        ["src/**/*.cc"],
        exclude = ["src/**/*" + part + "*" for part in [
            "_test", "benchmark", "mock", "_testing", "print_hash_of", "gentables", "test_", "/flags/", "/random/", "sample_",
        ]],
        allow_empty = True,
    ),
    hdrs = glob(["src/**"], exclude = ["src/**/*.cc"]),
    copts = [$copts],
    defines = [$([[ $name != asio ]] || echo '"ASIO_STANDALONE"')],
    includes = ["src"],
    linkopts = [$linkopts],
    visibility = ["//visibility:public"],
)
TEXT
  for label; do
    package=${label%%:*}
    mkdir -p "$name/$package"
    printf 'cc_library(\n    name = "%s",\n    visibility = ["//visibility:public"],\n    deps = ["//:all"],\n)\n' \
      "${label##*:}" >>"$name/$package/BUILD.bazel"
  done
}
repository abseil '"-w"' '"-ldbghelp", "-lbcrypt"' absl/{algorithm:container,functional:any_invocable,functional:function_ref} \
  absl/{container:btree,container:flat_hash_map,container:flat_hash_set,status:status,status:statusor} \
  absl/{strings:strings,strings:str_format,time:time,types:span}
cp -r /usr/include/asio /usr/include/asio.hpp asio/src/
repository asio '' '"-lws2_32", "-lmswsock"' .:asio
cp -r /usr/include/nlohmann nlohmann_json/src/
repository nlohmann_json '' '' .:json
rm -rf apt abseil-* abseil_*
touch "$complete"
