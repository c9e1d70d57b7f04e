#!/usr/bin/env bash
# Checks the JSDoc types of the pages' scripts with TypeScript (tsconfig.json): of each page those that it loads, all
# together. Without npm it says NOT RUN (scripts/not_run.sh).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
# shellcheck source=../../scripts/not_run.sh
source "$root/scripts/not_run.sh"
find_tools() { tools=$("$root/scripts/page_tools.sh"); }
try browser 'TypeScript cannot be installed from npm' find_tools

# The names of the scripts that files load, but for Chart.js.
scripts_in() { grep -ohE '[a-z]+\.js\b' "$@" | grep -v '^min\.js$'; }

failed=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
check() { # PAGE SCRIPT...
  local page=$1 files=() script
  shift
  for script in "$@"; do
    [ -e "$root/cli/report/$script" ] && files+=("$root/cli/report/$script") || files+=("$root/cli/serve/pages/$script")
  done
  printf '{"extends": "%s", "files": [%s"%s"]}\n' "$here/tsconfig.json" "$(printf '"%s", ' "${files[@]}")" \
    "$root/cli/report/types.d.ts" > "$folder/$page.json"
  "$tools/node_modules/.bin/tsc" -p "$folder/$page.json" || failed=1
  printf '%s\n' "${files[@]}" >> "$folder/checked"
}

mapfile -t report < <(scripts_in "$root/cli/report/page.html")
mapfile -t list < <(scripts_in "$root/cli/serve/pages/index.html")
mapfile -t compare < <(scripts_in "$root/cli/serve/pages/compare.html")
mapfile -t follow < <(scripts_in "$root/cli/serve/shells.cpp")
check report "${report[@]}"
check study "${report[@]}" "${follow[@]}"
check list "${list[@]}"
check compare "${compare[@]}"

unchecked=$(find "$root/cli/report" "$root/cli/serve/pages" -name '*.js' | sort | comm -13 <(sort -u "$folder/checked") -)
[ -z "$unchecked" ] || { echo "page types: no page loads $unchecked" >&2 && exit 1; }
[ "$failed" = 0 ] || exit 1
echo "page types: $(sort -u "$folder/checked" | wc -l) scripts"
