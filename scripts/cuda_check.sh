#!/usr/bin/env bash
# make cuda-check: compiles the CUDA code for the H100 and checks the machine code. Needs no GPU, but
# the toolchain of scripts/cuda.py; scripts/not_run.sh says what happens without it.
# Usage: scripts/cuda_check.sh FOLDER   (that it builds in)
set -euo pipefail
folder=$1
cd "$(dirname "$0")/.."
# shellcheck source=not_run.sh
source scripts/not_run.sh

install_toolchain() { scripts/cuda.py > /dev/null; }

try gpu-toolchain 'the CUDA toolchain cannot be installed (see above)' install_toolchain
cmake -S . -B "$folder" -G Ninja -DFETTLE_CUDA=ON --log-level=WARNING
cmake --build "$folder" --target fettle_cuda_checks
ctest --test-dir "$folder" -L cuda --output-on-failure
