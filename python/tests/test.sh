#!/usr/bin/env bash
# The tests of the Python package, each file in a process of its own. They need the program `fettle` and the standard
# library alone. PYTHON: another interpreter than python3.
# Usage: test.sh BUILD [FILE...]
set -euo pipefail
FETTLE_PROGRAM=$(realpath "$1/bin/fettle")
export FETTLE_PROGRAM
shift
cd "$(dirname "$0")"
[ $# -gt 0 ] || set -- *_test.py
failed=0
for file; do
  echo "$file"
  "${PYTHON:-python3}" -B "$file" || failed=1
done
exit "$failed"
