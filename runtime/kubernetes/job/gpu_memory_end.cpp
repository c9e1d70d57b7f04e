#include "runtime/kubernetes/job/gpu_memory_end.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>

#include "api/trainer/trainer_config.h"

namespace fettle::kubernetes {
namespace {

constexpr std::string_view kWords[] = {
    "the GPU has no ",             // fettle-trainer, in the middle of a training
    "CUDA out of memory",          // PyTorch
    "HIP out of memory",           // PyTorch on AMD
    "cudaErrorMemoryAllocation",   // the CUDA runtime, by name
    "CUDA_ERROR_OUT_OF_MEMORY",    // the driver, JAX
    "CUDA error: out of memory",   // the CUDA runtime, in words
    "CUBLAS_STATUS_ALLOC_FAILED",  // libraries that allocate for themselves
    "CUDNN_STATUS_ALLOC_FAILED",   //
    "hipErrorOutOfMemory",         //
    "RESOURCE_EXHAUSTED",          // XLA: JAX, TensorFlow
    "OOM when allocating tensor",  // TensorFlow
    "unrecognized error code",     // the CUDA runtime under HAMi, over the limit (HAMi#662)
    "Device 0 OOM",                // HAMi's own library
};

// The need in the sentence of the built-in trainer (api/trainer/trainer_config.h). 0: it is cut
// off, or holds no number.
std::optional<double> needed_by_trainer(std::string_view words) {
  const std::size_t at = words.find(api::kGpuMemoryShort);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = words.substr(at + std::string_view(api::kGpuMemoryShort).size());
  std::int64_t bytes = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), bytes);
  const auto length = static_cast<std::size_t>(end - rest.data());
  const bool said =
      error == std::errc() && bytes > 0 && rest.substr(length).starts_with(api::kGpuMemoryNeeded);
  return said ? static_cast<double>(bytes) : 0;
}

}  // namespace

std::optional<double> gpu_memory_short(std::string_view last_words) {
  if (const auto needed = needed_by_trainer(last_words)) return needed;
  const bool said = std::any_of(std::begin(kWords), std::end(kWords), [&](std::string_view words) {
    return last_words.find(words) != std::string_view::npos;
  });
  return said ? std::optional(0.0) : std::nullopt;
}

}  // namespace fettle::kubernetes
