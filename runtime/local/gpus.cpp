#include "runtime/local/gpus.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace fettle::local {
namespace {

constexpr int kMaxGpus = 64;

}  // namespace

std::vector<std::string> visible_gpus() {
  const char* const chosen = std::getenv("CUDA_VISIBLE_DEVICES");
  if (chosen != nullptr) return split_gpus(chosen);
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

std::string join_gpus(const std::vector<std::string>& gpus) {
  std::string list;
  for (const std::string& gpu : gpus) list += (list.empty() ? "" : ",") + gpu;
  return list;
}

std::vector<std::string> split_gpus(const std::string& list) {
  std::vector<std::string> gpus;
  std::size_t from = 0;
  while (from < list.size()) {
    const std::size_t comma = std::min(list.find(',', from), list.size());
    const std::string gpu = list.substr(from, comma - from);
    if (gpu.empty() || gpu == "-1") break;
    gpus.push_back(gpu);
    from = comma + 1;
  }
  return gpus;
}

}  // namespace fettle::local
