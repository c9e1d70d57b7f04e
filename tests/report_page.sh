#!/usr/bin/env bash
# The report page in a real browser: Studies of every size are drawn, clicked through and looked at
# for errors on the console. Needs Chromium; scripts/not_run.sh says what happens without it.
# Usage: tests/report_page.sh FETTLE [FOLDER]   (FOLDER: keep pages and screenshots there)
set -euo pipefail
fettle=$(realpath "$1")
here=$(dirname "$(realpath "$0")")
# shellcheck source=../scripts/not_run.sh
source "$here/../scripts/not_run.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
keep=${2:-}
[ -z "$keep" ] || { mkdir -p "$keep" && keep=$(realpath "$keep"); }

fail() {
  echo "report page: FAILED: $1" >&2
  exit 1
}

command -v chromium > /dev/null ||
  try browser 'there is no chromium and it cannot be installed' "$here/../scripts/setup.sh" chromium

browse() { # FILE OPTIONS...: what the browser logs goes to $work/log
  local page=$1
  shift
  timeout 600 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
    --hide-scrollbars --user-data-dir="$work/profile" --enable-logging=stderr \
    --virtual-time-budget=20000 "$@" "file://$page" 2> "$work/log"
}

echo '<!doctype html><title>empty</title><p>started' > "$work/empty.html"
browse "$work/empty.html" --dump-dom 2> /dev/null | grep started > /dev/null ||
  not_run browser "chromium does not start here: $(tail -n 1 "$work/log")"

cd "$work"
python3 -B "$here/report_studies.py" "$fettle" || fail 'the pages could not be made'

for page in "$work"/pages/*.html; do
  name=$(basename "$page" .html)
  # A copy that uses itself: every button, column, list and axis.
  sed -e "/<\/body>/{r $here/report_clicks.html
    N
  }" "$page" > "$work/clicked.html"
  browse "$work/clicked.html" --dump-dom --window-size=1400,1000 > "$work/dom"
  if grep -E 'CONSOLE' "$work/log" >&2; then fail "$name: errors on the console"; fi
  grep -q 'data-clicked="ok"' "$work/dom" ||
    fail "$name: was not clicked through: $(grep -o 'data-clicked="[^"]*"' "$work/dom")"
  grep -q 'id="broken"' "$work/dom" && fail "$name: data became markup"
  if [ -n "$keep" ]; then
    cp "$page" "$keep/"
    browse "$page" --screenshot="$keep/$name.png" --window-size=1400,3200
    sed 's/dark.matches/true/g' "$page" > "$work/dark.html"
    browse "$work/dark.html" --screenshot="$keep/$name-dark.png" --window-size=1400,3200
  fi
  echo "report page: $name is drawn without errors"
done
