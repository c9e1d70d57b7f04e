// Operations on one element at a time: y[i] = function(inputs[i]...), in fp32.
//
// Bound by bytes: an H100 can execute some 70 arithmetic instructions in the time that it takes to
// move 16 bytes. So a thread reads and writes packs of neighbouring elements, 16 bytes or more with
// each instruction, and requests all inputs before it uses the first. One pack a thread is enough:
// 2048 threads on a multiprocessor have 32 KB under way, about twice the amount that hides the
// latency. If an address is no multiple of a pack's size, the same kernel handles one element a
// thread.
//
// The output may be one of the inputs: a thread has read its elements before it writes them.
// Included by .cu files only.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/device_code/launch.h"
#include "kernels/cuda/device_code/packs.h"
#include "kernels/cuda/runtime/device.h"

namespace fettle::kernels::cuda {

template <int width, class Function, class Output, class... Inputs>
__device__ Pack<Output, width> map_pack(const Function& function,
                                        const Pack<Inputs, width>&... inputs) {
  Pack<Output, width> result;
#pragma unroll
  for (int i = 0; i < width; ++i) {
    result.at[i] = from_float<Output>(function(to_float(inputs.at[i])...));
  }
  return result;
}

template <int width, class Function, class Output, class... Inputs>
__global__ void map_kernel(std::int64_t count, Function function, Output* output,
                           const Inputs*... inputs) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t first = thread * width;
  if (first + width <= count) {
    store_pack(
        map_pack<width, Function, Output, Inputs...>(function, load_pack<width>(inputs + first)...),
        output + first);
    return;
  }
  for (std::int64_t i = first; i < count; ++i) {  // the last thread's partial pack
    output[i] = from_float<Output>(function(to_float(inputs[i])...));
  }
}

template <class Function, class Output, class... Inputs>
void map(const Device& device, std::int64_t count, Function function, Output* output,
         const Inputs*... inputs) {
  if (count == 0) return;
  constexpr int kWidth = std::max({kPackWidth<Output>, kPackWidth<Inputs>...});
  const bool packs = (is_aligned<kWidth>(output) && ... && is_aligned<kWidth>(inputs));
  const int width = packs ? kWidth : 1;
  launch(
      device.stream(),
      {.blocks = blocks_for((count + width - 1) / width, kBlockThreads), .threads = kBlockThreads},
      packs ? map_kernel<kWidth, Function, Output, Inputs...>
            : map_kernel<1, Function, Output, Inputs...>,
      count, function, output, inputs...);
}

}  // namespace fettle::kernels::cuda
