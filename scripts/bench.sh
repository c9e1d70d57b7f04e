#!/usr/bin/env bash
# make bench: the numbers of docs/benchmarks/, measured on this machine.
# 1. The example, from the YAML to the best trial, in an empty directory.
# 2. The trainer against PyTorch 2.11, one core, in alternation. Its virtual environment (several
#    GB, once) lies in ~/.cache/fettle.
# 3. Process start to the first training step, against importing torch.
# 4. What a trial costs besides itself.
set -euo pipefail
build=$(realpath "${1:-build}")
here=$(cd "$(dirname "$0")" && pwd)
peer=$("$here/torch_python.sh")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo "machine: $(nproc) cores, $(awk -F': ' '/model name/ {print $2; exit}' /proc/cpuinfo), $(date -I)"

echo '== the example: fettle run examples/fashion-mnist.yaml'
start=$(date +%s)
(cd "$work" && "$build/bin/fettle" run "$here/../examples/fashion-mnist.yaml" > run.txt)
echo "wall seconds: $(($(date +%s) - start))"
grep -A1 '^Best:' "$work/run.txt"

echo '== the trainer against PyTorch (images per second, ratio)'
python3 "$here/bench_trainer.py" --build "$build" --python "$peer"

echo '== start: process start to the first training step'
"$here/bench_start.py" --build "$build" --python "$peer"

echo '== overhead: 600 trials that print one metric, 30 at a time'
"$here/bench_overhead.sh" "$build/bin/fettle"
