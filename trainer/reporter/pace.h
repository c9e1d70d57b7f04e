// Pace: when the reporter sends what it has. Reports that decisions wait for go at once, others
// only so often that all trainers of a Study together write less than 50 times a second.
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

// Between two reports of one trial while `trials` run at once: max(5 s, trials / 50 s).
std::int64_t report_interval_ms(std::int64_t trials);

class Pace {
 public:
  // `rungs`: steps at which early stopping decides, ascending.
  Pace(std::vector<std::int64_t> rungs, std::int64_t interval_ms);

  // There is a new report. It is urgent if it is the final one, or the first one at or past a rung.
  void reported(std::int64_t step, bool final_result);
  // Nothing comes after what there is now: it is urgent.
  void hurry();

  // When to make the next attempt; absent while there is nothing to send. In the past: now.
  std::optional<std::int64_t> due_ms() const;

  // An attempt begins, with everything that was reported so far. Then one of the other two.
  void begin(std::int64_t now_ms);
  void delivered();
  // It is tried again: after 250 ms, doubled each time up to 10 s. The newest report goes then.
  void failed(std::int64_t now_ms);

 private:
  const std::vector<std::int64_t> rungs_;
  const std::int64_t interval_ms_;
  bool waiting_ = false;  // there is something that no attempt took
  bool urgent_ = false;   // and it must not be held back
  bool taken_urgent_ = false;
  std::int64_t last_step_ = -1;
  std::optional<std::int64_t> last_attempt_ms_;
  std::int64_t retry_ms_ = 0;  // the pause after the last failure; 0 = the last attempt went well
  std::int64_t retry_at_ms_ = 0;
};

}  // namespace fettle::trainer
