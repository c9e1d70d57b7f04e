#!/usr/bin/env bash
# Checks the JSDoc types of the report page's scripts with TypeScript (tsconfig.json), all together, as they stand in one
# page. Without npm it says NOT RUN (scripts/not_run.sh).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=../../scripts/not_run.sh
source "$here/../../scripts/not_run.sh"
find_tools() { tools=$("$here/../../scripts/page_tools.sh"); }
try browser 'TypeScript cannot be installed from npm' find_tools
"$tools/node_modules/.bin/tsc" -p "$here/tsconfig.json"
echo "page types: $(find "$here/../../cli/report" -name '*.js' | wc -l) scripts"
