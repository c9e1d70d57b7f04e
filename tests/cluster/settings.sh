# Names and addresses of the test cluster. Sourced by the scripts of this folder; starts nothing.
# shellcheck shell=bash disable=SC2034 # used by those who source it

cluster_source=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# Outside the machine: kubeconfigs, logs and the init process's id. Two folders make two clusters.
cluster_dir=${FETTLE_CLUSTER_DIR:-/tmp/fettle-cluster}
# Inside the machine, on a tmpfs that goes with it: etcd, keys, containers, volumes.
machine_state=/run/fettle
# Built binaries and the base image, keyed by what they are made from.
cluster_cache=${XDG_CACHE_HOME:-$HOME/.cache}/fettle/cluster

# The machine has a network namespace of its own, so these meet nothing outside.
node_name=real-0
node_address=10.99.0.1
api_url=https://$node_address:6443
service_range=10.96.0.0/16
kubernetes_service=10.96.0.1
pod_range=10.244.0.0/24
pause_image=localhost/pause:1
# Kubelet's control groups hang below one of ours, so that they can be told from any others.
machine_cgroup=fettle-$(cksum <<< "$cluster_dir" | cut -d' ' -f1)

# Seconds until a wait fails. Only a failure takes that long; the machine may be slow or busy.
patience=600
exit_cannot=3 # this machine cannot do it, whatever the code under test

say() { printf 'cluster: %s\n' "$*" >&2; }

cannot() {
  say "$*"
  exit "$exit_cannot"
}

# wait_for SECONDS WHAT COMMAND...: until the command succeeds; when it never does, says what was waited for.
wait_for() {
  local -r deadline=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" > /dev/null 2>&1; do
    if [ "$SECONDS" -ge "$deadline" ]; then
      say "waited without success for $what; logs are in $cluster_dir/log"
      return 1
    fi
    sleep 0.1
  done
}
