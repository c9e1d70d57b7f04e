#!/usr/bin/env bash
# Tests the test cluster itself: it comes up, does what tests rely on, mends itself, and leaves no trace.
#   selftest.sh [--node]    with --node a real pod runs too, from an image built here
# Uses a cluster of its own beside any other. Exit code 3: this machine cannot run it.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
export FETTLE_CLUSTER_DIR=$work/selftest
# shellcheck source=settings.sh
source settings.sh
trap './cluster down; rm -rf "$work"' EXIT

fail() {
  echo "selftest: $*" >&2
  exit 1
}

# What `down` could leave behind on the host. Processes: those whose command line names this cluster.
traces() {
  ip -brief link
  ip netns list
  findmnt --raw --noheadings --output TARGET
  find /sys/fs/cgroup -type d -name "$machine_cgroup"
  nft list tables
  pgrep -af "$FETTLE_CLUSTER_DIR" || true
  ls -d "$FETTLE_CLUSTER_DIR" 2> /dev/null || true
}

# pod NAME PHASE: wait for it, else show why not.
pod_reaches() {
  ./kubectl wait --for=jsonpath='{.status.phase}'="$2" --timeout="${patience}s" "pod/$1" > /dev/null || {
    ./kubectl describe pod "$1" >&2
    fail "pod $1 did not reach $2"
  }
}

fake_jobs() {
  ./kubectl apply -f config/selftest-fake.yaml > /dev/null
  ./kubectl wait --for=condition=Complete --timeout="${patience}s" job/five > /dev/null
  [ "$(./kubectl get job five -o jsonpath='{.status.completedIndexes}')" = 0-4 ] || fail 'a Job of 5 has not 5 indexes'
  ./kubectl wait --for=condition=Failed --timeout="${patience}s" job/fails > /dev/null
  local -r terminated=$(./kubectl get pod -l job-name=fails \
    -o jsonpath='{.items[0].status.containerStatuses[0].state.terminated.exitCode} {.items[0].status.containerStatuses[0].state.terminated.message}')
  [ "$terminated" = '3 it "broke"' ] || fail "exit code and message are: $terminated"
  pod_reaches waits Pending
  ./kubectl wait --for=jsonpath='{.status.containerStatuses[0].state.waiting.reason}'=ImagePullBackOff --timeout="${patience}s" pod/waits > /dev/null
  echo '2026-01-02T03:04:05Z stdout F {"step": 1}' > "$FETTLE_CLUSTER_DIR/fake-pods.log"
  # A disrupted pod ends before it goes, and its Job replaces it.
  local -r first=$(./kubectl get pod -l job-name=forever -o name)
  ./kubectl wait --for=condition=Ready --timeout="${patience}s" "$first" > /dev/null
  ./kubectl create --raw "/api/v1/namespaces/default/pods/${first#pod/}/eviction" -f - > /dev/null << END
{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "${first#pod/}"}}
END
  ./kubectl wait --for=delete --timeout="${patience}s" "$first" > /dev/null
  wait_for "$patience" 'the evicted pod to be replaced' ./kubectl logs job/forever
  [ "$(./kubectl logs job/forever)" = '{"step": 1}' ] || fail 'a fake pod does not show the log file'
}

# The token names the pod it is bound to: the fence around reports rests on it.
pod_token() {
  local -r pod=$(./kubectl get pod -l job-name=forever -o jsonpath='{.items[0].metadata.name}')
  local -r uid=$(./kubectl get pod "$pod" -o jsonpath='{.metadata.uid}')
  local -r token=$(./kubectl create token default --bound-object-kind=Pod --bound-object-name="$pod")
  ./kubectl auth whoami --token="$token" --kubeconfig=/dev/null --server="$(server)" --insecure-skip-tls-verify \
    -o jsonpath='{.status.userInfo.extra}' | grep -qF "$uid" || fail 'a pod-bound token does not name its pod'
}

server() { ./kubectl config view --raw -o jsonpath='{.clusters[0].cluster.server}'; }

restarts() {
  local name
  for name in kube-apiserver etcd kwok; do ./cluster restart "$name"; done
  ./kubectl get job five > /dev/null || fail 'a restart lost what was stored'
  ./cluster stop kube-scheduler
  ./cluster up
  [ "$(./cluster status | grep -c ' up')" -ge 5 ] || fail 'up did not mend a dead scheduler'
}

real_pod() {
  ./image.sh fettle/selftest:1 config/selftest.Dockerfile config
  ./kubectl apply -f config/selftest-real.yaml > /dev/null
  pod_reaches real Running
  wait_for "$patience" 'the pod to reach the API server' log_has real 'service reached'
  ./kubectl exec real -- sh -c 'echo kept > /data/file'
  [ "$(./kubectl exec real -- cat /data/file)" = kept ] || fail 'a volume does not keep what is written'
  ./kubectl delete pod real --grace-period=1 > /dev/null
}

log_has() { ./kubectl logs "$1" | grep -qF "$2"; }

round() {
  ./cluster up "$@"
  ./cluster up "$@" # again: nothing to do
  fake_jobs
  pod_token
  restarts
  if [ "${1:-}" = --node ]; then real_pod; fi
  ./cluster down
  ./cluster down
  local -r left=$(traces | sort | comm -13 "$work/before" -)
  [ -z "$left" ] || fail "down left behind:
$left"
}

./build_tools.sh > /dev/null
traces | sort > "$work/before"
round "$@"
round "$@"
echo 'selftest: passed'
