// TpePrior: tpe's density ratio as a prior, the term that the portfolio adds to the log gain: the
// logarithm of the ratio of the density of good trials to the density of the others at a point
// (density_ratio.h), times a weight. The weight is 1 from the tenth trial to the twentieth and then
// falls as one over the number of trials. So a second kind of model counts while there is little
// data, and the process decides in the end (as in "piBO", Hvarfner et al. 2022, arXiv 2204.11051,
// whose density is a belief of the user).
//
// Zero everywhere for a sampler that does not want it. Not synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/philox.h"
#include "search/gp/acquisition_term.h"
#include "search/gp/candidates.h"
#include "search/samplers/density_ratio.h"

namespace fettle::search::gp {

class TpePrior final : public AcquisitionTerm {
 public:
  // Keeps a reference to `space`. Without `wanted` the term never counts.
  TpePrior(const Space& space, const std::vector<api::Objective>& objectives, bool wanted);

  // Update the state, as in IncrementalSampler.
  void add_trial(const Point* point);
  void remove_trial();
  void add_event(const Event& event);
  void reset();

  // Fits the densities for the next trial, after `begun` others.
  void update(std::int64_t begun);
  // Whether, as of the last update, there is enough data and the weight is large enough.
  bool counts() const { return weight_ > 0; }
  // The added term in words: "0.5 times the logarithm of how much denser the good trials lie".
  std::string words() const;

  double at(const Point& point) const override;
  double at(const Inputs& points, Index row, Eigen::VectorXd& slope) const override;

  // Sets the candidates for the next trial, to which rows of at_candidate() refer.
  void set_candidates(const std::vector<Candidate>& candidates);
  double at_candidate(Index row) const override;

  // Draws points from the density of good trials.
  std::vector<Point> draws(std::size_t count, Random& random) const;

 private:
  const Space& space_;
  std::optional<DensityRatio> ratio_;
  double weight_ = 0;
  std::vector<double> candidates_;  // logarithms of their ratios
};

}  // namespace fettle::search::gp
