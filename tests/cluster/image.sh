#!/usr/bin/env bash
# Builds an image from a Dockerfile and gives it to the cluster's real node, without a registry:
#   image.sh NAME[:TAG] DOCKERFILE CONTEXT [BUILDAH_OPTION...]
# `FROM debian:bookworm-slim` finds a base made here of Debian's packages (once, kept in the cache); nothing is pulled.
# Pods name the image as given, with imagePullPolicy Never or IfNotPresent. Exit code 3: images cannot be built here.
set -euo pipefail
# shellcheck source=settings.sh
source "$(dirname "$0")/settings.sh"
# shellcheck source=machine.sh
source "$cluster_source/machine.sh"

base=localhost/debian:bookworm-slim
storage=$cluster_cache/images

[ $# -ge 3 ] || { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ "$(id -u)" -eq 0 ] || cannot 'building images needs root; run it as root'
# Mounts made here are private to this process and end with it.
[ -n "${FETTLE_IMAGE_MOUNTS:-}" ] ||
  FETTLE_IMAGE_MOUNTS=private exec unshare --mount --propagation private "$0" "$@"
name=$1 dockerfile=$2 context=$3
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A storage of our own, which knows nothing of the user's images and containers.
with_buildah() { buildah --storage-driver "$driver" --root "$storage/$driver" --runroot "$work/run" "$@"; }

# Layers are 20 times as fast as vfs, which copies the whole image at each step but works everywhere.
driver=overlay
choose_driver() {
  with_buildah images > /dev/null 2>&1 || driver=vfs
}

make_base() {
  if with_buildah inspect --type image "$base" > /dev/null 2>&1; then return; fi
  say 'making the base image of Debian packages, once'
  mmdebstrap --quiet --variant=minbase bookworm "$work/base.tar" || cannot 'mmdebstrap cannot make a base image here'
  local container
  container=$(with_buildah from scratch)
  with_buildah add --quiet "$container" "$work/base.tar" / > /dev/null
  with_buildah config --cmd bash "$container"
  with_buildah commit --quiet --rm "$container" "$base" > /dev/null
}

# shellcheck disable=SC2046 # one word a package
"$cluster_source/../../scripts/setup.sh" $(grep -v '^#' "$cluster_source/packages.txt") || exit "$exit_cannot"
mkdir -p "$storage"
exec 8< "$storage"
flock 8 # one build at a time
started=$SECONDS
choose_driver
# A build that was killed leaves its container behind, and `rmi --prune` fails while an image is in use.
with_buildah rm --all > /dev/null 2>&1 || true
make_base
with_buildah build --isolation chroot --pull=never --layers --quiet --tag "$name" --file "$dockerfile" "$@" "$context" > /dev/null
with_buildah push --quiet "$name" "docker-archive:$work/image.tar:$name"
with_buildah rmi --prune > /dev/null # what the tag no longer needs; the rest makes the next build short
say "built $name ($(du -h "$work/image.tar" | cut -f1)) after $((SECONDS - started)) s"
machine_enter --mount --net --pid -- ctr --address="$machine_state/containerd.sock" --namespace=k8s.io \
  images import "$work/image.tar" > /dev/null || cannot "the node did not take $name: is it up (cluster up --node)?"
say "gave $name to the node after $((SECONDS - started)) s"
