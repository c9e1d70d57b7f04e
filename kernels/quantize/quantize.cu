// Bound by bytes: forward and the range move one or two numbers an element, the gradient three
// (elementwise.h). The range lies in the GPU's memory, and each thread computes the grid anew: its
// divisions hide behind the bytes.
//
// A range is taken in one launch (last_block.cuh): the largest and the smallest number do not
// depend on the order. A block takes a channel's weights, which it reads twice: the second time
// from a cache, as a channel is small.
#include <algorithm>

#include "kernels/cuda/device_code/elementwise.h"
#include "kernels/cuda/device_code/last_block.cuh"
#include "kernels/cuda/operations.h"
#include "kernels/quantize/formulas.h"

namespace fettle::kernels {
namespace {

using cuda::block_max;
using cuda::from_float;
using cuda::kBlockThreads;
using cuda::to_float;

struct OnGrid {
  const float* range;
  __device__ float operator()(float x) const {
    return on_byte_grid(byte_grid(range[0], range[1]), x);
  }
};

struct GridGradient {
  const float* range;
  __device__ float operator()(float x, float dy) const {
    return byte_grid_gradient(byte_grid(range[0], range[1]), x, dy);
  }
};

// The ends of some numbers and 0; `least` is stored as -least, so that both are maxima.
struct Ends {
  float below = 0;
  float above = 0;
};

__device__ void take(float below, float above, Ends& ends) {
  ends.below = below > ends.below ? below : ends.below;
  ends.above = above > ends.above ? above : ends.above;
}

__device__ Ends of_block(const Ends& ends) {
  return {block_max(ends.below, 0.0F), block_max(ends.above, 0.0F)};
}

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    track_range(std::int64_t count, const T* x, float share, Ends* of_blocks, unsigned* counter,
                float* range) {
  Ends ends;
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
#pragma unroll 4
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const float value = to_float(x[i]);
    take(-value, value, ends);
  }
  ends = of_block(ends);
  if (threadIdx.x == 0) of_blocks[blockIdx.x] = ends;
  if (!cuda::is_last_block(gridDim.x, counter)) return;
  ends = {};
  for (unsigned block = threadIdx.x; block < gridDim.x; block += blockDim.x) {
    take(__ldcg(&of_blocks[block].below), __ldcg(&of_blocks[block].above), ends);
  }
  ends = of_block(ends);
  if (threadIdx.x != 0) return;
  range[0] = tracked(range[0], -ends.below, share);
  range[1] = tracked(range[1], ends.above, share);
}

// A block for each row.
template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    quantize_rows(WeightRows rows, const T* __restrict__ x, T* __restrict__ y) {
  const std::int64_t begin = blockIdx.x * rows.width;
  const std::int64_t end = begin + rows.width;
  float most = 0;
  for (std::int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
    const float size = fabsf(to_float(x[i]));
    most = size > most ? size : most;
  }
  const float scale = weight_scale(block_max(most, 0.0F), rows.limit);
  for (std::int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
    y[i] = from_float<T>(on_weight_grid(scale, rows.limit, to_float(x[i])));
  }
}

}  // namespace

void cuda_fake_quantize(cuda::Device& device, DataType type, std::int64_t count, const float* range,
                        ConstBuffer x, Buffer y) {
  cuda::with_type(type, [&](auto zero) {
    using T = decltype(zero);
    cuda::map(device, count, OnGrid{range}, static_cast<T*>(y), static_cast<const T*>(x));
  });
}

void cuda_fake_quantize_backward(cuda::Device& device, DataType type, std::int64_t count,
                                 const float* range, ConstBuffer x, ConstBuffer dy, Buffer dx) {
  cuda::with_type(type, [&](auto zero) {
    using T = decltype(zero);
    cuda::map(device, count, GridGradient{range}, static_cast<T*>(dx), static_cast<const T*>(x),
              static_cast<const T*>(dy));
  });
}

void cuda_track_range(cuda::Device& device, DataType type, std::int64_t count, ConstBuffer x,
                      float share, float* range) {
  constexpr unsigned kMostBlocks = kSquaresScratch / sizeof(Ends);
  const cuda::LaunchShape resident =
      cuda::strided_shape(device.multiprocessors(), cuda::blocks_for(count, kBlockThreads));
  const unsigned blocks = std::min(resident.blocks, kMostBlocks);
  auto* const of_blocks = static_cast<Ends*>(device.scratch(kSquaresScratch));
  cuda::with_type(type, [&](auto zero) {
    using T = decltype(zero);
    cuda::launch(device.stream(), {.blocks = blocks, .threads = kBlockThreads}, track_range<T>,
                 count, static_cast<const T*>(x), share, of_blocks, device.counters(1), range);
  });
}

void cuda_fake_quantize_weights(cuda::Device& device, DataType type, const WeightRows& rows,
                                ConstBuffer x, Buffer y) {
  if (rows.count == 0) return;
  cuda::with_type(type, [&](auto zero) {
    using T = decltype(zero);
    cuda::launch(device.stream(),
                 {.blocks = static_cast<unsigned>(rows.count), .threads = kBlockThreads},
                 quantize_rows<T>, rows, static_cast<const T*>(x), static_cast<T*>(y));
  });
}

}  // namespace fettle::kernels
