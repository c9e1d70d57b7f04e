#include "machine/cpu.h"

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

// Two units of this many lanes; each lane multiplies and adds.
constexpr double kPlain = 8;
constexpr double kAvx2 = 2 * 8 * 2;
constexpr double kAvx512 = 2 * 16 * 2;
constexpr double kAmx = 2 * 1024;  // a 16 x 32 by 32 x 16 product in 16 cycles

constexpr int kFirstWideFamily = 26;  // of AMD: Zen 5

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

template <class Number>
Number number(std::string_view text) {
  Number value{};
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

bool Cpu::has(std::string_view feature) const {
  return std::ranges::find(features, feature) != features.end();
}

Cpu parse_cpu(std::string_view cpuinfo) {
  Cpu cpu;
  std::set<int> sockets;
  std::set<std::pair<int, int>> cores;
  int socket = 0;
  int family = 0;
  bool amd = false;
  std::istringstream lines{std::string(cpuinfo)};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string_view key = trimmed(std::string_view(line).substr(0, colon));
    const std::string_view value = trimmed(std::string_view(line).substr(colon + 1));
    if (key == "processor") ++cpu.logical;
    if (key == "model name") cpu.model = value;
    if (key == "vendor_id") amd = value == "AuthenticAMD";
    if (key == "cpu family") family = number<int>(value);
    if (key == "cpu MHz") cpu.hertz = std::max(cpu.hertz, 1e6 * number<double>(value));
    if (key == "physical id") sockets.insert(socket = number<int>(value));
    // "physical id" comes before "core id"; core ids repeat between sockets.
    if (key == "core id") cores.emplace(socket, number<int>(value));
    if (key == "flags" && cpu.features.empty()) cpu.features = known_features(value);
  }
  // Virtual machines may report no sockets and cores.
  cpu.sockets = std::max<int>(static_cast<int>(sockets.size()), cpu.logical > 0 ? 1 : 0);
  cpu.cores = cores.empty() ? cpu.logical : static_cast<int>(cores.size());
  cpu.narrow_avx512 = amd && family < kFirstWideFamily;
  return cpu;
}

double flops_per_cycle(const Cpu& cpu, bool bits16) {
  if (bits16 && cpu.has("amx_bf16")) return kAmx;
  const bool wide = cpu.has("avx512f") && !cpu.narrow_avx512;
  double each = cpu.has("avx2") && cpu.has("fma") ? kAvx2 : kPlain;
  if (wide) each = kAvx512;
  // A dot product of pairs does twice the work per instruction.
  return bits16 && cpu.has("avx512_bf16") ? 2 * each : each;
}

double peak_flops(const Cpu& cpu, double cores, bool bits16) {
  return std::min(cores, static_cast<double>(cpu.cores)) * cpu.hertz * flops_per_cycle(cpu, bits16);
}

}  // namespace fettle::machine
