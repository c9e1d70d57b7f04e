#include "base/machine/units.h"

#include <array>
#include <cstddef>
#include <cstdio>
#include <span>

namespace fettle::machine {
namespace {

std::string three_digits(double value) {
  const int decimals = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return text.data();
}

// Writes `value` in the largest of `units` in which it is at least one; each unit is `step` times
// the one before.
std::string scaled(double value, double step, std::span<const char* const> units) {
  std::size_t unit = 0;
  while (value >= step && unit + 1 < units.size()) {
    value /= step;
    ++unit;
  }
  return three_digits(value) + " " + units[unit];
}

}  // namespace

std::string bytes_text(double bytes) {
  constexpr std::array<const char*, 5> kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return std::to_string(static_cast<long long>(bytes)) + " bytes";
  return scaled(bytes, 1024, kUnits);
}

std::string flops_text(double flops) {
  constexpr std::array<const char*, 5> kUnits = {"FLOP", "KFLOP", "MFLOP", "GFLOP", "TFLOP"};
  return scaled(flops, 1000, kUnits);
}

}  // namespace fettle::machine
