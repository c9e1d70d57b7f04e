# Start and stop processes within the machine. Sourced by inside.sh.
# shellcheck shell=bash

process_runs() { kill -0 "$(cat "$machine_state/run/$1.pid" 2> /dev/null)" 2> /dev/null; }

# start_process NAME COMMAND...: unless it runs. Its log is appended to, so that a restart does not hide why.
start_process() {
  local -r name=$1
  shift
  if process_runs "$name"; then return; fi
  setsid "$@" < /dev/null >> "$cluster_dir/log/$name.log" 2>&1 &
  echo "$!" > "$machine_state/run/$name.pid"
}

# Kills it, as a crash would: components of Kubernetes promise to bear that.
stop_process() {
  local pid
  pid=$(cat "$machine_state/run/$1.pid" 2> /dev/null) || return 0
  kill -KILL "$pid" 2> /dev/null || true
  wait_for "$patience" "$1 to end" test ! -e "/proc/$pid"
}

start_component() {
  case $1 in
    etcd | kube-apiserver | kube-scheduler | kube-controller-manager) "start_$1" && control_plane_ready ;;
    kwok | containerd | kubelet | kube-proxy | coredns) "start_$1" ;;
  esac
}

print_status() {
  local name
  for name in $1; do
    if process_runs "$name"; then echo "$name up"; else echo "$name down"; fi
  done
}
