// The best trials of a Study. Pure functions; usable from any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "api/study.h"
#include "api/trial.h"

namespace fettle::core {

using api::kMaxFront;

// Whether `a` is a better value of the objective than `b`; equal ones are not.
bool is_better(const api::Objective& objective, double a, double b);

// The feasible trial with the best first objective or, with several objectives, the Pareto front,
// best first objective first, at most kMaxFront of it. Trials that reached their last step are
// compared with each other; only where there is none, those that were stopped on the way.
// Ties go to the trial that was created first.
std::vector<api::BestTrial> best_trials(const api::Study& study,
                                        const std::vector<api::TrialPtr>& trials);

// What the whole front covers between itself and the references of the objectives, or the worst
// values of feasible trials (search/pareto.h). Nothing for a single objective, before the first
// feasible trial, and where the volume takes too long to compute or is no finite number.
std::optional<double> front_hypervolume(const api::Study& study,
                                        const std::vector<api::TrialPtr>& trials);

// How that volume grew: what it was after so many results, against the references as they are in
// the end. Points are thinned to kMaxVolumes, the last one kept; those without a volume are left
// out.
struct VolumePoint {
  std::int64_t results = 0;
  double volume = 0;
};
inline constexpr std::size_t kMaxVolumes = 200;
std::vector<VolumePoint> hypervolume_over_time(const api::Study& study,
                                               const std::vector<api::TrialPtr>& trials);

// Whether `objectives` reaches every goal that the Study sets; false if it sets none.
bool reaches_goals(const api::StudySpec& spec, const std::vector<double>& objectives);

}  // namespace fettle::core
