#include "runtime/local/gpus.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "machine/gpu_list.h"

namespace fettle::local {
namespace {

constexpr int kMaxGpus = 64;

}  // namespace

std::vector<std::string> visible_gpus() {
  const char* const chosen = std::getenv("CUDA_VISIBLE_DEVICES");
  if (chosen != nullptr) return machine::split_gpus(chosen);
  std::vector<std::string> gpus;
  for (int i = 0; i < kMaxGpus; ++i) {
    const std::string number = std::to_string(i);
    if (::access(("/dev/nvidia" + number).c_str(), F_OK) == 0) gpus.push_back(number);
  }
  return gpus;
}

std::optional<std::vector<std::string>> choose_gpus(const std::vector<std::string>& visible,
                                                    const std::vector<std::string>& taken,
                                                    std::size_t count) {
  std::vector<std::string> chosen;
  for (const std::string& gpu : visible) {
    const bool is_taken = std::find(taken.begin(), taken.end(), gpu) != taken.end();
    if (!is_taken && chosen.size() < count) chosen.push_back(gpu);
  }
  if (chosen.size() < count) return std::nullopt;
  return chosen;
}

}  // namespace fettle::local
