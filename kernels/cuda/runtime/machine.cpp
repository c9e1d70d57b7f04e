#include "kernels/cuda/runtime/machine.h"

#include <algorithm>
#include <charconv>

namespace fettle::kernels::cuda {
namespace {

// A machine without any driver also returns cudaErrorInsufficientDriver.
constexpr int kInsufficientDriver = 35;
constexpr int kNoDevice = 100;

bool one_runs_on(std::string_view architecture, int major, int minor) {
  int number = 0;
  const char* const end = architecture.data() + architecture.size();
  const char* const after = std::from_chars(architecture.data(), end, number).ptr;
  const std::string_view kind(after, static_cast<std::size_t>(end - after));
  const int capability = 10 * major + minor;
  if (kind.starts_with('a')) return capability == number;  // such code runs nowhere else
  const bool same_family = number / 10 == major && number <= capability;
  if (kind.starts_with('f') || kind == "-real") return same_family;
  return number <= capability && (kind == "-virtual" || kind.empty());
}

}  // namespace

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

bool runs_on(std::string_view architectures, int major, int minor) {
  while (!architectures.empty()) {
    const std::string_view first = architectures.substr(0, architectures.find(','));
    if (one_runs_on(first, major, minor)) return true;
    architectures.remove_prefix(std::min(architectures.size(), first.size() + 1));
  }
  return false;
}

Status check_machine(const MachineFacts& facts, std::string_view architectures) {
  const std::string otherwise = "; choose another backend to train on the CPU";
  if (facts.error == kInsufficientDriver && facts.driver_version > 0) {
    return io_error("the NVIDIA driver here is for CUDA " + version_text(facts.driver_version) +
                    ", expected " + version_text(facts.runtime_version) +
                    " or later: update the driver, to 580 or newer for CUDA 13.0" + otherwise);
  }
  if (facts.error == kInsufficientDriver || facts.error == kNoDevice ||
      (facts.error == 0 && facts.devices == 0)) {
    return io_error("no GPU: " +
                    std::string(facts.driver_version == 0 ? "this machine has no NVIDIA driver"
                                                          : "the driver shows this process none "
                                                            "(CUDA_VISIBLE_DEVICES)") +
                    otherwise);
  }
  if (facts.error != 0) {
    return io_error("the GPU cannot be used: " + facts.error_text + " (CUDA error " +
                    std::to_string(facts.error) + ")" + otherwise);
  }
  if (runs_on(architectures, facts.major, facts.minor)) return success();
  return io_error("the GPU " + facts.name + " has compute capability " +
                  std::to_string(facts.major) + "." + std::to_string(facts.minor) +
                  ", and this build is for " + std::string(architectures) +
                  "; build it with -DCMAKE_CUDA_ARCHITECTURES=" +
                  std::to_string(10 * facts.major + facts.minor) + otherwise);
}

}  // namespace fettle::kernels::cuda
