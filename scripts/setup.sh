#!/bin/sh
# Installs the Debian packages of packages.txt that are missing (or those named as arguments).
# Does nothing, and needs no root, when all are there.
set -eu
here=$(dirname "$0")
wanted=${*:-$(grep -v '^#' "$here/packages.txt")}
missing=
for package in $wanted; do
  dpkg-query -W -f '${Status}' "$package" 2> /dev/null | grep -q 'install ok installed' ||
    missing="$missing $package"
done
[ -n "$missing" ] || exit 0
echo "installing:$missing"
if [ "$(id -u)" -ne 0 ]; then
  echo "this needs root; as root run: apt-get update && apt-get install$missing" >&2
  exit 3
fi
log=$(mktemp)
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # one word a package
if ! { apt-get update && apt-get install -y --no-install-recommends $missing; } > "$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "could not install:$missing (whole log: $log)" >&2
  exit 3
fi
rm -f "$log"
