// Display texts: numbers of a status as short texts, because tables print their texts unchanged.
// Pure functions; usable from any thread.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/study/study.h"

namespace fettle::api {

// A metric of training speed; one of kThroughputMetrics becomes Report::throughput.
struct ThroughputMetric {
  const char* name;
  const char* unit;  // for the column of a table, or a text
};
inline constexpr ThroughputMetric kImagesPerSecond = {"images_per_second", "images/s"};
inline constexpr ThroughputMetric kTokensPerSecond = {"tokens_per_second", "tokens/s"};
inline constexpr std::array kThroughputMetrics = {kImagesPerSecond, kTokensPerSecond};

struct Throughput {
  double value = 0;
  std::string_view unit;
};

// Returns the first of kThroughputMetrics that is among `metrics`.
std::optional<Throughput> throughput_of(const std::map<std::string, double>& metrics);

// Formats a number with four significant digits: "0.9132", "4120", "1.5e-07", "NaN".
std::string short_number(double value);

// "0.9132"; several objectives with spaces between them.
std::string short_numbers(const std::vector<double>& values);

// Returns the newest objective values, with "-" for a missing one; "" if all are missing.
std::string objective_text(const std::vector<Objective>& objectives,
                           const std::map<std::string, double>& metrics);

// "4120 images/s"; "" if `metrics` has no throughput.
std::string throughput_text(const std::map<std::string, double>& metrics);

// GPUs that `workers` workers use: "4", "0.25", "20Gi", "2x0.25"; "" for a CPU trial.
std::string gpu_text(const TrialTemplate& trial, std::int64_t workers);

}  // namespace fettle::api
