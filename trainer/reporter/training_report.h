// EpochReport: the JSON lines in which a training reports its progress (docs: the worker contract),
// and the measurements of an epoch in them.
// Pure values and functions; clock readings come from outside.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace fettle::trainer {

using Metrics = std::vector<std::pair<std::string, double>>;

struct EpochReport {
  std::int64_t step = 0;  // epochs done
  Metrics metrics;
  std::string checkpoint;  // newest durable one, "" = none
  std::int64_t checkpoint_step = 0;
  bool final_result = false;  // untilStep is reached
  Json implementations;       // device_metrics.h; null: not on this line
};

// Cuts the list to api::kMaxReportMetrics, which a status holds. At its end are settings; a
// status itself would drop the last names of the alphabet.
Metrics first_metrics(Metrics metrics);

// One object on one line, without the newline. Numbers have six significant digits; non-finite ones
// are written NaN, Infinity or -Infinity, as Python's json does and the contract says.
std::string to_line(const EpochReport& report);

// The value as a line prints it, so that every recipient of a result sees the same value.
double as_printed(double value);

// Durations of the optimiser steps of an epoch.
class StepTimes {
 public:
  void add(double seconds) { seconds_.push_back(seconds); }
  bool empty() const { return seconds_.empty(); }
  std::int64_t count() const { return std::ssize(seconds_); }
  double total() const;
  // The smallest duration that `share` of the steps did not exceed (nearest rank); 0 without steps.
  double quantile(double share) const;

 private:
  std::vector<double> seconds_;
};

// Largest resident size of this process so far, in MiB.
double peak_memory_mib();
// Counts it from now on, where the system lets a process do so.
void reset_peak_memory();

}  // namespace fettle::trainer
