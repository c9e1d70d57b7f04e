// Clocks of tests. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/control/clock.h"

namespace fettle::kubernetes {

// A clock that a test moves.
class HandClock : public control::Clock {
 public:
  explicit HandClock(std::int64_t now_ms = 1'800'000'000'000) : now_ms_(now_ms) {}

  std::int64_t now_ms() override { return now_ms_; }
  void pass(std::int64_t ms) { now_ms_ += ms; }

 private:
  std::atomic<std::int64_t> now_ms_;
};

// Shows another clock's time and `ahead_ms` more.
class ClockAhead : public control::Clock {
 public:
  ClockAhead(control::Clock& clock, std::int64_t ahead_ms) : clock_(clock), ahead_ms_(ahead_ms) {}

  std::int64_t now_ms() override { return clock_.now_ms() + ahead_ms_; }

 private:
  control::Clock& clock_;
  const std::int64_t ahead_ms_;
};

}  // namespace fettle::kubernetes
