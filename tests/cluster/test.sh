#!/usr/bin/env bash
# Everything that is proved on a real cluster: the chart, the schema, the operator's scenarios on fake nodes, the images
# and one journey on a real node. Brings a cluster of its own up and takes it down again, whatever happens.
# Usage: tests/cluster/test.sh [BUILD]   (default build; needs fettle, fettle-operator, fettle-trainer and fettle-judge
# in BUILD/bin). On a machine that cannot run a cluster it says so: scripts/not_run.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
# shellcheck source=../../scripts/not_run.sh
source scripts/not_run.sh
build=${1:-build}
work=$(mktemp -d)
export FETTLE_CLUSTER_DIR=${FETTLE_CLUSTER_DIR:-$work/cluster}
export FETTLE_BUILD=$build

# shellcheck disable=SC2317 # called by the trap
clean_up() {
  "$here/cluster" down
  rm -rf "$work"
}
trap clean_up EXIT

# step WHAT COMMAND...: in the cluster's network.
step() {
  local -r what=$1 started=$SECONDS
  shift
  echo "cluster tests: $what"
  "$here/in_cluster" "$@" || {
    echo "cluster tests: $what: failed; the end of the components' logs:" >&2
    tail -n 5 "$FETTLE_CLUSTER_DIR"/log/* >&2
    exit 1
  }
  echo "cluster tests: $what: passed after $((SECONDS - started)) s"
}

image() { "$here/image.sh" "fettle-$1:0.1.0" images/Dockerfile . --target "$1" --build-arg "FROM_BUILD=$build/bin"; }

try cluster 'this machine cannot run one (see above)' "$here/cluster" up --node
step 'the chart' "$here/chart_test.sh"
step 'the schema and api/ agree' tests/schema/schema_test.py "$build/bin/fettle-judge"
step 'the operator on fake nodes' python3 -B -W ignore -m unittest discover -s "$here/scenarios" -p '*_test.py'
for target in operator trainer; do image "$target"; done
step 'the images' "$here/images_test.sh"
step 'the journey on a real node' "$here/journey.sh" "$build"
