// What a table shows of numbers in a status: short texts, since a table prints what it gets as it
// is. Pure functions; usable from any thread.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/study.h"

namespace fettle::api {

// The metrics that say how fast a trial trains; one of them becomes Report::throughput.
struct ThroughputMetric {
  const char* name;
  const char* unit;  // of a table's column or of a text
};
inline constexpr ThroughputMetric kImagesPerSecond = {"images_per_second", "images/s"};
inline constexpr ThroughputMetric kTokensPerSecond = {"tokens_per_second", "tokens/s"};
inline constexpr std::array kThroughputMetrics = {kImagesPerSecond, kTokensPerSecond};

struct Throughput {
  double value = 0;
  std::string_view unit;
};

// The first of kThroughputMetrics among `metrics`.
std::optional<Throughput> throughput_of(const std::map<std::string, double>& metrics);

// Four significant digits: "0.9132", "4120", "1.5e-07", "NaN".
std::string short_number(double value);

// "0.9132"; several objectives with spaces between them.
std::string short_numbers(const std::vector<double>& values);

// The newest objective values among `metrics`, "-" where one is missing; "" when all are.
std::string objective_text(const std::vector<Objective>& objectives,
                           const std::map<std::string, double>& metrics);

// "4120 images/s"; "" when `metrics` does not say.
std::string throughput_text(const std::map<std::string, double>& metrics);

// What `workers` workers take of GPUs: "4", "0.25", "20Gi", "2x0.25"; "" for a CPU trial.
std::string gpu_text(const TrialTemplate& trial, std::int64_t workers);

}  // namespace fettle::api
