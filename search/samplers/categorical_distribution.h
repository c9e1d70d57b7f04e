// CategoricalDistribution: the part of an evolution strategy for parameters whose values have no
// order. Independent probabilities of each choice, moved along the natural gradient, with a step
// that adapts to the clarity of the signal and a floor under each probability (Hamano et al. 2024,
// "CatCMA"; the adaptation is ASNG, Akimoto et al. 2019).
//
// Invariant: the probabilities of a parameter sum to 1, and none is below its floor. A value type;
// not synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/philox.h"

namespace fettle::search {

// One choice per parameter; nullopt if the parameter was inactive.
using Choices = std::vector<std::optional<std::size_t>>;

struct RankedChoices {
  Choices choices;
  bool ties_with_previous = false;
};

class CategoricalDistribution {
 public:
  // `sizes`: the number of choices of each parameter, at least two. Begins with equal shares.
  explicit CategoricalDistribution(const std::vector<std::size_t>& sizes);

  Choices draw(Random& random) const;

  // Learns from a generation of at least four trials, best first.
  void update(const std::vector<RankedChoices>& generation);

  // Moves half of the probability to the choices in `best`, in equal shares.
  void favour(const std::vector<Choices>& best);

  const std::vector<double>& probabilities(std::size_t parameter) const {
    return shares_[parameter];
  }

 private:
  void keep_floors();
  std::vector<std::vector<double>> gradient(const std::vector<RankedChoices>& generation) const;
  std::vector<double> in_fisher_coordinates(const std::vector<std::vector<double>>& gradient) const;
  void adapt_step(const std::vector<double>& direction, double length);

  std::vector<std::vector<double>> shares_;
  std::vector<double> path_;  // one number per free probability
  double path_weight_ = 0;
  double trust_ = 1;  // grows while the signal is noise
  double step_ = 1;   // the reciprocal of the trust one generation ago
};

}  // namespace fettle::search
