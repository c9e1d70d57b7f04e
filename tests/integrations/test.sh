#!/usr/bin/env bash
# The integrations of python/fettle/integrations with the real libraries, in pinned versions.
# Usage: test.sh FETTLE newest|oldest|sample   (sample: the few that install in a minute)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
pins=${2:?newest, oldest or sample}
FETTLE_PROGRAM=$(realpath "$1")
python=$("$root/scripts/integrations_python.sh" "$pins")
[ "$pins" = sample ] || export FETTLE_INTEGRATIONS=all
export FETTLE_PROGRAM PYTHONPATH=$root/python:$root/python/hydra-sweeper:$here
# Models are tiny, and threads of a library would only wait for each other.
export OMP_NUM_THREADS=1 KERAS_BACKEND=jax PYTHONDONTWRITEBYTECODE=1
cd "$here"
exec "$python" -W ignore -m unittest discover -p '*_test.py'
