#!/usr/bin/env bash
# make gpu-bundle: gathers in .gpu/ what `make gpu` needs on a machine without network or Debian packages, a few MB:
# GoogleTest's sources, the headers of CLI11, and those of each version of cudnn-frontend. Copy it along with the
# checkout. Does nothing to what is there.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bundle=$here/../.gpu
most_mb=32
mkdir -p "$bundle"
"$here/setup.sh" googletest libcli11-dev
[ -d "$bundle/googletest" ] || cp -r /usr/src/googletest "$bundle/googletest"
[ -d "$bundle/cli11" ] || { mkdir "$bundle/cli11" && cp -r /usr/include/CLI "$bundle/cli11/"; }
wheels=
for frontend in $(sed -n 's/^nvidia-cudnn-frontend==//p' "$here/cuda_packages.txt"); do
  [ ! -d "$bundle/cudnn-frontend-$frontend" ] || continue
  wheels=${wheels:-$("$here/cuda.py")}
  mkdir -p "$bundle/cudnn-frontend-$frontend/include" # the headers name their folder
  cp -r "$wheels/cudnn-frontend-$frontend"/include/cudnn_* "$bundle/cudnn-frontend-$frontend/include/"
done
size=$(du -sm --exclude=bin "$bundle" | cut -f1) # bin: scripts/gpu_prebuild.sh has a limit of its own
if [ "$size" -ge $most_mb ]; then
  echo "gpu-bundle: .gpu is $size MB, expected less than $most_mb" >&2
  exit 1
fi
echo "gpu-bundle: .gpu, $size MB"
