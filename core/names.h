// Labels that tie a Trial to its Study. Names themselves are in plan.h (trial_name, run_name).
#pragma once

#include <string>

#include "api/study.h"
#include "api/trial.h"

namespace fettle::core {

inline constexpr const char* kStudyLabel = "fettle.dev/study";
// The uid tells a Study from an earlier one of the same name.
inline constexpr const char* kStudyUidLabel = "fettle.dev/study-uid";

// The uid of the Study that owns the trial; "" = it belongs to none.
inline std::string study_uid_of(const api::Trial& trial) {
  const auto found = trial.metadata.labels.find(kStudyUidLabel);
  return found == trial.metadata.labels.end() ? "" : found->second;
}

// Whether the trial is this Study's: not one of an earlier Study of the name, and not made by hand.
inline bool belongs_to(const api::Trial& trial, const api::Study& study) {
  return study_uid_of(trial) == study.metadata.uid;
}

}  // namespace fettle::core
