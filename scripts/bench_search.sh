#!/usr/bin/env bash
# make bench-search: Fettle's search against its peers (tests/search/bench). The peers' virtual environment lies in
# ~/.cache/fettle, several GB of it PyTorch, which it shares with the trainer's benchmark where that is there.
# make bench-models: Fettle's searches against each other, on other problems; needs no peers.
# Usage: scripts/bench_search.sh BUILD [--heavy] [options of tests/search/bench/bench.py, as --quick]
#        scripts/bench_search.sh BUILD --compare-models [options of tests/search/bench/compare_models.py]
#   --heavy also installs Ax and BoTorch; name them by --peers then.
set -euo pipefail
build=$(realpath "${1:-build}")
shift || true
here=$(cd "$(dirname "$0")" && pwd)
peers=$HOME/.cache/fettle/search-peers
torch=$HOME/.cache/fettle/torch-2.11.0
packages=(numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 optuna==5.0.0 cmaes==0.13.1)
needed='import numpy, scipy, sklearn, optuna, cmaes'
quick=0
program=bench
options=()
for option in "$@"; do
  case $option in
    --heavy) packages+=(ax-platform botorch); needed+=', ax, botorch' ;;
    --quick) quick=1; options+=(--quick) ;;
    --compare-models) quick=1; program=compare_models ;;
    *) options+=("$option") ;;
  esac
done
if [ "$quick" -eq 0 ]; then
  packages+=(leanhebo==0.5.0 torch==2.11.0)
  needed+=', leanhebo'
fi

if [ ! -x "$peers/bin/python" ]; then
  command -v python3 > /dev/null && python3 -m venv --help > /dev/null || "$here/setup.sh" python3-venv
  python3 -m venv "$peers"
fi
for site in "$torch"/lib/python3*/site-packages; do
  [ -d "$site" ] && echo "$site" > "$(echo "$peers"/lib/python3*/site-packages)/torch.pth"
done
if ! "$peers/bin/python" -c "$needed" 2> /dev/null; then
  "$peers/bin/pip" install --quiet "${packages[@]}"
fi

echo "machine: $(nproc) cores, $(awk -F': ' '/model name/ {print $2; exit}' /proc/cpuinfo), $(date -I)"
exec "$peers/bin/python" -B "$here/../tests/search/bench/$program.py" --fettle "$build/bin/fettle" \
  --out "$build/bench-search" "${options[@]}"
