# KWOK and its nodes, which have GPUs on paper. Sourced by inside.sh.
# shellcheck shell=bash

# kubectl logs asks the node's kubelet, which KWOK plays for every fake node on one port.
kwok_port=10247

start_kwok() {
  start_process kwok kwok --kubeconfig="$pki/admin.kubeconfig" --config="$cluster_source/config/stages.yaml" \
    --manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake --node-lease-duration-seconds=40 \
    --cidr=10.245.0.1/16 --node-ip="$node_address" --node-port="$kwok_port" \
    --server-address="$node_address:$kwok_port" --tls-cert-file="$pki/apiserver.crt" \
    --tls-private-key-file="$pki/apiserver.key"
}

# fake_nodes_up COUNT: makes those that are missing, and removes none.
fake_nodes_up() {
  local -r count=$1
  [ "$count" -gt 0 ] || return 0
  local i
  for ((i = 0; i < count; i++)); do
    echo ---
    sed "s/@NAME@/fake-$i/" "$cluster_source/config/fake-node.yaml"
  done | admin apply --server-side -f - > /dev/null
  start_kwok
  admin wait --for=condition=Ready --timeout="${patience}s" nodes -l type=kwok > /dev/null
}
