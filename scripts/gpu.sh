#!/usr/bin/env bash
# make gpu: the tests and benchmarks on this machine's GPU, within ten minutes, without network or Debian packages: with
# the machine's own nvcc 13, CMake, ninja and a Python with torch 2.11 for CUDA 13, and with .gpu/ (make gpu-bundle).
# Where there is no such Python the packages of scripts/cuda.py will do to build.
#
#   scripts/gpu.sh [RESULTS]        (gpu-results: small files to take along; the rest stays in build-gpu)
#
# Three calls of ten minutes, in this order:
#
#   make gpu PARTS=smoke,tests,checkers      does it run, is it right
#   make gpu PARTS=ladder,steps ROUNDS=      where the time goes: operations by themselves, then steps against PyTorch
#   make gpu PARTS=curves,trial,steps        claims: loss curves first, they decide whether a time counts
#
# Without PARTS: smoke,tests,steps,trial,curves. ROUNDS names some of torch.compile's modes, ONLY a workload, FRONTEND a
# version of cudnn-frontend in .gpu/. Each part has a limit, and what earlier ones wrote stays; a later call resumes
# with the steps in RESULTS/benchmarks.json. Seconds of each part go to times.txt. All of it is run with
# FETTLE_CUDA_STRICT=1: where a library has no plan, that is an error (the smoke part runs without, and lists them).
# Smoke, tests and checkers time no plans and keep none: they would time beside each other, and benchmarks would run the
# result. PARTS=none only builds. scripts/gpu_day.sh has a plan for a machine that is reached for ten minutes at a time.
#
# REHEARSE=1: the same parts on a CPU, small, with the programs in build/ and their emulated GPU; numbers mean nothing.
#
# Exit codes: 0 all well, 1 a test failed, 2 something is missing here, 3 everything was built and there is no GPU.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p "${1:-gpu-results}"
results=$(cd "${1:-gpu-results}" && pwd)
parts=${PARTS:-smoke,tests,steps,trial,curves}
rounds=${ROUNDS-default,reduce-overhead,max-autotune}
limit=570 # seconds in all
bundle=$PWD/.gpu
frontend=${FRONTEND:-1.32.0}
jobs=$(nproc)
failed=0

missing() {
  echo "gpu: $1" >&2
  exit 2
}

wants() { [[ ,$parts, == *,$1,* ]]; }

# Notes how long the part took that ended now.
began=0
part_ended() {
  printf '%-10s %4d s\n' "$1" $((SECONDS - began)) | tee -a "$results/times.txt"
  began=$SECONDS
}

build_here() {
  [ -d "$bundle/googletest" ] && [ -d "$bundle/cli11" ] && [ -d "$bundle/cudnn-frontend-$frontend" ] ||
    missing "there is no .gpu/ with GoogleTest, CLI11 and cudnn-frontend-$frontend; run \`make gpu-bundle\` where there is a network, and copy .gpu/ here"
  # The libraries: those that PyTorch brought, else those of scripts/cuda.py.
  wheels=$(python3 -c 'import pathlib, nvidia; print(pathlib.Path(next(iter(nvidia.__path__))))' 2> /dev/null || true)
  [ -d "$wheels/cu13" ] || wheels=${XDG_CACHE_HOME:-$HOME/.cache}/fettle/cuda-13.0.2/nvidia
  [ -d "$wheels/cu13" ] || missing 'there is neither a Python with torch for CUDA 13 nor what scripts/cuda.py installs'
  nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2> /dev/null || true)
  echo "gpu: building with ${nvcc:-the nvcc of $wheels}, the libraries of $wheels and cudnn-frontend $frontend"
  local log=$results/build.txt
  # A warning of a compiler that was never tried here must not cost the machine's minutes.
  cmake -S . -B $build -G Ninja --log-level=WARNING -DFETTLE_TRAINER_ONLY=ON -DFETTLE_KUBE=OFF -DFETTLE_ONEDNN=OFF \
    -DFETTLE_WERROR=OFF -DFETTLE_CUDA=ON -DFETTLE_GOOGLETEST="$bundle/googletest" -DFETTLE_CLI11="$bundle/cli11" \
    -DFETTLE_CUDNN_FRONTEND="$bundle/cudnn-frontend-$frontend/include" -DNVIDIA_WHEELS="$wheels" \
    ${nvcc:+-DCMAKE_CUDA_COMPILER="$nvcc"} > "$log" 2>&1 &&
    timeout 240 cmake --build $build -j "$jobs" --target fettle-trainer fettle_cuda kernels_gpu_test trainer_pytorch_test kernels_bench >> "$log" 2>&1 || {
    tail -n 40 "$log" >&2
    missing "the build failed (whole log: $log)"
  }
}

# Every network for a second or so: it says most, soonest; a line "note:" says that a library has no plan.
run_smoke() {
  local one
  local -x FETTLE_CUDA_PLANS=first FETTLE_KERNEL_CACHE=off
  for one in mlp:128 chargpt:64 resnet9:512 resnet50:64 gpt2:16; do
    [ -z "${REHEARSE:-}" ] || one=mlp:8
    timeout 35 "$trainer" --bench "${one%:*}" --batch "${one#*:}" --backend cuda --precision bf16 --seconds "$smoke_seconds" ||
      { echo "smoke: ${one%:*} failed"; failed=1; }
    [ -z "${REHEARSE:-}" ] || break # the others take an emulator hours
  done 2>&1 | tee "$results/smoke.txt"
  grep -q '^smoke: .* failed$' "$results/smoke.txt" && failed=1 || true
}

run_tests() {
  local -x FETTLE_CUDA_PLANS=first FETTLE_KERNEL_CACHE=off
  rm -f "$results/tests.txt"
  local most=$((jobs / 2 > 8 ? 8 : jobs / 2 > 1 ? jobs / 2 : 1))
  # They read results as soon as a call returns (kernels/cuda/testing/gpu_memory.cpp).
  CUDA_LAUNCH_BLOCKING=1 scripts/gpu_tests.py "$kernels_test" --logs "$logs" --report "$results/tests.txt" --seconds 200 \
    --suite-seconds 190 --jobs "$most" || failed=1
  scripts/gpu_tests.py "$pytorch_test" --logs "$logs" --report "$results/tests.txt" --seconds 45 || failed=1
}

# Our own kernels under CUDA's race checker, and a whole step under its memory checker: first with our kernels, then with
# the libraries'.
run_checkers() {
  local -x FETTLE_CUDA_PLANS=first FETTLE_KERNEL_CACHE=off
  command -v compute-sanitizer > /dev/null || {
    echo 'gpu: checkers NOT RUN: there is no compute-sanitizer' | tee "$results/checkers.txt"
    return
  }
  # It returns what the program returned, unless it is told otherwise.
  local checker='compute-sanitizer --error-exitcode 1' own
  # shellcheck disable=SC2086  # they are words
  FETTLE_CUDA_OWN=1 timeout 60 $checker --tool racecheck "$kernels_test" \
    --gtest_filter='SoftmaxCrossEntropy*/cuda:RowNorm*/cuda:Embedding*/cuda' > "$logs/race.txt" 2>&1 || failed=1
  for own in 1 0; do
    # shellcheck disable=SC2086  # they are words
    FETTLE_CUDA_OWN=$own timeout 50 $checker --tool memcheck "$trainer" --bench chargpt --batch 2 --backend cuda \
      --precision bf16 --seconds 0.1 > "$logs/memory-own-$own.txt" 2>&1 || failed=1
  done
  tail -n 5 "$logs/race.txt" "$logs"/memory-own-*.txt | tee "$results/checkers.txt"
}

run_ladder() {
  # shellcheck disable=SC2086  # they are words
  timeout 120 "$bench" --backend cuda $ladder | tee "$results/ladder.jsonl" || failed=1
}

if [ -n "${REHEARSE:-}" ]; then
  build=build smoke_seconds=0.1 ladder="--tiny --seconds 0.001"
  export FETTLE_CUDA_LIBRARY=$PWD/build/tests/emulated/libfettle_cuda.so
  kernels_test=$PWD/build/tests/kernels_test
else
  build=build-gpu smoke_seconds=1 ladder="--seconds 0.2"
  export FETTLE_CUDA_LIBRARY=$PWD/build-gpu/bin/libfettle_cuda.so # it is beside the program; the tests are elsewhere
  kernels_test=$PWD/build-gpu/tests/kernels_gpu_test
  build_here
fi
trainer=$PWD/$build/bin/fettle-trainer bench=$PWD/$build/bin/kernels_bench pytorch_test=$PWD/$build/tests/trainer_pytorch_test
logs=$PWD/$build/test-logs
mkdir -p "$logs"
: > "$results/times.txt"
part_ended build

if [ -z "${REHEARSE:-}" ]; then
  if ! nvidia-smi -L > /dev/null 2>&1; then
    echo 'gpu: everything is built; there is no GPU here, so nothing was run' >&2
    exit 3
  fi
  nvidia-smi --query-gpu=name,driver_version,power.limit,clocks.max.sm --format=csv,noheader | tee "$results/device.txt"
fi

if wants smoke; then echo 'gpu: smoke'; run_smoke; part_ended smoke; fi
export FETTLE_CUDA_STRICT=1
for part in tests checkers ladder; do
  if wants $part; then
    echo "gpu: $part"
    run_$part
    part_ended $part
  fi
done

measured=$(tr , '\n' <<< "$parts" | { grep -vxE 'none|smoke|tests|checkers|ladder' || true; } | paste -sd ,)
if [ -n "$measured" ]; then
  echo "gpu: benchmarks ($measured)"
  python3 scripts/bench_gpu.py --trainer "$trainer" --results "$results" --scratch $build/bench --parts "$measured" \
    --rounds "$rounds" --budget $((limit - SECONDS)) ${ONLY:+--only "$ONLY"} ${REHEARSE:+--rehearse} || failed=1
  part_ended benchmarks
fi
# Few files to take along: with pictures it would be nine.
pictures=$(cd "$results" && find . -name 'curve-*.svg')
# shellcheck disable=SC2086  # they are words
[ -z "$pictures" ] || (cd "$results" && tar czf curves.tgz $pictures && rm $pictures)
tar czf "$results/logs.tgz" -C "$(dirname "$logs")" "$(basename "$logs")"
exit $failed
