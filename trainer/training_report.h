// EpochReport: the JSON lines by which a training tells the world how it stands (docs: the worker
// contract), and the measurements of an epoch that go into them.
// Pure values and functions, the clock readings come from outside.
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
  Json implementations;       // implementations.h; null: not said on this line
};

// One object on one line, without the newline. Numbers have six significant digits; what is not
// finite is written NaN, Infinity or -Infinity, as Python's json does and the contract says.
std::string to_line(const EpochReport& report);

// The value that a line says, so that everybody who hears of a result hears the same.
double as_printed(double value);

// How long the optimiser steps of an epoch took.
class StepTimes {
 public:
  void add(double seconds) { seconds_.push_back(seconds); }
  bool empty() const { return seconds_.empty(); }
  double total() const;
  // The smallest time that `share` of the steps did not exceed (nearest rank); 0 without steps.
  double quantile(double share) const;

 private:
  std::vector<double> seconds_;
};

// Largest resident size of this process so far, in MiB.
double peak_memory_mib();

}  // namespace fettle::trainer
