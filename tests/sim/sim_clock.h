// A virtual clock: time passes when the simulation says so. One thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/control/clock.h"

namespace fettle::sim {

class SimClock : public control::Clock {
 public:
  std::int64_t now_ms() override { return now_ms_; }
  void advance_to(std::int64_t at_ms) { now_ms_ = std::max(now_ms_, at_ms); }

 private:
  std::int64_t now_ms_ = 1'000'000;
};

}  // namespace fettle::sim
