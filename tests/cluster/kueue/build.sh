#!/usr/bin/env bash
# Builds Kueue from its Go module, at the version of go.mod, into the cache outside the checkout: about 5 minutes of CPU
# the first time, no time from then on.
# Prints the folder, in which are `manager`, the program, and `chart`, its chart; says on stderr what it does.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=../settings.sh
source "$here/../settings.sh"
# shellcheck source=../go.sh
source "$cluster_source/go.sh"

build() {
  say 'building Kueue from source, once'
  mkdir -p "$scratch"
  local -r into=$1.partial
  rm -rf "$into"
  mkdir -p "$into"
  local go
  go=$(find_go)
  cd "$here"
  run_go "$go" build -gcflags=all=-dwarf=false -ldflags '-s -w' -o "$into/manager" sigs.k8s.io/kueue/cmd/kueue
  cp -r --no-preserve=mode "$(run_go "$go" list -m -f '{{.Dir}}' sigs.k8s.io/kueue)/charts/kueue" "$into/chart"
  mv "$into" "$1"
  say "built Kueue in $SECONDS s"
}

mkdir -p "$cluster_cache"
# Named after the pinned version, so another version is another folder.
folder=$cluster_cache/kueue-$(cat "$here"/go.* | sha256sum | cut -c1-12)
exec 8> "$folder.lock"
flock 8 # another checkout may build it, too
[ -d "$folder" ] || build "$folder" >&2
echo "$folder"
