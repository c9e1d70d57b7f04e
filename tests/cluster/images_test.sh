#!/usr/bin/env bash
# The images on a real node, as strictly as Kubernetes can hold them: restricted Pod Security
# Standard, read-only root file system, no volumes, no command but the image's own.
# Usage: tests/cluster/in_cluster tests/cluster/images_test.sh
# Needs the real node (cluster up --node) and fettle-operator:0.1.0 and fettle-trainer:0.1.0 on it
# (image.sh). Nothing stays behind.
set -euo pipefail
# shellcheck source=settings.sh
source "$(dirname "$0")/settings.sh" # patience
readonly namespace=images-test version=0.1.0
failed=0

k() { kubectl --namespace "$namespace" "$@"; }

# shellcheck disable=SC2317 # called by the trap
clean_up() { kubectl delete namespace "$namespace" --wait=false > /dev/null 2>&1 || true; }
trap clean_up EXIT

complain() {
  printf 'images: %s\n' "$1" >&2
  failed=1
}

# The user is left to the image: runAsNonRoot makes the kubelet refuse one that is root's.
start() {
  k create -f - > /dev/null << POD
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  restartPolicy: Never
  automountServiceAccountToken: false
  securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: program
    image: $1:$version
    imagePullPolicy: Never
    args: [$2]
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: {drop: [ALL]}
POD
}

# says PROGRAM WORDS: it has ended well and printed them.
says() {
  k wait "pod/$1" --for=jsonpath='{.status.phase}'=Succeeded --timeout="${patience}s" > /dev/null ||
    complain "$1 did not succeed: $(k describe pod "$1" | tail -n 8)"
  local -r log=$(k logs "$1")
  [[ $log == *"$2"* ]] || complain "$1 should say \"$2\", but says: $log"
}

kubectl create namespace "$namespace" > /dev/null
kubectl label namespace "$namespace" pod-security.kubernetes.io/enforce=restricted > /dev/null
for _ in $(seq 1800); do # the account that pods get by default comes a moment later
  k get serviceaccount default > /dev/null 2>&1 && break
  sleep 0.1
done
for program in fettle-operator fettle-trainer; do
  start "$program" --version
done
for program in fettle-operator fettle-trainer; do
  says "$program" "$program $version"
done
[ "$failed" -eq 0 ] && echo 'images: both run as an ordinary user, on a file system they cannot write'
exit "$failed"
