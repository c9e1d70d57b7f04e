# The machine that the cluster runs on: one process in its own mount, network, PID, host name and IPC namespaces.
# Whatever starts inside is a descendant of that process, so killing it ends, unmounts and disconnects everything;
# only control groups and $cluster_dir have to be removed by hand. Sourced by the scripts of this folder, run by root.
# shellcheck shell=bash

# The first process's id as the host sees it; the command line tells it from a later process of the same id.
machine_pid() {
  local pid
  pid=$(cat "$cluster_dir/machine.pid" 2> /dev/null) || return 1
  { tr '\0' ' ' < "/proc/$pid/cmdline"; } 2> /dev/null | grep -qF "machine_init.sh $cluster_dir" || return 1
  echo "$pid"
}

machine_is_up() { machine_pid > /dev/null; }

# machine_enter NAMESPACE_OPTIONS... -- COMMAND...
# Not `ip netns exec`: that remounts /sys, which hides the control groups from kubelet.
machine_enter() {
  local pid
  pid=$(machine_pid) || cannot 'the cluster is down; tests/cluster/cluster up starts it'
  nsenter --target "$pid" "$@"
}

machine_up() {
  if machine_is_up; then return; fi
  machine_down # what a killed machine left
  unshare --mount --net --pid --uts --ipc true 2> /dev/null ||
    cannot 'cannot make namespaces here (a container without the right to?); the cluster needs them'
  [ -z "$(ls -A "$cluster_dir" 2> /dev/null)" ] || cannot "$cluster_dir is not empty; name a new folder as FETTLE_CLUSTER_DIR"
  mkdir -p "$cluster_dir/log"
  setsid unshare --mount --propagation private --net --uts --ipc --pid --fork \
    "$cluster_source/machine_init.sh" "$cluster_dir" < /dev/null > "$cluster_dir/log/machine.log" 2>&1 &
  if ! wait_for "$patience" 'the machine' machine_ready_or_dead "$!" || [ ! -e "$cluster_dir/machine.ready" ]; then
    cat "$cluster_dir/log/machine.log" >&2
    machine_down
    cannot 'could not set up the namespaces (see above)'
  fi
}

machine_ready_or_dead() { test -e "$cluster_dir/machine.ready" || ! kill -0 "$1"; }

machine_down() {
  local pid
  if pid=$(machine_pid); then
    kill -KILL "$pid"
    wait_for "$patience" "process $pid to end" test ! -e "/proc/$pid"
    say 'down'
  fi
  wait_for "$patience" 'the control groups to empty' remove_control_groups
  # The log tells the cluster's own folder from any other.
  [ ! -e "$cluster_dir/log/machine.log" ] || rm -rf "$cluster_dir"
}

# Fails while the kernel is still ending the processes in them.
remove_control_groups() {
  local groups
  mapfile -t groups < <(
    find /sys/fs/cgroup -depth -type d \( -name "$machine_cgroup" -o -path "*/$machine_cgroup/*" \) 2> /dev/null
  )
  [ "${#groups[@]}" -eq 0 ] || rmdir "${groups[@]}"
}
