// Ranking: the trials that ended, best first. A fold over events; only comparisons of values
// matter, so any finite size of them does no harm.
//
// Three classes, each better than the next: with a result (one objective: by value; several: by
// front of non-domination, then by the first objective); stopped early (by the step they reached,
// then by their first value there: values at different steps do not compare); and infeasible or
// failed. Ties go to what was learnt first. Invariant: order() depends on the events alone, not on
// when it is called. Not synchronised.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "api/study.h"
#include "api/trial.h"

namespace fettle::search {

class Ranking {
 public:
  explicit Ranking(const std::vector<api::Objective>& objectives);

  // Takes notice of a fact; a later one that ends the same trial replaces an earlier one.
  void add(std::int64_t trial, const api::Fact& fact);
  std::size_t size() const { return entries_.size(); }

  // Whether nothing but the order in which they were learnt sets two ended trials apart; with
  // several objectives, those of one front.
  bool tied(std::int64_t a, std::int64_t b) const;

  // What a trial ended with, every objective turned to be minimised; nothing for one that did not
  // end with a feasible result.
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
    std::int64_t step = 0;       // reached, where stopped early
    std::vector<double> losses;  // objectives, all turned to be minimised
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
