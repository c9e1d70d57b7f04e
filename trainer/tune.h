// Which launch configuration is the fastest for each kernel on this GPU (fettle-trainer
// --tune-kernels), and how long a kernel takes with one (--time-kernel), which a Study may tune as
// it tunes anything (examples/kernel-launch.yaml).
//
// All is decided from the numbers of a KernelTimer, so that it can be tried without a GPU. One
// thread, that of the timer.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "kernels/backends/cuda/kernel_timer.h"

namespace fettle::trainer {

// What does not fit any cache of a GPU so far, several times: 128 MiB in fp32.
inline constexpr std::int64_t kUsualElements = std::int64_t{1} << 25;

struct TunedKernel {
  kernels::cuda::TunableKernel kernel;
  double usual_microseconds = 0;
  kernels::cuda::LaunchConfig best;  // the usual one, unless another is clearly faster
  double best_microseconds = 0;
};

struct Tuning {
  kernels::cuda::GpuKind device;
  std::int64_t elements = 0;
  std::vector<TunedKernel> kernels;

  // Those that are not the usual ones.
  kernels::cuda::LaunchConfigs configs() const;
};

// `log` gets a line for each kernel before it is measured.
Result<Tuning> tune_kernels(kernels::KernelTimer& timer, std::int64_t elements,
                            const std::function<void(const std::string&)>& log);

// A table for people.
std::string to_text(const Tuning& tuning);
Json to_json(const Tuning& tuning);

// One kernel and one configuration; what is left out is the usual.
struct TimedLaunch {
  std::string kernel;
  std::optional<std::int64_t> threads = {};
  std::optional<std::int64_t> blocks_per_multiprocessor = {};
  std::int64_t elements = kUsualElements;
  bool keep = false;  // from now on every training here uses it
};

// A line that a Study reads: {"microseconds": 812.4, "kernel": ...}. Errors: the timer's; it cannot
// be kept.
Result<Json> time_kernel(kernels::KernelTimer& timer, const TimedLaunch& launch);

}  // namespace fettle::trainer
