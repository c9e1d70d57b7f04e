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
# Not the integrations: their libraries are not installed here.
mapfile -t files < <(find fettle -name '*.py' ! -path '*/integrations/*' ! -name sklearn.py ! -name optuna.py)
"$environment/bin/mypy" --strict --python-version 3.10 --cache-dir "$environment/mypy" "${files[@]}"
PYRIGHT_PYTHON_IGNORE_WARNINGS=1 "$environment/bin/pyright" --pythonversion 3.10 "${files[@]}"
