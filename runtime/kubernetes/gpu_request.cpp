#include "runtime/kubernetes/gpu_request.h"

#include "api/quantity.h"

namespace fettle::kubernetes {
namespace {

constexpr const char* kNvidiaGpu = "nvidia.com/gpu";

std::string share_of(const api::Gpu& gpu) {
  if (gpu.fraction) return "fraction " + Json(*gpu.fraction).dump();
  return "memory " + api::format_quantity(*gpu.memory);
}

}  // namespace

Result<std::optional<GpuRequest>> request_gpus(const api::TrialTemplate& trial) {
  if (!trial.gpu) return std::optional<GpuRequest>();
  const api::Gpu& gpu = *trial.gpu;
  if (!gpu.fraction && !gpu.memory) {
    return std::optional(GpuRequest{kNvidiaGpu, gpu.count.value_or(1)});
  }
  // Two ranks on one card can deadlock in a collective.
  if (trial.workers.max > 1) {
    return invalid("spec.trial.gpu: found " + share_of(gpu) + " of a GPU with up to " +
                   std::to_string(trial.workers.max) +
                   " workers, which may come to share one card and wait for each other for ever; "
                   "use count, or one worker");
  }
  return invalid("spec.trial.gpu: found " + share_of(gpu) +
                 "; on a cluster this version gives out whole GPUs only; use count: 1, or leave "
                 "gpu out to train on the CPU");
}

}  // namespace fettle::kubernetes
