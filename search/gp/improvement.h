// Improvement: the logarithm of the expected gain of a trial at a point over the known trials.
//
// One objective: expected improvement on the best mean, reduced by the part that noise would hide
// (acquisition.h). Two or three: expected hypervolume improvement on the front of the means
// (ehvi.h). All losses are the models' predictions. If some trials were infeasible, the gain is
// multiplied by the probability of being feasible. Immutable; safe to share between threads.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "search/maths/ehvi.h"

namespace fettle::search::gp {

class Improvement {
 public:
  // Improvement on the lowest loss known. `noise`: the variance of a result around the function.
  explicit Improvement(double best, double noise = 0) : best_(best), noise_(noise) {}
  // Improvement on the front of `known`, two or three losses each, within `reference`.
  Improvement(const std::vector<Losses>& known, const Losses& reference)
      : objectives_(reference.size()), front_(std::in_place, known, reference) {}

  // `losses`: one marginal per objective, sigma > 0; then, if feasibility is modelled, the marginal
  // of the quantity that is positive for an infeasible trial. `slopes`: receives the derivatives
  // with respect to each mean and sigma.
  double log_value(const std::vector<NormalMarginal>& losses,
                   std::vector<NormalMarginal>* slopes = nullptr) const;

 private:
  double gain(const std::vector<NormalMarginal>& losses, std::vector<NormalMarginal>* slopes) const;

  std::size_t objectives_ = 1;
  double best_ = 0;
  double noise_ = 0;
  std::optional<ExpectedHypervolume> front_;
};

// The reference point for a front: a little worse than its worst loss in each objective.
Losses reference_of(const std::vector<Losses>& front);

}  // namespace fettle::search::gp
