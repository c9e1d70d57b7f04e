// The file that keeps the plans timed on a GPU from one run to the next:
//
//   {"device": "NVIDIA H100 80GB HBM3", "compute_capability": "9.0", "cuda": "13.0",
//    "fettle": "0.1.0",
//    "plans": {"cudnn 91900 conv …": {"plan": "eng43_k24=20", "microseconds": 81.4}}}
//
// One file for each kind of GPU, with a separate lock file, below ~/.cache/fettle/kernels
// (FETTLE_KERNEL_CACHE). It is valid only for the device, the version of CUDA and the version of
// Fettle that it names, and only as a whole. Any thread; any number of processes.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace fettle::kernels::cuda {

// The kind of GPU on which plans were timed.
struct GpuKind {
  std::string name;
  std::string compute_capability;  // "9.0"
  std::string cuda;                // of the runtime: "13.0"
  std::string fettle;
  bool operator==(const GpuKind&) const = default;
};

// A plan in its library's notation, and the time of one run.
struct TimedPlan {
  std::string plan;
  double microseconds = 0;
  bool operator==(const TimedPlan&) const = default;
};

// Keyed by the library with its version, the operation, its shape and types.
using TimedPlans = std::map<std::string, TimedPlan, std::less<>>;

// "" if nothing is kept (FETTLE_KERNEL_CACHE=off, or no home).
std::string plan_file_path(const GpuKind& kind);

Json to_json(const GpuKind& kind, const TimedPlans& plans);

// Errors: a fault in the text, or plans that were timed for another kind.
Result<TimedPlans> read_timed_plans(std::string_view text, const GpuKind& kind);

// Loads the plans of a kind; empty without a file. Errors name the file and a remedy.
Result<TimedPlans> load_timed_plans(const GpuKind& kind);

// Adds a plan, unless the file already has one for its key, and returns the file's plan: the first
// writer wins, whatever the number of processes and machines that share the file. Errors: it cannot
// be locked or written.
Result<TimedPlan> keep_timed_plan(const GpuKind& kind, const std::string& key,
                                  const TimedPlan& plan);

}  // namespace fettle::kernels::cuda
