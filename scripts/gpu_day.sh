#!/usr/bin/env bash
# scripts/gpu_day.sh call1|call2|call3 OUT: a first day on a GPU, in calls of ten minutes each to a machine that is reached
# by nothing else: no network, no packages, and a fresh copy of the checkout with .gpu/ (make gpu-bundle gpu-prebuild).
#
#   call1   does it run, is it right: from the smallest network to the largest, so that the first failure says where
#   call2   where the time goes: plans, operations by themselves, switches, steps against PyTorch's eager ones
#   call3   claims: loss curves, a whole trial, steps against torch.compile
#
# A step has a limit and a log; one that fails, hangs or aborts costs only itself. OUT gets at most eight files: summary.txt
# (printed last, too), logs.tgz, plans.tgz, and what the call measured. To resume, also on another machine, copy
# summary.txt, plans.tgz and benchmarks.json from OUT to .gpu/ and send the call again: a step that went well is not run
# again for the same commit, plans are not timed again, and benchmarks go on where they stopped.
#
# LIMIT: seconds for all (500). REHEARSE=1: the same steps on a CPU, small and with longer limits, by the programs in build/
# and the emulated GPU.
# Exit code 1: a step failed or had no time.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
call=${1:?call1, call2 or call3}
mkdir -p "${2:?a folder for results}"
out=$(cd "$2" && pwd)
limit=${LIMIT:-500} rehearse=${REHEARSE:-}
most_files=8
bin=$PWD/.gpu/bin logs=$PWD/.gpu-day/logs scratch=$PWD/.gpu-day/scratch plans=$PWD/.gpu-day/plans
summary=$out/summary.txt failed=0
commit=$(git rev-parse HEAD 2> /dev/null || cat "$bin/commit.txt" 2> /dev/null || echo unknown)
rm -rf "$logs"
mkdir -p "$logs" "$scratch" "$plans"

# ---- Steps

# What an earlier call of this commit has done.
resume() {
  echo "commit $commit" > "$summary"
  [ ! -f .gpu/plans.tgz ] || tar xzf .gpu/plans.tgz -C "$plans"
  [ ! -f .gpu/benchmarks.json ] || cp .gpu/benchmarks.json "$out/"
  [ -f .gpu/summary.txt ] && [ "$(head -n 1 .gpu/summary.txt)" = "commit $commit" ] || return 0
  grep -E '^call[123]-[^ ]+ +rc +0 ' .gpu/summary.txt >> "$summary" || true
}

# What comes back if the call is killed in the next step.
pack() {
  tar czf "$out/logs.tgz" -C "$logs" .
  tar czf "$out/plans.tgz" -C "$plans" .
}

is_done() { grep -qE "^$call-$1 +rc +0 " "$summary"; }

finish() {
  grep -rh '^note:' "$logs" 2> /dev/null | sort | uniq -c | sort -rn > "$logs/notes.txt"
  head -n 20 "$logs/notes.txt" | sed 's/^/  /' >> "$summary"
  pack
  local files
  files=$(find "$out" -mindepth 1 | wc -l)
  if [ "$files" -gt $most_files ]; then
    echo "gpu_day: $files files, of which only $most_files may come back" >> "$summary"
    failed=1
  fi
  cat "$summary"
  exit $failed
}

# step NAME SECONDS COMMAND...
step() {
  local name=$1 most=$2 began=$SECONDS code=0
  shift 2
  ! is_done "$name" || return 0
  [ -z "$rehearse" ] || most=$((4 * most)) # an emulator is slow, and may have neighbours
  local left=$((limit - SECONDS)) log=$logs/$call-$name.txt
  if [ "$left" -lt 15 ]; then
    echo "$call-$name SKIPPED: no time left" >> "$summary"
    failed=1
    return 1
  fi
  [ "$most" -le "$left" ] || most=$left
  timeout -k 5 "$most" "$@" > "$log" 2>&1 || code=$?
  [ "$code" -eq 0 ] || failed=1
  printf '%-30s rc %3d %4d s  %s\n' "$call-$name" $code $((SECONDS - began)) "$(tail -n 1 "$log" | cut -c1-150)" |
    tee -a "$summary"
  pack
  return $code
}

# As step, but of a tool that the machine may lack.
step_of() {
  local tool=$1
  shift
  if ! command -v "$tool" > /dev/null; then
    echo "$call-$1 NOT RUN: there is no $tool" | tee -a "$summary"
    return 0
  fi
  step "$@"
}

# net NAME SECONDS NETWORK BATCH PRECISION [VARIABLE=VALUE | --OPTION]...: some steps of a network's training.
net() {
  local name=$1 most=$2 model=$3 batch=$4 precision=$5 word
  local -a settings=() options=()
  shift 5
  for word in "$@"; do
    case $word in
    --*) options+=("$word") ;;
    *) settings+=("$word") ;;
    esac
  done
  [ -z "$rehearse" ] || { model=mlp batch=2; } # others take an emulator hours
  step "$name" "$most" env "${settings[@]}" "$trainer" --bench "$model" --batch "$batch" --backend cuda \
    --precision "$precision" --seconds "${for_seconds:-0.5}" "${options[@]}"
}

# ---- Where things are

use_programs() {
  if [ -n "$rehearse" ]; then
    trainer=$PWD/build/bin/fettle-trainer bench=$PWD/build/bin/kernels_bench ladder=(--tiny --seconds 0.001)
    kernels_test=$PWD/build/tests/kernels_test pytorch_test=$PWD/build/tests/trainer_pytorch_test
    plugin=$PWD/build/tests/emulated/libfettle_cuda.so other_plugin=$plugin
    small=(--rehearse)
    return
  fi
  trainer=$bin/fettle-trainer bench=$bin/kernels_bench ladder=(--seconds 0.1)
  kernels_test=$bin/kernels_gpu_test pytorch_test=$bin/trainer_pytorch_test
  plugin=$bin/libfettle_cuda.so other_plugin=$bin/libfettle_cuda-1.19.0.so
  small=()
  # Call 1 has found out which version of cudnn-frontend plans attention.
  if grep -qE '^call1-attention-1.19 +rc +0 ' "$summary"; then plugin=$other_plugin; fi
  local wheels
  wheels=$(python3 -c 'import nvidia; print(next(iter(nvidia.__path__)))' 2> /dev/null)
  export LD_LIBRARY_PATH=$wheels/cu13/lib:$wheels/cudnn/lib:$wheels/nccl/lib
  # Tests find their data where they were compiled.
  local home
  home=$(cat "$bin/checkout.txt" 2> /dev/null || pwd)
  [ -e "$home" ] || { mkdir -p "$(dirname "$home")" && ln -sfn "$PWD" "$home"; }
}

# What was compiled elsewhere cannot be run here: it is compiled here, which takes minutes.
compile_here() {
  step compile 240 env PARTS=none scripts/gpu.sh "$scratch/compiled" || true # 3: no GPU; the programs are there
  mkdir -p "$bin"
  cp build-gpu/bin/{fettle-trainer,kernels_bench,libfettle_cuda.so} build-gpu/tests/{kernels_gpu_test,trainer_pytorch_test} \
    "$bin/"
}

runs_here() { "$trainer" --version > /dev/null 2>&1 && ! ldd "$FETTLE_CUDA_LIBRARY" 2>&1 | grep -q 'not found\|GLIBC'; }

facts() {
  nvidia-smi
  nvcc --version | tail -n 2
  gcc --version | head -n 1
  cmake --version | head -n 1
  python3 -m pip list 2> /dev/null | grep -iE '^(torch|nvidia-(cublas|cudnn|nccl|cuda-nvrtc))'
  ldd "$FETTLE_CUDA_LIBRARY" | grep -i 'not found'
  "$trainer" --backends
}

# ---- The calls

does_it_run() {
  net own-serial 20 mlp 128 fp32 FETTLE_CUDA_OWN=1 FETTLE_CUDA_GRAPHS=0 # context, pool, our kernels
  net own-graphs 20 mlp 128 bf16 FETTLE_CUDA_OWN=1
  net own-branches 20 mlp 128 bf16 FETTLE_CUDA_OWN=1 FETTLE_CUDA_BRANCHES=1
  net products 20 mlp 128 bf16 # cuBLASLt
  net products-tf32 20 mlp 128 tf32
  net products-fp16 20 mlp 128 fp16
  net convolutions 45 resnet9 64 bf16                                # cuDNN
  net convolutions-branches 45 resnet9 64 bf16 FETTLE_CUDA_BRANCHES=1 # one handle, two streams in a capture
  net convolutions-fp16 45 resnet9 64 fp16
  if ! net attention 60 chargpt 64 bf16 FETTLE_CUDA_STRICT=1; then # compiled at run time by the frontend
    net attention-1.19 60 chargpt 64 bf16 FETTLE_CUDA_STRICT=1 "FETTLE_CUDA_LIBRARY=$other_plugin" &&
      export FETTLE_CUDA_LIBRARY=$other_plugin
  fi
  net attention-deterministic 60 chargpt 64 bf16 FETTLE_CUDA_STRICT=1 --deterministic
  net resnet50 60 resnet50 64 bf16
  net gpt2 60 gpt2 16 bf16
}

is_it_right() {
  step kernels 150 env CUDA_LAUNCH_BLOCKING=1 FETTLE_CUDA_STRICT=1 NCCL_DEBUG=WARN scripts/gpu_tests.py "$kernels_test" \
    --logs "$logs/kernels" --report "$logs/kernels.txt" --seconds "$tests_seconds" --suite-seconds "$tests_seconds" --jobs "$jobs"
  step pytorch 45 env FETTLE_CUDA_STRICT=1 scripts/gpu_tests.py "$pytorch_test" --logs "$logs/pytorch" \
    --report "$logs/pytorch.txt" --seconds "$pytorch_seconds"
  step same-bits 65 scripts/gpu_same_bits.py --trainer "$trainer" --scratch "$scratch" \
    --seconds "$same_bits_seconds" "${small[@]}"
  local own checker=(compute-sanitizer --error-exitcode 1 --tool)
  for own in 1 0; do
    step_of compute-sanitizer memcheck-own-$own 60 env FETTLE_CUDA_OWN=$own "${checker[@]}" memcheck "$trainer" \
      --bench chargpt --batch 2 --backend cuda --precision bf16 --seconds 0.1
  done
  step_of compute-sanitizer racecheck 60 env FETTLE_CUDA_OWN=1 "${checker[@]}" racecheck "$kernels_test" \
    --gtest_filter='SoftmaxCrossEntropy*/cuda:RowNorm*/cuda:Embedding*/cuda:BatchNorm*/cuda'
}

call1() {
  export FETTLE_CUDA_PLANS=first FETTLE_KERNEL_CACHE=off
  does_it_run
  is_it_right
}

measure_plans() {
  local one
  for one in mlp:128 chargpt:64 gpt2:32 resnet9:512 resnet9:64 resnet50:256 resnet50:64; do
    for_seconds=$seconds net "plan-${one/:/-}" 150 "${one%:*}" "${one#*:}" bf16
  done
}

measure_switches() {
  local one
  for one in mlp:128 resnet9:64 chargpt:64 resnet50:256 gpt2:32; do
    for_seconds=$seconds net "default-${one/:/-}" 30 "${one%:*}" "${one#*:}" bf16
    for_seconds=$seconds net "branches-${one/:/-}" 30 "${one%:*}" "${one#*:}" bf16 FETTLE_CUDA_BRANCHES=1
    for_seconds=$seconds net "first-${one/:/-}" 40 "${one%:*}" "${one#*:}" bf16 FETTLE_CUDA_PLANS=first
  done
  for_seconds=$seconds net deterministic-gpt2 30 gpt2 32 bf16 --deterministic
}

call2() {
  measure_plans # first, so that nothing below has planning in its time
  # shellcheck disable=SC2016  # it expands there
  step ladder 80 bash -o pipefail -c '"$@" | tee "$0"' "$out/ladder.jsonl" "$bench" --backend cuda "${ladder[@]}"
  measure_switches
  step_of ncu ncu 60 ncu --clock-control none --set basic -s 40 -c 24 \
    -k regex:'measure|input_gradients|normalise|backward_kernel|loss_kernel|update|sort_kernel' "$trainer" --bench resnet50 \
    --batch 64 --backend cuda --precision bf16 --seconds 0.1
  against_pytorch steps ''
}

call3() {
  against_pytorch curves,trial,steps "${ROUNDS:-default}"
  local curves
  curves=$(cd "$out" && find . -name 'curve-*.svg')
  # shellcheck disable=SC2086  # they are words
  [ -z "$curves" ] || (cd "$out" && tar czf curves.tgz $curves && rm $curves)
}

# against_pytorch PARTS ROUNDS, in the time that is left
against_pytorch() {
  local left=$((limit - SECONDS - 10))
  step "pytorch-${1//,/-}" "$left" python3 scripts/bench_gpu.py --trainer "$trainer" --results "$out" --scratch "$scratch" \
    --parts "$1" --rounds "$2" --budget $((left - 5)) "${small[@]}"
}

case $call in
call1 | call2 | call3) ;;
*)
  echo "gpu_day: there is no $call, expected call1, call2 or call3" >&2
  exit 2
  ;;
esac
resume
trap finish EXIT
use_programs
# What a step is told to take, below its own limit.
tests_seconds=140 pytorch_seconds=40 same_bits_seconds=60
[ -z "$rehearse" ] || tests_seconds=400 pytorch_seconds=160 same_bits_seconds=240
jobs=$(($(nproc) / 2 > 8 ? 8 : $(nproc) / 2 > 1 ? $(nproc) / 2 : 1))
seconds=$([ -n "$rehearse" ] && echo 0.1 || echo 1.5)
export FETTLE_CUDA_LIBRARY=$plugin FETTLE_KERNEL_CACHE=$plans PYTHONUNBUFFERED=1
runs_here || compile_here
export trainer
export -f facts
step facts 25 bash -c facts || true
$call
