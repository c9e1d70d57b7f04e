// TimeSpent: the use of a study's time, from the run records and the trials' reports. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"
#include "cli/terminal/text.h"
#include "cli/views/view.h"

namespace fettle::cli {

// Slot-seconds: one slot is room for one trial at a time. The parts sum to slots * wall_seconds.
struct TimeSpent {
  std::int64_t slots = 0;    // the most trials that ran at once
  double wall_seconds = 0;   // from the Study's start to its end, or to now
  double training = 0;       // in trials, without the next two parts
  double data_wait = 0;      // waiting for data, in trials that report it
  double waiting = 0;        // for the machine or the cluster: from a run's record to its start
  double start_up = 0;       // within runs, but outside epochs
  double retrying = 0;       // trials that failed, until their next run
  double nothing_ran = 0;    // long times without any trial: interrupted, suspended
  double no_trial_left = 0;  // slots empty because the last trial had been started
  double bookkeeping = 0;    // slots empty otherwise: search, records, process start
  double queued = 0;         // trial-seconds that trials waited for a slot; not a part of the sum
};

TimeSpent time_spent(const RunView& view);

// Renders a small table of the parts that matter; "" if nothing ever ran.
std::string render_time_spent(const TimeSpent& spent, const Style& style);
Json time_spent_json(const TimeSpent& spent);

}  // namespace fettle::cli
