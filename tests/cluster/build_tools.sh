#!/usr/bin/env bash
# Builds Kubernetes, etcd, KWOK, helm, kubeconform and CoreDNS, at the versions of tools/go.mod, into a cache outside
# the checkout: minutes the first time, no time from then on.
# Prints the folder to put on PATH; says on stderr what it does.
set -euo pipefail
# shellcheck source=settings.sh
source "$(dirname "$0")/settings.sh"
# shellcheck source=go.sh
source "$cluster_source/go.sh"

modules=$cluster_source/tools

# Named after the pinned versions, so another version is another folder.
folder() {
  local -r key=$(cat "$modules"/go.* "$modules"/*/* | sha256sum | cut -c1-12)
  echo "$cluster_cache/tools-$key"
}

# Without these a client sees v0.0.0, and helm lint takes every cluster for an ancient one.
version_flags() {
  local -r version=$(awk '$1 == "k8s.io/kubernetes" {print $2}' "$modules/go.mod")
  local -r minor=$(cut -d. -f2 <<< "$version") kube=k8s.io/component-base/version
  local -r capabilities=helm.sh/helm/v3/pkg/chartutil lint=helm.sh/helm/v3/pkg/lint/rules
  echo "-s -w -X $kube.gitVersion=$version -X $kube.gitMajor=1 -X $kube.gitMinor=$minor" \
    "-X $capabilities.k8sVersionMajor=1 -X $capabilities.k8sVersionMinor=$minor" \
    "-X $lint.k8sVersionMajor=1 -X $lint.k8sVersionMinor=$minor"
}

go_install() {
  (cd "$modules" && run_go "$1" install -v -gcflags=all=-dwarf=false -ldflags "$(version_flags)" tool)
}

# Go names every download and every package. Of them a sign of life is of interest, and all of what goes wrong.
progress() {
  local -r tools=$(< "$modules/go.mod")
  local line count=0
  while read -r line; do
    case $line in
      'go: downloading '*) ;;
      *' '*) say "$line" ;;
      *)
        count=$((count + 1))
        if [[ $((count % 250)) -eq 0 || $tools == *$'\n\t'$line$'\n'* ]]; then say "$SECONDS s: package $count, $line"; fi
        ;;
    esac
  done
}

build() {
  say "building the cluster's programs from source, once"
  mkdir -p "$scratch"
  rm -rf "${scratch:?}/bin"
  local go
  go=$(find_go)
  go_install "$go" 2>&1 | progress
  # Go names a program after its folder; etcd's is called server.
  mv "$scratch/bin/server" "$scratch/bin/etcd"
  mv "$scratch/bin" "$1"
  say "built the cluster's programs in $SECONDS s"
}

mkdir -p "$cluster_cache"
exec 8< "$cluster_cache"
flock 8 # two builds at once would share the scratch folder
programs=$(folder)
[ -d "$programs" ] || build "$programs" >&2
echo "$programs"
