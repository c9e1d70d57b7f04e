#include "trainer/reporter/pace.h"

#include <algorithm>
#include <utility>

namespace fettle::trainer {

std::int64_t report_interval_ms(std::int64_t trials) {
  constexpr std::int64_t kMsPerTrial = 1000 / 50;
  return std::max(kShortestIntervalMs, trials * kMsPerTrial);
}

Pace::Pace(std::vector<std::int64_t> rungs, std::int64_t interval_ms, std::int64_t longest_ms)
    : rungs_(std::move(rungs)),
      shortest_ms_(std::min(interval_ms, longest_ms)),
      longest_ms_(longest_ms),
      interval_ms_(shortest_ms_) {}

void Pace::reported(std::int64_t step, bool final_result) {
  const auto rung = std::upper_bound(rungs_.begin(), rungs_.end(), last_step_);
  const bool passed_rung = rung != rungs_.end() && *rung <= step;
  last_step_ = step;
  waiting_ = true;
  urgent_ = urgent_ || passed_rung || final_result;
}

void Pace::hurry() { urgent_ = urgent_ || waiting_; }

std::optional<std::int64_t> Pace::due_ms() const {
  if (!waiting_) return std::nullopt;
  if (retry_ms_ > 0) return retry_at_ms_;
  if (urgent_ || !last_attempt_ms_) return 0;
  return *last_attempt_ms_ + interval_ms_;
}

void Pace::begin(std::int64_t now_ms) {
  last_attempt_ms_ = now_ms;
  waiting_ = false;
  taken_urgent_ = std::exchange(urgent_, false);
}

void Pace::heed(std::int64_t now_ms, bool throttled) {
  const bool slow = throttled || now_ms - last_attempt_ms_.value_or(now_ms) > kSlowAnswerMs;
  interval_ms_ = std::clamp(slow ? 2 * interval_ms_ : interval_ms_ / 2, shortest_ms_, longest_ms_);
}

void Pace::delivered(std::int64_t now_ms, bool throttled) {
  heed(now_ms, throttled);
  retry_ms_ = 0;
}

void Pace::failed(std::int64_t now_ms, bool throttled) {
  heed(now_ms, throttled);
  waiting_ = true;
  urgent_ = urgent_ || taken_urgent_;
  retry_ms_ = std::clamp(2 * retry_ms_, kFirstRetryMs, kLongestRetryMs);
  retry_at_ms_ = now_ms + retry_ms_;
}

}  // namespace fettle::trainer
