#!/usr/bin/env bash
# Tests the chart without a cluster: helm lint, every set of values in tests/values renders, RBAC and
# network policies equal the golden files, and bad values are refused with a clear message.
# Usage: helm/tests/test.sh [--update]   (--update rewrites the golden files; review them with git diff)
# Needs helm on PATH, or builds it (tests/cluster/build_tools.sh).
set -euo pipefail
cd "$(dirname "$0")/../.."
readonly cases=helm/tests
command -v helm > /dev/null || PATH=$(tests/cluster/build_tools.sh):$PATH
work=$(mktemp -d)
# Without symbolic links, of which Helm prints a line each time.
readonly chart=$work/fettle
trap 'rm -rf "$work"' EXIT
cp -rL helm/fettle "$chart"
failed=0

fail() {
  printf 'helm: FAILED: %s\n' "$1" >&2
  failed=1
}

render() {
  helm template fettle "$chart" --namespace fettle-system --values "$1" "${@:2}"
}

# Roles, their bindings and network policies: the part of a chart whose changes must be reviewed.
rendered_rights() {
  local template
  for template in operator-rbac people-rbac trainer serviceaccount admission-policies operator-policies flow-control networkpolicy; do
    render "$1" --show-only "templates/$template.yaml" 2> /dev/null || true # may be off
  done
}

check_good_values() {
  local -r values=$1
  local -r name=$(basename "$values" .yaml)
  helm lint --strict --quiet "$chart" --namespace fettle-system --values "$values" ||
    fail "helm lint refuses $values"
  render "$values" > "$work/all.yaml" || fail "$values does not render"
  # Labels of the version change with every release and mean nothing here.
  rendered_rights "$values" | grep -vE 'helm.sh/chart|app.kubernetes.io/version' > "$work/rights.yaml"
  [ -z "$update" ] || cp "$work/rights.yaml" "$cases/golden/$name.yaml"
  diff -u "$cases/golden/$name.yaml" "$work/rights.yaml" ||
    fail "rights of $values have changed; if they should, helm/tests/test.sh --update"
}

# The first line of each file says what the refusal must say.
check_bad_values() {
  local -r values=$1
  local -r expected=$(sed -n '1s/^# expect: //p' "$values")
  [ -n "$expected" ] || fail "$values does not begin with '# expect: '"
  if render "$values" > /dev/null 2> "$work/said"; then
    fail "$values is accepted"
  elif ! grep -qF -- "$expected" "$work/said"; then
    fail "$values is refused, but not with \"$expected\":
$(cat "$work/said")"
  fi
}

# What no rendered role may have, whatever the golden files say.
check_least_rights() {
  local -r forbidden='"?\*"?|secrets|configmaps|pods/exec|roles|impersonate|escalate'
  local rules
  for values in "$cases"/values/*.yaml; do
    rules=$(render "$values" --show-only templates/operator-rbac.yaml \
      --show-only templates/trainer.yaml | grep -E '^ *-? *(apiGroups|resources|verbs):')
    ! grep -E "[[, ]($forbidden)[], ]" <<< "$rules" || fail "$values gives rights that nothing needs"
  done
}

# definitions WORDS SETTING: how many lines of what is rendered with that setting have the words.
definitions() {
  render "$cases/values/defaults.yaml" --set "admissionPolicies.keep=false,$2" | grep -c "$1" || true
}

check_kept_definitions() {
  local -r want=$(find crds -maxdepth 1 -name '*.yaml' | wc -l)
  local -r kept='helm.sh/resource-policy: keep' kind='^kind: CustomResourceDefinition'
  [ "$(definitions "$kept" crds.keep=true)" -eq "$want" ] ||
    fail "not each of the $want definitions is kept"
  [ "$(definitions "$kind" crds.keep=false)" -eq "$want" ] ||
    fail "crds.keep=false does not render the $want definitions"
  [ "$(definitions "$kept" crds.keep=false)" -eq 0 ] ||
    fail 'crds.keep=false keeps the definitions'
  [ "$(definitions "$kind" crds.install=false)" -eq 0 ] ||
    fail 'crds.install=false installs definitions'
}

# A checkout without symbolic links (git on Windows) has a file with the link's target in its place.
check_lost_links() {
  cp -rL "$chart" "$work/lost"
  echo ../../../../crds/studies.yaml > "$work/lost/files/crds/studies.yaml"
  if helm template fettle "$work/lost" --namespace fettle-system > /dev/null 2> "$work/said"; then
    fail 'a chart whose symbolic links are lost renders'
  elif ! grep -q 'core.symlinks=true' "$work/said"; then
    fail "a chart whose symbolic links are lost is refused without the way out: $(cat "$work/said")"
  fi
}

# `helm package` makes an archive that needs no checkout beside it.
check_package() {
  helm package helm/fettle --destination "$work" > "$work/packaged" 2>&1 || fail "$(cat "$work/packaged")"
  local definition
  for definition in crds/*.yaml; do
    tar -xOzf "$work"/fettle-*.tgz "fettle/files/$definition" | cmp - "$definition" ||
      fail "the packaged chart does not contain $definition"
  done
}

# What fences trainers and people off outlives the release, with what binds it.
check_kept_policies() {
  local kept
  kept=$(render "$cases/values/defaults.yaml" --show-only templates/admission-policies.yaml)
  [ "$(grep -c '^kind: ' <<< "$kept")" -eq "$(grep -c 'helm.sh/resource-policy: keep' <<< "$kept")" ] ||
    fail 'not each admission policy and binding is kept'
  ! render "$cases/values/defaults.yaml" --set admissionPolicies.keep=false \
    --show-only templates/admission-policies.yaml | grep -q 'helm.sh/resource-policy' ||
    fail 'admissionPolicies.keep=false keeps policies'
}

# Everything has the labels and annotations that the administrator wants on everything.
check_common_metadata() {
  local -r settings=commonLabels.cost=ml,commonAnnotations.owner=platform
  render "$cases/values/cluster.yaml" --set "$settings" > "$work/common.yaml"
  local -r objects=$(grep -c '^kind: ' "$work/common.yaml")
  local words
  for words in 'cost: ml' 'owner: platform'; do
    [ "$(grep -cE "^    $words" "$work/common.yaml")" -eq "$objects" ] ||
      fail "not each of $objects objects has $words"
  done
}

# Alerts and the dashboard ask for what the operator measures.
check_measures() {
  local name
  render "$cases/values/cluster.yaml" > "$work/all.yaml"
  grep -oE 'fettle_[a-z_]+' "$work/all.yaml" | sed 's/_bucket$//' | sort -u > "$work/names"
  [ "$(wc -l < "$work/names")" -ge 10 ] || fail 'alerts and the dashboard ask for next to nothing'
  while read -r name; do
    grep -q "\"$name\"" operator/instruments.h || fail "the operator does not measure $name"
  done < "$work/names"
  render "$cases/values/cluster.yaml" --show-only templates/dashboard.yaml | sed '1,/fettle.json/d' |
    python3 -m json.tool > /dev/null || fail 'the dashboard is no JSON'
}

# What the operator would refuse at its start: no file of `helm template` shows it.
check_trainer_pod() {
  local values
  for values in defaults cluster openshift; do
    render "$cases/values/$values.yaml" --show-only templates/trainer-pod.yaml |
      sed -n '/trainer-pod.json/,$p' | sed '1d; s/^    //' > "$work/trainer-pod.json"
    [ -z "$update" ] || cp "$work/trainer-pod.json" "$cases/trainer-pod/$values.json"
    diff -u "$cases/trainer-pod/$values.json" "$work/trainer-pod.json" ||
      fail "pods of trainers have changed with $values; if they should, helm/tests/test.sh --update"
  done
}

# Workers of a trial reach each other, also where another policy of the namespace denies all traffic.
check_workers_meet() {
  local egress way
  for egress in false true; do
    render "$cases/values/namespaces.yaml" --show-only templates/networkpolicy.yaml \
      --set "networkPolicy.enabled=false,networkPolicy.trials.egress=$egress" > "$work/network.yaml"
    [ "$(grep -c 'policyTypes: .*Egress' "$work/network.yaml")" -eq \
      "$([ $egress = false ] && echo 0 || grep -c policyTypes "$work/network.yaml")" ] ||
      fail "networkPolicy.trials.egress=$egress does not decide who restricts egress"
    for way in from $([ $egress = false ] || echo to); do
      [ "$(grep -A2 "^  - $way:" "$work/network.yaml" | grep -c 'key: fettle.dev/trial, operator: Exists')" -eq \
        "$(grep -c '^kind: NetworkPolicy' "$work/network.yaml")" ] ||
        fail "pods of trials may not reach each other ($way, egress=$egress)"
    done
  done
}

update=
[ "${1:-}" != --update ] || update=yes
for values in "$cases"/values/*.yaml; do
  check_good_values "$values"
done
for values in "$cases"/bad/*.yaml; do
  check_bad_values "$values"
done
check_least_rights
check_kept_definitions
check_lost_links
check_package
check_kept_policies
check_common_metadata
check_measures
check_trainer_pod
check_workers_meet
[ "$failed" -eq 0 ] && echo "helm: $(find "$cases/values" "$cases/bad" -name '*.yaml' | wc -l) sets of values: the chart is sound"
exit "$failed"
