#!/usr/bin/env bash
# First process of the machine (see machine.sh): gives the new namespaces their mounts and network, then waits for
# orphans. Argument: the state folder; it is also how machine_pid knows this process.
set -euo pipefail
# shellcheck source=settings.sh
source "$(dirname "$0")/settings.sh"

# As the host counts: /proc is still the host's.
read -r host_pid _ < /proc/self/stat
echo "$host_pid" > "$cluster_dir/machine.pid"

mounts() {
  mount -t proc proc /proc
  mount --make-rshared / # kubelet expects it; the host's mounts are out of reach all the same
  mount -t tmpfs -o mode=755,size=75% tmpfs /run
  mkdir -p "$machine_state"/{run,pki,var,var-work,sysctl,volumes}
  touch "$cluster_dir/fake-pods.log"
  ln -s "$cluster_dir/fake-pods.log" "$machine_state/fake-pods.log" # where tests can write it
  # Container tools keep some state in /var whatever they are told: it lands in memory.
  mount -t overlay -o "lowerdir=/var,upperdir=$machine_state/var,workdir=$machine_state/var-work" overlay /var
  # kubelet sets these for the whole kernel: it gets copies to write to.
  local name
  for name in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys \
    kernel/keys/root_maxbytes; do
    cat "/proc/sys/$name" > "$machine_state/sysctl/${name//\//.}"
    mount --bind "$machine_state/sysctl/${name//\//.}" "/proc/sys/$name"
  done
}

network() {
  ip link set lo up
  # A pair with both ends here: pods need this kind of device in any case, and a dummy is not in every kernel.
  ip link add node0 type veth peer name node0-peer
  ip link set node0-peer up
  ip address add "$node_address/24" dev node0
  ip link set node0 up
  ip route add default dev node0 # service addresses need a route before they are translated
  echo 1 > /proc/sys/net/ipv4/ip_forward
}

hostname "$node_name"
mounts
network
touch "$cluster_dir/machine.ready"
# bash reaps the orphans it inherits while it waits.
while true; do
  sleep infinity &
  wait "$!" || true
done
