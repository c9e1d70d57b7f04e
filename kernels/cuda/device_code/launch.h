// Launches kernels: the only place with CUDA's <<<>>>, so that the same code runs on the emulator.
// Included by .cu files only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/source_place.h"
#include "kernels/cuda/runtime/errors.h"
#include "kernels/cuda/runtime/platform.h"

// Declares `name`, a pointer to the block's LaunchShape::shared_bytes of shared memory, at the
// beginning of a kernel.
#ifdef __CUDACC__
#define FETTLE_DYNAMIC_SHARED(type, name)                                \
  extern __shared__ __align__(16) unsigned char fettle_dynamic_shared[]; \
  type* const name = reinterpret_cast<type*>(fettle_dynamic_shared)
#else
#define FETTLE_DYNAMIC_SHARED(type, name) \
  type* const name = reinterpret_cast<type*>(::fettle::kernels::emulator::dynamic_shared())
#endif

namespace fettle::kernels::cuda {

// Threads of a block, if results do not depend on it: 2048 threads of a multiprocessor are eight
// blocks, whose ends overlap with others' beginnings.
inline constexpr unsigned kBlockThreads = 256;
// For blocks that stride over the work: the number that a multiprocessor holds at a time.
inline constexpr unsigned kBlocksPerMultiprocessor = 8;

struct LaunchShape {
  unsigned blocks = 1;
  unsigned blocks_y = 1;
  unsigned threads = kBlockThreads;
  std::size_t shared_bytes = 0;
};

// Returns the blocks of `threads` that cover `count`, one element a thread. At least 1; CUDA takes
// at most 2^31 - 1, so the kernel strides or `count` is known to be small.
inline unsigned blocks_for(std::int64_t count, unsigned threads) {
  const std::int64_t blocks = (count + threads - 1) / threads;
  return static_cast<unsigned>(std::clamp<std::int64_t>(blocks, 1, 0x7FFFFFFF));
}

// Returns a grid of blocks that stride over work for `most` blocks.
inline LaunchShape strided_shape(int multiprocessors, unsigned most) {
  const unsigned resident = static_cast<unsigned>(multiprocessors) * kBlocksPerMultiprocessor;
  return {.blocks = std::min(resident, most)};
}

// A stream and the place of the launch, which appears in the error message of a failed launch.
struct OnStream {
  cudaStream_t stream;
  SourcePlace where;
  OnStream(cudaStream_t on, SourcePlace from = SourcePlace::current())  // NOLINT
      : stream(on), where(from) {}
};

// Launches kernel<<<shape, stream>>>(arguments...). Aborts if CUDA refuses the shape, which never
// depends on input.
template <class... Parameters, class... Arguments>
void launch(const OnStream& on, const LaunchShape& shape, void (*kernel)(Parameters...),
            Arguments&&... arguments) {
  static_assert((std::is_trivially_copyable_v<Parameters> && ...),
                "a GPU gets a copy of the bytes");
  // NOLINTNEXTLINE(bugprone-sizeof-expression): pointers are among them
  static_assert((sizeof(Parameters) + ... + 0) <= 4096, "CUDA takes 4 KB of arguments");
  const dim3 blocks(shape.blocks, shape.blocks_y);
#ifdef __CUDACC__
  kernel<<<blocks, shape.threads, shape.shared_bytes, on.stream>>>(
      static_cast<Parameters>(std::forward<Arguments>(arguments))...);
#else
  const auto run_thread = [kernel, bound = std::tuple<Parameters...>(static_cast<Parameters>(
                                       std::forward<Arguments>(arguments))...)] {
    std::apply(kernel, bound);
  };
  emulator::enqueue_launch(on.stream, reinterpret_cast<const void*>(kernel),
                           {blocks, dim3(shape.threads), shape.shared_bytes, run_thread, on.where});
#endif
  must_succeed(cudaGetLastError(), on.where);
}

}  // namespace fettle::kernels::cuda
