#!/usr/bin/env bash
# tests/export/peers.py with the peers from PyPI; without PyPI it says NOT RUN (scripts/not_run.sh).
# Usage: run.sh FETTLE [--trackers | --ray]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=../../scripts/not_run.sh
source "$here/../../scripts/not_run.sh"
fettle=$1
shift
find_python() { python=$("$here/../../scripts/export_python.sh" "$@"); }
try peers 'the packages of the peers cannot be installed from PyPI' find_python "$@"
exec "$here/peers.py" "$fettle" --python "$python" "$@"
