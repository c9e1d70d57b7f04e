#!/usr/bin/env bash
# A user's way on a real node: helm install, kubectl apply, watch real trainers learn, read the result, scale a
# trial up and down, delete the Study, helm uninstall. Both namespaces enforce the restricted Pod Security Standard.
# Usage: tests/cluster/in_cluster tests/cluster/journey.sh [BUILD]   (default build; fettle is taken from BUILD/bin)
# Needs the real node (cluster up --node) and fettle-operator:0.1.0 and fettle-trainer:0.1.0 on it (image.sh).
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=settings.sh
source tests/cluster/settings.sh # patience
# shellcheck source=own_program.sh
source tests/cluster/own_program.sh
PATH=$(realpath "${1:-build}")/bin:$PATH
export PATH
readonly system=fettle-system team=journey study=fashion-mnist trials=4 epochs=12
work=$(mktemp -d)

k() { kubectl --namespace "$team" "$@"; }

# shellcheck disable=SC2317 # called by the trap
clean_up() {
  helm uninstall fettle --namespace "$system" > /dev/null 2>&1 || true
  kubectl delete namespace "$system" "$team" > /dev/null 2>&1 || true
  rm -rf "$work"
}
trap clean_up EXIT

fail() {
  echo "journey: FAILED: $1" >&2
  k get studies,trials,jobs,pods >&2 || true
  k get events.events.k8s.io -o custom-columns=ABOUT:.regarding.name,REASON:.reason,NOTE:.note >&2 || true
  kubectl --namespace "$system" logs deployment/fettle-operator --tail=30 >&2 || true
  exit 1
}

# reached WHAT: a line in the log, with the time, so that a failure shows which wait took long.
reached() { echo "journey: after $SECONDS s: $1"; }

# expect WORDS COMMAND...: it succeeds and prints them.
expect() {
  local -r words=$1
  shift
  "$@" > "$work/said" 2>&1 || fail "\"$*\" fails: $(cat "$work/said")"
  grep -q -- "$words" "$work/said" || fail "\"$*\" should say \"$words\", but says: $(cat "$work/said")"
}

# expect_nothing WHAT COMMAND...: waits until the command prints nothing; pods take a moment to end.
expect_nothing() {
  local -r what=$1
  shift
  for _ in $(seq 900); do
    [ -n "$("$@" 2> /dev/null)" ] || return 0
    sleep 0.2
  done
  fail "$what leaves: $("$@")"
}

# expect_log TRIAL TEXT: waits until the trial's log contains it.
expect_log() {
  local -r end=$((SECONDS + patience))
  while [ "$SECONDS" -lt "$end" ]; do
    kubectl fettle logs "$1" --namespace "$team" > "$work/log" 2>&1 && grep -q "$2" "$work/log" && return
    sleep 0.1
  done
  fail "kubectl fettle logs $1 should show \"$2\", but shows: $(cat "$work/log")"
}

make_namespace() {
  kubectl create namespace "$1" --dry-run=client -o yaml | kubectl apply --server-side -f - > /dev/null
  kubectl label --overwrite namespace "$1" pod-security.kubernetes.io/enforce=restricted > /dev/null
}

# The example with a smaller budget, and checkpoints on a volume that goes with it. An epoch takes a second or more, so
# a trial that has reported one is still at work when it is suspended.
make_study() {
  sed -e "s/trials: 30/trials: $trials/" -e "s/max: 9}/max: $epochs}/" -e 's/trainSamples: .*/trainSamples: 12000/' \
    -e 's/validationSamples: .*/validationSamples: 1000/' -e '/earlyStopping:/d' \
    -e 's/timeout: 10m/&\n    checkpoints: {size: 1Gi}/' examples/fashion-mnist.yaml
}

# Definitions and policies may be there, from other tests.
install() {
  helm install --take-ownership fettle helm/fettle --namespace "$system" --set "studyNamespaces={$team}" --wait --timeout "${patience}s" \
    > "$work/notes" 2>&1 || fail "helm install fails: $(cat "$work/notes")"
}

# suspend true|false STUDY
suspend() { k patch study "$2" --type=merge --patch "{\"spec\": {\"suspend\": $1}}" > /dev/null; }

# A trial whose last run was stopped after its first epoch; nothing if there is none.
stopped_trial() {
  k get trials -o json | python3 -c '
import json, sys
for trial in json.load(sys.stdin)["items"]:
    run = trial["status"]["runs"][-1]
    if run.get("outcome") == "Stopped" and run["lastStep"] > 0:
        print(trial["metadata"]["name"])' | head -n 1
}

# Suspends in the middle of a trial, which then resumes from its checkpoint in another pod. Sets `stopped` to its name.
suspend_and_resume() {
  for _ in $(seq 1800); do
    k get trials --output=jsonpath='{.items[*].status.report.step}' | grep -q '[1-9]' && break
    sleep 0.1
  done
  suspend true "$study"
  k wait --for=condition=Suspended "study/$study" --timeout="${patience}s" > /dev/null || fail 'the Study is not suspended'
  expect_nothing 'the suspended Study' k get pods --output=name
  stopped=$(stopped_trial)
  [ -n "$stopped" ] || fail 'no trial was stopped in the middle'
  suspend false "$study"
  expect_log "$stopped" 'resumes from /fettle/checkpoints'
}

# `kubectl get`, `describe` and `kubectl fettle` of a finished Study.
check_story() {
  local -r status="$work/study.json"
  k get study "$study" -o json > "$status"
  k get trials -o json > "$work/trials.json"
  python3 - "$status" "$trials" "$work/trials.json" "$stopped" << 'PYTHON' || fail 'the status of the Study does not tell what happened'
import json, sys
status = json.load(open(sys.argv[1]))["status"]
best = status["best"][0]
print("journey: best", best["trial"], best["objectives"], best["parameters"])
assert status["progress"] == f"{sys.argv[2]}/{sys.argv[2]}", status["progress"]
assert best["objectives"][0] > 0.5, "a network that learns is better than that"
runs = {trial["metadata"]["name"]: trial["status"]["runs"] for trial in json.load(open(sys.argv[3]))["items"]}
print("journey: runs", [[(one["outcome"], one["lastStep"]) for one in r] for r in runs.values()])
assert [run["outcome"] for run in runs[sys.argv[4]]] == ["Stopped", "Succeeded"], "it was suspended once"
PYTHON
  expect "$trials/$trials" k get studies
  expect Completed k get trials
  expect Succeeded k describe study "$study"
  expect succeeded kubectl fettle status "$study" --namespace "$team"
  expect "$study-0" kubectl fettle trials "$study" --namespace "$team"
  expect learning_rate kubectl fettle best "$study" --namespace "$team"
}

# Trainers report by themselves, with their own tokens.
check_reports() {
  local field
  for field in step throughput objective; do
    expect '[0-9]' k get trials -o "jsonpath={.items[*].status.report.$field}"
  done
  k get trials -o json --show-managed-fields > "$work/trials.json"
  grep -q '"manager": "fettle-trainer"' "$work/trials.json" || fail "the reports are not the trainers' own"
}

# The best network leaves the volume by a pod that is gone afterwards; fettle-trainer writes it here.
check_export() {
  expect "Wrote $work/best.onnx" kubectl fettle export-model "$study" --namespace "$team" --format onnx --output "$work/best.onnx"
  grep -q 'layers.0.weight' "$work/best.onnx" || fail 'the exported network has no weights'
  expect_nothing 'export-model' k get pods --output=name
}

# An image that only prints: its metrics are read from its log.
make_printing_study() {
  cat << 'YAML'
apiVersion: fettle.dev/v1alpha1
kind: Study
metadata: {name: printing}
spec:
  objectives: [{metric: loss, direction: Minimize}]
  parameters: [{name: x, type: Double, min: 0, max: 1}]
  budget: {trials: 2, parallelism: 2}
  resource: {unit: step, max: 9}
  trial:
    heartbeat: 10m
    metrics: {regex: 'step (?P<step>\d+) (?P<name>\w+)=(?P<value>\S+)'}
    template:
      spec:
        securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
        containers:
        - name: trial
          image: fettle-trainer:0.1.0
          imagePullPolicy: Never
          command: [/bin/sh, -c, 'for i in 1 2 3 4 5 6 7 8 9; do echo "step $i loss=0.$i"; sleep 1; done']
          securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
YAML
}

check_printing() {
  make_printing_study | k apply -f - > /dev/null
  k wait --for=condition=Succeeded study/printing --timeout="${patience}s" > /dev/null || fail 'the printing Study does not succeed'
  expect '9 0.9' k get trial printing-1 -o 'jsonpath={.status.report.step} {.status.report.metrics.loss}'
  k delete study printing > /dev/null
}

# make_single NAME MOST: one trial of the same seed, with up to that number of workers, that trains until its Study is
# suspended. What a batchNorm does would depend on their number. A small learning rate does not amplify rounding.
make_single() {
  sed -e "s/name: fashion-mnist/name: $1/" -e 's/max: 1e-1/max: 2e-4/' -e 's/trials: 30, parallelism: 2/trials: 1, parallelism: 1/' \
    -e 's/max: 9}/max: 100000}/' -e 's/validationSamples: .*/validationSamples: 1000/' -e '/earlyStopping:/d' \
    -e '/batchNorm/d' -e "s/timeout: 10m/&\n    workers: {min: 1, max: $2, sizing: Manual}/" examples/fashion-mnist.yaml
}

# expect_workers COUNT: waits until rank 0 reports that world size.
expect_workers() {
  for _ in $(seq 1800); do
    if [ "$(k get trial elastic-0 --output=jsonpath='{.status.report.metrics.world_size}')" = "$1" ]; then
      reached "workers of the elastic trial: $1"
      return
    fi
    sleep 0.1
  done
  fail "the trial should be trained by $1 workers"
}

newest_epoch() { k get trial "$1" --output=jsonpath='{.status.report.step}'; }

# A worker asks for a processor, and the node may have but two, with the operator on it.
make_room() {
  k patch "$(k get pods --output=name --selector fettle.dev/trial=elastic-0)" --subresource resize \
    --patch '{"spec": {"containers": [{"name": "trainer", "resources": {"requests": {"cpu": "500m"}}}]}}' > /dev/null
}

# end_single NAME EPOCH: waits for that epoch, keeps the log and the record, and deletes the Study.
end_single() {
  expect_log "$1-0" "\"step\": $2,"
  cp "$work/log" "$work/$1.log"
  suspend true "$1"
  k wait --for=jsonpath='{.status.runs[0].outcome}'=Stopped "trial/$1-0" --timeout="${patience}s" > /dev/null ||
    fail "the trial of the suspended Study $1 does not stop"
  k get trial "$1-0" -o json > "$work/$1.json"
  k delete study "$1" > /dev/null
}

# A trial grows and shrinks while it trains, in one run, and learns the same as one that does not. Neither ends by
# itself: a node that is slow to start the second worker cannot let the trial end before it has grown.
scale_up_and_down() {
  make_single elastic 2 | k apply -f - > /dev/null
  expect_workers 1
  make_room
  kubectl fettle scale elastic-0 2 --namespace "$team" > /dev/null
  expect_workers 2
  kubectl fettle scale elastic-0 1 --namespace "$team" > /dev/null
  expect_workers 1
  local -r last=$(($(newest_epoch elastic-0) + 2))
  end_single elastic "$last"
  make_single whole 1 | k apply -f - > /dev/null
  end_single whole "$last"
  python3 - "$work" "$last" << 'PYTHON' || fail 'a trial that grew and shrank is not what it would have been'
import json, sys
folder, last = sys.argv[1], int(sys.argv[2])
elastic, whole = (json.load(open(f"{folder}/{name}.json")) for name in ("elastic", "whole"))
assert elastic["spec"]["parameters"] == whole["spec"]["parameters"] and elastic["spec"]["seed"] == whole["spec"]["seed"]
runs = elastic["status"]["runs"]
sizes = [run["workers"] for run in runs] + [resize["workers"] for run in runs for resize in run["resizes"]]
print("journey: workers", sizes, "in", len(runs), "run")
assert sizes == [1, 2, 1] and len(runs) == 1, "it grew and shrank within one run"
def losses(name):
    lines = [json.loads(line) for line in open(f"{folder}/{name}.log") if line.startswith("{")]
    return {line["step"]: line["validation_loss"] for line in lines if line["step"] <= last}
left, right = losses("elastic"), losses("whole")
worst = max(abs(left[step] / right[step] - 1) for step in left)
print(f"journey: loss curves of {len(left)} epochs differ by at most {worst:.1e}")
assert sorted(left) == sorted(right) == list(range(1, last + 1)), "no epoch is left out or repeated"
assert worst < 1e-3, "the same curve, but for the order of sums"
PYTHON
}

left_of_study() { k get trials,jobs,pods,services,persistentvolumeclaims --output=name; }

left_of_chart() {
  kubectl get clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings \
    --output=name --selector app.kubernetes.io/instance=fettle | grep -vE '/fettle-(study|trial|workers|report)$'
  kubectl get all,roles,rolebindings,leases,networkpolicies,poddisruptionbudgets --namespace "$system" --output=name
}

check_nothing_is_left() {
  k delete study "$study" > /dev/null
  expect_nothing 'the deleted Study' left_of_study
  helm uninstall fettle --namespace "$system" --wait > /dev/null
  expect_nothing 'helm uninstall' left_of_chart
  kubectl get crd studies.fettle.dev trials.fettle.dev > /dev/null || fail 'helm uninstall took the definitions away'
}

make_namespace "$system"
make_namespace "$team"
install
helm test fettle --namespace "$system" > "$work/said" 2>&1 || fail "helm test fails: $(cat "$work/said")"
reached 'installed'
make_study | k apply -f - > /dev/null
k wait --for=condition=Running "study/$study" --timeout="${patience}s" > /dev/null || fail 'the Study does not begin'
suspend_and_resume
expect_log "$stopped" step
reached 'resumed'
k wait --for=condition=Succeeded "study/$study" --timeout="${patience}s" > /dev/null || fail 'the Study does not succeed'
check_story
check_reports
check_export
check_printing
check_own_program
reached 'the Studies have succeeded'
scale_up_and_down
check_nothing_is_left
echo "journey: installed, $trials trials trained on a real node, one more scaled, deleted, uninstalled"
