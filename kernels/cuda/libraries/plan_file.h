// The file in which the plans that were timed on a GPU lie from one run to the next:
//
//   {"device": "NVIDIA H100 80GB HBM3", "compute_capability": "9.0", "cuda": "13.0",
//    "fettle": "0.1.0",
//    "plans": {"cudnn 91900 conv …": {"plan": "eng43_k24=20", "microseconds": 81.4}}}
//
// One file for each kind of GPU, with another for its lock, below ~/.cache/fettle/kernels
// (FETTLE_KERNEL_CACHE). It is used for the device, the version of CUDA and the version of Fettle
// that it names, and as a whole or not at all. Any thread; any number of processes.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace fettle::kernels::cuda {

// What plans were timed on.
struct GpuKind {
  std::string name;
  std::string compute_capability;  // "9.0"
  std::string cuda;                // of the runtime: "13.0"
  std::string fettle;
  bool operator==(const GpuKind&) const = default;
};

// A plan as its library names it, and what one run of it took.
struct TimedPlan {
  std::string plan;
  double microseconds = 0;
  bool operator==(const TimedPlan&) const = default;
};

// By what is planned: the library with its version, the operation, its shape and types.
using TimedPlans = std::map<std::string, TimedPlan, std::less<>>;

// "" where nothing is to be kept (FETTLE_KERNEL_CACHE=off, or no home).
std::string plan_file_path(const GpuKind& kind);

Json to_json(const GpuKind& kind, const TimedPlans& plans);

// Errors: what is wrong with the text, or for what else its plans were timed.
Result<TimedPlans> read_timed_plans(std::string_view text, const GpuKind& kind);

// From its file: none where there is no file. Errors name it, and say the way out.
Result<TimedPlans> load_timed_plans(const GpuKind& kind);

// Adds a plan, unless the file has one for its key by now, and gives back the one that the file has
// then: the first writer wins, whatever the number of processes and machines that share the file.
// Errors: it cannot be locked or written.
Result<TimedPlan> keep_timed_plan(const GpuKind& kind, const std::string& key,
                                  const TimedPlan& plan);

}  // namespace fettle::kernels::cuda
