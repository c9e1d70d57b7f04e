#!/usr/bin/env bash
# Exported networks in other programs, and other programs' networks in the trainer, with libraries from PyPI; without
# PyPI it says NOT RUN (scripts/not_run.sh). sample: two networks in onnxruntime alone.
# Usage: run.sh FETTLE_TRAINER [sample]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=../../scripts/not_run.sh
source "$here/../../scripts/not_run.sh"
find_python() { python=$("$here/../../scripts/interop_python.sh" "$@"); }
if [ "${2:-}" = sample ]; then
  try peers 'the readers of exported models cannot be installed from PyPI' find_python
  exec "$python" "$here/interop.py" "$1" list bottleneck
fi
try peers 'the readers of exported models cannot be installed from PyPI' find_python --torch
"$python" "$here/interop.py" "$1"
"$python" "$here/start.py" "$1"
"$python" "$here/int8.py" "$1"
