#!/usr/bin/env bash
# tests/own_program/run.py with the program in PyTorch, in the virtual environment of `make bench`.
# Usage: torch.sh FETTLE
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/run.py" "$1" --program train.py --python "$("$here/../../scripts/torch_python.sh")"
