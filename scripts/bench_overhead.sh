#!/usr/bin/env bash
# What a trial costs besides itself: 600 trials that only print one metric, 30 at a time.
# Prints one JSON object: wall seconds, milliseconds a trial, and the same for the bare commands,
# started as many at once by xargs, so that the machine's own speed can be told apart.
# Usage: scripts/bench_overhead.sh [FETTLE]
set -euo pipefail
fettle=$(realpath "${1:-build/bin/fettle}")
trials=600
# In memory where that can be: a disk that still has the last run's files to delete takes three times
# as long.
if [ -w /dev/shm ]; then work=$(mktemp -d -p /dev/shm); else work=$(mktemp -d); fi
trap 'rm -rf "$work"' EXIT
cd "$work"

cat > overhead.yaml << YAML
apiVersion: fettle.dev/v1alpha1
kind: Study
metadata: {name: overhead}
spec:
  objectives: [{metric: value, direction: Minimize}]
  parameters: [{name: x, type: Double, min: 0, max: 1}]
  algorithm: {name: random, seed: 1}
  budget: {trials: $trials, parallelism: 30}
  trial:
    template:
      spec:
        containers:
        - name: trial
          command: [/bin/echo, '{"value": \$(FETTLE_PARAM_X)}']
          resources: {requests: {cpu: 10m}}
YAML

seconds() { # of a command
  local start
  start=$(date +%s.%N)
  "$@" > out.txt || { cat out.txt >&2; exit 1; }
  awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN {printf "%.3f", b - a}'
}
bare() { seq $trials | xargs -P 30 -n 1 /bin/echo; }

wall=$(seconds "$fettle" run overhead.yaml)
done_trials=$("$fettle" trials overhead --output csv | grep -c ',Completed,')
[ "$done_trials" -eq $trials ] || { echo "only $done_trials of $trials completed" >&2; exit 1; }
reference=$(seconds bare)
awk -v n=$trials -v w="$wall" -v r="$reference" 'BEGIN {
  printf "{\"trials\": %d, \"wall_seconds\": %s, \"milliseconds_a_trial\": %.2f, ", n, w, 1000 * w / n
  printf "\"bare_milliseconds\": %.2f}\n", 1000 * r / n
}'
