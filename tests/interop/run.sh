#!/usr/bin/env bash
# Exported networks in other programs, and other programs' networks in the trainer, with libraries from PyPI; without
# PyPI it says NOT RUN (scripts/not_run.sh).
# Usage: run.sh FETTLE_TRAINER
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=../../scripts/not_run.sh
source "$here/../../scripts/not_run.sh"
find_python() { python=$("$here/../../scripts/interop_python.sh" --torch); }
try peers 'the readers of exported models cannot be installed from PyPI' find_python
"$python" "$here/interop.py" "$1"
"$python" "$here/start.py" "$1"
