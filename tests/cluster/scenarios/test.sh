#!/usr/bin/env bash
# Scenarios on a control plane of their own, which is gone afterwards.
# Usage: tests/cluster/scenarios/test.sh [BUILD [WORD...]]   (default build; WORD: those with it in their name)
# On a machine that cannot run a cluster it says so: scripts/not_run.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../../.."
# shellcheck source=../own_cluster.sh
source tests/cluster/own_cluster.sh "${1:-build}"

try cluster 'this machine cannot run one (see above)' tests/cluster/cluster up
tests/cluster/in_cluster python3 -B "$here/run.py" "${@:2}"
