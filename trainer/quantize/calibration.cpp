#include "trainer/quantize/calibration.h"

#include <algorithm>
#include <numeric>

namespace fettle::trainer {

namespace {
constexpr double kLeftOutAtEachEnd = 5e-5;
}

void RangeObserver::see(std::span<const float> values) {
  for (const float value : values) {
    least_ = std::min(least_, value);
    most_ = std::max(most_, value);
  }
}

void RangeObserver::count(std::span<const float> values) {
  bins_.resize(kBins);
  const float width = (most_ - least_) / kBins;
  if (!(width > 0)) return;
  for (const float value : values) {
    if (!(value >= least_)) continue;  // NaN has no bin
    const auto bin = static_cast<std::int64_t>((value - least_) / width);
    ++bins_[static_cast<std::size_t>(std::clamp<std::int64_t>(bin, 0, kBins - 1))];
  }
}

RangeObserver::Range RangeObserver::percentile() const {
  const auto total =
      static_cast<double>(std::accumulate(bins_.begin(), bins_.end(), std::int64_t{0}));
  if (total == 0) return whole();
  const double spared = total * kLeftOutAtEachEnd;
  const float width = (most_ - least_) / kBins;
  std::size_t first = 0;
  for (double below = 0; first < kBins; ++first) {
    below += static_cast<double>(bins_[first]);
    if (below > spared) break;
  }
  std::size_t last = kBins;
  for (double above = 0; last > first + 1; --last) {
    above += static_cast<double>(bins_[last - 1]);
    if (above > spared) break;
  }
  // The grid holds 0 in any case.
  return {std::min(0.0F, least_ + width * static_cast<float>(first)),
          std::max(0.0F, least_ + width * static_cast<float>(last))};
}

}  // namespace fettle::trainer
