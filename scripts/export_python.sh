#!/usr/bin/env bash
# Prints a Python that has the peers of `fettle export` and `fettle import`: Optuna and TensorBoard, or with --trackers
# MLflow, W&B and optuna-dashboard, or with --ray Ray Tune. Virtual environments in ~/.cache/fettle, made once; ends with
# 3 where PyPI cannot be reached.
# Usage: export_python.sh [--trackers | --ray]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

make_environment() {  # FOLDER PACKAGE...
  local folder=$1
  shift
  [ ! -e "$folder/complete" ] || return 0
  python3 -m venv --help > /dev/null || "$here/setup.sh" python3-venv >&2
  [ -x "$folder/bin/python" ] || python3 -m venv "$folder"
  "$folder/bin/pip" install --quiet --disable-pip-version-check "$@" >&2 || exit 3
  touch "$folder/complete"
}

if [ "${1:-}" = --trackers ]; then
  folder=$HOME/.cache/fettle/trackers-mlflow-3.17.2-wandb-0.31.0-optuna-dashboard-0.21.0
  make_environment "$folder" mlflow==3.17.2 wandb==0.31.0 optuna-dashboard==0.21.0 optuna==5.0.0
elif [ "${1:-}" = --ray ]; then
  folder=$HOME/.cache/fettle/ray-2.60.0  # that of torch_python.sh, too
  make_environment "$folder" 'ray[tune]==2.60.0' numpy==2.4.6
else
  folder=$HOME/.cache/fettle/exporters-optuna-5.0.0-tensorboard-2.21.0
  make_environment "$folder" optuna==5.0.0 tensorboard==2.21.0
fi
echo "$folder/bin/python"
