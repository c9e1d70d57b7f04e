#!/usr/bin/env bash
# Everything that is proved on a real cluster: the chart, the schema, the operator's scenarios on fake nodes, the images
# and one journey on a real node. Brings a cluster of its own up and takes it down again, whatever happens.
# Usage: tests/cluster/test.sh [BUILD]   (default build; needs fettle, fettle-operator, fettle-trainer and fettle-judge
# in BUILD/bin). On a machine that cannot run a cluster it says so: scripts/not_run.sh.
#
# Steps mostly wait, so they run side by side where they do not disturb each other. By itself runs: the chart, which
# changes the definitions, and the restart of the API server. The journey installs the same release as these two.
set -euo pipefail
set -m # a process group for each step, so that clean_up can end it with all that it has started
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
# shellcheck source=../../scripts/not_run.sh
source scripts/not_run.sh
build=${1:-build}
work=$(mktemp -d)
export FETTLE_CLUSTER_DIR=${FETTLE_CLUSTER_DIR:-$work/cluster}
export FETTLE_BUILD=$build
declare -A running=() # steps that were not waited for yet: their process groups
failed=()

# shellcheck disable=SC2317 # called by the trap
clean_up() {
  local group
  for group in "${running[@]}"; do kill -- "-$group" 2> /dev/null || true; done
  "$here/cluster" down
  rm -rf "$work"
}
trap clean_up EXIT

# step NAME COMMAND...: says how long it took and the last line of its output, or shows all of it if it failed.
step() {
  local -r name=$1 started=$SECONDS
  shift
  if "$@" > "$work/$name.log" 2>&1; then
    echo "cluster tests: $name: passed after $((SECONDS - started)) s: $(tail -n 1 "$work/$name.log")"
    return
  fi
  {
    echo "cluster tests: $name: FAILED after $((SECONDS - started)) s:"
    cat "$work/$name.log"
    echo "cluster tests: $name: the end of the components' logs:"
    tail -n 5 "$FETTLE_CLUSTER_DIR"/log/*
  } >&2
  return 1
}

start() {
  step "$@" &
  running[$1]=$!
}

# finish STEP...: waits for them, and notes those that failed. Fails if one did.
finish() {
  local name code=0
  for name in "$@"; do
    wait "${running[$name]}" || { failed+=("$name") && code=1; }
    unset "running[$name]"
  done
  return "$code"
}

build_images() {
  local target
  for target in operator trainer; do
    "$here/image.sh" "fettle-$target:0.1.0" helm/images/Dockerfile . --target "$target" \
      --build-arg "FROM_BUILD=$build/bin" || return
  done
}

scenarios() { "$here/in_cluster" python3 -B "$here/scenarios/run.py" "$@"; }

try cluster 'this machine cannot run one (see above)' "$here/cluster" up --node
start image-builds build_images
start chart "$here/in_cluster" "$here/chart_test.sh"
finish chart || true
start restart scenarios --only alone
finish restart || true
start schema "$here/in_cluster" tests/schema/schema_test.py "$build/bin/fettle-judge"
start scenarios scenarios --only together
if finish image-builds; then
  start images "$here/in_cluster" "$here/images_test.sh"
  start journey "$here/in_cluster" "$here/journey.sh" "$build"
fi
finish "${!running[@]}" || true
if [ "${#failed[@]}" -gt 0 ]; then
  echo "cluster tests: failed after $SECONDS s: ${failed[*]}" >&2
  exit 1
fi
echo "cluster tests: all passed after $SECONDS s"
