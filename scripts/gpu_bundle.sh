#!/usr/bin/env bash
# make gpu-bundle: gathers in .gpu/ what `make gpu` needs on a machine without network or Debian packages, under
# 64 MB: GoogleTest's sources, cudnn-frontend's headers, Fashion-MNIST and Shakespeare. Copy it along with the
# checkout. Does nothing to what is there.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bundle=$here/../.gpu
most_mb=64
mkdir -p "$bundle"
"$here/setup.sh" googletest dataset-fashion-mnist
[ -d "$bundle/googletest" ] || cp -r /usr/src/googletest "$bundle/googletest"
[ -d "$bundle/fashion-mnist" ] || cp -r /usr/share/datasets/fashion-mnist "$bundle/fashion-mnist"
"$here/shakespeare.sh" "$bundle/shakespeare.txt"
if [ ! -d "$bundle/cudnn-frontend" ]; then
  wheels=$("$here/cuda.py")
  mkdir -p "$bundle/cudnn-frontend/include"  # the headers name their folder
  cp -r "$wheels"/include/cudnn_* "$bundle/cudnn-frontend/include/"
fi
size=$(du -sm "$bundle" | cut -f1)
if [ "$size" -ge $most_mb ]; then
  echo "gpu-bundle: .gpu is $size MB, expected less than $most_mb" >&2
  exit 1
fi
echo "gpu-bundle: .gpu, $size MB"
