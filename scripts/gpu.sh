#!/usr/bin/env bash
# make gpu: the kernels' tests and the benchmarks on this machine's GPU, within ten minutes, without network or
# Debian packages: with the machine's own nvcc 13, CMake, ninja and a Python with torch 2.11 for CUDA 13, and with
# .gpu/ (make gpu-bundle). Where there is no such Python the packages of scripts/cuda.py will do to build.
#
#   scripts/gpu.sh [RESULTS]        (gpu-results; writes tests.txt, benchmarks.json, benchmarks.md and curve-*.svg there,
#                                    eight small files at most; the rest stays in build-gpu)
#
# Each part has a limit, and what the earlier ones have written stays. Ten minutes are enough for the tests and most of
# the steps; a second call resumes where the first one ended (bench_gpu.py). PARTS names some of the parts, ROUNDS some
# of torch.compile's modes: make gpu PARTS=steps,trial ROUNDS=max-autotune. Only by name: PARTS=ladder times operations
# by themselves, the library's against ours and fused against separate (ladder.jsonl). Without a GPU and without a
# build: scripts/bench_gpu.py --rehearse.
#
# Exit codes: 0 all well, 1 a test failed, 2 something is missing here, 3 everything was built and there is no GPU.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p "${1:-gpu-results}"
results=$(cd "${1:-gpu-results}" && pwd)
build=build-gpu
parts=${PARTS:-tests,steps,trial,curves}
rounds=${ROUNDS-default,reduce-overhead,max-autotune}
limit=570 # seconds in all
bundle=$PWD/.gpu
jobs=$(nproc)

missing() {
  echo "gpu: $1" >&2
  exit 2
}

[ -d "$bundle/googletest" ] && [ -d "$bundle/cudnn-frontend" ] ||
  missing 'there is no .gpu/ with GoogleTest and cudnn-frontend; run `make gpu-bundle` where there is a network, and copy .gpu/ here'

# The libraries: those that PyTorch brought, else those of scripts/cuda.py.
wheels=$(python3 -c 'import pathlib, nvidia; print(pathlib.Path(next(iter(nvidia.__path__))))' 2> /dev/null || true)
[ -d "$wheels/cu13" ] || wheels=${XDG_CACHE_HOME:-$HOME/.cache}/fettle/cuda-13.0.2/nvidia
[ -d "$wheels/cu13" ] || missing 'there is neither a Python with torch for CUDA 13 nor what scripts/cuda.py installs'
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2> /dev/null || true)

echo "gpu: building with ${nvcc:-the nvcc of $wheels} and the libraries of $wheels"
log=$results/build.txt
# A warning of an untested compiler must not cost the machine's minutes.
cmake -S . -B $build -G Ninja --log-level=WARNING -DFETTLE_TRAINER_ONLY=ON -DFETTLE_KUBE=OFF -DFETTLE_ONEDNN=OFF \
  -DFETTLE_WERROR=OFF -DFETTLE_CUDA=ON -DFETTLE_GOOGLETEST="$bundle/googletest" \
  -DFETTLE_CUDNN_FRONTEND="$bundle/cudnn-frontend/include" -DNVIDIA_WHEELS="$wheels" ${nvcc:+-DCMAKE_CUDA_COMPILER="$nvcc"} > "$log" 2>&1 &&
  timeout 240 cmake --build $build -j "$jobs" --target fettle-trainer fettle_cuda kernels_gpu_test trainer_pytorch_test kernels_bench >> "$log" 2>&1 || {
  tail -n 40 "$log" >&2
  missing "the build failed (whole log: $log)"
}

if ! nvidia-smi -L > /dev/null 2>&1; then
  echo 'gpu: everything is built; there is no GPU here, so nothing was run' >&2
  exit 3
fi
nvidia-smi --query-gpu=name,driver_version,power.limit,clocks.max.sm --format=csv,noheader | tee "$results/device.txt"

# What the program loads is beside it; the tests are in another folder.
export FETTLE_CUDA_LIBRARY=$PWD/$build/bin/libfettle_cuda.so
failed=0
if [[ ,$parts, == *,tests,* ]]; then
  echo 'gpu: tests'
  rm -f "$results/tests.txt"
  most=$((jobs / 2 > 8 ? 8 : jobs / 2 > 1 ? jobs / 2 : 1))
  # They read results as soon as a call returns (kernels/cuda/testing/gpu_memory.cpp).
  CUDA_LAUNCH_BLOCKING=1 scripts/gpu_tests.py $build/tests/kernels_gpu_test --logs $build/test-logs \
    --report "$results/tests.txt" --seconds 130 --jobs $most || failed=1
  scripts/gpu_tests.py $build/tests/trainer_pytorch_test --logs $build/test-logs \
    --report "$results/tests.txt" --seconds 40 || failed=1
fi

if [[ ,$parts, == *,ladder,* ]]; then
  echo 'gpu: ladder'
  timeout 120 $build/bin/kernels_bench --ladder --backend cuda --seconds 0.2 | tee "$results/ladder.jsonl" || failed=1
fi

measured=$(tr , '\n' <<< "$parts" | { grep -vxE 'tests|ladder' || true; } | paste -sd ,)
if [ -n "$measured" ]; then
  echo "gpu: benchmarks ($measured)"
  python3 scripts/bench_gpu.py --trainer $build/bin/fettle-trainer --results "$results" --scratch $build/bench \
    --parts "$measured" --rounds "$rounds" --budget $((limit - SECONDS)) || failed=1
fi
exit $failed
