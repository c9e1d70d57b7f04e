// Names of Trials and their runs, and the labels that tie a Trial to its Study.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "api/study/study.h"
#include "api/trial/trial.h"

namespace fettle::core {

// "<study>-<index>" and "<trial>-r<run>".
std::string trial_name(const std::string& study, std::int64_t index);
// The index in the name of a trial of this Study; nothing if it is not such a name.
std::optional<std::int64_t> trial_index(const std::string& study, const std::string& trial);
std::string run_name(const std::string& trial, std::int64_t run);

inline constexpr const char* kStudyLabel = "fettle.dev/study";
// The uid tells a Study from an earlier one of the same name.
inline constexpr const char* kStudyUidLabel = "fettle.dev/study-uid";

// The uid of the Study that owns the trial; "" = it belongs to none.
inline std::string study_uid_of(const api::Trial& trial) {
  const auto found = trial.metadata.labels.find(kStudyUidLabel);
  return found == trial.metadata.labels.end() ? "" : found->second;
}

// Whether the trial belongs to this Study: not to an earlier Study of the name, and not made by
// hand.
inline bool belongs_to(const api::Trial& trial, const api::Study& study) {
  return study_uid_of(trial) == study.metadata.uid;
}

}  // namespace fettle::core
