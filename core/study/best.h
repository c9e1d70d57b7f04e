// The best trials of a Study. Pure functions; usable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "search/maths/pareto.h"

namespace fettle::core {

using api::kMaxFront;

// Whether `a` is strictly better than `b` for the objective.
bool is_better(const api::Objective& objective, double a, double b);

// Whether the fact is feasible and has a value of each objective.
bool is_usable(const api::StudySpec& spec, const api::Fact& fact);

// Returns the values of a usable fact as losses; absent for another fact.
std::optional<search::Losses> losses_of(const api::StudySpec& spec, const api::Fact& fact);

// Returns the losses by which a trial is compared, from its newest fact of this kind. Absent unless
// the fact is feasible and has a value for each objective. A stopped trial counts as feasible if
// its last report was within all constraints; how it would have ended is unknown.
std::optional<search::Losses> losses_of(const api::StudySpec& spec, const api::Trial& trial,
                                        api::FactKind kind);

// Front: the trials that no other one dominates, updated as trials come and change. With one
// objective that is the best trial, of equals the first. A trial is identified by its position in
// the Study's list.
// Not synchronised.
//
// Values at different steps cannot be compared: of two stopped trials the one that reached the
// higher step is better (as in search/maths/ranking.h). All results have step 0, because each is
// the end of its training.
class Front {
 public:
  void set(std::size_t position, std::optional<search::Losses> losses, std::int64_t step = 0);

  bool empty() const { return count_ == 0; }
  // By position.
  const std::set<std::size_t>& members() const;
  const search::Losses& losses(std::size_t position) const { return losses_[position]; }
  // The volume between the front and the references of the objectives (by default the worst value
  // of a feasible trial), see search/maths/pareto.h. Absent for a single objective, before the
  // first feasible trial, and if it takes too long to compute or is not finite.
  std::optional<double> hypervolume(const api::StudySpec& spec) const;

 private:
  bool beats(std::size_t a, std::size_t b) const;
  void add(std::size_t position) const;
  void refresh() const;

  std::vector<search::Losses> losses_;  // by position; empty = not compared
  std::vector<std::int64_t> steps_;     // by position
  std::size_t count_ = 0;
  // Caches. Adding a trial updates them; a change marks them stale, and the next reader recomputes.
  mutable bool stale_ = false;
  mutable std::set<std::size_t> members_;
  mutable search::Losses worst_;
  mutable std::optional<std::optional<double>> volume_;
};

// The entry of a trial that has a fact of this kind with a value for each objective.
api::BestTrial best_entry(const api::Trial& trial, api::FactKind kind);

// The entries of Study.status.best: the best trial or, with several objectives, the front, sorted
// by the first objective. Ties go to the trial that was created first. At most kMaxFront entries of
// kMaxBestBytes in all.
std::vector<api::BestTrial> best_trials(const api::StudySpec& spec, const Front& front,
                                        const std::vector<api::TrialPtr>& trials,
                                        api::FactKind kind);
// As JSON. etcd refuses an object of 1.5 MB.
inline constexpr std::size_t kMaxBestBytes = 65'536;

// How the hypervolume grew with the number of results, measured against the final references. At
// most kMaxVolumes points, the last one among them; points without a volume are left out.
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
