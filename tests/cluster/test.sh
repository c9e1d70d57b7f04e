#!/usr/bin/env bash
# Everything that CI proves on a real cluster: the chart, the schema, the operator's scenarios on fake nodes, and one
# journey on a real node. Brings a cluster of its own up and takes it down again, whatever happens.
# Usage: tests/cluster/test.sh [BUILD]   (default build; needs fettle, fettle-operator and fettle-trainer in BUILD/bin)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(realpath "${1:-build}")
export FETTLE_CLUSTER_DIR=${FETTLE_CLUSTER_DIR:-$(mktemp -d)/cluster}
export FETTLE_BUILD=$build

up() {
  local code=0
  "$here/cluster" up "$@" || code=$?
  if [ "$code" -eq 3 ]; then
    echo 'cluster tests: NOT RUN: this machine cannot run a cluster (see above)' >&2
    exit 0
  fi
  return "$code"
}

step() {
  local -r started=$SECONDS
  echo "cluster tests: $1"
  shift
  "$@" || { echo "cluster tests: failed; logs: $FETTLE_CLUSTER_DIR/log" >&2; trap - EXIT; "$here/cluster" down; exit 1; }
  echo "cluster tests: passed after $((SECONDS - started)) s"
}

trap '"$here/cluster" down' EXIT
up --node
step 'the chart' "$here/in_cluster" "$here/chart_test.sh"
step 'the schema and api/ agree' "$here/in_cluster" "$here/schema_test.sh"
step 'the operator on fake nodes' "$here/in_cluster" python3 -B -m unittest discover -v -s "$here/scenarios" -p '*_test.py'
step 'the images' "$here/images.sh" "$build"
step 'the journey on a real node' "$here/in_cluster" "$here/journey.sh" "$build"
