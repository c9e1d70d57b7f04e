// What a kernel of tunable.h is timed on: arrays as a training has them, and a call. One thread,
// that of the device.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernels/cuda/device.h"

namespace fettle::kernels::cuda {

struct Workload {
  std::vector<std::unique_ptr<Memory>> memory;
  std::function<void()> run;  // enqueues the call; may be made again
  // What the first call leaves there is the kernel's result.
  ConstBuffer written = nullptr;
  std::int64_t written_bytes = 0;
};

// On about so many elements, always the same values. 16-bit types where a training has them.
// Errors: no such kernel, no memory.
Result<Workload> make_workload(Device& device, std::string_view kernel, std::int64_t elements);

}  // namespace fettle::kernels::cuda
