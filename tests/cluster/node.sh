# One real node: containerd, kubelet, kube-proxy and the cluster's DNS. Sourced by inside.sh.
# shellcheck shell=bash

containerd_socket=$machine_state/containerd.sock

start_containerd() {
  start_process containerd containerd --config="$cluster_source/config/containerd.toml"
}

start_kubelet() {
  start_process kubelet kubelet --config="$cluster_source/config/kubelet.yaml" --kubeconfig="$pki/$node_name.kubeconfig" \
    --hostname-override="$node_name" --node-ip="$node_address" --root-dir="$machine_state/kubelet" \
    --cert-dir="$machine_state/kubelet/pki" --cgroup-root="/$machine_cgroup"
}

# masquerade-all: a pod that reaches a pod of its own node through a service must be answered by the same way back.
# conntrack-*=0: those limits belong to the whole kernel.
start_kube-proxy() {
  start_process kube-proxy kube-proxy --kubeconfig="$pki/kube-proxy.kubeconfig" --hostname-override="$node_name" \
    --proxy-mode=nftables --masquerade-all --cluster-cidr="$pod_range" --conntrack-max-per-core=0 \
    --conntrack-tcp-timeout-established=0 --conntrack-tcp-timeout-close-wait=0
}

# On the node's address, in place of a service: kubelet tells every pod to ask there.
start_coredns() { start_process coredns coredns -conf "$cluster_source/config/Corefile"; }

# import_image FILE: a docker archive becomes an image that pods of the node can use.
import_image() { ctr --address="$containerd_socket" --namespace=k8s.io images import "$1" > /dev/null; }

# An archive as `docker save` writes it, of one static program.
make_pause_image() {
  local -r work=$machine_state/pause
  mkdir -p "$work/root"
  cc -O2 -static -o "$work/root/pause" "$cluster_source/pause.c"
  tar -C "$work/root" --owner=0 --group=0 -cf "$work/layer.tar" pause
  local -r layer=$(sha256sum "$work/layer.tar" | cut -d' ' -f1)
  cat > "$work/config.json" << END
{"architecture": "amd64", "os": "linux", "config": {"Entrypoint": ["/pause"], "User": "65535:65535"},
 "rootfs": {"type": "layers", "diff_ids": ["sha256:$layer"]}}
END
  cat > "$work/manifest.json" << END
[{"Config": "config.json", "RepoTags": ["$pause_image"], "Layers": ["layer.tar"]}]
END
  tar -C "$work" -cf "$work/pause.tar" config.json manifest.json layer.tar
  import_image "$work/pause.tar"
}

# Below one group of ours, so that `down` knows what to remove.
make_control_groups() {
  if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    sed 's/\</+/g' /sys/fs/cgroup/cgroup.controllers > /sys/fs/cgroup/cgroup.subtree_control ||
      cannot 'cannot hand out control groups (cgroup v2, processes in the root group?); a real node needs them'
    mkdir -p "/sys/fs/cgroup/$machine_cgroup" || cannot 'cannot make control groups; a real node needs them'
    return
  fi
  local hierarchy
  while read -r hierarchy; do
    mkdir -p "$hierarchy/$machine_cgroup" || cannot 'cannot make control groups; a real node needs them'
  done < <(awk '$3 == "cgroup" && $2 ~ /^\/sys\/fs\/cgroup\// {print $2}' /proc/mounts)
}

grant_kube_proxy() {
  admin create clusterrolebinding kube-proxy --clusterrole=system:node-proxier --user=system:kube-proxy \
    --dry-run=client -o yaml | admin apply --server-side -f - > /dev/null
}

# Claims without a storage class bind to these.
make_volumes() {
  local i
  for i in 0 1 2 3; do
    mkdir -p -m 1777 "$machine_state/volumes/$i"
    echo ---
    sed "s/@INDEX@/$i/" "$cluster_source/config/volume.yaml"
  done | admin apply --server-side -f - > /dev/null
}

node_up() {
  make_control_groups
  mkdir -p "$machine_state/cni"
  cp "$cluster_source/config/network.conflist" "$machine_state/cni/"
  start_containerd
  wait_for "$patience" containerd ctr --address="$containerd_socket" version
  ctr --address="$containerd_socket" --namespace=k8s.io images list --quiet | grep -x "$pause_image" > /dev/null || make_pause_image
  start_kubelet
  grant_kube_proxy
  start_kube-proxy
  start_coredns
  make_volumes
  wait_for "$patience" "node $node_name" admin get node "$node_name"
  admin wait --for=condition=Ready --timeout="${patience}s" "node/$node_name" > /dev/null
}
