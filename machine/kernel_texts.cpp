#include "machine/kernel_texts.h"

#include <algorithm>
#include <charconv>

namespace fettle::machine {
namespace {

// The number after `key` at the beginning of a line; 0 without it.
std::int64_t kibibytes(std::string_view text, std::string_view key) {
  std::size_t at = text.find(key);  // perhaps within a longer key, which the loop skips
  while (at != std::string_view::npos && at != 0 && text[at - 1] != '\n') {
    at = text.find(key, at + 1);
  }
  if (at == std::string_view::npos) return 0;
  text.remove_prefix(at + key.size());
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::int64_t value = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::optional<double> leading_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !(value > 0)) return std::nullopt;
  return value;
}

}  // namespace

MemoryInfo parse_memory(std::string_view meminfo) {
  constexpr std::int64_t kKibibyte = 1024;
  return {kKibibyte * kibibytes(meminfo, "MemTotal:"),
          kKibibyte * kibibytes(meminfo, "MemAvailable:")};
}

double parse_cache_size(std::string_view size) {
  const bool mebibytes = size.find('M') != std::string_view::npos;
  const bool kibibytes = size.find('K') != std::string_view::npos;
  if (!mebibytes && !kibibytes) return 0;
  return leading_number(size).value_or(0) * (mebibytes ? 1 << 20 : 1 << 10);
}

std::optional<double> parse_link_speed(std::string_view speed) {
  constexpr double kBytesOfMegabit = 1e6 / 8;
  const auto megabits = leading_number(speed);
  if (!megabits) return std::nullopt;
  return *megabits * kBytesOfMegabit;
}

std::optional<double> parse_pci_link(std::string_view speed, std::string_view width) {
  const auto transfers = leading_number(speed);
  const auto lanes = leading_number(width);
  if (!transfers || !lanes || speed.find("GT/s") == std::string_view::npos) return std::nullopt;
  // From 8 GT/s on (PCIe 3.0), 128 of 130 bits are data; below, 8 of 10.
  const double coding = *transfers >= 8 ? 128.0 / 130 : 0.8;
  return *transfers * 1e9 / 8 * coding * *lanes;
}

}  // namespace fettle::machine
