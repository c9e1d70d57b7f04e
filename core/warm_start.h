// What a new Study begins with: what earlier Studies had found by then (search/warm_start.h).
//
// Read once, before the first trial, and written into the Study's status as points of its own
// space; every later decision rests on that. So earlier Studies may continue, change or be deleted,
// and a restart or a replay sees the same. The condition WarmStarted and an event name those that
// are missing or measure something else; the Study continues without them.
// Pure functions; usable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/study.h"
#include "api/trial.h"
#include "core/plan.h"

namespace fettle::core {

// The most that observations take of a Study's status, as JSON.
inline constexpr std::size_t kMaxPriorBytes = std::size_t{64} * 1024;

// An earlier Study as it is now.
struct EarlierStudy {
  std::string name;
  std::optional<api::Study> study;
  std::vector<api::TrialPtr> trials;
  std::string problem;  // why there is no `study`
};

// Whether the Study names earlier ones and nothing was written down of them yet. Not while it is
// suspended, nor once it has trials.
bool needs_priors(const api::Study& study, const std::vector<api::TrialPtr>& trials);

// Writes down what they found: of more than api::kMaxPriorObservations feasible results, or
// kMaxPriorBytes, half are the best ones and half the newest of the others.
StudyPlan plan_warm_start(const api::Study& study, const std::vector<EarlierStudy>& earlier,
                          std::int64_t now_ms);

}  // namespace fettle::core
