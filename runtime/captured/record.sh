#!/bin/sh
# record.sh NAME.py: keeps what the program writes into two pipes: NAME.out.txt, NAME.err.txt.
set -e
cd "$(dirname "$0")"
name="${1%.py}"
export PYTHONUNBUFFERED=1
{ python3 "$name.py" 2>&1 >&3 3>&- | cat >"$name.err.txt"; } 3>&1 | cat >"$name.out.txt"
[ -s "$name.err.txt" ] || rm "$name.err.txt"
[ -s "$name.out.txt" ] || rm "$name.out.txt"
