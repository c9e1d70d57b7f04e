// VirtualTime: the only clock of a study life. It moves when somebody waits: the loop of the life,
// a client that pauses, a call without an answer. Meanwhile the world continues, second by second.
// One thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

#include "core/control/clock.h"

namespace fettle::matrix {

class VirtualTime final : public control::Clock {
 public:
  static constexpr std::int64_t kBegin = 1'800'000'000'000;
  static constexpr std::int64_t kSecond = 1'000;

  std::int64_t now_ms() override { return now_ms_; }
  std::int64_t since_begin_ms() const { return now_ms_ - kBegin; }
  std::chrono::steady_clock::time_point steady() const {
    return std::chrono::steady_clock::time_point(std::chrono::milliseconds(now_ms_));
  }

  // Called once for each second that passes, but not from within itself.
  void on_second(std::function<void()> tick) { tick_ = std::move(tick); }

  void pass(std::int64_t ms) {
    const std::int64_t end_ms = now_ms_ + ms;
    if (std::exchange(ticking_, true)) {
      now_ms_ = end_ms;
      return;
    }
    while (next_tick_ms_ <= end_ms) {
      now_ms_ = std::max(now_ms_, next_tick_ms_);
      next_tick_ms_ = now_ms_ + kSecond;
      if (tick_) tick_();
    }
    now_ms_ = std::max(now_ms_, end_ms);
    ticking_ = false;
  }

 private:
  std::int64_t now_ms_ = kBegin;
  std::int64_t next_tick_ms_ = kBegin + kSecond;
  bool ticking_ = false;
  std::function<void()> tick_;
};

}  // namespace fettle::matrix
