// Pace: decides when the reporter sends. Reports that decisions wait for go at once, others at
// intervals such that all trainers together write less than 50 times a second. Each slow answer of
// the API server, or a request for fewer calls, doubles the interval of ordinary reports; each
// quick answer halves it again.
//
// Pure: times are arguments, in milliseconds of any monotonic clock. Not synchronised.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace fettle::trainer {

inline constexpr std::int64_t kShortestIntervalMs = 5'000;
inline constexpr std::int64_t kFirstRetryMs = 250;
inline constexpr std::int64_t kLongestRetryMs = 10'000;
// A slower answer counts as slow.
inline constexpr std::int64_t kSlowAnswerMs = 1'000;
inline constexpr std::int64_t kLongestIntervalMs = 600'000;

// Interval between two reports of one trial while `trials` run at once: max(5 s, trials / 50 s).
std::int64_t report_interval_ms(std::int64_t trials);

class Pace {
 public:
  // `rungs`: steps at which early stopping decides, ascending. `longest_ms`: the longest interval,
  // because a trial that is silent for too long counts as hung.
  Pace(std::vector<std::int64_t> rungs, std::int64_t interval_ms,
       std::int64_t longest_ms = kLongestIntervalMs);

  // Notes a new report. It is urgent if it is the final one, or the first at or past a rung.
  void reported(std::int64_t step, bool final_result);
  // Makes a pending report urgent: none follows.
  void hurry();

  // Time of the next attempt; absent if there is nothing to send. In the past: now.
  std::optional<std::int64_t> due_ms() const;

  // Begins an attempt with everything reported so far; delivered() or failed() must follow.
  // `throttled`: the API server asked for fewer calls (429).
  void begin(std::int64_t now_ms);
  void delivered(std::int64_t now_ms, bool throttled = false);
  // Schedules a retry: after 250 ms, doubled each time up to 10 s. It sends the newest report.
  void failed(std::int64_t now_ms, bool throttled = false);

 private:
  void heed(std::int64_t now_ms, bool throttled);

  const std::vector<std::int64_t> rungs_;
  const std::int64_t shortest_ms_;
  const std::int64_t longest_ms_;
  std::int64_t interval_ms_;  // current interval
  bool waiting_ = false;      // a report is pending that no attempt took
  bool urgent_ = false;       // the pending report must not be held back
  bool taken_urgent_ = false;
  std::int64_t last_step_ = -1;
  std::optional<std::int64_t> last_attempt_ms_;
  std::int64_t retry_ms_ = 0;  // the pause after the last failure; 0 = the last attempt succeeded
  std::int64_t retry_at_ms_ = 0;
};

}  // namespace fettle::trainer
