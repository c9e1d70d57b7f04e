#!/usr/bin/env bash
# Prints a folder with what tests of the report page need, in ~/.cache/fettle, made once: bin/python with Playwright
# (from PyPI), node_modules/axe-core and node_modules/typescript (from npm). Ends with 3 where those cannot be reached.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
playwright=1.65.2
axe=4.14.1
typescript=5.9.3
folder=$HOME/.cache/fettle/page-playwright-$playwright-axe-$axe-typescript-$typescript

if [ ! -e "$folder/complete" ]; then
  python3 -m venv --help > /dev/null || "$here/setup.sh" python3-venv >&2 || exit 3
  command -v npm > /dev/null || "$here/setup.sh" npm >&2 || exit 3
  [ -x "$folder/bin/python" ] || python3 -m venv "$folder"
  "$folder/bin/pip" install --quiet --disable-pip-version-check "playwright==$playwright" >&2 || exit 3
  npm install --prefix "$folder" --silent --no-fund --no-audit --ignore-scripts "axe-core@$axe" \
    "typescript@$typescript" >&2 || exit 3
  touch "$folder/complete"
fi
echo "$folder"
