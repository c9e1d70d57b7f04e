// Replicates: further runs of the configurations that lead once the search is over, each with a
// seed of its own, to tell how much of a result is luck (docs/decisions/0067). A replicate is an
// ordinary Trial that names the trial which it repeats.
//
// Whose turn it is follows from the results of the search and from the replicates that exist, so a
// plan that was cut or lost goes on with the same list. Leaderboard is not synchronised; the
// functions are pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "api/study.h"
#include "api/trial.h"
#include "core/plan.h"
#include "search/search.h"

namespace fettle::core {

// The index of the trial that `replicate` repeats; nothing if its name is not that of a trial of
// the Study.
std::optional<std::int64_t> repeated_by(const api::Trial& replicate);

// The trials of a search by their results, and how often each was repeated. Trials are given by
// their index.
class Leaderboard {
 public:
  // The result of a trial as something to be minimised; nothing: it has none to compare.
  void rank(std::int64_t trial, std::optional<double> loss);
  // Adds replicates of a trial, or takes them away.
  void count_replicates(std::int64_t trial, std::int64_t number);

  // The best, at most `most` of them; of equal ones the one that was created first.
  std::vector<std::int64_t> leaders(std::int64_t most) const;
  std::int64_t replicates_of(std::int64_t trial) const;

  // The leader to repeat next: the one with the fewest replicates and, of those, the best. So the
  // first replicate of each comes before the second of any, and an end in between leaves equal
  // numbers. Nothing: each has as many as are wanted.
  std::optional<std::int64_t> next(const api::Replicates& wanted) const;
  // How many replicates are still to be created for the leaders as they are.
  std::int64_t missing(const api::Replicates& wanted) const;

 private:
  std::map<std::int64_t, double> losses_;
  std::set<std::pair<double, std::int64_t>> ranking_;
  std::map<std::int64_t, std::int64_t> replicates_;
};

// The stage of a replicate: to the last step without a pause, so that it begins at the last rung.
search::Stage replicate_stage(const search::Problem& problem);

// For people, once the first replicate is created.
EventNote replicating_note(const api::Replicates& wanted);

// What these replicates of one trial have shown; nothing if none has ended. One that was stopped,
// since the Study ended, has shown nothing.
std::optional<api::ReplicateResults> replicate_results(const api::StudySpec& spec,
                                                       const std::vector<api::TrialPtr>& trials,
                                                       const std::set<std::size_t>& positions);

}  // namespace fettle::core
