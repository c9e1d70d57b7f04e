// Price: what the cost-aware gp sampler takes off the logarithm of what a trial may gain: the
// logarithm of what it uses up, times a weight that falls from 1 to 0 as the budget is used up
// (cost_ledger.h). What it uses up is its predicted cost (cost_model.h) and its place among a
// limited number of trials. So the best gain for the cost is looked for first, and the best gain in
// the end (after "EI-cool", Lee et al. 2020, arXiv 2003.10870).
//
// Of a sampler that counts no costs it is nothing everywhere. Not synchronised.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <optional>
#include <string>

#include "search/cost_ledger.h"
#include "search/gp/cost_model.h"
#include "search/gp/term.h"
#include "search/space/space.h"

namespace fettle::search::gp {

class Price final : public Term {
 public:
  // Keeps a reference to `space`. No budget: costs do not count.
  Price(const Space& space, const std::optional<CostBudget>& budget);

  // The fold, as FoldingSampler has it.
  void add_trial(const Point* point);
  void remove_trial();
  void add_event(const Event& event);
  void reset();

  // For the next trial, of a Study in which `begun` were begun before it.
  void update(std::int64_t begun);
  // Whether prices differ, since the last update.
  bool counts() const { return weight_ > 0 && model_.tells_apart(); }
  // "0.6 times the logarithm of the predicted cost plus 2.5": what it takes off.
  std::string words() const;

  // Below 0 where a point is expensive. Only if prices differ.
  double at(const Point& point) const override { return -weight_ * with_place(log_cost(point)); }
  double at(const Inputs& points, Index row, Eigen::VectorXd& slope) const override;

  // Points that are asked for again and again, until costs change: their rows.
  void set_candidates(const Inputs& points);
  double at_candidate(Index row) const override { return -weight_ * with_place(candidates_[row]); }

  // The predicted cost, in the unit of Fact::cost; nothing where there is no model.
  std::optional<double> cost(const Point& point) const;

 private:
  double log_cost(const Point& point) const;
  // The logarithm of a cost and of what a place among the trials is worth.
  double with_place(double log_cost) const;

  const Space& space_;
  std::optional<CostLedger> ledger_;
  CostModel model_;
  double weight_ = 0;
  double place_ = 0;
  Eigen::VectorXd candidates_;  // logarithms of their costs
};

}  // namespace fettle::search::gp
