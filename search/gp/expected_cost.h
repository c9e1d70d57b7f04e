// ExpectedCost: the term that the cost-aware gp sampler subtracts from the log gain: the logarithm
// of the resources a trial uses, times a weight that falls from 1 to 0 as the budget is used up
// (cost_ledger.h). A trial uses its predicted cost (cost_model.h) and one of a limited number of
// trials. So the search begins with the best gain per cost and ends with the best gain (after
// "EI-cool", Lee et al. 2020, arXiv 2003.10870).
//
// Zero everywhere for a sampler that ignores costs. Not synchronised.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <optional>
#include <string>

#include "search/cost_ledger.h"
#include "search/gp/acquisition_term.h"
#include "search/gp/cost_model.h"
#include "search/space/space.h"

namespace fettle::search::gp {

class ExpectedCost final : public AcquisitionTerm {
 public:
  // Keeps a reference to `space`. Without a budget, costs do not count.
  ExpectedCost(const Space& space, const std::optional<CostBudget>& budget);

  // Update the state, as in IncrementalSampler.
  void add_trial(const Point* point);
  void remove_trial();
  void add_event(const Event& event);
  void reset();

  // Updates the model and the weight for the next trial, after `begun` others.
  void update(std::int64_t begun);
  // Whether, as of the last update, costs differ between points.
  bool counts() const { return weight_ > 0 && model_.varies(); }
  // The subtracted term in words: "0.6 times the logarithm of the predicted cost plus 2.5".
  std::string words() const;

  // Lower if a point is expensive. Only if costs differ.
  double at(const Point& point) const override {
    return -weight_ * with_cost_per_trial(log_cost(point));
  }
  double at(const Inputs& points, Index row, Eigen::VectorXd& slope) const override;

  // Sets the candidates, to which rows of at_candidate() refer until costs change.
  void set_candidates(const Inputs& points);
  double at_candidate(Index row) const override {
    return -weight_ * with_cost_per_trial(candidates_[row]);
  }

  // The predicted cost, in the unit of Fact::cost; nullopt without a model.
  std::optional<double> cost(const Point& point) const;

 private:
  double log_cost(const Point& point) const;
  // Returns log(cost + cost_per_trial_).
  double with_cost_per_trial(double log_cost) const;

  const Space& space_;
  std::optional<CostLedger> ledger_;
  CostModel model_;
  double weight_ = 0;
  double cost_per_trial_ = 0;
  Eigen::VectorXd candidates_;  // logarithms of the candidates' costs
};

}  // namespace fettle::search::gp
