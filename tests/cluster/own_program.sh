# shellcheck shell=bash
# For journey.sh: the program of examples/own-program on a real node, under each way in which a trial runs more than
# once. Pods are deleted on the way, gently and at once; every value is that of a training that nobody interrupted.

# Once in its life, between the first epoch and the second, a trial waits half a minute for somebody to end its run.
# shellcheck disable=SC2016 # the trial expands it
readonly hold='held=$FETTLE_CHECKPOINTS/held; [ "$step" -ne 1 ] || [ -e "$held" ] || { : > "$held"; sleep 30 \& wait $!; }'

# make_own_program NAME SEARCH
make_own_program() {
  cat << YAML
apiVersion: fettle.dev/v1alpha1
kind: Study
metadata: {name: $1}
spec:
  objectives: [{metric: loss, direction: Minimize}]
  parameters: [{name: lr, type: Double, min: 0.01, max: 1, scale: Log}]
  resource: {unit: epoch, min: 1, max: 9}
$2
  budget: {trials: 4, parallelism: 2, failures: 0}
  trial:
    retries: 0
    checkpoints: {size: 100Mi}
    template:
      spec:
        securityContext: {runAsNonRoot: true, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
        containers:
        - name: trial
          image: fettle-trainer:0.1.0
          imagePullPolicy: Never
          securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
          command: [/bin/sh, -c]
          args:
          - |
$(sed -e "s@^  sleep 0.1 .*@  $hold@" -e 's/^/            /' examples/own-program/train.sh)
YAML
}

running_pod() {
  k get pods --selector "fettle.dev/study=$1" --field-selector status.phase=Running --output=name | sed -n 1p
}

outcomes_of() { k get trials --selector "fettle.dev/study=$1" --output=jsonpath='{.items[*].status.runs[*].outcome}'; }

# disrupt STUDY...: deletes pods that run, gently and at once by turns, until each Study has a run that ended so.
disrupt() {
  local -r end=$((SECONDS + patience))
  local whose pod grace=0
  local -a left=("$@") still
  while [ "${#left[@]}" -gt 0 ]; do
    [ "$SECONDS" -lt "$end" ] || fail "no run of ${left[*]} was disrupted"
    still=()
    for whose in "${left[@]}"; do
      ! outcomes_of "$whose" | grep Disrupted > /dev/null || continue
      still+=("$whose")
      pod=$(running_pod "$whose")
      [ -n "$pod" ] || continue
      grace=$((30 - grace))
      k delete "$pod" --wait=false --grace-period="$grace" --force="$([ "$grace" -eq 0 ] && echo true || echo false)" \
        > /dev/null 2>&1 || true
    done
    left=("${still[@]}")
    sleep 1
  done
}

check_own_program() {
  local name
  make_own_program own-bohb '  algorithm: {name: bohb, seed: 1, reductionFactor: 3}' | k apply -f - > /dev/null
  make_own_program own-asha $'  algorithm: {name: random, seed: 1}\n  earlyStopping: {name: asha, reductionFactor: 3, promote: true}' |
    k apply -f - > /dev/null
  make_own_program own-pbt '  algorithm: {name: pbt, seed: 1, interval: 3}' | k apply -f - > /dev/null
  disrupt own-bohb own-asha own-pbt
  for name in own-bohb own-asha own-pbt; do
    k wait --for=condition=Succeeded "study/$name" --timeout="${patience}s" > /dev/null || fail "$name does not succeed"
    k get trials --selector "fettle.dev/study=$name" -o json > "$work/$name.json"
    python3 -B - "$name" "$work/$name.json" << 'PYTHON' || fail "$name is not what an undisturbed training would be"
import json, sys
sys.path.insert(0, "tests/own_program")
from run import undisturbed
name, file = sys.argv[1:]
trials = json.load(open(file))["items"]
expected = undisturbed(trials)
runs = [run for trial in trials for run in trial["status"]["runs"]]
for trial in trials:
    assert trial["status"]["phase"] in ("Completed", "Stopped"), trial["status"]["conditions"]
    for fact in trial["status"]["facts"]:
        value, step = fact["values"][0], fact["step"]
        assert abs(value - expected(trial["metadata"]["name"], step)) < 1e-6, (trial["metadata"]["name"], step, value)
assert any(run["outcome"] == "Disrupted" for run in runs), "nobody was disrupted"
assert name != "own-pbt" or any("parent" in trial["spec"] for trial in trials), "none took over from another"
print(f"journey: {name}: {len(trials)} trials in {len(runs)} runs, {sum(r['outcome'] == 'Disrupted' for r in runs)} disrupted")
PYTHON
    k delete study "$name" > /dev/null
  done
}
