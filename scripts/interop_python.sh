#!/usr/bin/env bash
# Prints a Python that has the readers of exported models: safetensors, onnx and onnxruntime, and with --torch PyTorch
# from the environment of torch_python.sh, transformers and torchvision. Virtual environments in ~/.cache/fettle, made once; ends with 3 where PyPI
# cannot be reached.
# Usage: interop_python.sh [--torch]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$HOME/.cache/fettle/interop-onnx-1.23.2-onnxruntime-1.32.0-safetensors-0.8.0

if [ ! -e "$folder/complete" ]; then
  python3 -m venv --help > /dev/null || "$here/setup.sh" python3-venv >&2
  [ -x "$folder/bin/python" ] || python3 -m venv "$folder"
  "$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 onnx==1.23.2 onnxruntime==1.32.0 \
    safetensors==0.8.0 >&2 || exit 3
  touch "$folder/complete"
fi
if [ "${1:-}" = --torch ]; then
  "$here/torch_python.sh" > /dev/null || exit 3
  with=$folder/with-torch-2
  if [ ! -e "$with/complete" ]; then
    [ -x "$with/bin/python" ] || python3 -m venv "$with"
    for one in "$folder" "$HOME/.cache/fettle/torch-2.11.0"; do
      echo "$one"/lib/python3*/site-packages
    done > "$(echo "$with"/lib/python3*/site-packages)/interop.pth"
    "$with/bin/pip" install --quiet --disable-pip-version-check transformers==5.24.0 torchvision==0.26.0 >&2 || exit 3
    touch "$with/complete"
  fi
  echo "$with/bin/python"
else
  echo "$folder/bin/python"
fi
