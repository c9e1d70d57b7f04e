#include "runtime/kubernetes/job/run_clock.h"

#include <algorithm>

namespace fettle::kubernetes {

void RunClock::correct(core::Run& run, std::int64_t reported_ms, std::int64_t now_ms) {
  if (run.state == core::RunState::kPending) waited_ms_ = now_ms;
  if (run.state == core::RunState::kRunning) ran_ms_ = now_ms;
  if (run.started_ms != 0) {
    run.started_ms = std::min(std::max(run.started_ms, waited_ms_), now_ms);
  }
  if (run.ended_ms != 0) run.ended_ms = std::min(std::max(run.ended_ms, ran_ms_), now_ms);
  if (reported_ms != reported_ms_) {
    reported_ms_ = reported_ms;
    heard_ms_ = now_ms;
  }
  run.heard_ms = heard_ms_;
}

std::int64_t RunClock::see_ending(bool ending, std::int64_t now_ms) {
  if (!ending) ending_ms_ = 0;
  if (ending && ending_ms_ == 0) ending_ms_ = now_ms;
  return ending_ms_;
}

std::int64_t RunClock::see_resumed(bool suspended, std::int64_t now_ms) {
  if (suspended) resumed_ms_ = 0;
  if (!suspended && resumed_ms_ == 0) resumed_ms_ = now_ms;
  return resumed_ms_;
}

}  // namespace fettle::kubernetes
