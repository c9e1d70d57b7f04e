// Pace: when the reporter sends what it has. Reports that decisions wait for go at once, others
// only so often that all trainers together write less than 50 times a second. While the API server
// is slow, or asks for fewer calls, ordinary reports go half as often, and half as often again;
// each quick answer takes back one such step.
//
// Pure: times come in, in milliseconds of any clock that never goes back. Not synchronised.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace fettle::trainer {

inline constexpr std::int64_t kShortestIntervalMs = 5'000;
inline constexpr std::int64_t kFirstRetryMs = 250;
inline constexpr std::int64_t kLongestRetryMs = 10'000;
// An answer that takes longer than this is slow.
inline constexpr std::int64_t kSlowAnswerMs = 1'000;
inline constexpr std::int64_t kLongestIntervalMs = 600'000;

// Between two reports of one trial while `trials` run at once: max(5 s, trials / 50 s).
std::int64_t report_interval_ms(std::int64_t trials);

class Pace {
 public:
  // `rungs`: steps at which early stopping decides, ascending. `longest_ms`: the interval is never
  // longer, because a trial that is silent for long counts as hung.
  Pace(std::vector<std::int64_t> rungs, std::int64_t interval_ms,
       std::int64_t longest_ms = kLongestIntervalMs);

  // There is a new report. It is urgent if it is the final one, or the first one at or past a rung.
  void reported(std::int64_t step, bool final_result);
  // Nothing comes after what there is now: it is urgent.
  void hurry();

  // When to make the next attempt; absent while there is nothing to send. In the past: now.
  std::optional<std::int64_t> due_ms() const;

  // An attempt begins, with everything that was reported so far. Then one of delivered() and
  // failed(). `throttled`: the API server asked for fewer calls (429).
  void begin(std::int64_t now_ms);
  void delivered(std::int64_t now_ms, bool throttled = false);
  // It is tried again: after 250 ms, doubled each time up to 10 s. The newest report goes then.
  void failed(std::int64_t now_ms, bool throttled = false);

 private:
  void heed(std::int64_t now_ms, bool throttled);

  const std::vector<std::int64_t> rungs_;
  const std::int64_t shortest_ms_;
  const std::int64_t longest_ms_;
  std::int64_t interval_ms_;  // now
  bool waiting_ = false;      // there is something that no attempt took
  bool urgent_ = false;       // and it must not be held back
  bool taken_urgent_ = false;
  std::int64_t last_step_ = -1;
  std::optional<std::int64_t> last_attempt_ms_;
  std::int64_t retry_ms_ = 0;  // the pause after the last failure; 0 = the last attempt went well
  std::int64_t retry_at_ms_ = 0;
};

}  // namespace fettle::trainer
