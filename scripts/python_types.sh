#!/usr/bin/env bash
# Checks the annotations of the Python package with mypy and pyright, from PyPI, in an environment in ~/.cache/fettle
# that is made once. pyright needs Node.js, which its package fetches where it is missing.
set -euo pipefail
cd "$(dirname "$0")/../python"
environment=$HOME/.cache/fettle/python-types-2
if ! [ -x "$environment/bin/pyright" ]; then
  python3 -m venv --help > /dev/null || ../scripts/setup.sh python3-venv >&2
  python3 -m venv "$environment"
  "$environment/bin/pip" install --quiet mypy==2.4.1 pyright==1.1.414 >&2
fi
check() { "$environment/bin/mypy" --strict --python-version 3.10 --cache-dir "$environment/mypy" "$@"; }
mapfile -t files < <(find fettle -name '*.py' ! -path '*/integrations/*' ! -path fettle/sklearn.py ! -path fettle/optuna.py)
check "${files[@]}"
# The libraries of the integrations are not installed here, so all that comes from them is Any.
mapfile -t integrations < <(find fettle/integrations fettle/sklearn.py fettle/optuna.py -name '*.py')
check --ignore-missing-imports --allow-subclassing-any --no-warn-return-any "${integrations[@]}"
PYRIGHT_PYTHON_IGNORE_WARNINGS=1 "$environment/bin/pyright" --pythonversion 3.10 "${files[@]}"
