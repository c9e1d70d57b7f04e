#!/usr/bin/env bash
# tests/own_program/run.py with the program in PyTorch, in the virtual environment of `make bench`
# (several GB, made once in ~/.cache/fettle).
# Usage: torch.sh FETTLE
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
peer=$HOME/.cache/fettle/torch-2.11.0
if ! "$peer/bin/python" -c 'import torch' 2> /dev/null; then
  python3 -m venv --help > /dev/null || "$here/../../scripts/setup.sh" python3-venv
  python3 -m venv "$peer"
  "$peer/bin/pip" install --quiet torch==2.11.0 numpy
fi
exec "$here/run.py" "$1" --program train.py --python "$peer/bin/python"
