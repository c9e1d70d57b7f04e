#!/bin/sh
# The chart's copy of the CustomResourceDefinitions: a chart must carry all its files.
# Usage: helm/sync-crds.sh [--check]   (--check changes nothing, and fails when the copy is stale)
set -eu
cd "$(dirname "$0")/.."
copy=helm/fettle/files/crds
if [ "${1:-}" != --check ]; then
  rm -rf "$copy"
  mkdir -p "$copy"
  cp crds/*.yaml "$copy/"
  exit 0
fi
names=$(find crds "$copy" -maxdepth 1 -name '*.yaml' -exec basename {} \; | sort -u)
if [ -z "$names" ]; then
  echo "helm: there are no definitions in crds/" >&2
  exit 1
fi
for name in $names; do
  cmp -s "crds/$name" "$copy/$name" || {
    echo "helm: $copy/$name is not the same as crds/$name; helm/sync-crds.sh mends it" >&2
    exit 1
  }
done
