#include "trainer/open_backend.h"

#include "api/names.h"
#include "machine/usable.h"

namespace fettle::trainer {

// The fastest that this machine has. fp16 on a CPU is for trying out what a GPU will do; only the
// reference has it there.
Result<std::unique_ptr<kernels::Backend>> open_backend(const api::TrainingConfig& config) {
  using api::BackendKind;
  const auto open = [&config](BackendKind kind) {
    return kernels::make_backend(api::to_string(kind), static_cast<int>(config.threads));
  };
  if (config.backend != BackendKind::kAuto) return open(config.backend);
  auto gpu = open(BackendKind::kCuda);
  if (gpu.ok()) return gpu;
  auto fast = open(BackendKind::kOnednn);
  if (fast.ok() && config.precision != api::Precision::kFp16) return fast;
  return open(BackendKind::kReference);
}

MemoryThere memory_there(const kernels::Backend& backend, std::int64_t processes) {
  return {machine::usable_memory() / processes, !backend.shares_memory(), backend.free_memory()};
}

MemoryThere memory_there(const api::TrainingConfig& config, std::int64_t processes) {
  return {machine::usable_memory() / processes, config.backend == api::BackendKind::kCuda, {}};
}

}  // namespace fettle::trainer
