// Replicates: further runs of the configurations that lead once the search is over, each with its
// own seed, to show how much of a result is luck (docs/decisions/0067). A replicate is an ordinary
// Trial that names the trial which it repeats.
//
// The next leader follows from the results of the search and the existing replicates, so a plan
// that was cut or lost continues the same list. Leaderboard is not synchronised; the functions are
// pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "core/plan.h"
#include "search/search.h"

namespace fettle::core {

// The index of the trial that `replicate` repeats; nullopt if its name belongs to no trial of the
// Study.
std::optional<std::int64_t> repeated_by(const api::Trial& replicate);

// The trials of a search by their results, and the number of replicates of each. Trials are given
// by their index.
class Leaderboard {
 public:
  // Sets the result of a trial, to be minimised; nullopt: none to compare.
  void rank(std::int64_t trial, std::optional<double> loss);
  // Adds replicates of a trial, or removes them.
  void count_replicates(std::int64_t trial, std::int64_t number);

  // The best trials, at most `most`; equal trials in the order of creation.
  std::vector<std::int64_t> leaders(std::int64_t most) const;
  std::int64_t replicates_of(std::int64_t trial) const;

  // The leader to repeat next: the one with the fewest replicates, and the best of several. So the
  // first replicate of each comes before the second of any, and an end in between leaves equal
  // numbers. nullopt: each has the wanted number.
  std::optional<std::int64_t> next(const api::Replicates& wanted) const;
  // The number of replicates still to create for the present leaders.
  std::int64_t missing(const api::Replicates& wanted) const;

 private:
  std::map<std::int64_t, double> losses_;
  std::set<std::pair<double, std::int64_t>> ranking_;
  std::map<std::int64_t, std::int64_t> replicates_;
};

// The stage of a replicate: it runs to the last step without a pause, so it begins at the last
// rung.
search::Stage replicate_stage(const search::Problem& problem);

// For people, once the first replicate is created.
EventNote replicating_note(const api::Replicates& wanted);

// The results of these replicates of one trial; nullopt if none has ended. A replicate that was
// stopped because the Study ended does not count.
std::optional<api::ReplicateResults> replicate_results(const api::StudySpec& spec,
                                                       const std::vector<api::TrialPtr>& trials,
                                                       const std::set<std::size_t>& positions);

}  // namespace fettle::core
