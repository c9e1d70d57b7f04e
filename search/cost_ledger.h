// CostLedger: the state of a cost-aware sampler: the costs of trials so far and to their ends, and
// the spent share of the budget.
//
// A model learns the cost of a trial that runs to its end. A trial that ended early (stopped,
// paused, failed) counts with its cost per step times all steps. Its actual cost would make the
// regions where poor trials are stopped look cheap, and attract more trials. A trial that ended
// before its first step counts as spending but says nothing about the cost to the end. Invariant: a
// function of the trials and events it was given, in their order. Not synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "search/search.h"
#include "search/space/space.h"

namespace fettle::search {

// The limits of the search, and the number of steps of a full trial.
struct CostBudget {
  std::int64_t max_trials = 0;     // 0 = no limit known
  std::optional<double> max_cost;  // in the unit of Fact::cost; nullopt = no limit known
  std::int64_t last_step = 1;      // of a trial that runs to its end
};

class CostLedger {
 public:
  // Costs further than this factor from the median are clamped to it: one wrong measurement must
  // not flatten all other costs.
  static constexpr double kFarthest = 1e4;
  // At most this many trials are used to fit a model of the cost.
  static constexpr std::size_t kMostFitted = 64;

  explicit CostLedger(const CostBudget& budget) : budget_(budget) {}

  // Update the state, as in IncrementalSampler.
  void add_trial(const Point* point);
  void remove_trial();
  void add_event(const Event& event);
  void clear();

  // Logarithms of the known costs to the end.
  struct Observations {
    std::size_t count = 0;             // how many costs were known
    std::vector<std::int64_t> trials;  // in the order in which their costs first became known
    std::vector<double> log_costs;     // clamped at kFarthest; 0 counts as the least positive cost
  };
  std::size_t size() const { return order_.size(); }
  // At most `most` of them, spread evenly over the order.
  Observations observations(std::size_t most) const;
  // The observations at the newest length at which a model is fitted (fit_schedule.h).
  const Observations& last_fit() const { return last_fit_; }
  const Point& point(std::int64_t trial) const { return points_[static_cast<std::size_t>(trial)]; }
  // Changes with every new cost.
  std::int64_t version() const { return version_; }

  // The weight of cost after `begun` trials: falls from 1 to 0 as the budget is used up ("cost
  // cooling", Lee et al. 2020), so that the rest is spent on the best points. The limit with the
  // largest used share decides; trials of unknown cost count as average. Always 1 without a limit.
  double weight(std::int64_t begun) const;

  // The cost of using one of a limited number of trials, in the unit of costs: max_cost /
  // max_trials, or the average cost if there is no max_cost. Without it the value of a cheap trial
  // would have no upper bound.
  double cost_per_trial() const;

 private:
  double average() const;

  std::optional<double> cost_to_the_end(const api::Fact& fact) const;

  CostBudget budget_;
  std::vector<Point> points_;             // by trial; empty if outside the space
  std::map<std::int64_t, double> spent_;  // by trial
  double total_spent_ = 0;
  std::map<std::int64_t, double> to_the_end_;  // by trial
  std::vector<std::int64_t> order_;            // keys of to_the_end_, as they became known
  std::int64_t version_ = 0;
  std::size_t next_fit_ = 0;
  Observations last_fit_;
};

}  // namespace fettle::search
