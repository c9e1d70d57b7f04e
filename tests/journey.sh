#!/usr/bin/env bash
# The example as a user runs it, smaller: YAML in, best trial out, then the same after kill -9.
# Usage: tests/journey.sh FETTLE STUDY.yaml
set -euo pipefail
fettle=$(realpath "$1")
study=$(realpath "$2")
work=$(realpath "$(mktemp -d)")
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
  echo "journey: FAILED: $1" >&2
  exit 1
}

sed -e 's/trials: 30/trials: 6/' -e 's/max: 9}/max: 3}/' -e 's/trainSamples: .*/trainSamples: 3000/' \
  -e 's/validationSamples: .*/validationSamples: 1000/' "$study" > small.yaml
"$fettle" validate small.yaml

# Killed in the middle, then run again: it goes on.
"$fettle" run small.yaml --output json > first.jsonl &
runner=$!
until "$fettle" trials fashion-mnist --output json 2> /dev/null | grep '"Completed"' > /dev/null; do
  kill -0 "$runner" 2> /dev/null || break
  sleep 0.1
done
kill -9 "$runner" 2> /dev/null || fail 'the study ended before it could be killed'
wait "$runner" 2> /dev/null || true

"$fettle" run small.yaml --output json > second.jsonl || fail "exit code $? after the resume"
"$fettle" trials fashion-mnist --output csv > trials.csv
[ "$(wc -l < trials.csv)" -eq 7 ] || fail "expected 6 trials and a header: $(cat trials.csv)"
best=$(python3 - <<'PYTHON'
import json
last = json.loads(open("second.jsonl").read().splitlines()[-1])["result"]
print(last["best"]["objective"])
PYTHON
)
python3 -c "import sys; sys.exit(not $best > 0.6)" || fail "best validation accuracy only $best"
"$fettle" status fashion-mnist > /dev/null
# A trial is told by its environment. A process that ends meanwhile is none that is left.
left=$(grep -lszF "FETTLE_TRIAL=$work/" /proc/[0-9]*/environ || true)
[ -z "$left" ] || fail "a trial is still running: $left"
echo "journey: killed and resumed, 6 trials, best validation accuracy $best"
