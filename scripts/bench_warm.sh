#!/usr/bin/env bash
# make bench-warm: what a trial costs besides itself in a warm worker (tests/warm/bench.py).
# Usage: scripts/bench_warm.sh BUILD [options of tests/warm/bench.py, as --torch-trials 20 --parts c]
set -euo pipefail
build=$(realpath "${1:-build}")
shift || true
here=$(cd "$(dirname "$0")" && pwd)
torch=$("$here/torch_python.sh")
ray=$("$here/torch_python.sh" --ray)
cc -O2 -Wall -Wextra -o "$build/stub_worker" "$here/../tests/warm/stub_worker.c"

echo "machine: $(nproc) cores, $(awk -F': ' '/model name/ {print $2; exit}' /proc/cpuinfo), $(date -I), load $(cut -d' ' -f1 /proc/loadavg)"
exec python3 -B "$here/../tests/warm/bench.py" "$build/bin/fettle" "$build/stub_worker" --torch "$torch" \
  --ray "$ray" "$@"
