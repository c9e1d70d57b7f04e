#!/usr/bin/env bash
# The report page (page_test.py) and the pages of `fettle serve` (live_page_test.py) used in a real browser by
# Playwright. Without Chromium, PyPI or npm it says NOT RUN (scripts/not_run.sh).
# Usage: run.sh FETTLE [TEST...]   (a test: live_page_test.ListPage.test_filters; FETTLE_PAGE_URL: test only the page at
# this address)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=../../scripts/not_run.sh
source "$here/../../scripts/not_run.sh"
fettle=$(realpath "$1")
shift
find_tools() { tools=$("$here/../../scripts/page_tools.sh"); }
command -v chromium > /dev/null ||
  try browser 'there is no chromium and it cannot be installed' "$here/../../scripts/setup.sh" chromium
try browser 'Playwright or axe-core cannot be installed from PyPI and npm' find_tools
chromium --headless --no-sandbox --disable-gpu --dump-dom about:blank > /dev/null 2>&1 ||
  not_run browser 'chromium does not start here'
export FETTLE=$fettle FETTLE_PAGE_TOOLS=$tools
if [ $# = 0 ]; then
  set -- page_test
  [ -n "${FETTLE_PAGE_URL:-}" ] || set -- page_test live_page_test
fi
cd "$here"
exec "$tools/bin/python" -B -m unittest "$@"
