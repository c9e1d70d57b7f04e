#!/usr/bin/env bash
# Tries the packages of `make dist` in a clean Debian 12, as an ordinary user who has nothing of Fettle's but them:
# the archive unpacked in a home, and the Debian package with what it depends on. Needs root, and a Debian mirror.
# Usage: test.sh BUILD
set -euo pipefail
cd "$(dirname "$0")/../.."
dist=$(realpath "$1")/dist
scripts/setup.sh mmdebstrap
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { echo "dist: $*"; }

# in_root ROOT USER COMMAND: within a mount and process namespace of its own, so that nothing outlives it.
in_root() {
  # shellcheck disable=SC2016 # the inner shell expands them
  unshare --mount --pid --fork --kill-child sh -c \
    'mount -t proc proc "$0/proc" && mount -t tmpfs tmpfs "$0/tmp" && exec chroot --userspec="$1" "$0" /bin/bash -c "$2"' "$@"
}

# What somebody does who has read README.md as far as "Install".
first_hour='set -e; cd; fettle --version; fettle init python > /dev/null; fettle run study.yaml | tail -40 > said
  grep -q "^python succeeded" said; grep "^Best: " said; fettle best --output env; kubectl-fettle --help > /dev/null
  mkdir trainer; cd trainer; fettle init trainer > /dev/null; fettle run study.yaml | grep "^Best: "'

make_root() { # NAME PACKAGES...
  local name=$1
  shift
  mmdebstrap --quiet --variant=minbase --include="$(IFS=,; echo "$*")" bookworm "$work/$name"
  echo 'someone:x:1000:1000::/home/someone:/bin/bash' >> "$work/$name/etc/passwd"
  install -d -o 1000 -g 1000 "$work/$name/home/someone"
}

say 'the archive, unpacked in a home'
make_root archive python3
tar -xzf "$dist"/*.tar.gz -C "$work/archive/home/someone" --strip-components=1
chown -R 1000:1000 "$work/archive/home/someone"
in_root "$work/archive" 1000:1000 "export HOME=/home/someone PATH=/home/someone/bin:\$PATH; $first_hour"
say 'the archive has all its libraries'
missing=$(in_root "$work/archive" 1000:1000 'ldd /home/someone/bin/fettle /home/someone/bin/fettle-trainer | grep "not found"' || true)
[ -z "$missing" ] || { say "FAILED: $missing"; exit 1; }

say 'the Debian package, with what it depends on'
# shellcheck disable=SC2046 # one word a package
make_root package python3 $(dpkg-deb --field "$dist"/*.deb Depends | sed 's/([^)]*)//g; s/|[^,]*//g; s/,/ /g')
install -m 644 "$dist"/*.deb "$work/package/root/"
in_root "$work/package" 0:0 'export PATH=/usr/sbin:/usr/bin:/sbin:/bin; dpkg -i /root/*.deb > /dev/null'
in_root "$work/package" 1000:1000 "export HOME=/home/someone; $first_hour"
say 'it is removed without a trace'
in_root "$work/package" 0:0 'export PATH=/usr/sbin:/usr/bin:/sbin:/bin; dpkg -r fettle > /dev/null; ! ls /usr/bin/*fettle* 2> /dev/null'
say 'passed'
