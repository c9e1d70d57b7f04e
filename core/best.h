// The best trials of a Study. Pure functions; usable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "api/study.h"
#include "api/trial.h"
#include "search/maths/pareto.h"

namespace fettle::core {

using api::kMaxFront;

// Whether `a` is a better value of the objective than `b`; equal ones are not.
bool is_better(const api::Objective& objective, double a, double b);

// The losses by which a trial is compared: those of its newest fact of this kind, if it is feasible
// and has a value for each objective. One that was stopped is so if it was within all constraints
// when it last reported: whether it would have been in the end nobody knows.
std::optional<search::Losses> losses_of(const api::StudySpec& spec, const api::Trial& trial,
                                        api::FactKind kind);

// Which trials no other one dominates, kept as they come and change. With one objective: the first
// of the best. Trials are known by their position among those of the Study. Not synchronised.
//
// Values at different steps do not compare: of two trials that were stopped the one that came
// further is better (as in search/maths/ranking.h). Results have no step here: theirs are all ends.
class Front {
 public:
  void set(std::size_t position, std::optional<search::Losses> losses, std::int64_t step = 0);

  bool empty() const { return count_ == 0; }
  // By position.
  const std::set<std::size_t>& members() const;
  const search::Losses& losses(std::size_t position) const { return losses_[position]; }
  // What it covers between itself and the references of the objectives, or the worst values of
  // feasible trials (search/maths/pareto.h). Nothing for a single objective, before the first
  // feasible trial, and where the volume takes too long to compute or is no finite number.
  std::optional<double> hypervolume(const api::StudySpec& spec) const;

 private:
  bool beats(std::size_t a, std::size_t b) const;
  void add(std::size_t position) const;
  void refresh() const;

  std::vector<search::Losses> losses_;  // by position; empty = it is not compared
  std::vector<std::int64_t> steps_;     // by position
  std::size_t count_ = 0;
  // Caches. Adding a trial keeps them; if one changes they are made anew when they are asked for.
  mutable bool stale_ = false;
  mutable std::set<std::size_t> members_;
  mutable search::Losses worst_;
  mutable std::optional<std::optional<double>> volume_;
};

// What a status says of a front: the best trial or, with several objectives, those of the front,
// best first objective first. Ties go to the trial that was created first. At most kMaxFront, and
// at most kMaxBestBytes of them.
std::vector<api::BestTrial> best_trials(const api::StudySpec& spec, const Front& front,
                                        const std::vector<api::TrialPtr>& trials,
                                        api::FactKind kind);
// As JSON. An API object of 1.5 MB is one that etcd refuses.
inline constexpr std::size_t kMaxBestBytes = 65'536;

// How that volume grew with the number of results, measured against the final references. Points
// are thinned to kMaxVolumes, the last one kept; those without a volume are left out.
struct VolumePoint {
  std::int64_t results = 0;
  double volume = 0;
};
inline constexpr std::size_t kMaxVolumes = 200;
std::vector<VolumePoint> hypervolume_over_time(const api::Study& study,
                                               const std::vector<api::TrialPtr>& trials);

// Whether the trial's result reaches every goal that the Study sets; false if it sets none.
bool reaches_goals(const api::StudySpec& spec, const api::Trial& trial);

}  // namespace fettle::core
