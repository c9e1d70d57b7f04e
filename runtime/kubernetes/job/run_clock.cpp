#include "runtime/kubernetes/job/run_clock.h"

#include <algorithm>

namespace fettle::kubernetes {
namespace {

// Keeps in `since_ms` the time since which `holds` has been seen, and returns it; 0 = it does not.
std::int64_t note(bool holds, std::int64_t now_ms, std::int64_t& since_ms) {
  if (!holds) since_ms = 0;
  if (holds && since_ms == 0) since_ms = now_ms;
  return since_ms;
}

}  // namespace

void RunClock::correct(core::Run& run, std::int64_t reported_ms, std::int64_t now_ms) {
  if (run.state == core::RunState::kPending) waited_ms_ = now_ms;
  if (run.state == core::RunState::kRunning) ran_ms_ = now_ms;
  // A node's clock may be wrong: the run began after it was last seen waiting, and before now.
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

std::int64_t RunClock::note_ending(bool ending, std::int64_t now_ms) {
  return note(ending, now_ms, ending_ms_);
}

std::int64_t RunClock::note_resumed(bool suspended, std::int64_t now_ms) {
  return note(!suspended, now_ms, resumed_ms_);
}

std::int64_t RunClock::note_failing(bool failing, std::int64_t now_ms) {
  return note(failing, now_ms, failing_ms_);
}

}  // namespace fettle::kubernetes
