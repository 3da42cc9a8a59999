#!/bin/bash
# The npm packages of a test, kept so that the second run needs no registry.
#
#   tests/npm_packages.sh PACKAGE_JSON FOLDER
#
# Installs what PACKAGE_JSON names into FOLDER, unless that is there already. FOLDER may lie in /var/tmp, where anyone can
# take a name before us: one that belongs to someone else is refused. Needs npm.
set -euo pipefail
umask 022
package=$1 folder=$2

mkdir -p "$folder"
if [[ -L $folder || ! -O $folder ]]; then
  echo "$0: $folder belongs to someone else; choose another folder" >&2
  exit 1
fi
if cmp -s "$package" "$folder/installed.json"; then exit 0; fi
echo "installing the npm packages of $package into $folder" >&2
cp "$package" "$folder/package.json"
cd "$folder"
timeout 180 npm install --no-package-lock --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error >&2
cp package.json installed.json
