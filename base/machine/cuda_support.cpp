#include "base/machine/cuda_support.h"

namespace fettle::machine {

std::string why_no_driver(const Gpus& gpus) {
  if (!gpus.missing.empty()) return gpus.missing;
  if (gpus.cuda >= kLeastCuda) return "";
  return "driver " + gpus.driver + " is too old for the trainer's CUDA backend: it needs " +
         kLeastDriver +
         " or newer (CUDA 13.0); update the driver, until then trials train on the CPU";
}

std::string why_no_gpu(const Gpu& gpu) {
  if (gpu.major >= kLeastCapability && gpu.major <= kMostCapability) return "";
  return "the trainer's CUDA backend does not support compute capability " +
         std::to_string(gpu.major) + "." + std::to_string(gpu.minor) + ", only " +
         std::to_string(kLeastCapability) + ".0 to " + std::to_string(kMostCapability) +
         ".x: trials train on the CPU";
}

std::string unused_gpu_warning(const Gpus& gpus, const std::string& reason) {
  if (gpus.all.empty()) return "";
  const std::string count =
      gpus.all.size() == 1 ? "a GPU" : std::to_string(gpus.all.size()) + " GPUs";
  return "this machine has " + count + " (" + gpus.all.front().name +
         "), and the training runs on the CPU: " + reason;
}

}  // namespace fettle::machine
