// RunClock: corrects the times of one run for the clock skew of nodes and trainers.
//
// A node reports when a container started and ended, a trainer when it reported. Both clocks may be
// minutes off, and deadlines and GPU-hours depend on them. The operator's own observations bound
// the reported times: a run started after it was last seen waiting and before it was seen running,
// and ended after it was last seen running. A report is as old as its first observation.
// After a restart nothing has been observed: recorded times stay, the heartbeat starts again, and
// other times are only bounded by now. Not synchronised; no IO.
#pragma once

#include <cstdint>

#include "core/plan.h"

namespace fettle::kubernetes {

class RunClock {
 public:
  // Call at every reconcile. `reported_ms`: the time in the trial's report; 0 = no report.
  void correct(core::Run& run, std::int64_t reported_ms, std::int64_t now_ms);

  // `ending`: a pod of the run is terminating. Returns when this was first seen; 0 = none is.
  std::int64_t note_ending(bool ending, std::int64_t now_ms);
  // Returns when the Job was first seen not suspended; 0 = it is suspended.
  std::int64_t note_resumed(bool suspended, std::int64_t now_ms);
  // `failing`: writes for the run fail. Returns since when they have; 0 = they do not.
  std::int64_t note_failing(bool failing, std::int64_t now_ms);

 private:
  std::int64_t waited_ms_ = 0;    // last seen waiting; 0 = never
  std::int64_t ran_ms_ = 0;       // last seen running
  std::int64_t reported_ms_ = 0;  // time of the last report seen
  std::int64_t heard_ms_ = 0;     // when that report was first seen
  std::int64_t ending_ms_ = 0;
  std::int64_t resumed_ms_ = 0;
  std::int64_t failing_ms_ = 0;
};

}  // namespace fettle::kubernetes
