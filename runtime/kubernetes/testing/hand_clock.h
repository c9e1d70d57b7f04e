// HandClock: a clock that a test moves. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "control/clock.h"

namespace fettle::kubernetes {

class HandClock : public control::Clock {
 public:
  explicit HandClock(std::int64_t now_ms = 1'800'000'000'000) : now_ms_(now_ms) {}

  std::int64_t now_ms() override { return now_ms_; }
  void pass(std::int64_t ms) { now_ms_ += ms; }

 private:
  std::atomic<std::int64_t> now_ms_;
};

}  // namespace fettle::kubernetes
