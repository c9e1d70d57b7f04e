#!/usr/bin/env bash
# A Study gives its author no right that he does not have, and Trials are the operator's: the chart's
# roles for people and its admission policies, asked by people of several kinds on a real API server.
# Usage: tests/cluster/people_test.sh NAMESPACE HOME OPERATOR
# NAMESPACE is one of the chart's studyNamespaces; HOME is the namespace of the release, and OPERATOR
# its operator's account. Needs kubectl and a kubeconfig of an administrator. Nothing stays behind.
set -euo pipefail
readonly namespace=$1 home=$2 operator=$3
work=$(mktemp -d)
failed=0

k() { kubectl --namespace "$namespace" "$@"; }

# shellcheck disable=SC2317 # called by the trap
clean_up() {
  k delete study people --wait=false > /dev/null 2>&1 || true
  k delete trial people-0 --wait=false > /dev/null 2>&1 || true
  local place
  for place in "$namespace" "$home"; do
    kubectl --namespace "$place" delete roles,rolebindings --selector test=people > /dev/null 2>&1 || true
  done
  rm -rf "$work"
}
trap clean_up EXIT

# may PLACE USER KIND/ROLE: binds the role to the user (system:serviceaccount:... too).
may() {
  kubectl --namespace "$1" create rolebinding "people-${2##*:}-${3#*/}" --user "$2" "--${3%/*}" "${3#*/}" \
    --dry-run=client -o yaml | kubectl label --local -f - test=people -o yaml | kubectl create -f - > /dev/null
}

# role NAME VERBS RESOURCES [VERBS RESOURCES]...: in the namespace of Studies.
role() {
  local -r name=$1
  shift
  {
    printf 'apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n'
    printf 'metadata: {name: %s, labels: {test: people}}\nrules:\n' "$name"
    while [ $# -gt 0 ]; do
      printf -- '- {apiGroups: ["%s"], resources: [%s], verbs: [%s]}\n' "${2#*.}" "${2%%.*}" "$1"
      shift 2
    done
  } | k create -f - > /dev/null
}

# study [POD_FIELDS [TRIAL_FIELDS]]: one whose pods have these fields.
study() {
  cat << STUDY
apiVersion: fettle.dev/v1alpha1
kind: Study
metadata: {name: people}
spec:
  objectives: [{metric: value, direction: Minimize}]
  parameters: [{name: x, type: Double, min: 0, max: 1}]
  budget: {trials: 1}
  trial:
    workers: {min: 1, max: 2}
    template: {spec: {${1:-} containers: [{name: trial, image: fake}]}}
    ${2:-}
STUDY
}

# trained [TRIAL_FIELDS]: one of the built-in trainer.
trained() {
  cat << STUDY
apiVersion: fettle.dev/v1alpha1
kind: Study
metadata: {name: people}
spec:
  objectives: [{metric: loss, direction: Minimize}]
  parameters: [{name: rate, type: Double, min: 0.1, max: 1, sets: training.learningRate}]
  trial:
    trainer: {data: {trainImages: a, trainLabels: b}, model: {layers: [{type: linear, units: 2}]}}
    ${1:-}
STUDY
}

trial() {
  cat << TRIAL
apiVersion: fettle.dev/v1alpha1
kind: Trial
metadata: {name: people-$1, labels: {fettle.dev/study: people}}
spec: {study: people, index: $1, parameters: {x: 1}, seed: 1, untilStep: 9, workers: 1}
TRIAL
}

# ask USER PLACE DOCUMENT KUBECTL_WORDS...: nothing is stored.
ask() {
  kubectl --as "$1" --namespace "$2" "${@:4}" --dry-run=server ${3:+-f -} <<< "$3" > "$work/said" 2>&1
}

admitted() {
  if ask "${@:2}"; then
    echo "people: admitted: $1"
  else
    complain "$1 should be admitted"
  fi
}

# refused WHAT WORDS USER PLACE DOCUMENT KUBECTL_WORDS...
refused() {
  if ask "${@:3}"; then
    complain "$1 should be refused"
  elif grep -qF -- "$2" "$work/said"; then
    echo "people: refused: $1"
  else
    complain "$1 should be refused with \"$2\""
  fi
}

complain() {
  echo "people: FAILED: $1, but the answer was: $(cat "$work/said")" >&2
  failed=1
}

# wait_for WHAT COMMAND...: roles are put together, and policies begin to count, a moment later.
wait_for() {
  for _ in $(seq 900); do
    ! (failed=0 && "${@:2}" && [ "$failed" -eq 0 ]) > "$work/waited" 2>&1 || return 0
    sleep 0.2
  done
  echo "people: waited without success for $1" >&2
  exit 1
}

# patched USER OBJECT PATCH: the arguments of admitted and refused, one per line.
patched() { printf '%s\n' "$1" "$namespace" '' patch "$2" --type=merge --patch "$3"; }

readonly rights='may not create Jobs in namespace'
readonly robot="system:serviceaccount:$namespace:robot"
role people-study 'create, update, patch, get' studies.fettle.dev
role people-jobs create jobs.batch
role people-trial 'create, update, patch, get' trials.fettle.dev
role people-operate operate trials.fettle.dev
may "$namespace" author clusterrole/edit
may "$home" author clusterrole/edit
may "$namespace" guest clusterrole/view
may "$namespace" outsider role/people-study
may "$namespace" runner role/people-study
may "$namespace" runner role/people-jobs
may "$namespace" forger role/people-trial
may "$namespace" "$robot" role/people-operate
may "$namespace" "$robot" role/people-trial
# It learns of roles, and of bindings, in the order in which they were made: the last ones count.
wait_for 'the roles of people' k auth can-i create studies.fettle.dev --as author
wait_for 'the roles of those who look' k auth can-i list trials.fettle.dev --as guest
wait_for 'the last role' k auth can-i operate trials.fettle.dev --as "$robot"
wait_for 'the last binding' k auth can-i create trials.fettle.dev --as "$robot"
wait_for 'the policies' refused '' "$rights" outsider "$namespace" "$(study)" create

echo "people: who edits a namespace may tune in it, who views it may look"
admitted 'a Study of who edits the namespace' author "$namespace" "$(study)" create
k --as guest get studies,trials > "$work/said" 2>&1 || complain 'who views the namespace should see Studies'
refused 'a Study of who views the namespace' 'cannot create resource "studies"' \
  guest "$namespace" "$(study)" create

echo 'people: what a Study runs is what its author may run'
refused 'a Study of who may not create Jobs' "$rights" outsider "$namespace" "$(study)" create
admitted 'a Study of who may' runner "$namespace" "$(study)" create
refused 'a claim for who may create none' 'may not create those' \
  runner "$namespace" "$(study '' 'checkpoints: {size: 1Gi}')" create
admitted 'a claim for who may' author "$namespace" "$(study '' 'checkpoints: {size: 1Gi}')" create
admitted 'an account of the namespace' \
  author "$namespace" "$(study 'serviceAccountName: somebody,')" create
refused "an operator's account" 'robot is the account of an operator' \
  author "$namespace" "$(study 'serviceAccountName: robot,')" create
refused "an operator's account by the field's old name" 'robot is the account of an operator' \
  author "$namespace" "$(study 'serviceAccount: robot,')" create
refused "an operator's account for the built-in trainer" 'spec.trial.pod.serviceAccountName: robot is' \
  author "$namespace" "$(trained 'pod: {serviceAccountName: robot}')" create
admitted 'an account of the namespace for the built-in trainer' \
  author "$namespace" "$(trained 'pod: {serviceAccountName: somebody}')" create
refused "the release's operator's account" "$operator is the account of an operator" \
  author "$home" "$(study "serviceAccountName: $operator,")" create

may "$namespace" "system:serviceaccount:$namespace:default" role/people-operate
wait_for 'the rights of the default account' refused 'an account that no field names' \
  'default is the account of an operator' author "$namespace" "$(study)" create
k delete rolebinding people-default-people-operate > /dev/null
wait_for 'the default account to lose those rights' admitted 'the default account' \
  author "$namespace" "$(study)" create

study | k --as author create -f - > /dev/null
mapfile -t words < <(patched outsider study/people '{"metadata": {"labels": {"seen": "yes"}}}')
admitted 'a label on a Study by who may not create Jobs' "${words[@]}"
mapfile -t words < <(patched outsider study/people '{"spec": {"budget": {"trials": 2}}}')
refused 'more trials by who may not create Jobs' "$rights" "${words[@]}"
mapfile -t words < <(patched author study/people '{"spec": {"budget": {"trials": 2}}}')
admitted 'more trials by the author' "${words[@]}"

echo 'people: Trials are made by the operator, and changed within bounds'
refused 'a Trial made by hand' 'only the operator of Fettle creates Trials' \
  forger "$namespace" "$(trial 1)" create
admitted 'a Trial of who operates Trials' "$robot" "$namespace" "$(trial 1)" create
trial 0 | k create -f - > /dev/null # by the administrator, who may do everything
while IFS='|' read -r what said patch; do
  mapfile -t words < <(patched author trial/people-0 "$patch")
  if [ -z "$said" ]; then admitted "$what" "${words[@]}"; else refused "$what" "$said" "${words[@]}"; fi
done << 'PATCHES'
more workers||{"spec": {"workers": 2}}
more workers than the Study allows|allows 1 to 2|{"spec": {"workers": 3}}
a wish to stop||{"spec": {"stop": {"reason": "Enough", "message": "by hand"}}}
a pause||{"spec": {"suspend": true}}
more steps|may be changed by hand|{"spec": {"untilStep": 100}}
a label of one's own||{"metadata": {"labels": {"mine": "yes"}}}
another Study's label|tie a Trial to its Study|{"metadata": {"labels": {"fettle.dev/study": "other"}}}
no label of the Study|tie a Trial to its Study|{"metadata": {"labels": {"fettle.dev/study": null}}}
another owner|tie a Trial to its Study|{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]}}
PATCHES
admitted 'the end of a Trial' author "$namespace" '' delete trial/people-0

[ "$failed" -eq 0 ] && echo 'people: nobody gets more out of a Study than he may do himself'
exit "$failed"
