// CostLedger: the fold over the history that a cost-aware sampler keeps: what trials have cost,
// what each would have cost to its end, and how much of the budget is spent.
//
// The cost that a model learns from is that of a trial that goes to its end. One that ended early
// (stopped, paused, failed) counts with its cost a step times all steps: were it entered with what
// it did cost, the places where trials are stopped for being poor would look cheap, and attract.
// One that ended before its first step has spent something and says nothing. Invariant: a function
// of the trials and events it was given, in their order. Not synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "search/search.h"
#include "search/space/space.h"

namespace fettle::search {

// What the search may spend, and how far a trial goes.
struct CostBudget {
  std::int64_t max_trials = 0;     // 0 = no limit known
  std::optional<double> max_cost;  // in the unit of Fact::cost; nothing = no limit known
  std::int64_t last_step = 1;      // of a trial that goes to its end
};

class CostLedger {
 public:
  // Costs that are further than this factor from the median count as if at it: one that was
  // measured wrongly must not flatten all others.
  static constexpr double kFarthest = 1e4;
  // Trials that a model of the cost is fitted to, at most.
  static constexpr std::size_t kMostFitted = 64;

  explicit CostLedger(const CostBudget& budget) : budget_(budget) {}

  // The fold, as FoldingSampler has it.
  void add_trial(const Point* point);
  void remove_trial();
  void add_event(const Event& event);
  void clear();

  // Logarithms of the cost to the end, as far as it is known.
  struct Observations {
    std::size_t count = 0;             // how many costs were known
    std::vector<std::int64_t> trials;  // in the order in which their costs became known first
    std::vector<double> log_costs;     // cut off at kFarthest; a cost of 0 is the least other one
  };
  std::size_t size() const { return order_.size(); }
  // `most` of them, spread evenly over the order.
  Observations observations(std::size_t most) const;
  // Those that there were at the newest length at which a model is to be fitted (fit_schedule.h).
  const Observations& last_fit() const { return last_fit_; }
  const Point& point(std::int64_t trial) const { return points_[static_cast<std::size_t>(trial)]; }
  // Changes with every cost.
  std::int64_t version() const { return version_; }

  // How much a cost counts when `begun` trials have been begun: from 1 down to 0 as the budget is
  // used up ("cost cooling", Lee et al. 2020), so that what is left is spent on the best. Of the
  // limits the one counts of which most is used; trials of unknown cost count as average ones.
  // Without a limit always 1.
  double weight(std::int64_t begun) const;

  // What a trial uses up besides its cost by being one of a limited number, in the unit of costs:
  // as great a share of max_cost (or else of max_trials average costs) as one trial is of
  // max_trials. However cheap trials are, there is no end to what they may count for without it.
  double cost_of_a_place() const;

 private:
  double average() const;

  std::optional<double> cost_to_the_end(const api::Fact& fact) const;

  CostBudget budget_;
  std::vector<Point> points_;             // by trial; empty where it is not of the space
  std::map<std::int64_t, double> spent_;  // by trial
  double total_spent_ = 0;
  std::map<std::int64_t, double> to_the_end_;  // by trial
  std::vector<std::int64_t> order_;            // of to_the_end_, as they became known
  std::int64_t version_ = 0;
  std::size_t next_fit_ = 0;
  Observations last_fit_;
};

}  // namespace fettle::search
