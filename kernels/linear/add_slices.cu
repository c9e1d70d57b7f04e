#include "kernels/cuda/device_code/launch.h"
#include "kernels/cuda/device_code/numbers.h"
#include "kernels/linear/add_slices.h"

namespace fettle::kernels::cuda {
namespace {

// Bound by bytes: it reads the slices and the sums and writes the sums, every access coalesced.
template <class T>
__global__ void add_slices_kernel(int slices, std::int64_t count, const T* __restrict__ from,
                                  float* __restrict__ sums) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    float sum = 0;
#pragma unroll 4
    for (int slice = 0; slice < slices; ++slice) sum += to_float(from[slice * count + i]);
    sums[i] += sum;
  }
}

template <class T>
void launch_sums(const Device& device, int slices, std::int64_t count, const T* from, float* sums) {
  launch(device.stream(), strided_shape(device.multiprocessors(), blocks_for(count, kBlockThreads)),
         add_slices_kernel<T>, slices, count, from, sums);
}

}  // namespace

void add_slices(const Device& device, int slices, std::int64_t count, const float* from,
                float* sums) {
  launch_sums(device, slices, count, from, sums);
}

void add_slice(const Device& device, DataType type, std::int64_t count, ConstBuffer from,
               float* sums) {
  with_type(type, [&](auto zero) {
    launch_sums(device, 1, count, static_cast<const decltype(zero)*>(from), sums);
  });
}

}  // namespace fettle::kernels::cuda
