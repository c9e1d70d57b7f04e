#include "kernels/cuda/launch.h"
#include "kernels/linear/add_slices.h"

namespace fettle::kernels::cuda {
namespace {

// Bound by bytes: (slices + 2) x count x 4, every access coalesced.
__global__ void add_slices_kernel(int slices, std::int64_t count, const float* __restrict__ from,
                                  float* __restrict__ sums) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    float sum = 0;
#pragma unroll 4
    for (int slice = 0; slice < slices; ++slice) sum += from[slice * count + i];
    sums[i] += sum;
  }
}

}  // namespace

void add_slices(const Device& device, int slices, std::int64_t count, const float* from,
                float* sums) {
  const unsigned threads = device.threads("linear/add_slices", 256);
  launch(device.stream(), {.blocks = blocks_for(count, threads), .threads = threads},
         add_slices_kernel, slices, count, from, sums);
}

}  // namespace fettle::kernels::cuda
