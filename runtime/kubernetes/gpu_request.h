// GPUs for a worker: from what a Study asks for to what its pods ask for, or a refusal in words.
//
// Whole GPUs are an extended resource of the NVIDIA device plugin. Shares of a GPU (fraction,
// memory) need a cluster that can divide GPUs, which this version cannot ask for: they are refused.
// Pure; usable from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "api/study.h"
#include "base/result.h"

namespace fettle::kubernetes {

// `count` of the extended resource `resource`, for each worker.
struct GpuRequest {
  std::string resource;
  std::int64_t count = 1;
  bool operator==(const GpuRequest&) const = default;
};

// Nothing for a CPU trial. kInvalid: why it cannot be had, and the way out.
Result<std::optional<GpuRequest>> request_gpus(const api::TrialTemplate& trial);

}  // namespace fettle::kubernetes
