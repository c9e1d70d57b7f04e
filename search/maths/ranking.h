// Ranking: the trials that ended, best first. Reads events in order and only compares values, so
// any finite magnitude is safe.
//
// Three classes, each better than the next: trials with a result (one objective: by value; several:
// by front of non-domination, then by the first objective); trials stopped early (by the step they
// reached, then by their first value there, since values at different steps do not compare); and
// infeasible or failed trials. Ties go to the result learnt first. Invariant: order() depends on
// the events alone, not on when it is called. Not synchronised.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"

namespace fettle::search {

class Ranking {
 public:
  explicit Ranking(const std::vector<api::Objective>& objectives);

  // Adds a fact; a later fact that ends the same trial replaces the earlier one.
  void add(std::int64_t trial, const api::Fact& fact);
  std::size_t size() const { return entries_.size(); }

  // Whether two ended trials differ only in the order in which they were learnt; with several
  // objectives, whether they are in the same front.
  bool tied(std::int64_t a, std::int64_t b) const;

  // The losses with which a trial ended, one per objective, all to be minimised; nullptr if it did
  // not end with a feasible result.
  const std::vector<double>* losses(std::int64_t trial) const;

  // Whether a trial ended infeasible or failed.
  bool infeasible(std::int64_t trial) const;

  // Trials that ended, best first.
  const std::vector<std::int64_t>& order();

 private:
  enum class Class { kResult, kStopped, kInfeasible };
  struct Entry {
    Class kind = Class::kInfeasible;
    std::int64_t front = 0;      // with several objectives; 0 = not dominated
    std::int64_t step = 0;       // reached, if stopped early
    std::vector<double> losses;  // one per objective, all to be minimised
    std::int64_t learnt = 0;     // the number of this fact, from 1
  };
  Entry entry_of(const api::Fact& fact) const;
  bool better(std::int64_t a, std::int64_t b) const;
  void assign_fronts();

  std::vector<double> signs_;  // +1 to minimise, -1 to maximise
  std::map<std::int64_t, Entry> entries_;
  std::vector<std::int64_t> order_;
  bool stale_ = false;
  std::int64_t facts_ = 0;
};

}  // namespace fettle::search
