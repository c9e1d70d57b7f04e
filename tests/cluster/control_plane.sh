# etcd, API server, scheduler and controller-manager as plain processes. Sourced by inside.sh.
# shellcheck shell=bash

# The default of 20 requests a second is what would be measured, instead of the operator.
fast_client=(--kube-api-qps=1000 --kube-api-burst=1000)
# PodGroups, which Kubernetes 1.36 has behind gates.
gangs=--feature-gates=GenericWorkload=true,GangScheduling=true

start_etcd() {
  start_process etcd etcd --data-dir="$machine_state/etcd" --unsafe-no-fsync --log-level=warn \
    --listen-client-urls=http://127.0.0.1:2379 --advertise-client-urls=http://127.0.0.1:2379 \
    --listen-peer-urls=http://127.0.0.1:2380
}

start_kube-apiserver() {
  start_process kube-apiserver kube-apiserver --etcd-servers=http://127.0.0.1:2379 \
    --advertise-address="$node_address" --service-cluster-ip-range="$service_range" \
    --tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" --client-ca-file="$pki/ca.crt" \
    "$gangs" --runtime-config=scheduling.k8s.io/v1alpha2=true \
    --authorization-mode=Node,RBAC --token-auth-file="$pki/tokens.csv" --enable-admission-plugins=NodeRestriction \
    --service-account-issuer=https://kubernetes.default.svc --service-account-key-file="$pki/service-accounts.pub" \
    --service-account-signing-key-file="$pki/service-accounts.key" --allow-privileged=true \
    --kubelet-client-certificate="$pki/kubelet-client.crt" --kubelet-client-key="$pki/kubelet-client.key" \
    --kubelet-preferred-address-types=InternalIP # a node's name resolves nowhere
}

start_kube-scheduler() {
  start_process kube-scheduler kube-scheduler --kubeconfig="$pki/kube-scheduler.kubeconfig" \
    --leader-elect=false "$gangs" "${fast_client[@]}"
}

start_kube-controller-manager() {
  start_process kube-controller-manager kube-controller-manager \
    --kubeconfig="$pki/kube-controller-manager.kubeconfig" --leader-elect=false "$gangs" "${fast_client[@]}" \
    --use-service-account-credentials=true --service-account-private-key-file="$pki/service-accounts.key" \
    --root-ca-file="$pki/ca.crt"
}

admin() { kubectl --kubeconfig="$cluster_dir/kubeconfig" "$@"; }

control_plane_ready() {
  wait_for "$patience" 'the API server' admin get --raw /readyz
  # Made by the controller-manager: before it, pods are refused.
  wait_for "$patience" 'the controller-manager' admin get serviceaccount default
}

control_plane_up() {
  make_identities
  start_etcd
  start_kube-apiserver
  wait_for "$patience" 'the API server' admin get --raw /readyz
  start_kube-scheduler
  start_kube-controller-manager
  control_plane_ready
}
