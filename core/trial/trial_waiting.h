// The condition Waiting of a trial that does not run, set after a minute at the latest. Pure;
// usable from any thread.
#pragma once

#include <cstdint>
#include <string>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "core/conditions.h"

namespace fettle::core {

inline constexpr std::int64_t kSayWaitMs = 60'000;
// For a run without another known reason.
inline constexpr const char* kStartsSlowly =
    "it has been starting for more than a minute; pulling an image or mounting a volume may take "
    "long";

// For a run whose GPU was too small, while the Study has not decided what comes next
// (gpu_memory.h).
inline constexpr const char* kNoLargerGpuNow =
    "its GPU was too small, and the profiles of the cluster, which have changed a moment ago, "
    "offer none that is larger";

// The reason if the trial's actions are refused. control::TrialController writes it.
inline constexpr const char* kRefused = "Refused";
bool is_refused(const Conditions& conditions);

void set_trial_waiting(Conditions& conditions, const char* reason, const std::string& message,
                       std::int64_t now_ms);
void end_trial_waiting(Conditions& conditions, std::int64_t now_ms);

// Whether the run of this record, which does not run yet, began more than kSayWaitMs ago.
bool starts_slowly(const api::Trial& trial, const api::RunRecord& record, std::int64_t now_ms);

// "digits-0-r1 ended Failed (exit code 3); the next run starts at 12:00:05".
std::string why_backing_off(const std::string& trial, const api::RunRecord& record,
                            std::int64_t next_ms);

// How the trial's next run starts: " starts", " continues from step 4" or " starts again: ...".
std::string how_it_starts(const api::Study& study, const api::TrialStatus& status);

}  // namespace fettle::core
