#!/usr/bin/env bash
# make bench-warm: what a trial costs besides itself in a warm worker (tests/warm/bench.py). The virtual environments of
# PyTorch and of Ray lie in ~/.cache/fettle, each under its version; both use the same PyTorch.
# Usage: scripts/bench_warm.sh BUILD [options of tests/warm/bench.py, as --torch-trials 20 --parts c]
set -euo pipefail
build=$(realpath "${1:-build}")
shift || true
here=$(cd "$(dirname "$0")" && pwd)
torch=$HOME/.cache/fettle/torch-2.11.0
ray=$HOME/.cache/fettle/ray-2.60.0

install() {  # FOLDER IMPORTS PACKAGE...
  local folder=$1 imports=$2
  shift 2
  "$folder/bin/python" -c "import $imports" 2> /dev/null && return
  command -v python3 > /dev/null && python3 -m venv --help > /dev/null || "$here/setup.sh" python3-venv
  python3 -m venv "$folder"
  "$folder/bin/pip" install --quiet "$@"
}
install "$torch" torch torch==2.11.0 numpy
install "$ray" ray.tune 'ray[tune]==2.60.0' numpy==2.4.6
for site in "$torch"/lib/python3*/site-packages; do
  echo "$site" > "$(echo "$ray"/lib/python3*/site-packages)/torch.pth"
done
cc -O2 -Wall -Wextra -o "$build/stub_worker" "$here/../tests/warm/stub_worker.c"

echo "machine: $(nproc) cores, $(awk -F': ' '/model name/ {print $2; exit}' /proc/cpuinfo), $(date -I), load $(cut -d' ' -f1 /proc/loadavg)"
exec python3 -B "$here/../tests/warm/bench.py" "$build/bin/fettle" "$build/stub_worker" --torch "$torch/bin/python" \
  --ray "$ray/bin/python" "$@"
