#include "trainer/reporter/training_report.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>

#include "base/json.h"

namespace fettle::trainer {

namespace {

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  constexpr int kDigits = 6;
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value,
                                 std::chars_format::general, kDigits);
  return {text.data(), end.ptr};
}

}  // namespace

std::string to_line(const EpochReport& report) {
  std::string line = "{\"step\": " + std::to_string(report.step);
  for (const auto& [name, value] : report.metrics) {
    line += ", " + Json(name).dump() + ": " + number(value);
  }
  if (!report.checkpoint.empty()) {
    line += ", \"checkpoint\": " + Json(report.checkpoint).dump() +
            ", \"checkpoint_step\": " + std::to_string(report.checkpoint_step);
  }
  if (!report.implementations.is_null()) {
    line += ", \"implementations\": " + report.implementations.dump();
  }
  if (report.final_result) line += ", \"final\": true";
  return line + "}";
}

double as_printed(double value) {
  if (!std::isfinite(value)) return value;
  const std::string text = number(value);
  double printed = value;
  std::from_chars(text.data(), text.data() + text.size(), printed);
  return printed;
}

double StepTimes::total() const { return std::accumulate(seconds_.begin(), seconds_.end(), 0.0); }

double StepTimes::quantile(double share) const {
  if (seconds_.empty()) return 0;
  std::vector<double> sorted = seconds_;
  std::sort(sorted.begin(), sorted.end());
  const double rank = std::ceil(share * static_cast<double>(sorted.size()));
  return sorted[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

double peak_memory_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  constexpr double kKibibytesPerMebibyte = 1024;
  return static_cast<double>(usage.ru_maxrss) / kKibibytesPerMebibyte;
}

}  // namespace fettle::trainer
