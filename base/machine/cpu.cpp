#include "base/machine/cpu.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <sstream>
#include <utility>

namespace fettle::machine {
namespace {

// The instruction sets that decide which kernels run.
constexpr std::array<std::string_view, 7> kCpuFeatures = {
    "sse4_2", "avx2", "fma", "avx512f", "avx512_bf16", "amx_tile", "amx_bf16"};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

int number(std::string_view text) {
  int value = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::vector<std::string> known_features(std::string_view flags) {
  std::istringstream words{std::string(flags)};
  std::set<std::string> all;
  for (std::string word; words >> word;) all.insert(word);
  std::vector<std::string> found;
  for (const std::string_view feature : kCpuFeatures) {
    if (all.contains(std::string(feature))) found.emplace_back(feature);
  }
  return found;
}

}  // namespace

Cpu parse_cpu(std::string_view cpuinfo) {
  Cpu cpu;
  std::set<int> sockets;
  std::set<std::pair<int, int>> cores;
  int socket = 0;
  std::istringstream lines{std::string(cpuinfo)};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string_view key = trimmed(std::string_view(line).substr(0, colon));
    const std::string_view value = trimmed(std::string_view(line).substr(colon + 1));
    if (key == "processor") ++cpu.logical;
    if (key == "model name") cpu.model = value;
    if (key == "physical id") sockets.insert(socket = number(value));
    // "physical id" comes before "core id"; core ids repeat between sockets.
    if (key == "core id") cores.emplace(socket, number(value));
    // Every processor repeats the flags.
    if (key == "flags" && cpu.features.empty()) cpu.features = known_features(value);
  }
  // Virtual machines may report no sockets and cores.
  cpu.sockets = std::max<int>(static_cast<int>(sockets.size()), cpu.logical > 0 ? 1 : 0);
  cpu.cores = cores.empty() ? cpu.logical : static_cast<int>(cores.size());
  return cpu;
}

}  // namespace fettle::machine
