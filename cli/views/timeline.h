// Timeline: the events of a study, derived from one observation to the next.
//
// It compares objects, so it needs no stored events and misses nothing important: it reports every
// start, wait, retry and end of a trial, and every change of the study's conditions, exactly once.
// Not synchronised.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "base/json.h"
#include "cli/views/repeated_reasons.h"

namespace fettle::cli {

struct TimelineEntry {
  std::int64_t at_ms = 0;
  bool warning = false;
  std::string text;  // for people, one line
  Json data;         // for machines: {"event": ..., ...}
  bool ends_study = false;
};

class Timeline {
 public:
  // Returns the entries since the last call, oldest first. The first call takes all as known.
  std::vector<TimelineEntry> observe(const api::Study& study,
                                     const std::vector<api::TrialPtr>& trials);

 private:
  struct Seen {
    api::TrialPtr trial;
    std::int64_t newest_run = -1;   // whose start was reported
    std::int64_t waiting_run = -1;  // whose wait was reported
    api::TrialPhase phase = api::TrialPhase::kPending;
  };

  bool first_ = true;
  std::map<std::string, Seen> seen_;
  std::vector<api::StatusCondition> conditions_;
  RepeatedReasons reasons_;
};

// Renders "[ 1m 12s] text", a line of plain mode; times count from start_ms.
std::string render_entry(const TimelineEntry& entry, std::int64_t start_ms);

}  // namespace fettle::cli
