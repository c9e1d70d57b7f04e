// Calibration: the range that each quantize layer is given, from the inputs that it sees. With
// percentile it leaves out the ends of a histogram, 0.01 % of the numbers together, so that a few
// outliers do not make the grid coarse for all; this takes a second pass over the samples.
// One thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fettle::trainer {

// The numbers that one layer has seen.
class RangeObserver {
 public:
  static constexpr std::size_t kBins = 2048;

  void see(std::span<const float> values);
  // The same values once more: counts them in bins of the range that see() has found.
  void count(std::span<const float> values);

  struct Range {
    float least = 0;
    float most = 0;
  };
  // All of them, and 0.
  Range whole() const { return {least_, most_}; }
  // Without the ends, if count() has seen all values; else the whole range.
  Range percentile() const;

 private:
  float least_ = 0;
  float most_ = 0;
  std::vector<std::int64_t> bins_;
};

}  // namespace fettle::trainer
