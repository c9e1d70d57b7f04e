#include "api/trial/display.h"

#include <array>
#include <charconv>
#include <cmath>

#include "api/fields/quantity.h"

namespace fettle::api {

std::string short_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  constexpr int kDigits = 4;
  // Between these bounds a number is rounded to a whole one with all its digits; "general" would
  // write 12345 as 1.234e+04, and numbers that round up to five digits as 1e+04.
  constexpr double kLeastPlain = 9999.5;
  constexpr double kMostPlain = 1e15;
  std::array<char, 32> text{};
  const double size = std::abs(value);
  const bool plain = size >= kLeastPlain && size < kMostPlain;
  const auto end = plain ? std::to_chars(text.data(), text.data() + text.size(), value,
                                         std::chars_format::fixed, 0)
                         : std::to_chars(text.data(), text.data() + text.size(), value,
                                         std::chars_format::general, kDigits);
  return {text.data(), end.ptr};
}

std::string short_numbers(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "" : " ") + short_number(value);
  return text;
}

std::string objective_text(const std::vector<Objective>& objectives,
                           const std::map<std::string, double>& metrics) {
  std::string text;
  bool any = false;
  for (const Objective& objective : objectives) {
    const auto found = metrics.find(objective.metric);
    any = any || found != metrics.end();
    text += (text.empty() ? "" : " ") +
            (found == metrics.end() ? std::string("-") : short_number(found->second));
  }
  return any ? text : "";
}

std::optional<Throughput> throughput_of(const std::map<std::string, double>& metrics) {
  for (const ThroughputMetric& metric : kThroughputMetrics) {
    const auto found = metrics.find(metric.name);
    if (found != metrics.end()) return Throughput{found->second, metric.unit};
  }
  return std::nullopt;
}

std::string throughput_text(const std::map<std::string, double>& metrics) {
  const std::optional<Throughput> found = throughput_of(metrics);
  return found ? short_number(found->value) + ' ' + std::string(found->unit) : "";
}

std::string gpu_text(const TrialTemplate& trial, std::int64_t workers) {
  if (!trial.gpu) return "";
  const auto& [count, fraction, memory, model] = *trial.gpu;
  if (!fraction && !memory) return std::to_string(count.value_or(1) * workers);
  const std::string each = fraction ? short_number(*fraction) : format_quantity(*memory);
  return workers == 1 ? each : std::to_string(workers) + "x" + each;
}

}  // namespace fettle::api
