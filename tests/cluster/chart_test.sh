#!/usr/bin/env bash
# The chart's life on a real API server: installed in a namespace that enforces the restricted Pod
# Security Standard, its rights tried out, upgraded with its definitions, uninstalled. What stays then
# are the definitions, and the policies that other releases rely on.
# Usage: tests/cluster/in_cluster tests/cluster/chart_test.sh
# Needs kubectl, helm and kubeconform on PATH, an administrator's kubeconfig, and fake nodes, where
# the operator's pods only seem to run.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=settings.sh
source tests/cluster/settings.sh # patience
readonly release=fettle namespace=fettle-system team=chart-team chart=helm/fettle
readonly kept='fettle-(study|trial|workers|report)'
readonly operator=system:serviceaccount:$namespace:$release-operator
work=$(mktemp -d)
failed=0

# shellcheck disable=SC2317 # called by the trap
clean_up() {
  helm uninstall "$release" --namespace "$namespace" > /dev/null 2>&1 || true
  kubectl delete namespace "$team" --wait=false > /dev/null 2>&1 || true
  rm -rf "$work"
}
trap clean_up EXIT

complain() {
  printf 'chart: FAILED: %s\n' "$1" >&2
  failed=1
}

make_namespace() {
  kubectl create namespace "$1" --dry-run=client -o yaml | kubectl apply --server-side -f - > /dev/null
  kubectl label --overwrite namespace "$1" pod-security.kubernetes.io/enforce=restricted > /dev/null
}

# Everything the chart can render is what this API server's schemas allow, unknown fields excluded.
check_schemas() {
  helm/tests/openapi_schemas.py "$work/schemas" api/v1 apis/admissionregistration.k8s.io/v1 \
    apis/apiextensions.k8s.io/v1 apis/apps/v1 apis/coordination.k8s.io/v1 \
    apis/flowcontrol.apiserver.k8s.io/v1 apis/networking.k8s.io/v1 apis/policy/v1 apis/rbac.authorization.k8s.io/v1 \
    apis/fettle.dev/v1alpha1
  local -r schema="$work/schemas/{{ .ResourceKind }}{{ .KindSuffix }}.json"
  local values
  for values in helm/tests/values/*.yaml; do
    helm template "$release" "$chart" --namespace "$namespace" --values "$values" |
      kubeconform -strict -summary -schema-location "$schema" -skip ServiceMonitor,PrometheusRule ||
      complain "$values renders what the API server's schemas do not allow"
  done
  kubeconform -strict -schema-location "$schema" examples/*.yaml ||
    complain 'an example is not what the schema of a Study allows'
}

install() {
  # Fake nodes are tainted, so that pods that must run do not land there.
  cat > "$work/values.yaml" << 'VALUES'
operator: {tolerations: [{key: kwok.x-k8s.io/node, operator: Exists}], nodeSelector: {type: kwok}}
VALUES
  helm upgrade --install --take-ownership "$release" "$1" --namespace "$namespace" \
    --values "$work/values.yaml" --set "studyNamespaces={$team}" \
    --wait --timeout "${patience}s" "${@:2}" > "$work/notes" && return
  kubectl --namespace "$namespace" get pods >&2
  kubectl --namespace "$namespace" get events --sort-by=.lastTimestamp | tail -n 10 >&2
  complain "helm cannot install $1"
  exit 1
}

# Runs the three commands of the notes.
check_notes() {
  local -a commands
  local command
  mapfile -t commands < <(sed -n 's/^  \(kubectl .*\)/\1/p' "$work/notes" | head -n 3)
  [ "${#commands[@]}" -eq 3 ] || complain "the notes do not say three commands: $(cat "$work/notes")"
  for command in "${commands[@]}"; do
    timeout "$patience" bash -c "$command" > "$work/said" 2>&1 ||
      complain "the notes say \"$command\", which fails: $(cat "$work/said")"
  done
  kubectl --namespace "$team" delete -f examples/fashion-mnist.yaml > /dev/null
}

# The chart's definitions go through a template; what arrives is what lies in crds/.
check_definitions() {
  local definition
  for definition in crds/*.yaml; do
    cmp -s <(kubectl get -f "$definition" -o jsonpath='{.spec}') \
      <(kubectl replace --dry-run=server -f "$definition" -o jsonpath='{.spec}') ||
      complain "helm installs something other than $definition"
  done
}

# can VERB RESOURCE[/SUBRESOURCE] [NAMESPACE [NAME]]: may the operator do it?
can() {
  local subresource=
  [[ $2 != */* ]] || subresource=${2#*/}
  kubectl auth can-i "$1" "${2%/*}${4:+/$4}" --subresource "$subresource" \
    --namespace "${3:-$team}" --as "$operator" > /dev/null 2>&1
}

# One line a resource: what must be allowed. The golden files of helm/tests show that it is no more;
# the second list is of what would hurt most.
check_rights() {
  local verbs resource verb
  while read -r resource verbs; do
    for verb in $verbs; do
      can "$verb" "$resource" || complain "the operator cannot $verb $resource"
    done
  done << 'ALLOWED'
studies.fettle.dev get list watch delete
studies.fettle.dev/status patch
studies.fettle.dev/finalizers update
trials.fettle.dev get list watch create patch operate
trials.fettle.dev/status patch
trials.fettle.dev/finalizers update
jobs.batch get list watch create patch delete
jobs.batch/finalizers update
pods get list watch create
pods/log get
services get create
persistentvolumeclaims get create
events.events.k8s.io create patch
ALLOWED
  while read -r resource verbs; do
    for verb in $verbs; do
      ! can "$verb" "$resource" || complain "the operator can $verb $resource"
    done
  done << 'REFUSED'
studies.fettle.dev create update patch deletecollection
trials.fettle.dev update delete deletecollection
secrets get list watch create
configmaps get list
serviceaccounts get create
serviceaccounts/token create
pods/exec create get
pods delete patch update
services list update delete
persistentvolumeclaims list update delete
deployments.apps create
roles.rbac.authorization.k8s.io create bind escalate
nodes get list
REFUSED
  can update leases.coordination.k8s.io "$namespace" "$release-operator" ||
    complain 'the operator cannot update its Lease'
  ! can update leases.coordination.k8s.io "$namespace" other ||
    complain 'the operator can update any Lease'
  can get validatingadmissionpolicies.admissionregistration.k8s.io '' fettle-report ||
    complain 'the operator cannot see whether the policies are there'
  ! can get validatingadmissionpolicies.admissionregistration.k8s.io '' other ||
    complain 'the operator can see any policy'
  ! can get trials.fettle.dev default || complain 'the operator can see other namespaces'
}

# A pod that restricted namespaces take.
pod() {
  cat << 'POD'
apiVersion: v1
kind: Pod
metadata: {generateName: checked-}
spec:
  securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: trainer
    image: fettle-trainer
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
POD
}

check_dry_runs() {
  pod | kubectl create --namespace "$team" --as "$operator" --dry-run=server -f - > /dev/null ||
    complain 'the operator cannot create a pod in a dry run'
  if pod | kubectl create --namespace "$team" --as "$operator" -f - 2> "$work/said"; then
    complain 'the operator can create a pod'
  elif ! grep -q 'creates pods in dry runs only' "$work/said"; then
    complain "the operator cannot create a pod, but for another reason: $(cat "$work/said")"
  fi
}

# Helm leaves a chart's crds folder alone when it upgrades; this chart's definitions it must not.
check_upgrade() {
  cp -rL "$chart" "$work/newer"
  local definition
  for definition in "$work"/newer/files/crds/*.yaml; do
    sed -i 's/additionalPrinterColumns:/&\n    - {name: Newer, type: string, jsonPath: .kind}/' "$definition"
  done
  install "$work/newer" --set operator.replicas=3
  kubectl get crd studies.fettle.dev -o yaml > "$work/upgraded"
  grep -q 'name: Newer' "$work/upgraded" ||
    complain 'helm upgrade does not upgrade the definitions'
  install "$chart"
}

# left_of_release KINDS: its objects, but for those that are to stay.
left_of_release() {
  kubectl get "$1" --all-namespaces --ignore-not-found --output=name \
    --selector "app.kubernetes.io/instance=$release" 2> /dev/null |
    grep -vE "/((studies|trials)\.fettle\.dev|$kept)\$" || true
}

check_what_uninstall_leaves() {
  helm uninstall "$release" --namespace "$namespace" --wait > /dev/null
  local kinds left
  local -r end=$((SECONDS + patience))
  kinds=$(kubectl api-resources --verbs=list --output=name | grep -vE '^events' | paste -sd,)
  # Helm waits for its own objects; what a Deployment made of them goes after it.
  while left=$(left_of_release "$kinds") && [ -n "$left" ] && [ "$SECONDS" -lt "$end" ]; do sleep 0.2; done
  [ -z "$left" ] || complain "helm uninstall leaves: $left"
  kubectl get crd studies.fettle.dev trials.fettle.dev > /dev/null ||
    complain 'helm uninstall takes the definitions away, and every Study with them'
  # shellcheck disable=SC2046 # two names
  [ "$(kubectl get $(policies) --output=name | grep -cE "/$kept$")" -eq 8 ] ||
    complain 'helm uninstall takes policies away that other releases rely on'
}

policies() { echo validatingadmissionpolicies,validatingadmissionpolicybindings; }

# An operator of the whole cluster takes no Study beside itself.
check_home() {
  helm template "$release" "$chart" --namespace "$namespace" --set rbac.scope=Cluster \
    --show-only templates/operator-policies.yaml > "$work/home.yaml"
  kubectl apply --server-side --force-conflicts -f "$work/home.yaml" > /dev/null
  local -r study='kubectl create --dry-run=server -f examples/fashion-mnist.yaml --namespace'
  for _ in $(seq 900); do
    $study "$namespace" > "$work/said" 2>&1 || break
    sleep 0.2
  done
  grep -q 'no Study runs beside the operator' "$work/said" ||
    complain "a Study beside the operator should be refused, but: $(cat "$work/said")"
  $study "$team" > "$work/said" 2>&1 || complain "a Study elsewhere is refused: $(cat "$work/said")"
  kubectl delete -f "$work/home.yaml" > /dev/null
}

# The policies restrict people and trainers; the API server reports expressions that do not type-check.
check_policies() {
  kubectl get validatingadmissionpolicies -o jsonpath='{range .items[*]}{.metadata.name}: {.status.typeChecking}{"\n"}{end}' \
    > "$work/said"
  ! grep -q expressionWarnings "$work/said" || complain "the API server doubts a policy: $(cat "$work/said")"
  tests/cluster/fence_test.sh "$team" || failed=1
  tests/cluster/people_test.sh "$team" "$namespace" "$release-operator" || failed=1
}

make_namespace "$namespace"
make_namespace "$team"
install "$chart"
check_notes
check_definitions
check_schemas
check_rights
check_dry_runs
check_policies
check_home
check_upgrade
check_what_uninstall_leaves
[ "$failed" -eq 0 ] && echo 'chart: installed, fenced, upgraded and uninstalled'
exit "$failed"
