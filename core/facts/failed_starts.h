// Programs that cannot start: a module that is missing, an option that is misspelt. Every trial of
// the Study would fail in the same way, so they are not retried.
//
// A run failed at its start if it failed within kStartMs and neither it nor an earlier run of its
// trial has reported. Once two runs of a Study have failed so with the same message, and no trial
// has reported, the Study has the condition kFailsAtStart, which trials check before they retry.
// The first report ends the condition. Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"

namespace fettle::core {

inline constexpr const char* kFailsAtStart = "FailsAtStart";
inline constexpr std::int64_t kStartMs = 10'000;

// The message that two runs of these trials gave when they failed at their start; absent if no two
// agree, or a trial has reported. Reads the first trials only.
std::optional<std::string> common_failed_start(const std::vector<api::TrialPtr>& trials);

// Whether the newest run of the trial failed at its start, as others of its Study did.
bool failed_as_others(const api::StudyStatus& study, const api::TrialStatus& status);

}  // namespace fettle::core
