#!/usr/bin/env bash
# A trainer can report for its own trial and do nothing else: the chart's account, role and admission
# policy, asked by real tokens of real pods on a real API server.
# Usage: tests/cluster/fence_test.sh NAMESPACE
# NAMESPACE is one of the chart's studyNamespaces. Needs kubectl and curl, and a kubeconfig of an
# administrator. Nothing stays behind.
set -euo pipefail
readonly namespace=$1 label=fettle.dev/study=fence
work=$(mktemp -d)
failed=0

# `k` is the administrator, who here plays the operator.
k() { kubectl --namespace "$namespace" "$@"; }

# shellcheck disable=SC2317 # called by the trap
clean_up() {
  k delete trials,pods,roles,rolebindings,serviceaccounts --selector "$label" --now --wait=false \
    > /dev/null 2>&1 || true
  rm -rf "$work"
}
trap clean_up EXIT

server=$(kubectl config view --minify -o jsonpath='{.clusters[0].cluster.server}')

# An account of the administrator's making, with the rights of the chart's.
make_reporter() {
  k create -f - > /dev/null << REPORTER
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: reporter, labels: {fettle.dev/study: fence}}}
- apiVersion: rbac.authorization.k8s.io/v1
  kind: Role
  metadata: {name: reporter, labels: {fettle.dev/study: fence}}
  rules: [{apiGroups: [fettle.dev], resources: [trials/status], verbs: [get, patch, update]}]
- apiVersion: rbac.authorization.k8s.io/v1
  kind: RoleBinding
  metadata: {name: reporter, labels: {fettle.dev/study: fence}}
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reporter}
  subjects: [{kind: ServiceAccount, name: reporter, namespace: $namespace}]
REPORTER
}

# make_pod NAME [ACCOUNT]: it need not run: what counts is that its token is its own.
make_pod() {
  k create -f - > /dev/null << POD
apiVersion: v1
kind: Pod
metadata: {name: $1, labels: {fettle.dev/study: fence}}
spec:
  serviceAccountName: ${2:-fettle-trainer}
  nodeSelector: {fettle.dev/no-such-node: ""}
  securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: trainer
    image: fettle-trainer
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
POD
}

make_trial() {
  k create -f - > /dev/null << TRIAL
apiVersion: fettle.dev/v1alpha1
kind: Trial
metadata: {name: $1, labels: {fettle.dev/study: fence}}
spec: {study: fence, index: ${1#fence-}, parameters: {x: 1}, seed: 1, untilStep: 9, workers: 1}
TRIAL
}

pod_uid() { k get pod "$1" -o jsonpath='{.metadata.uid}'; }

pod_token() { k create token "${2:-fettle-trainer}" --bound-object-kind Pod --bound-object-name "$1"; }

# record TRIAL RUNS: what the operator writes when it starts or ends runs.
record() {
  k patch trial "$1" --subresource=status --type=merge --patch "{\"status\": {
    \"phase\": \"Running\", \"runs\": [$2],
    \"facts\": [{\"seq\": 1, \"kind\": \"Rung\", \"step\": 1, \"values\": [0.5]}]}}" > /dev/null
}

open_run() { printf '{"run": %d, "podUID": "%s", "workers": 1, "untilStep": 9}' "$1" "$2"; }

ended_run() {
  printf '{"run": %d, "podUID": "%s", "workers": 1, "untilStep": 9, "outcome": "Failed"}' "$1" "$2"
}

# send TOKEN TRIAL[/status] KIND_OF_PATCH BODY: prints the answer's body, then its code.
send() {
  local manager='fieldManager=fettle-trainer'
  [ "$3" != apply-patch+yaml ] || manager="$manager&force=true"
  curl --silent --insecure --request PATCH --header "Authorization: Bearer $1" \
    --header "Content-Type: application/$3" --data-binary @- --write-out '\n%{http_code}\n' \
    "$server/apis/fettle.dev/v1alpha1/namespaces/$namespace/trials/$2?$manager" <<< "$4"
}

apply() {
  send "$1" "$2" apply-patch+yaml \
    "{\"apiVersion\": \"fettle.dev/v1alpha1\", \"kind\": \"Trial\", $3}"
}

merge() { send "$1" "$2" merge-patch+json "{$3}"; }

apply_file() { apply "$1" "$2" "$(cat "$3")"; }

# curve POINTS METRICS BYTES: a report with that many points of that many metrics, with names that long.
curve() {
  python3 -c '
import json, sys
points, metrics, size = map(int, sys.argv[1:])
point = {f"{i:02}" + "m" * (size - 2): 0.5 for i in range(metrics)}
history = [{"step": step, "metrics": point} for step in range(points)]
print("\"status\": " + json.dumps({"report": {"step": points, "metrics": point, "history": history}}))' "$@"
}

# admitted WHAT COMMAND..., refused WHAT WORDS COMMAND...: what the API server should say to it.
admitted() {
  local -r what=$1
  shift
  "$@" > "$work/answer"
  if [ "$(tail -n 1 "$work/answer")" = 200 ]; then
    echo "fence: admitted: $what"
  else
    complain "$what should be admitted"
  fi
}

refused() { answered 403 "$@"; }

# too_big WHAT WORDS COMMAND...: what the schema does not allow.
too_big() { answered 422 "$@"; }

answered() {
  local -r code=$1 what=$2 words=$3
  shift 3
  "$@" > "$work/answer"
  if [ "$(tail -n 1 "$work/answer")" = "$code" ] && grep -qF -- "$words" "$work/answer"; then
    echo "fence: refused: $what"
  else
    complain "$what should be refused with \"$words\""
  fi
}

complain() {
  echo "fence: FAILED: $1, but the answer was:" >&2
  cat "$work/answer" >&2
  failed=1
}

# The API server needs a moment before a policy that was just created counts.
wait_for_policy() {
  for _ in $(seq 1800); do
    apply "$unbound" fence-0/status "$report" | tail -n 1 | grep -q 403 && return
    sleep 0.1
  done
  echo 'fence: the policy fettle-report does not refuse anything after 180 s' >&2
  exit 1
}

readonly report='"status": {"report": {"step": 3, "metrics": {"accuracy": 0.9}}}'
readonly nothing_else='may change only status.report'
make_reporter
make_pod pod-3 reporter
for name in fence-0 fence-1 fence-2 fence-3; do
  make_trial "$name"
done
for name in pod-0 pod-1 pod-2; do
  make_pod "$name"
done
record fence-0 "$(open_run 0 "$(pod_uid pod-0)")"
record fence-1 "$(open_run 0 "$(pod_uid pod-1)")"
record fence-3 "$(open_run 0 "$(pod_uid pod-3)")"
token=$(pod_token pod-0)
unbound=$(k create token fettle-trainer)
wait_for_policy

admitted 'the own report' apply "$token" fence-0/status "$report"
admitted 'the own report again' apply "$token" fence-0/status "${report/3/4}"
admitted 'the own report as a merge patch' merge "$token" fence-0/status "${report/3/5}"
admitted 'the longest curve' apply "$token" fence-0/status "$(curve 8 32 64)"
while IFS='|' read -r what said size; do
  # shellcheck disable=SC2086 # three numbers
  curve $size > "$work/report"
  too_big "$what" "$said" apply_file "$token" fence-0/status "$work/report"
done << 'SIZES'
a longer curve|expected at most 256 values|9 32 64
a longer name|expected each key to be|1 1 65
more metrics|must have at most 40 items|1 41 64
a report of 1.5 MB|must have at most|50 96 300
a very long name|expected each key to be|1 1 1000
SIZES
too_big 'a long name of a checkpoint' 'may not be more than 512' \
  merge "$token" fence-0/status "\"status\": {\"report\": {\"checkpoint\": \"$(printf 'c%.0s' {1..513})\"}}"
refused "another trial's report" 'does not run trial fence-1' \
  apply "$token" fence-1/status "$report"
refused 'the report of a trial that no pod runs' 'does not run trial fence-2' \
  apply "$token" fence-2/status "$report"
refused 'a token that is bound to no pod' 'bound to none' \
  apply "$unbound" fence-0/status "$report"
refused 'the own phase' "$nothing_else" \
  apply "$token" fence-0/status '"status": {"phase": "Completed"}'
refused 'a new field of the status' "$nothing_else" \
  apply "$token" fence-0/status \
  '"status": {"conditions": [{"type": "Complete", "status": "True", "reason": "Wish", "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z"}]}'
refused 'a pod of its own choice' "$nothing_else" \
  merge "$token" fence-0/status '"status": {"runs": []}'
refused 'removal of a fact' "$nothing_else" \
  merge "$token" fence-0/status '"status": {"facts": null}'
refused 'removal of the whole status' "$nothing_else" \
  merge "$token" fence-0/status '"status": null'
refused 'the own spec' 'cannot patch resource \"trials\"' \
  merge "$token" fence-0 '"spec": {"untilStep": 100}'

merge "$token" fence-0/status '"spec": {"untilStep": 100}, "metadata": {"labels": {"x": "y"}}' \
  > "$work/answer"
k get trial fence-0 -o jsonpath='{.spec.untilStep} {.metadata.labels.x}' > "$work/answer"
if [ "$(cat "$work/answer")" = '9 ' ]; then
  echo 'fence: without effect: spec and labels in a write of the status'
else
  complain 'spec and labels should stay as they are'
fi

record fence-0 "$(ended_run 0 "$(pod_uid pod-0)")"
refused 'a run that has ended' 'does not run trial fence-0' \
  apply "$token" fence-0/status "$report"
record fence-0 "$(ended_run 0 "$(pod_uid pod-0)"), $(open_run 1 "$(pod_uid pod-2)")"
refused "a pod of an earlier run" 'does not run trial fence-0' \
  apply "$token" fence-0/status "$report"
admitted 'the pod of the newest run' apply "$(pod_token pod-2)" fence-0/status "$report"

reporter=$(pod_token pod-3 reporter)
admitted "another account's own report" apply "$reporter" fence-3/status "$report"
refused "another account's report of a trial that is not its own" 'does not run trial fence-0' \
  apply "$reporter" fence-0/status "$report"
refused "another account's facts" "$nothing_else" \
  merge "$reporter" fence-3/status '"status": {"facts": null}'
refused "another account's token that is bound to no pod" 'bound to none' \
  apply "$(k create token reporter)" fence-3/status "$report"

[ "$failed" -eq 0 ] && echo 'fence: trainers can report for their own trial, and nothing else'
exit "$failed"
