#include "trainer/reporter/training_report.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <string_view>

#include "api/trial/report.h"
#include "base/file.h"
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

Metrics first_metrics(Metrics metrics) {
  if (metrics.size() > api::kMaxReportMetrics) metrics.resize(api::kMaxReportMetrics);
  return metrics;
}

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

void reset_peak_memory() {
  // Not write_file(), which replaces a file.
  const int fd = ::open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  (void)!::write(fd, "5", 1);
  ::close(fd);
}

// Not getrusage(), whose value nothing resets, and which begins with that of the parent process.
double peak_memory_mib() {
  constexpr std::string_view kName = "VmHWM:";
  const Result<std::string> text = read_file("/proc/self/status");
  const std::size_t at = text.ok() ? text->find(kName) : std::string::npos;
  if (at == std::string::npos) return 0;
  constexpr double kKibibytesPerMebibyte = 1024;
  return std::strtod(text->c_str() + at + kName.size(), nullptr) / kKibibytesPerMebibyte;
}

}  // namespace fettle::trainer
