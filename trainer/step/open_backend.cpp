#include "trainer/step/open_backend.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>

#include "api/enum_names.h"
#include "machine/cuda_support.h"
#include "machine/usable.h"

namespace fettle::trainer {
namespace {

// Whether this machine's GPUs are hidden from the process on purpose, as `fettle run` does for
// trials that request none.
bool hides_gpus() {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");  // NOLINT(concurrency-mt-unsafe)
  if (visible == nullptr) return false;
  return *visible == '\0' || std::string_view(visible) == "-1";
}

// Warns once: a process may open its backend several times.
void warn_of_unused_gpu(const Error& reason) {
  if (hides_gpus()) return;
  static std::once_flag once;
  std::call_once(once, [&] {
    const std::string warning = machine::unused_gpu_warning(machine::find_gpus(), reason.message);
    if (!warning.empty()) std::fprintf(stderr, "WARNING: %s\n", warning.c_str());
  });
}

}  // namespace

// Opens the fastest backend of this machine. fp16 on a CPU serves only to try out a GPU's results;
// only the reference backend has it there.
Result<std::unique_ptr<kernels::Backend>> open_backend(const api::TrainingConfig& config) {
  using api::BackendKind;
  const auto open = [&config](BackendKind kind) {
    return kernels::make_backend(api::to_string(kind), static_cast<int>(config.threads));
  };
  if (config.backend != BackendKind::kAuto) return open(config.backend);
  auto gpu = open(BackendKind::kCuda);
  if (gpu.ok()) return gpu;
  warn_of_unused_gpu(gpu.error());
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
