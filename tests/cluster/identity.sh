# Who is who in the cluster: one authority, one token a component, kubeconfigs. Sourced by inside.sh.
# shellcheck shell=bash

pki=$machine_state/pki
key_days=30

# user name: groups. The token is random, of this cluster alone.
identities() {
  cat << END
admin system:masters
system:kube-scheduler
system:kube-controller-manager
system:kube-proxy
system:node:$node_name system:nodes
END
}

# certificate FILE SUBJECT [EXTENSIONS]: signed by the cluster's authority.
certificate() {
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$pki/$1.key" -subj "$2" |
    openssl x509 -req -days "$key_days" -CA "$pki/ca.crt" -CAkey "$pki/ca.key" -CAcreateserial \
      -extfile <(printf '%s\n' "${3:-extendedKeyUsage=clientAuth}") -out "$pki/$1.crt"
}

make_certificates() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days "$key_days" \
    -keyout "$pki/ca.key" -out "$pki/ca.crt" -subj /CN=fettle-test-cluster
  certificate apiserver /CN=kube-apiserver "$(printf '%s\n' extendedKeyUsage=serverAuth \
    "subjectAltName=IP:127.0.0.1,IP:$node_address,IP:$kubernetes_service,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc")"
  certificate kubelet-client /O=system:masters/CN=kube-apiserver-kubelet-client
  certificate admin /O=system:masters/CN=admin
  openssl genrsa -out "$pki/service-accounts.key" 2048
  openssl rsa -in "$pki/service-accounts.key" -pubout -out "$pki/service-accounts.pub"
}

token_of() { awk -F, -v user="$1" '$2 == user {print $1}' "$pki/tokens.csv"; }

# kubeconfig FILE USER_FIELDS: the user as YAML, indented as it must be.
kubeconfig() {
  cat > "$1" << END
apiVersion: v1
kind: Config
clusters:
- name: fettle
  cluster:
    server: $api_url
    certificate-authority-data: $(base64 -w0 "$pki/ca.crt")
users:
- name: fettle
  user:
$2
contexts:
- name: fettle
  context: {cluster: fettle, user: fettle}
current-context: fettle
END
}

make_identities() {
  [ ! -e "$pki/made" ] || return 0
  make_certificates 2>> "$cluster_dir/log/openssl.log" >&2
  local user group
  umask 077
  while read -r user group; do
    echo "$(openssl rand -hex 16),$user,$user${group:+,\"$group\"}" >> "$pki/tokens.csv"
    kubeconfig "$pki/${user##*:}.kubeconfig" "    token: $(token_of "$user")"
  done < <(identities)
  cp "$pki/admin.kubeconfig" "$cluster_dir/kubeconfig"
  kubeconfig "$cluster_dir/kubeconfig-certificate" "    client-certificate-data: $(base64 -w0 "$pki/admin.crt")
    client-key-data: $(base64 -w0 "$pki/admin.key")"
  touch "$pki/made"
}
