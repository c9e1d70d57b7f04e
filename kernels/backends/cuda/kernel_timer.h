// KernelTimer: how long a kernel takes on this process's GPU with a given launch configuration.
// In libfettle_cuda.so (event_timer.h), as plugin.h has the backend; tests have one of their own.
// One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "kernels/cuda/launch_file.h"
#include "kernels/cuda/tunable.h"

namespace fettle::kernels {

class KernelTimer {
 public:
  virtual ~KernelTimer() = default;
  virtual const cuda::GpuKind& device() const = 0;
  // Microseconds of a call of this kernel on about so many elements (for an optimiser: weights),
  // the median of several. Errors: there is no such kernel; it does not take the configuration;
  // there is not the memory; with this configuration it does something else than with the usual
  // one.
  virtual Result<double> microseconds(std::string_view kernel, const cuda::LaunchConfig& config,
                                      std::int64_t elements) = 0;
};

inline constexpr const char* kKernelTimerEntry = "fettle_cuda_kernel_timer";
using KernelTimerEntry = void(Result<std::unique_ptr<KernelTimer>>* to);

}  // namespace fettle::kernels
