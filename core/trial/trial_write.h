// Decides whether and when a change of a trial's status is written. Pure; usable from any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "core/plan.h"

namespace fettle::core {

// Joins the report of a trial's newest run to the trial's own. Returns whether that changed it.
bool take_report(const api::Study& study, const api::Report& newest, api::TrialStatus& status);

struct StatusChange {
  const api::Study& study;
  const api::TrialStatus& before;  // as stored
  const api::TrialStatus& after;   // as planned
  const Run* newest = nullptr;     // the newest recorded run, if it exists
  bool acts = false;               // the plan also starts, stops or resizes a run
};

// A first run that only waits, without a reason, is not worth a write: drops its record.
void drop_idle_first_run(const api::TrialStatus& before, api::TrialStatus& after);

bool is_changed(const StatusChange& change);

// Until when the write can wait, because more news is likely soon and both are then one write: the
// only news is that a first run, whose image does not report by itself, runs; or a report that no
// decision waits for came soon after the last write. Absent: it is due now.
std::optional<std::int64_t> deferred_until(const StatusChange& change, std::int64_t now_ms);

}  // namespace fettle::core
