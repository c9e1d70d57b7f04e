#!/usr/bin/env bash
# Packages the chart, pushes it to a registry on loopback and pulls it from there: what comes back
# must render as the folder does. Needs helm on PATH, or builds it, and the Debian package docker-registry.
set -euo pipefail
cd "$(dirname "$0")/../.."
command -v helm > /dev/null || PATH=$(tests/cluster/build_tools.sh):$PATH
scripts/setup.sh docker-registry
work=$(mktemp -d)
trap 'kill "$registry" 2> /dev/null || true; rm -rf "$work"' EXIT

cat > "$work/registry.yaml" << CONFIG
version: 0.1
storage: {filesystem: {rootdirectory: $work/storage}}
http: {addr: "127.0.0.1:0"}
CONFIG
docker-registry serve "$work/registry.yaml" > "$work/registry.log" 2>&1 &
registry=$!
port=
for _ in $(seq 100); do
  port=$(sed -n 's/.*listening on 127\.0\.0\.1:\([0-9]*\).*/\1/p' "$work/registry.log" | head -1)
  [ -z "$port" ] || break
  sleep 0.1
done
[ -n "$port" ] || { cat "$work/registry.log" >&2; exit 1; }

cp -rL helm/fettle "$work/fettle" # helm prints a line for each symbolic link
helm package --destination "$work" "$work/fettle" > /dev/null
export HELM_CONFIG_HOME=$work/config HELM_CACHE_HOME=$work/cache
helm push --plain-http "$work"/fettle-*.tgz "oci://127.0.0.1:$port/charts" > /dev/null 2>&1
version=$(sed -n 's/^version: //p' helm/fettle/Chart.yaml)
mkdir "$work/pulled"
helm pull --plain-http "oci://127.0.0.1:$port/charts/fettle" --version "$version" --destination "$work/pulled" > /dev/null 2>&1
helm template fettle --namespace fettle-system "$work/fettle" > "$work/folder.yaml"
helm template fettle --namespace fettle-system "$work"/pulled/fettle-*.tgz > "$work/pulled.yaml"
diff "$work/folder.yaml" "$work/pulled.yaml"
echo "chart: $version, pushed and pulled"
