// ClockOffset: how far the API server's clock is ahead of this process's, from the Date headers of
// answers.
//
// The header counts whole seconds, and a call takes time, so one answer only bounds the offset. An
// offset within the bounds of the newest answer is kept; any other moves to the nearer bound. So it
// follows a clock that is set, is not moved by slow answers, and stays 0 while both clocks agree
// within kClockSlackMs.
// Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>

namespace fettle::kube {

inline constexpr std::int64_t kClockSlackMs = 1'000;

class ClockOffset {
 public:
  // Notes that the server wrote `date_ms` between `asked_ms` and `answered_ms` of this process's
  // clock.
  void note(std::int64_t date_ms, std::int64_t asked_ms, std::int64_t answered_ms);
  std::int64_t ms() const;

 private:
  mutable std::mutex mutex_;
  std::int64_t ms_ = 0;
};

}  // namespace fettle::kube
