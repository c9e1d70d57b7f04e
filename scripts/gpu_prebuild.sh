#!/usr/bin/env bash
# make gpu-prebuild: compiles in .gpu/bin what scripts/gpu_day.sh runs, for a machine with an H100 or H200 whose Python
# brings CUDA 13's libraries (torch's wheels). Needs the network once (scripts/cuda.py) and no GPU.
#
# Both versions of cudnn-frontend become a libfettle_cuda.so: which of them plans attention is found out on the machine,
# in seconds and not by another build. They are of the same headers, so one fettle-trainer loads either.
set -euo pipefail
cd "$(dirname "$0")/.."
most_mb=45 # what travels with a checkout is limited
programs=(bin/fettle-trainer bin/kernels_bench tests/kernels_gpu_test tests/trainer_pytorch_test)
bin=.gpu/bin
mkdir -p $bin
scripts/cuda.py > /dev/null
mapfile -t frontends < <(sed -n 's/^nvidia-cudnn-frontend==//p' scripts/cuda_packages.txt | sort -V)
for frontend in "${frontends[@]}"; do
  build=build-gpu-$frontend
  cmake -S . -B "$build" -G Ninja --log-level=WARNING -DFETTLE_TRAINER_ONLY=ON -DFETTLE_KUBE=OFF -DFETTLE_ONEDNN=OFF \
    -DFETTLE_CUDA=ON -DFETTLE_CUDNN_FRONTEND_VERSION="$frontend"
  cmake --build "$build" --target fettle_cuda
  strip -o "$bin/libfettle_cuda-$frontend.so" "$build/bin/libfettle_cuda.so"
done
newest=${frontends[-1]}
cp "$bin/libfettle_cuda-$newest.so" $bin/libfettle_cuda.so
cmake --build "build-gpu-$newest" --target fettle-trainer kernels_gpu_test trainer_pytorch_test kernels_bench
for program in "${programs[@]}"; do
  strip -o "$bin/${program#*/}" "build-gpu-$newest/$program"
done
git rev-parse HEAD > $bin/commit.txt
pwd > $bin/checkout.txt # tests know their data by this name
size=$(du -sm $bin | cut -f1)
if [ "$size" -ge $most_mb ]; then
  echo "gpu_prebuild: $bin is $size MB, expected less than $most_mb" >&2
  exit 1
fi
echo "gpu_prebuild: $bin, $size MB, of $(cat $bin/commit.txt)"
