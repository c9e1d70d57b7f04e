// Improvement: what a trial at a point is expected to gain over what is known, in logarithms.
//
// One objective: expected improvement on the best mean, less what noise would hide of it
// (acquisition.h). Two or three: expected hypervolume improvement on the front of the means
// (ehvi.h). All losses as the models predict them. Where some trials were infeasible, times the
// probability of being feasible. Immutable; safe to share between threads.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "search/maths/ehvi.h"

namespace fettle::search::gp {

class Improvement {
 public:
  // On the lowest loss known; `noise`: the variance that a result there has beside the function.
  explicit Improvement(double best, double noise = 0) : best_(best), noise_(noise) {}
  // On the front of two or three losses each, as far as it is better than `reference`.
  Improvement(const std::vector<Losses>& known, const Losses& reference)
      : objectives_(reference.size()), front_(std::in_place, known, reference) {}

  // One marginal an objective, sigma > 0; one more where feasibility is modelled: of what is
  // positive where a trial is infeasible.
  // `slopes`: where the derivatives by each mean and sigma go.
  double log_value(const std::vector<NormalMarginal>& losses,
                   std::vector<NormalMarginal>* slopes = nullptr) const;

 private:
  double gain(const std::vector<NormalMarginal>& losses, std::vector<NormalMarginal>* slopes) const;

  std::size_t objectives_ = 1;
  double best_ = 0;
  double noise_ = 0;
  std::optional<ExpectedHypervolume> front_;
};

// What a front is measured against: a little worse than its worst loss of each objective.
Losses reference_of(const std::vector<Losses>& front);

}  // namespace fettle::search::gp
