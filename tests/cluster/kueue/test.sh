#!/usr/bin/env bash
# Fettle against Kueue itself, built from its Go module and installed by its own chart, on a cluster of its own.
# Usage: tests/cluster/kueue/test.sh [BUILD [WORD...]]   (default build; WORD: scenarios with it in their name)
# On a machine that cannot run a cluster it says so: scripts/not_run.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../../.."
# shellcheck source=../own_cluster.sh
source tests/cluster/own_cluster.sh "${1:-build}"

try cluster 'this machine cannot run one (see above)' tests/cluster/cluster up --node
FETTLE_KUEUE=$("$here/build.sh")
FETTLE_KUEUE_IMAGE=kueue:$(awk '$1 == "sigs.k8s.io/kueue" {print $2}' "$here/go.mod")
export FETTLE_KUEUE FETTLE_KUEUE_IMAGE
tests/cluster/image.sh "$FETTLE_KUEUE_IMAGE" "$here/Dockerfile" "$FETTLE_KUEUE"
tests/cluster/in_cluster python3 -B tests/cluster/scenarios/run.py --folder "$here" "${@:2}"
