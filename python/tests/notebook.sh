#!/usr/bin/env bash
# Runs notebook.py with Jupyter's own client and kernel, from PyPI, in an environment in ~/.cache/fettle that is made
# once.
# Usage: notebook.sh BUILD
set -euo pipefail
FETTLE_PROGRAM=$(realpath "$1/bin/fettle")
export FETTLE_PROGRAM
cd "$(dirname "$0")"
environment=$HOME/.cache/fettle/notebook-1
if ! [ -x "$environment/bin/jupyter-kernelspec" ]; then
  python3 -m venv --help > /dev/null || ../../scripts/setup.sh python3-venv >&2
  python3 -m venv "$environment"
  "$environment/bin/pip" install --quiet nbclient==0.10.2 ipykernel==6.30.1 pandas==2.3.2 cloudpickle==3.1.1 >&2
fi
JUPYTER_PREFER_ENV_PATH=1 exec "$environment/bin/python" -B notebook.py
