// RunClock: the times of one run by our own clock, whatever clocks nodes and trainers have.
//
// A node says when a container began and ended, a trainer when it reported. Both may be minutes
// off, and deadlines and GPU-hours rest on them. What this process has seen bounds what they say: a
// run began after it was last seen waiting and before it was seen to run, and ended after it was
// last seen running. A report is as old as the first sight of it.
// After a restart nothing was seen yet: then a time that is recorded already stays, a heartbeat
// begins anew, and other times are believed as far as the past goes. Not synchronised; no IO.
#pragma once

#include <cstdint>

#include "core/plan.h"

namespace fettle::kubernetes {

class RunClock {
 public:
  // Call it at every look. `reported_ms`: the time in the trial's report; 0 = there is none.
  void correct(core::Run& run, std::int64_t reported_ms, std::int64_t now_ms);

  // `ending`: a pod of the run is on its way out. Since when, 0 = it is not.
  std::int64_t see_ending(bool ending, std::int64_t now_ms);

 private:
  std::int64_t waited_ms_ = 0;    // last seen waiting; 0 = never
  std::int64_t ran_ms_ = 0;       // last seen running
  std::int64_t reported_ms_ = 0;  // the report that was last seen
  std::int64_t heard_ms_ = 0;     // when it was first seen
  std::int64_t ending_ms_ = 0;
};

}  // namespace fettle::kubernetes
