#!/usr/bin/env bash
# Prints a Python that has PyTorch 2.11, and Ray 2.60 with --ray: virtual environments in ~/.cache/fettle, made once,
# several GB.
# Usage: torch_python.sh [--ray]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
torch=$HOME/.cache/fettle/torch-2.11.0
ray=$HOME/.cache/fettle/ray-2.60.0

make_environment() {  # FOLDER MODULE PACKAGE...
  local folder=$1 module=$2
  shift 2
  if "$folder/bin/python" -c "import $module" 2> /dev/null; then return; fi
  python3 -m venv --help > /dev/null || "$here/setup.sh" python3-venv >&2
  [ -x "$folder/bin/python" ] || python3 -m venv "$folder"
  "$folder/bin/pip" install --quiet "$@" >&2
}

make_environment "$torch" torch torch==2.11.0 numpy
if [ "${1:-}" = --ray ]; then
  make_environment "$ray" ray.tune 'ray[tune]==2.60.0' numpy==2.4.6
  # It finds torch where that is. export_python.sh makes the same environment without it.
  echo "$torch"/lib/python3*/site-packages > "$(echo "$ray"/lib/python3*/site-packages)/torch.pth"
  echo "$ray/bin/python"
else
  echo "$torch/bin/python"
fi
