# shellcheck shell=bash
# For a test of scenarios on a cluster of its own, which is gone afterwards. Sourced from the project's folder with the
# build folder. On a machine that cannot run a cluster it says so: scripts/not_run.sh.
# shellcheck source=../../scripts/not_run.sh
source scripts/not_run.sh
export FETTLE_BUILD=$1
work=$(mktemp -d)
export FETTLE_CLUSTER_DIR=${FETTLE_CLUSTER_DIR:-$work/cluster}

# shellcheck disable=SC2317 # called by the trap
clean_up() {
  tests/cluster/cluster down
  rm -rf "$work"
}
trap clean_up EXIT
