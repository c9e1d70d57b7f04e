#include "base/machine/gpu_list.h"

#include <algorithm>

namespace fettle::machine {

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

}  // namespace fettle::machine
