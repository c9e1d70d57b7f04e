#include "kube/client/clock_offset.h"

#include <algorithm>

namespace fettle::kube {
namespace {

// Upper bound of the difference between the header's time and the server's.
constexpr std::int64_t kDateStepMs = 1'000;

}  // namespace

void ClockOffset::note(std::int64_t date_ms, std::int64_t asked_ms, std::int64_t answered_ms) {
  const std::int64_t least = date_ms - answered_ms - kClockSlackMs;
  const std::int64_t most = date_ms + kDateStepMs - asked_ms + kClockSlackMs;
  const std::lock_guard lock(mutex_);
  ms_ = std::clamp(ms_, least, most);
}

std::int64_t ClockOffset::ms() const {
  const std::lock_guard lock(mutex_);
  return ms_;
}

}  // namespace fettle::kube
