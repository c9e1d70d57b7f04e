// Opinion: what the portfolio adds to the logarithm of what a trial may gain: the logarithm of how
// much denser the good trials lie at the point than the others (density_ratio.h), times a weight
// that is 1 from the tenth trial to the twentieth and then falls as one over their number. So a
// second kind of model has its say while there is little to go by, and the process decides in the
// end (as in "piBO", Hvarfner et al. 2022, arXiv 2204.11051, where the density is what people
// believe).
//
// Of a sampler that asks for none it is nothing everywhere. Not synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/philox.h"
#include "search/gp/candidates.h"
#include "search/gp/term.h"
#include "search/samplers/density_ratio.h"

namespace fettle::search::gp {

class Opinion final : public Term {
 public:
  // Keeps a reference to `space`. Not `wanted`: it does not count.
  Opinion(const Space& space, const std::vector<api::Objective>& objectives, bool wanted);

  // The fold, as FoldingSampler has it.
  void add_trial(const Point* point);
  void remove_trial();
  void add_event(const Event& event);
  void reset();

  // For the next trial, after `begun` others.
  void update(std::int64_t begun);
  // Whether it knows enough, and still weighs enough, since the last update.
  bool counts() const { return weight_ > 0; }
  // "0.5 times the logarithm of how much denser the good trials lie": what it adds.
  std::string words() const;

  double at(const Point& point) const override;
  double at(const Inputs& points, Index row, Eigen::VectorXd& slope) const override;

  // Points that the next trial is looked for at: their rows.
  void set_candidates(const std::vector<Candidate>& candidates);
  double at_candidate(Index row) const override;

  // Points where good trials lie.
  std::vector<Point> draws(std::size_t count, Random& random) const;

 private:
  const Space& space_;
  std::optional<DensityRatio> ratio_;
  double weight_ = 0;
  std::vector<double> candidates_;  // logarithms of their ratios
};

}  // namespace fettle::search::gp
