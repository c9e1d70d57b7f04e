// Warm start: the results of earlier Studies, and from elsewhere, that a new Study begins with
// (search/warm_start.h).
//
// They are read once, before the first trial, and written into the Study's status as points of its
// own space; later decisions use only these. So earlier Studies may continue, change or be deleted,
// and a restart or a replay sees the same. The condition WarmStarted and an event name Studies that
// are missing or have other objectives; the Study continues without them.
// Pure functions; usable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "core/plan.h"

namespace fettle::core {

// The limit of all observations in a Study's status, as JSON.
inline constexpr std::size_t kMaxPriorBytes = std::size_t{64} * 1024;

// An earlier Study as it is now.
struct EarlierStudy {
  std::string name;
  std::optional<api::Study> study;
  std::vector<api::TrialPtr> trials;
  std::string problem;  // why there is no `study`
};

// Indices of at most `most` points by their objective values, ascending: all, or else the best make
// up one half and the last of the others the other half.
std::vector<std::size_t> best_and_last(const std::vector<api::Objective>& objectives,
                                       const std::vector<std::vector<double>>& values,
                                       std::size_t most);

// Whether the Study names earlier results which were not written into its status yet. False while
// it is suspended and once it has trials.
bool needs_priors(const api::Study& study, const std::vector<api::TrialPtr>& trials);

// Writes the feasible results of `earlier` and of spec.warmStart.known into the status. If there
// are more than api::kMaxPriorObservations, or than kMaxPriorBytes hold, the best make up one half
// and the newest of the others the other half. Requires needs_priors(), and with it
// spec.warm_start.
StudyPlan plan_warm_start(const api::Study& study, const std::vector<EarlierStudy>& earlier,
                          std::int64_t now_ms);

}  // namespace fettle::core
