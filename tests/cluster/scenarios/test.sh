#!/usr/bin/env bash
# Scenarios on a control plane of their own, which is gone afterwards.
# Usage: tests/cluster/scenarios/test.sh [BUILD [WORD...]]   (default build; WORD: those with it in their name)
# On a machine that cannot run a cluster it says so: scripts/not_run.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../../.."
# shellcheck source=../../../scripts/not_run.sh
source scripts/not_run.sh
build=${1:-build}
[ $# -eq 0 ] || shift
work=$(mktemp -d)
export FETTLE_CLUSTER_DIR=${FETTLE_CLUSTER_DIR:-$work/cluster}
export FETTLE_BUILD=$build

# shellcheck disable=SC2317 # called by the trap
clean_up() {
  tests/cluster/cluster down
  rm -rf "$work"
}
trap clean_up EXIT

try cluster 'this machine cannot run one (see above)' tests/cluster/cluster up
tests/cluster/in_cluster python3 -B "$here/run.py" "$@"
